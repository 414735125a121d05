"""Readable everywhere: on a phone, in the dark, on paper, and without seeing it.

With ALGOSCOPE_SCREENSHOTS=DIRECTORY the run leaves screenshots there.
"""

import os
from pathlib import Path

import pytest
from support.playing import played

WIDTHS = (1280, 768, 360)
TWO = "model=linear-d2&x=1,0;0,1;1,1&y=1,-1,0&query=1,1&shown=ols,sgd&tour=5"
OPEN = "model=linear-d1&x=1;2;-1&y=1,2,-1&query=1&open=depth,watch,attention,patch"
TEXTS = """() => {
  const parts = (color) => (color.match(/[\\d.]+/g) ?? []).map(Number);
  const luminance = ([r, g, b]) => [r, g, b].map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const paperOf = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length && (color.length < 4 || color[3] > 0.5)) return color;
    }
    return [255, 255, 255];
  };
  const low = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, style, svg, button:disabled")) continue;
    const [a, b] = [luminance(parts(getComputedStyle(element).color)),
      luminance(paperOf(element))].sort((p, q) => q - p);
    const contrast = (a + 0.05) / (b + 0.05);
    if (contrast < 4.5) low.push([walker.currentNode.data.slice(0, 30), contrast]);
  }
  return low;
}"""
UNNAMED = """() => [...document.querySelectorAll(
    "button, input:not([type=file]), textarea, select, summary, canvas, [role=button], "
    + "[role=slider]")]
  .filter((each) => each.checkVisibility())
  .filter((each) => !(each.getAttribute("aria-label") || each.textContent.trim()
    || [...(each.labels ?? [])].some((label) => label.textContent.trim())))
  .map((each) => each.outerHTML.slice(0, 80))"""


def screenshot(page, name: str) -> None:
    directory = os.environ.get("ALGOSCOPE_SCREENSHOTS")
    if directory:
        page.screenshot(path=Path(directory) / f"{name}.png", full_page=True)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_is_readable_at_every_width(default_file, browser, scheme):
    for name, fragment in (("one", ""), ("two", TWO), ("open", OPEN)):
        with played(browser, default_file, fragment, color_scheme=scheme) as watched:
            page = watched.page
            for width in WIDTHS:
                page.set_viewport_size({"width": width, "height": 800})
                page.wait_for_function(
                    "document.querySelector('.plot svg').getBoundingClientRect().width"
                    " <= document.querySelector('.plot').clientWidth + 1"
                )
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                assert page.evaluate(TEXTS) == []
                screenshot(page, f"{name}-{width}-{scheme}")


def test_every_control_of_the_panels_has_a_name(default_file, browser):
    with played(browser, default_file, OPEN) as watched:
        watched.page.locator("#watch-where").wait_for()
        assert watched.page.evaluate(UNNAMED) == []
        tree = watched.page.locator("#panels").aria_snapshot()
        for words in ("Registers by tokens", "The program", "After layer", "Play"):
            assert words in tree


def test_every_control_has_a_name_and_can_be_reached(default_file, browser):
    with played(browser, default_file) as watched:
        page = watched.page
        assert page.evaluate(UNNAMED) == []
        seen = []
        for _ in range(80):
            page.keyboard.press("Tab")
            seen.append(
                page.evaluate(
                    "(() => { const e = document.activeElement;"
                    " return e.id || e.dataset.index || e.name || e.tagName; })()"
                )
            )
        for wanted in ("copy", "tour-start", "inputs", "learner", "query", "0", "4"):
            assert wanted in seen, wanted
        for wanted in ("shift-x", "show-ols", "parameter-ridge", "add"):
            assert wanted in seen, wanted
        tree = page.locator("body").aria_snapshot()
        for words in ("Example 1: x 0.60, y 0.72", "radiogroup", "Learner", "heading"):
            assert words in tree
        assert page.locator("#sentence").get_attribute("aria-live") == "polite"
        duplicates = page.evaluate(
            "(() => { const all = [...document.querySelectorAll('[id]')];"
            " const ids = all.map((each) => each.id);"
            " return ids.filter((id, i) => ids.indexOf(id) !== i); })()"
        )
        assert duplicates == []


def test_focus_is_visible(default_file, browser):
    with played(browser, default_file) as watched:
        page = watched.page
        page.locator("#copy").focus()
        page.keyboard.press("Tab")
        page.keyboard.press("Shift+Tab")
        style = "getComputedStyle(document.activeElement).outlineStyle"
        assert page.evaluate(style) == "solid"


def test_nothing_moves_while_the_sentence_changes(default_file, browser):
    with played(browser, default_file) as watched:
        page = watched.page
        top = "document.querySelector('.plot').getBoundingClientRect().top"
        before = page.evaluate(top)
        page.locator("[data-preset=duplicate]").click()
        page.locator("#shift-x").fill("0.9")
        assert page.evaluate(top) == before
        assert page.evaluate("document.getAnimations().length") == 0


def test_it_prints_on_white_paper(default_file, browser):
    with played(browser, default_file, color_scheme="dark") as watched:
        page = watched.page
        page.emulate_media(media="print")
        paper = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        assert page.locator("#undo").is_hidden()
        assert page.pdf(format="A4").startswith(b"%PDF-")


def test_time_of_a_frame_is_reported(default_file, browser, record_property):
    """Frames while dragging, for the report of the run; no time is asserted."""
    with played(browser, default_file) as watched:
        for name in ("linear-d1", "linear-d2"):
            took = watched.evaluate(
                """(app, name) => {
                  app.choose(name);
                  const times = [];
                  for (let i = 0; i < 15; i++) {
                    const x = app.state.points.x.map((each) => [...each]);
                    x[0][0] += 0.01;
                    const start = performance.now();
                    const points = { x, y: app.state.points.y };
                    app.update({ points }, { lasting: false });
                    times.push(performance.now() - start);
                  }
                  return times.sort((a, b) => a - b)[7];
                }""",
                name,
            )
            record_property(f"milliseconds per frame, {name}", took)
            print(f"{name}: {took:.1f} ms per frame")
            assert took > 0
