"""The report shows everything that was found, and nothing that is shown can act."""

import json
import re
import shlex
import shutil
from collections.abc import Iterator
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
import tyro
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.browser import Browser, Page, find_browser
from support.refusals import refuses

from algoscope.cli.build import Build
from algoscope.cli.main import main
from algoscope.cli.report import Report, run_report
from algoscope.cli.train import Train
from algoscope.comparison.figures import draw_comparison
from algoscope.comparison.intervals import Estimate
from algoscope.comparison.result import Comparison
from algoscope.construction.algorithms import ALGORITHMS, GD, SGD
from algoscope.construction.build import Construction, listing, save_construction
from algoscope.experiments.record import RESULT, Claim, Record, Table
from algoscope.foundation.files import DamagedFileError, write_json
from algoscope.foundation.validation import InvalidValueError
from algoscope.identification.result import Candidate, Identification, Regime
from algoscope.model.checkpoints import MODELS
from algoscope.patching.result import Map, PatchingResult
from algoscope.probing.result import Measurement, ProbingResult
from algoscope.reporting import markdown, write_report
from algoscope.reporting.find import MOST_RUNS
from algoscope.reporting.runs import build_command, train_command
from algoscope.reporting.svg import (
    ELEMENTS,
    HREFS,
    NAMESPACE,
    element,
    inline_svg,
    visible,
)
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.sweeps.store import record_outcome

SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="60pt">'
    '<clipPath id="c"><rect width="9" height="9"/></clipPath>'
    '<path d="M 0 0 L 9 9" clip-path="url(#c)"/></svg>'
)
HOSTILE_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"
     xmlns:xlink="http://www.w3.org/1999/xlink" onload="document.title='hacked'">
  <script>document.title = 'hacked'</script>
  <style>body { display: none } @import "http://127.0.0.1:9/a.css";</style>
  <image xlink:href="http://127.0.0.1:9/b.png" width="9" height="9"/>
  <image href="data:image/svg+xml;base64,PHN2Zy8+" width="9" height="9"/>
  <use href="http://127.0.0.1:9/c.svg#x"/>
  <a href="javascript:document.title='hacked'"><text>press me</text></a>
  <foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="http://127.0.0.1:9/d"
    onerror="document.title='hacked'"/></foreignObject>
  <animate attributeName="href" values="javascript:document.title='hacked'"/>
  <set attributeName="onmouseover" to="document.title='hacked'"/>
  <rect width="9" height="9" onclick="document.title='hacked'"
    style="fill: url(http://127.0.0.1:9/e); stroke: u\\72l(//127.0.0.1:9/f);
      position: fixed; background: red"/>
  <text x="1" y="9">&lt;script>document.title='hacked'&lt;/script></text>
