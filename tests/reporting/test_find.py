"""Results are found wherever they are below the given paths."""

import re

import pytest
from support.refusals import refuses
from support.results import save_identification, save_record, save_run

from algoscope.experiments.record import RESULT
from algoscope.foundation.files import DamagedFileError, write_json
from algoscope.reporting import report
from algoscope.reporting.report import Source, find_sources


def test_results_are_found_below_in_a_natural_order_and_shown_once(tmp_path):
    for name in ("fig10", "fig2", "deeper/fig1", ".hidden/fig3"):
        save_record(tmp_path / "results" / name, title=f"Title of {name}")
    (tmp_path / "results" / "loop").symlink_to(tmp_path / "results")
    root, one = tmp_path / "results", tmp_path / "results" / "fig2" / RESULT
    again = root / "deeper" / ".." / "fig10"
    report([one, root, again], tmp_path / "report.md")
    titles = re.findall(
        "## Figure 1: Title of (.*)", (tmp_path / "report.md").read_text()
    )
    assert titles == ["fig2", "deeper/fig1", "fig10"]


def test_a_result_is_found_by_its_file_and_by_its_directory(tmp_path):
    save_record(tmp_path / "fig1")
    run = save_run(tmp_path / "run")
    path = save_identification(tmp_path / "found.json")
    experiment = Source("experiment", tmp_path / "fig1")
    assert find_sources([tmp_path / "fig1"]) == [experiment]
    assert find_sources([tmp_path / "fig1" / RESULT]) == [experiment]
    assert find_sources([run / "config.json"]) == [Source("run", run)]
    assert find_sources([path]) == [Source("identification", path)]
    found = find_sources([tmp_path])
    assert [each.kind for each in found] == ["experiment", "identification", "run"]


def test_several_runs_in_a_directory_are_also_found_together(tmp_path):
    runs = tuple(save_run(tmp_path / f"run-{place}") for place in (2, 10))
    together, *single = find_sources([tmp_path])
    assert together == Source("runs", tmp_path, runs)
    assert single == [Source("run", run) for run in runs]


ACCEPTED = (
    "A report shows experiments, training runs, constructions, comparisons, "
    "identifications, probing and patching results, and read-outs of layers."
)


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("no", "does not exist."),
        ("empty", f"holds no result. {ACCEPTED}"),
        ("other.json", f"is not a saved result. {ACCEPTED}"),
        ("weights.json", f"is not a saved result. {ACCEPTED}"),
        ("notes.txt", "is not a readable JSON file (JSONDecodeError)."),
    ],
)
def test_bad_paths_are_rejected_and_what_was_written_before_is_kept(
    tmp_path, name, problem
):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("hello")
    write_json(tmp_path / "other.json", {"format": "other"})
    write_json(tmp_path / "weights.json", {"format": "algoscope"})
    out = tmp_path / "kept.html"
    out.write_text("what was there")
    with refuses(DamagedFileError, f"{tmp_path / name} {problem}"):
        report([tmp_path / name], out)
    assert out.read_text() == "what was there"
