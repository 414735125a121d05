"""The page as Python writes it: one file, the same bytes, safe to embed."""

import html
import re
from pathlib import Path

import numpy as np
import pytest
from support.playing import played

from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import COLORS
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.playground import play
from algoscope.playground.bundle import bundle
from algoscope.playground.play import PARTS, assemble, read_modules
from algoscope.reporting.page import STYLE


def test_the_page_is_small_and_has_the_colors_of_the_figures(default_file):
    text = default_file.read_bytes()
    assert len(text) < 3e6
    for place, color in enumerate(COLORS):
        assert f"--color-{place}: {color};".encode() in text


def shades(style: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the colors that a style sheet names, in the light and in the dark."""
    blocks = re.findall(r":root[^{]*\{([^}]*)\}", style.read_text(encoding="utf-8"))
    light, dark, *_ = (dict(re.findall(r"--(\S+): (#\w+);", each)) for each in blocks)
    return light, dark


def test_the_page_and_the_report_have_the_same_shades():
    for ours, theirs in zip(shades(PARTS / "page.css"), shades(STYLE), strict=True):
        assert ours["accent"] == theirs["link"]
        for name in ("paper", "ink", "quiet", "line", "shade", "good", "bad"):
            assert ours[name] == theirs[name], name


def test_the_same_models_give_the_same_page_and_names_are_unique(tmp_path):
    learner = InContextLearner.from_pretrained("linear-d1")
    learner.save_pretrained(tmp_path / "mine")
    page = play("linear-d1", tmp_path / "mine", "linear-d1")
    assert page.names == ("linear-d1", "linear-d1 (2)", "linear-d1 (3)")
    first, mine, second = (model.payload() for model in page.models)
    assert assemble([first]) == assemble([second | {"name": "linear-d1"}])
    assert mine["weights"] == first["weights"]
    assert np.shape(mine["readouts"]["weights"]) == (5, 32)  # none are saved: fitted
    assert repr(page) == "Playground('linear-d1', 'linear-d1 (2)', 'linear-d1 (3)')"


def test_a_page_never_goes_through_a_link(tmp_path):
    target = tmp_path / "target.html"
    target.write_text("mine")
    link = tmp_path / "page.html"
    link.symlink_to(target)
    page = play("linear-d1")
    page.__dict__["html"] = "<p>a page</p>"  # as if it were computed
    with pytest.raises(DamagedFileError, match="is a link, not a regular file"):
        page.write(link)
    assert target.read_text() == "mine"
    assert link.is_symlink()


def test_a_notebook_shows_the_page_in_a_frame(default_file, browser, tmp_path):
    whole = default_file.read_text(encoding="utf-8")
    page = play("linear-d1")
    page.__dict__["html"] = whole  # as if it were computed
    shown = page._repr_html_()
    assert shown.startswith('<iframe srcdoc="')
    inside = re.search(r'srcdoc="([^"]*)"', shown)
    assert inside
    assert html.unescape(inside[1]) == whole
    notebook = tmp_path / "notebook.html"
    notebook.write_text(f"<!doctype html><meta charset=utf-8><body>{shown}</body>")
    with browser.new_context() as context:
        page = context.new_page()
        failed: list[str] = []
        page.on("pageerror", lambda error: failed.append(str(error)))
        page.goto(notebook.as_uri())
        frame = page.frame_locator("iframe")
        frame.locator("#sentence strong").first.wait_for()
        before = frame.locator("#sentence").inner_text()
        assert "answers like least squares" in before
        frame.locator("[data-preset=outlier]").click()
        assert frame.locator("#sentence").inner_text() != before
        frame.locator("#copy").click()
        said = frame.locator("#status").inner_text()
        assert said.startswith("A frame has no address of its own")
        frame.locator("#undo").click()
        assert frame.locator("#sentence").inner_text() == before
        assert failed == []


def test_modules_are_joined_in_the_order_of_their_imports():
    modules = {
        "a.js": 'import * as b from "./in/b.js";\nexport const a = b.b + 1;',
        "in/b.js": 'import { c as d } from "../c.js";\nexport function b() {}',
        "c.js": "export class c {}",
        "unused.js": "export const unused = 1;",
    }
    found = bundle(modules, "a.js")
    places = [
        found.index(f'modules["{name}"] =') for name in ("c.js", "in/b.js", "a.js")
    ]
    assert places == sorted(places)
    assert "unused" not in found
    assert 'const { c: d } = modules["c.js"];' in found


@pytest.mark.parametrize(
    ("modules", "said"),
    [
        ({"a.js": 'import { b } from "./b.js";'}, "hold every import"),
        (
            {
                "a.js": 'import { b } from "./b.js";\nexport const a = 1;',
                "b.js": 'import { a } from "./a.js";\nexport const b = 1;',
            },
            "have no cycle",
        ),
        ({"a.js": 'import b from "./a.css";'}, "import and export in the forms"),
        ({"a.js": "export default 3;"}, "import and export in the forms"),
        ({"a.js": 'const b = import("./b.js");'}, "import and export in the forms"),
    ],
)
def test_modules_of_other_forms_are_rejected(modules, said):
    with pytest.raises(InvalidValueError, match=said):
        bundle(modules, "a.js")


def test_no_part_builds_markup_from_text_or_reaches_outside():
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|new Function|"
        r"\bfetch\(|XMLHttpRequest|WebSocket|localStorage"
    )
    for path, source in read_modules().items():
        assert not forbidden.search(source), path
        assert source.count("\n") <= 350, path
        assert "</script" not in source, path


WHICH = {  # the button to press, and what the learner behind it is
    "linear-d1": "least squares",
    "sgd-d1": "SGD",
    "ridge-d1": "ridge regression",
    "knn": "nearest neighbors",
    "ols": "least squares",
    "linear-d2": "least squares",
    "sgd-d2": "SGD",
    "ridge-d2": "ridge regression",
    "sgd": "SGD",
}


def reader(sentence: str) -> str | None:
    """Return the one algorithm that a reader of the sentence alone would name."""
    found = re.search("(?:answers like|you see) ([a-zA-Z ]+?)(?: itself)?:", sentence)
    return None if found is None or "none of" in found[1] else found[1]


def test_the_sentence_alone_says_which_algorithm_it_is(default_file, browser):
    with played(browser, default_file) as watched:
        page = watched.page
        assert reader(watched.sentence) == "least squares"  # before anything is pressed
        for name, algorithm in WHICH.items():
            if name.endswith("-d2"):
                page.locator("input[name=inputs][value='2']").check()
            page.locator(f"input[name=learner][value={name}]").check()
            assert reader(watched.sentence) == algorithm, name
            bold = page.locator("#sentence strong").first.inner_text()
            assert bold == algorithm
        page.locator("input[name=learner][value=linear-d2]").check()
        page.locator("#shift-x").fill("1")  # ten times the inputs of training
        assert reader(watched.sentence) is None


def test_the_tour_tells_the_story_with_the_page(default_file, browser):
    wanted = [
        ("What is in-context learning?", "like least squares"),
        ("Which algorithm is it?", "like least squares"),
        ("Where does it break?", "like none of these algorithms"),
        ("SGD, written into weights", "like SGD"),
        ("What do the layers do?", "linear-d2 answers like least squares"),
        ("Where to go on", "linear-d1"),
    ]
    addresses = []
    with played(browser, default_file) as watched:
        page = watched.page
        assert page.locator("#tour").is_hidden()
        page.locator("#tour-start").click()
        for place, (title, words) in enumerate(wanted):
            assert page.inner_text("#tour-title") == title
            assert words in watched.sentence, title
            assert page.locator("#tour-back").is_disabled() == (place == 0)
            addresses.append(watched.address)
            if place < 5:
                page.locator("#tour-next").click()
        assert page.locator("#tour-next").is_disabled()
        page.locator("#tour-back").click()
        assert page.inner_text("#tour-title") == wanted[4][0]
        page.locator("#tour-close").click()
        assert page.locator("#tour").is_hidden()
    with played(browser, default_file, addresses[3]) as watched:
        assert watched.page.inner_text("#tour-title") == wanted[3][0]
        assert "like SGD" in watched.sentence