</svg>"""
HOSTILE = (
    "<script>document.title='hacked'</script>",
    '"><img src=x onerror="document.title=\'hacked\'">',
    "javascript:document.title='hacked'",
    "</title></style><svg onload=document.title='hacked'>",
    "'-->]]>&lt;b&gt;`|\\ $x$ {{7*7}}",
    "long" * 60,
)
TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)


def save_record(directory: Path, **changes: Any) -> Record:
    """Write an experiment with one small figure."""
    record = Record(
        figure="fig1",
        title="Which algorithm?",
        budget="smoke",
        command="algoscope reproduce fig1 --budget smoke",
        config={"dim": 8, "seeds": [0, 1]},
        versions={"python": "3.11", "algoscope": "0.1.0"},
        seconds=4321.0,
        findings=("OLS is the nearest: 0.002 [0.001, 0.003].", "Ridge is the next."),
        figures=("curves",),
        tables=(Table("Distances", ("reference", "SPD/d"), (("OLS", "0.002"),)),),
        claims=(
            Claim("minimum norm", "§4.3: as OLS", "0.002 (n = 10)", "reproduced"),
            Claim("depth", "§4.4: phases", "two of three", "partly", "few depths"),
        ),
        runs={"d52a5e4b2a1d": "finished", "c0ffee": "diverged: at step 4"},
    )
    record = replace(record, **changes)
    record.save(directory)
    for name in record.figures:
        (directory / f"{name}.svg").write_text(SVG)
        (directory / f"{name}.png").write_bytes(b"\x89PNG")
    return record


def save_run(directory: Path, name: str = "small", model: str = "linear-d1") -> Path:
    """Write a finished run under another name."""
    shutil.copytree(MODELS / model, directory)
    for part in ("config.json", "evaluation.json"):
        text = (directory / part).read_text()
        (directory / part).write_text(text.replace(f'"{model}"', json.dumps(name)))
    return directory


def save_probing(directory: Path, learner: str = "small") -> Path:
    rng = np.random.default_rng(0)
    measurements = tuple(
        Measurement(
            who,
            "moment",
            kind,
            (0, 1),
            rng.uniform(0.1, 1.0, (2, 2, 2)),
            np.ones((2, 2)),
            rng.dirichlet(np.ones(5), (2, 2, 2)),
        )
        for who in (learner, "control")
        for kind in ("linear", "mlp")
    )
    config = {"repeats": 2, "num_training": 10}
    versions = {"python": "3.11"}
    ProbingResult(
        learner, ("control",), 2, "a task", (1, 2), config, versions, measurements
    ).save(directory)
    return directory


def save_patching(directory: Path, learner: str = "small") -> Path:
    rng = np.random.default_rng(0)
    names = ("moved", "ilwd", "error", "weights", "pattern", "random")
    maps = {name: Map(*rng.uniform(size=(3, 3, 6))) for name in names}
    parts = ("nothing", "layer 1, head 1", "layer 1, MLP", "layer 2, MLP")
    intact, *without = (Estimate(part, "OLS", 0.1, 0.0, 0.2, 0.1, 5) for part in parts)
    sizes = {"learner": learner, "dim": 2, "task": "a task", "num_examples": 2}
    PatchingResult(
        **sizes,
        target="w_ols",
        apart=1.0,
        config={},
        versions={"python": "3.11"},
        maps=maps,
        intact=intact,
        ablations=tuple(without),
    ).save(directory)
    return directory


def save_identification(path: Path, target: str = "small") -> Path:
    rest = {"regimes": {"determined": 0.1}, "median_spd": {"determined": 0.1}}
    candidates = [
        Candidate("ols", "ols", {}, 0.1, 0.05, 0.2, **rest),
        Candidate("ridge", "ridge(0.1)", {"penalty": 0.1}, 0.3, 0.2, 0.4, **rest),
    ]
    Identification(
        target=target,
        verdict="ols",
        parameters={},
        parameter_ranges={},
        confidence=0.9,
        candidates=candidates,
        regimes=[Regime("determined", 2, 2, "ols", "ols", 0.1)],
        domain="task",
        threshold=0.2,
        task="a task",
        dim=2,
        num_examples=4,
        num_datasets=8,
        seed=0,
        versions={"python": "3.11"},
    ).save(path)
    return path


class Reader(HTMLParser):
    """Collects what a page says and what its elements are."""

    def __init__(self, text: str):
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[str]:
        """The values of an attribute anywhere."""
        return [value for _, found in self.elements if (value := found.get(name))]


def report(out: Path, *paths: Path) -> Reader:
    write_report(paths, out)
    return Reader(out.read_text())


@given(TEXT)
def test_any_text_is_shown_as_it_is(text):
    page = Reader(element("p", text, title=text).html)
    assert page.text == visible(text)
    assert page.elements == [("p", {"title": visible(text)})]


@given(TEXT)
def test_visible_text_can_be_written_and_changes_only_what_has_no_picture(text):
    shown = visible(text)
    shown.encode()
    assert len(shown) == len(text)
    assert visible(shown) == shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


def said(source: str) -> list[str]:
    """Return the text of each block, as a reader of Markdown sees it."""
    parser = MarkdownIt("commonmark").enable("table")
    blocks = [token for token in parser.parse(source) if token.type == "inline"]
    return [
        "".join(
            child.content
            for child in block.children or ()
            if child.type in ("text", "code_inline", "text_special")
        )
        for block in blocks
    ]


PUNCTUATION = st.text("\\`*_{}[]()<>#+-=.!|~&$:/;\"' \n1a", max_size=12)
MARKS = ("&amp;", "&#60;", "<b>", "![a](b)", "[a]: b", "~~a~~", "1. ", "- ", "a ", "\n")
PIECES = st.lists(st.sampled_from(MARKS), max_size=4).map("".join)


@given(PUNCTUATION | PIECES | TEXT)
def test_any_text_survives_markdown(text):
    line = " ".join(visible(text).split())
    escaped = markdown.escape(text)
    for source in (f"{escaped}", f"* {escaped}", f"## {escaped}"):
        assert "".join(said(source)) == line
    cells = [escaped, markdown.code(text), "last"]
    assert said(markdown.table(["a", "b", "c"], [cells]))[3:] == [line, line, "last"]


@given(PUNCTUATION | PIECES | TEXT)
def test_any_command_survives_a_block(text):
    (token,) = MarkdownIt("commonmark").parse(markdown.block(text))
    lines = visible(text).split("\n")
    assert token.content.split("\n")[: len(lines)] == lines


ODD_ELEMENTS = ("script", "style", "foreignObject", "a", "animate", "set", "iframe")
VALUES = st.sampled_from(
    [
        "1",
        "red",
        "#x",
        "url(#x)",
        "url('#x')",
        "URL(#x)",
        "url(http://a/b)",
        "url(//a)",
        "u\\72l(#x)",
        "image-set('b')",
        "javascript:alert(1)",
        "http://a/b.png",
        "data:image/png;base64,AAAA",
        "data:image/svg+xml,<svg/>",
        "fill: url(#x); stroke: url(a.png)",
        "fill: red; position: fixed",
        "translate(1 2) rotate(3)",
    ]
)
NAMES = st.sampled_from(
    [
        *("id", "href", HREFS[1], "src", "style", "fill", "clip-path", "d", "class"),
        *("onload", "onclick", "transform", "xmlns", "filter", "formaction"),
    ]
)


@st.composite
def svg_trees(draw, depth: int = 0) -> ElementTree.Element:
    names = [*sorted(ELEMENTS), *ODD_ELEMENTS]
    name = draw(st.sampled_from(names)) if depth else "svg"
    space = draw(st.sampled_from([NAMESPACE, NAMESPACE, NAMESPACE, "", "{other}"]))
    node = ElementTree.Element(f"{space if depth else NAMESPACE}{name}")
    node.attrib.update(draw(st.dictionaries(NAMES, VALUES, max_size=4)))
    node.text = draw(st.sampled_from(["", "hello", "<script>x</script>"]))
    if depth < 3:
        node.extend(draw(st.lists(svg_trees(depth=depth + 1), max_size=3)))
    return node


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(
        svg.replace("<svg", f"<svg xmlns='{NAMESPACE[1:-1]}'")
    )


@given(svg_trees())
def test_a_sanitized_svg_refers_to_itself_only_and_does_nothing(tree):
    text = ElementTree.tostring(tree, encoding="unicode")
    clean = inline_svg(text, prefix="p-", label="a", source="s").html
    for node in parsed(clean).iter():
        assert node.tag.removeprefix(NAMESPACE) in ELEMENTS
        for name, value in node.attrib.items():
            assert not name.startswith("on")
            assert name not in ("src", "class", "filter", "formaction")
            assert "position" not in value
            assert all(link == "url(#p-x)" for link in re.findall(r"url\(.*?\)", value))
            if name == "href":
                is_image = node.tag == f"{NAMESPACE}image"
                start = "data:image/png;base64," if is_image else "#p-"
                assert value.startswith(start)
            else:
                assert not re.search(r"script|http|//|\\|image|data:", value)
    again = inline_svg(
        clean.replace("<svg", f"<svg xmlns='{NAMESPACE[1:-1]}'", 1),
        prefix="",
        label="a",
        source="s",
    )
    assert again.html == clean


def test_a_figure_of_matplotlib_keeps_all_its_shapes(tmp_path):
    path = tmp_path / "figure.svg"
    draw_comparison(Comparison.load(MODELS / "linear-d1" / "evaluation.json"), path)
    before = ElementTree.parse(path).getroot()
    after = parsed(inline_svg(path.read_text(), prefix="p-", label="", source="").html)
    for name in ("path", "use", "g", "clipPath", "rect"):
        tag = NAMESPACE + name
        assert len(list(after.iter(tag))) == len(list(before.iter(tag)))
    names = {node.get("id") for node in after.iter()}
    links = [node.attrib["href"] for node in after.iter(f"{NAMESPACE}use")]
    assert links
    assert {link[1:] for link in links} <= names
    clips = [
        node.attrib["clip-path"] for node in after.iter() if "clip-path" in node.attrib
    ]
    assert clips
    assert {clip[len("url(#") : -1] for clip in clips} <= names
    styles = [
        [node.get("style", "").rstrip(" ;") for node in root.iter(f"{NAMESPACE}path")]
        for root in (before, after)
    ]
    assert styles[0] == styles[1]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<svg", "an error: unclosed token: line 1, column 0"),
        ("<html/>", "the element html"),
        ('<!DOCTYPE a [<!ENTITY b "c">]><a/>', "one that declares entities"),
    ],
)
def test_what_is_no_svg_is_refused(text, problem):
    with refuses(DamagedFileError, f"`a.svg` must be an SVG file, got {problem}."):
        inline_svg(text, prefix="", label="", source="a.svg")


def test_an_svg_that_is_too_deep_is_refused():
    text = SVG.replace("<path", "<g>" * 10_000 + "<path").replace(
        "</svg>", "</g>" * 10_000 + "</svg>"
    )
    message = (
        "`a.svg` must be an SVG file with at most 64 elements inside each other, "
        "got a deeper one."
    )
    with refuses(DamagedFileError, message):
        inline_svg(text, prefix="", label="", source="a.svg")


def test_an_experiment_is_shown_with_all_that_it_found(tmp_path):
    record = save_record(tmp_path / "fig1")
    page = report(tmp_path / "report.html", tmp_path / "fig1")
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
    assert tags.count("details") == 2
    assert not {"script", "img", "link", "iframe"} & set(tags)
    assert {"verdict good", "verdict mixed"} <= set(page.all("class"))
    assert page.all("content")[0].startswith("default-src 'none'; ")


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
    page = report(tmp_path / "report.html", root)
    titles = [
        *("linear-d2 against textbook algorithms", "One experiment"),
        *("Which algorithm is one box?", "What another uses"),
        "What one learner encodes",
        "Training run one run",
    ]
    places = [page.text.index(title) for title in titles]
    assert places == sorted(places)
    assert page.text.count("behaves most like OLS") == 2
    assert "Finished after 3,000 of 3,000 steps." in page.text
    assert "Determined, n = 2: ols; the nearest is ols at 0.1." in page.text
    assert [tag for tag, _ in page.elements].count("svg") == 1 + 1 + 2 + 4 + 1
    assert len(page.all("id")) == len(set(page.all("id")))
    targets = {link[1:] for link in page.all("href") if link.startswith("#")}
    assert targets <= set(page.all("id"))


def test_results_are_found_below_in_a_natural_order_and_shown_once(tmp_path):
    for name in ("fig10", "fig2", "deeper/fig1", ".hidden/fig3"):
        save_record(tmp_path / "results" / name, title=f"Title of {name}")
    (tmp_path / "results" / "loop").symlink_to(tmp_path / "results")
    root, one = tmp_path / "results", tmp_path / "results" / "fig2" / RESULT
    again = root / "deeper" / ".." / "fig10"
    write_report([one, root, again], tmp_path / "report.md")
    titles = re.findall(
        "## Figure 1: Title of (.*)", (tmp_path / "report.md").read_text()
    )
    assert titles == ["fig2", "deeper/fig1", "fig10"]


def test_a_store_of_runs_is_a_table(tmp_path):
    store = tmp_path / "store"
    for seed in range(MOST_RUNS + 1):
        config = TrainingConfig(dim=2, seed=seed)
        directory = store / f"run-{seed}"
        about = {"format": "algoscope", "training": vars(config)}
        write_json(directory / "config.json", about)
    record_outcome(TrainingConfig(dim=2), store / "run-0", "diverged", "loss nan")
    rows = '{"step": 50, "loss": 0.25, "seconds": 9.0}\n{"step": 100, "lo'
    (store / "run-1" / "metrics.jsonl").write_text(rows)
    write_report([store], tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert "* 13 runs: 1 diverged, 12 unfinished." in text
    row = "| run-1 | linear | 2 | 1 | 0 | 8 | 64 | 4 | 0.01 | 1 | 50 of 14,000 | 0.25 |"
    assert f"{row} – | – | unfinished |\n" in text
    assert "Training run" not in text.replace("Training runs", "")
    shutil.rmtree(store / "run-12")
    write_report([store], tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert text.count("## Training run run-") == MOST_RUNS
    assert "* Diverged after 0 of 14,000 steps: loss nan\n" in text


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(
    "changes", [{}, {"curriculum": True, "learning_rate": 3e-3}, {"seed": 7, "dim": 3}]
)
def test_the_command_of_a_run_trains_that_run(name, changes):
    config = replace(PRESETS[name], **changes)
    words = shlex.split(train_command(config, "a 'b"))
    assert words[:2] == ["algoscope", "train"]
    settings = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
    command = tyro.cli(Train, args=words[2:], config=settings)
    assert (command.config, command.name) == (config, "a 'b")


CONSTRUCTIONS = [
    Construction(SGD(0.05, 0.1), dim=2, num_examples=2),
    Construction(GD(0.02, steps=2), 1, 2, "float64", "silu", 1e-9),
    Construction(SGD(), 1, 2, pre_norm=True),
]


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=lambda each: each.name)
def test_a_construction_is_shown_with_the_command_that_writes_it(
    construction, tmp_path, monkeypatch
):
    directory = tmp_path / "mine"
    save_construction(construction, construction.compile(), directory)
    out = tmp_path / "page.md"
    assert write_report([tmp_path], out).sections == 1
    text = out.read_text()
    assert f"Written by hand: {construction.name}" in text.replace("\\_", "_")
    assert text.count("| attention |") + text.count("| MLP |") == len(
        listing(construction.arrange())
    )
    command = build_command(construction, "mine")
    assert command in text
    saved = (directory / "config.json").read_text()
    shutil.rmtree(directory)
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command)[1:])
    assert (directory / "config.json").read_text() == saved


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_command_of_a_construction_holds_all_its_parameters(name):
    algorithm = ALGORITHMS[name]()
    words = shlex.split(build_command(Construction(algorithm), "mine"))
    command = tyro.cli(Build, args=words[2:], config=(tyro.conf.FlagCreatePairsOff,))
    assert (command.algorithm, command.parameters) == (name, asdict(algorithm))


def test_a_page_of_markdown_has_a_row_per_claim_and_links_to_pictures(tmp_path):
    save_record(tmp_path / "results" / "a b", title="A | B")
    out = tmp_path / "docs" / "results.md"
    write_report([tmp_path / "results"], out)
    text = out.read_text()
    command = "`algoscope reproduce fig1 --budget smoke`"
    row = "| depth | §4.4: phases | two of three | **partly** | few depths |"
    assert f"{row} {command} |\n" in text
    assert "## Figure 1: A \\| B\n" in text
    assert "![curves](../results/a%20b/curves.png)\n" in text
    assert "| reference | SPD/d |\n| --- | ---: |\n| OLS | 0.002 |\n" in text


def test_the_same_results_give_the_same_bytes(tmp_path):
    experiment, run = tmp_path / "fig1", save_run(tmp_path / "run")
    save_record(experiment)
    for paths, name in (([experiment, run], "a.html"), ([experiment], "a.md")):
        out = tmp_path / name
        write_report(paths, out)
        first = out.read_bytes()
        write_report(paths, out)
        assert out.read_bytes() == first


def test_the_command_reads_its_options_and_says_what_it_wrote(tmp_path, capsys):
    save_record(tmp_path / "fig1")
    out = tmp_path / "report.html"
    settings = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
    words = [str(tmp_path / "fig1"), str(tmp_path), "-o", str(out), "--title", "Mine"]
    command = tyro.cli(Report, args=words, config=settings)
    assert command == Report((tmp_path / "fig1", tmp_path), out, title="Mine")
    run_report(command)
    assert capsys.readouterr().out == f"{out}: 1 result, 2 claims, 0.0 MB.\n"
    run_report(replace(command, json=True))
    size = out.stat().st_size
    written = {"out": str(out), "sections": 1, "claims": 2, "bytes": size}
    assert json.loads(capsys.readouterr().out) == written
    assert "<title>Mine</title>" in out.read_text()


def refuses_all(tmp_path: Path, paths: list[Path], message: str) -> None:
    """Pass if the paths are refused with this message and nothing is written."""
    out = tmp_path / "kept.html"
    out.write_text("what was there")
    with refuses(InvalidValueError, message):
        write_report(paths, out)
    assert out.read_text() == "what was there"


def test_bad_paths_are_refused(tmp_path):
    empty, text = tmp_path / "empty", tmp_path / "notes.txt"
    empty.mkdir()
    text.write_text("hello")
    write_json(tmp_path / "other.json", {"format": "other"})
    rule = "be or hold experiments, runs, constructions, comparisons, "
    rule += "identifications, probing or patching"
    for paths, message in (
        ([], "`paths` must name results or runs, got none."),
        (
            [tmp_path / "no"],
            f"`paths` must name files and directories that exist, got '{tmp_path}/no'.",
        ),
        ([empty], f"`{empty}` must {rule}, got none of them."),
        (
            [tmp_path / "other.json"],
            f"`{tmp_path}/other.json` must {rule}, got none of them.",
        ),
        ([text], f"`{text}` must be a readable JSON file, got JSONDecodeError."),
    ):
        refuses_all(tmp_path, paths, message)


def test_bad_outputs_are_refused(tmp_path):
    save_record(tmp_path / "fig1")
    out = tmp_path / "report.pdf"
    with refuses(InvalidValueError, f"`out` must end in .html or .md, got '{out}'."):
        write_report([tmp_path], out)
    out = tmp_path / "a.html"
    out.mkdir()
    with refuses(
        InvalidValueError, f"`out` must be a file, got the directory '{out}'."
    ):
        write_report([tmp_path], out)


def test_damaged_results_are_refused_by_name(tmp_path):
    directory = tmp_path / "fig1"
    path = directory / RESULT
    save_record(directory, tables=(Table("T", ("a", "b"), (("1",),)),))
    refuses_all(
        tmp_path,
        [directory],
        f"`{path}` must hold as many cells as headings in each row of 'T', "
        "got another number.",
    )
    values = json.loads(path.read_text()) | {"tables": []}
    write_json(path, values | {"figures": ["../a"]})
    refuses_all(
        tmp_path,
        [directory],
        f"`{path}` must name figures in its own directory, got '../a'.",
    )
    write_json(path, values | {"seconds": "long"})
    refuses_all(
        tmp_path,
        [directory],
        f"`{directory}` must hold experiment files that can be shown, got an error, "
        "TypeError: '>=' not supported between instances of 'str' and 'float'.",
    )
    write_json(path, values)
    (directory / "curves.png").unlink()
    refuses_all(
        tmp_path,
        [directory],
        f"`{directory}/curves.png` must be a figure of the experiment beside it, got "
        "no file. Run the experiment's command again.",
    )
    path.write_text(path.read_text()[:-9])
    refuses_all(
        tmp_path,
        [tmp_path],
        f"`{path}` must be a readable JSON file, got JSONDecodeError.",
    )


def test_damaged_runs_are_refused_by_name(tmp_path):
    run = save_run(tmp_path / "run")
    metrics = run / "metrics.jsonl"
    metrics.write_text('{"step": 1}\n')
    refuses_all(
        tmp_path,
        [run],
        f"`{metrics}` must hold step, loss and seconds in each row, got {{'step': 1}}.",
    )
    write_json(run / "config.json", {"format": "algoscope", "training": {"dim": 1}})
    with pytest.raises(DamagedFileError, match=re.escape(f"`{run}` must hold run fil")):
        write_report([run], tmp_path / "report.html")


def test_without_a_browser_its_tests_are_skipped_or_fail(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ALGOSCOPE_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium here: install chrom"):
        find_browser()
    monkeypatch.setenv("ALGOSCOPE_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no Chromium here: install chrom"):
        find_browser()


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator[Browser]:
    find_browser()
    opened = Browser(tmp_path_factory.mktemp("profile"))
    try:
        yield opened
    finally:
        opened.close()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A report of results whose every name and file tries to act."""
    root = tmp_path_factory.mktemp("hostile")
    first, second, third, fourth, fifth, long = HOSTILE
    experiment = root / "results" / "fig <b>1"
    save_record(
        experiment,
        figure=first,
        title=second,
        budget=third,
        command=fourth,
        config={fifth: [long]},
        versions={first: second},
        findings=HOSTILE,
        tables=(
            Table(third, HOSTILE, (HOSTILE, HOSTILE[::-1])),
            Table("wide", tuple("abcdefghijklmnop"), (("1.2345",) * 16,) * 40),
        ),
        claims=tuple(
            Claim(text, text, text, verdict, text)
            for text in HOSTILE
            for verdict in ("reproduced", "partly", "not reproduced", "not testable")
        ),
        runs={text: text for text in HOSTILE},
    )
    (experiment / "curves.svg").write_text(HOSTILE_SVG)
    save_run(root / "results" / "<img src=x onerror=alert(1)>", first)
    save_identification(root / "results" / f"{HOSTILE[2]}.json", second)
    save_probing(root / "results" / "probed", second)
    out = root / "report.html"
    write_report([root / "results"], out, title=HOSTILE[3])
    return out


