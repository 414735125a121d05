"""One page shows everything that was found, or nothing is written."""

import json
import shutil
from pathlib import Path

import pytest
from support.refusals import refuses
from support.results import (
    reported,
    save_identification,
    save_patching,
    save_probing,
    save_record,
    save_run,
)

from algoscope.experiments.record import RESULT, Table
from algoscope.foundation.files import DamagedFileError, write_json
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.checkpoints import MODELS
from algoscope.reporting import report


def test_every_kind_of_result_has_its_section(tmp_path):
    root = tmp_path / "all"
    save_record(root / "fig1", title="One experiment")
    save_run(root / "run", "one run")
    shutil.copy(MODELS / "linear-d2" / "evaluation.json", root / "compared.json")
    save_identification(root / "identified.json", "one box")
    save_probing(root / "probed", "one learner")
    save_patching(root / "patched", "another")
    (root / "notes.txt").write_text("not a result")
    write_json(root / "other.json", {"format": "something else"})
    page = reported(tmp_path / "report.html", root)
    titles = [
        *("linear-d2 against textbook algorithms", "One experiment"),
        *("Which algorithm is one box?", "What another uses"),
        "What one learner encodes",
        "Training run one run",
    ]
    places = [page.text.index(title) for title in titles]
    assert places == sorted(places)
    assert page.text.count("behaves most like OLS") == 2
    assert "Finished after 6,000 of 6,000 steps." in page.text
    assert "Determined, n = 2: behaves like; the nearest is ols at 0.1." in page.text
    assert [tag for tag, _ in page.elements].count("figure") == 1 + 1 + 1 + 2 + 4 + 1
    assert len(page.all("id")) == len(set(page.all("id")))
    targets = {link[1:] for link in page.all("href") if link.startswith("#")}
    assert targets <= set(page.all("id"))


def test_an_experiment_is_shown_with_all_that_it_found(tmp_path):
    record = save_record(tmp_path / "fig1")
    page = reported(tmp_path / "report.html", tmp_path / "fig1")
    words = [
        "Figure 1: Which algorithm?",
        record.command,
        *record.findings,
        "72 min",
        "smoke",
    ]
    words += ["1 diverged, 1 finished", "c0ffee", "python 3.11, algoscope 0.1.0"]
    words += ["2 claims: 1 reproduced, 1 partly.", '"seeds"', "Distances", "0.002"]
    for claim in record.claims:
        words += [claim.name, claim.paper, claim.measured, claim.verdict, claim.reason]
    for word in words:
        assert word in page.text, word
    tags = [tag for tag, _ in page.elements]
    assert tags.count("svg") == 1
    assert tags.count("details") == len(record.claims) + 3  # and findings, table, how
    assert not {"script", "img", "link", "iframe"} & set(tags)
    assert {"verdict good", "verdict mixed"} <= set(page.all("class"))
    assert page.all("content")[0].startswith("default-src 'none'; ")


def test_the_same_results_give_the_same_bytes(tmp_path):
    experiment, run = tmp_path / "fig1", save_run(tmp_path / "run")
    save_record(experiment)
    for paths, name in (([experiment, run], "a.html"), ([experiment], "a.md")):
        out = tmp_path / name
        report(paths, out)
        first = out.read_bytes()
        report(paths, out)
        assert out.read_bytes() == first


def rejects(tmp_path: Path, path: Path, message: str) -> None:
    """Pass if the path is rejected with this message and nothing is written."""
    out = tmp_path / "kept.html"
    out.write_text("what was there")
    with refuses(DamagedFileError, message):
        report(path, out)
    assert out.read_text() == "what was there"


def test_one_path_may_be_given_as_text_and_progress_is_reported(tmp_path):
    save_record(tmp_path / "fig1")
    save_identification(tmp_path / "found.json")
    steps = []

    def watch(stage: str, done: int, total: int | None, note: str = "") -> None:
        steps.append((stage, done, total, note))

    out = tmp_path / "report.md"
    written = report(str(tmp_path), str(out), progress=watch)
    assert (written.out, written.sections, written.claims) == (out, 2, 2)
    assert written.bytes == out.stat().st_size
    paths = [str(tmp_path / name) for name in ("fig1", "found.json")]
    stage = "reading results"
    assert steps == [(stage, 1, 2, paths[0]), (stage, 2, 2, paths[1])]


def test_a_playground_beside_the_report_is_linked(tmp_path):
    save_record(tmp_path / "results" / "fig1")
    link = '<a href="playground.html">the playground</a>'
    out = tmp_path / "report.html"
    report(tmp_path / "results", out)
    assert link not in out.read_text()
    assert "<code>algoscope play --open</code>" in out.read_text()
    (tmp_path / "playground.html").write_text("a page")
    report(tmp_path / "results", out)
    assert link in out.read_text()


def test_no_paths_are_rejected(tmp_path):
    with refuses(InvalidValueError, "`paths` must name at least one result, got none."):
        report([], tmp_path / "report.html")


def test_bad_outputs_are_rejected(tmp_path):
    save_record(tmp_path / "fig1")
    out = tmp_path / "report.pdf"
    with refuses(InvalidValueError, f"`out` must end in .html or .md, got '{out}'."):
        report([tmp_path], out)
    out = tmp_path / "a.html"
    out.mkdir()
    with refuses(
        InvalidValueError, f"`out` must be a file, got the directory '{out}'."
    ):
        report([tmp_path], out)


def test_damaged_results_are_rejected_by_name(tmp_path):
    directory = tmp_path / "fig1"
    path = directory / RESULT
    save_record(directory, tables=(Table("T", ("a", "b"), (("1",),)),))
    problem = "has rows in the table 'T' that are longer or shorter than its header"
    rejects(tmp_path, directory, f"{path} {problem}.")
    values = json.loads(path.read_text()) | {"tables": []}
    write_json(path, values | {"figures": ["../a"]})
    problem = "names a figure outside its own directory, '../a'"
    rejects(tmp_path, directory, f"{path} {problem}.")
    write_json(path, values | {"seconds": "long"})
    error = "TypeError: '>=' not supported between instances of 'str' and 'float'"
    problem = f"is a damaged result of kind 'experiment' ({error})"
    rejects(tmp_path, directory, f"{directory} {problem}.")
    write_json(path, values)
    picture = directory / "curves.png"
    picture.unlink()
    remedy = "Run the experiment's command again."
    rejects(tmp_path, directory, f"{picture} is missing. {remedy}")
    picture.write_bytes(b"")
    (directory / "curves.svg").write_bytes(b"\xff")
    with pytest.raises(DamagedFileError, match=r"curves\.svg is not an SVG file \("):
        report(directory, tmp_path / "report.html")
    path.write_text(path.read_text()[:-9])
    problem = "is not a readable JSON file (JSONDecodeError)"
    rejects(tmp_path, tmp_path, f"{path} {problem}.")