def test_the_watch_on_the_browser_sees_what_it_must_not_find(tmp_path, browser):
    path = tmp_path / "bad.html"
    path.write_text(
        "<img src='http://127.0.0.1:9/a.png'><div style='width: 999px'>wide</div>"
        "<script>document.title = 'hacked'; console.error('no')</script>"
    )
    page = Page(browser, path, width=360)
    assert "http://127.0.0.1:9/a.png" in page.requests
    assert any("no" in each for each in page.complaints)
    assert page.evaluate("document.title") == "hacked"
    assert page.evaluate("document.documentElement.scrollWidth") > 360


@pytest.mark.parametrize("policy", [True, False])
def test_hostile_names_are_shown_and_not_executed(tmp_path, browser, hostile, policy):
    text = hostile.read_text()
    found = re.search(r'<meta http-equiv="Content-Security-Policy"[^>]*>', text)
    assert found
    path = tmp_path / "report.html"
    # Without the policy, escaping alone must hold.
    path.write_text(text if policy else text.replace(found[0], ""))
    page = Page(browser, path, width=1200)
    outside = [each for each in page.requests if not each.startswith("data:image/png")]
    assert outside == [path.as_uri()]
    assert page.complaints == []
    assert page.evaluate("document.title") == HOSTILE[3]
    shown = page.evaluate("document.body.textContent")
    for name in (*HOSTILE, "<img src=x onerror=alert(1)>", "fig <b>1"):
        assert name in shown
    acting = "script, img, iframe, object, embed, link, form, base, foreignObject"
    assert page.evaluate(f"document.querySelectorAll('{acting}').length") == 0
    links = page.evaluate("[...document.links].map(link => link.getAttribute('href'))")
    assert links
    assert all(link.startswith("#") for link in links)
    handlers = (
        "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
        ".filter(name => name.startsWith('on'))"
    )
    assert page.evaluate(handlers) == []


WIDTH = "document.documentElement.scrollWidth"


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(browser, hostile, dark):
    page = Page(browser, hostile, width=360, dark=dark)
    assert page.evaluate(WIDTH) <= 360
    boxes = "[...document.querySelectorAll('.scroll, .card, pre')]"
    assert page.evaluate(f"{boxes}.every(e => e.getBoundingClientRect().right <= 360)")
    assert page.evaluate(f"{boxes}.some(e => e.scrollWidth > e.clientWidth)")
    assert page.complaints == []


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors, as accessibility guidelines define it."""

    def luminance(color: str) -> float:
        parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_it_is_readable_in_the_light_and_in_the_dark(browser, hostile):
    page = Page(browser, hostile, width=800)
    papers = []
    for dark in (False, True):
        page.show(dark=dark)
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        papers.append(paper)
        for name in ("body", "a", "th", "dt", ".good", ".mixed", ".bad", ".open"):
            ink = page.evaluate(
                f"getComputedStyle(document.querySelector('{name}')).color"
            )
            assert contrast(paper, ink) >= 4.5, (dark, name)
        card = "getComputedStyle(document.querySelector('.card')).backgroundColor"
        assert page.evaluate(card) == "rgb(255, 255, 255)"
    assert contrast(*papers) > 10


def test_it_prints_with_everything_open_and_nothing_cut(browser, hostile):
    page = Page(browser, hostile, width=720, dark=True)
    folded = (
        "[...document.querySelectorAll('details pre')]"
        ".map(each => each.checkVisibility())"
    )
    assert set(page.evaluate(folded)) == {False}
    page.show(dark=True, media="print")
    assert set(page.evaluate(folded)) == {True}
    assert page.evaluate(WIDTH) <= 720
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert paper == "rgb(255, 255, 255)"
    content = page.pdf()
    assert content.startswith(b"%PDF-")
    assert len(re.findall(rb"/Type\s*/Page\b", content)) > 1
    assert page.complaints == []


def test_a_name_that_an_svg_gives_twice_is_kept_once():
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/><g id="a"/>'
        '<use href="#a"/></svg>'
    )
    page = inline_svg(text, prefix="p-", label="two", source="x.svg").html
    assert page.count('id="p-a"') == 1
    assert 'href="#p-a"' in page
