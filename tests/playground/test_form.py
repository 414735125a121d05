"""Readable everywhere: on a phone, in the dark, on paper, and without seeing it.

With ALGOSCOPE_SCREENSHOTS=DIRECTORY the run leaves screenshots there.
"""

import os
import re
from pathlib import Path

import pytest
from support.browser import RENDERED
from support.playing import played

WIDTHS = (1280, 768, 360)
MODELS = ("linear-d1", "linear-d2", "sgd-d1", "sgd-d2", "ridge-d1", "ridge-d2")
TWO = "model=linear-d2&x=1,0;0,1;1,1&y=1,-1,0&query=1,1&shown=ols,sgd&tour=5"
OPEN = "model=linear-d1&x=1;2;-1&y=1,2,-1&query=1&open=depth,watch,attention,patch"
# Texts whose contrast with what is behind them is below 4.5. Colors may be translucent;
# behind text in a drawing are its outline, the disc of its point, or the page.
TEXTS = """() => {
  const parts = (color) => {
    const found = (color.match(/-?[\\d.]+(e-?\\d+)?/g) ?? []).map(Number);
    const scale = color.startsWith("color(") ? 255 : 1, [r, g, b, alpha = 1] = found;
    return found.length ? [r * scale, g * scale, b * scale, alpha] : [];
  };
  const over = ([r, g, b, share], below) => (
    [r, g, b].map((c, i) => share * c + (1 - share) * below[i]));
  const luminance = (color) => color.map((c) => c / 255)
    .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4))
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const paperOf = (element) => {
    const layers = [];
    for (let at = element; at; at = at.parentElement) {
      const color = parts(getComputedStyle(at).backgroundColor);
      if (color.length === 4 && color[3] > 0) layers.unshift(color);
      if (color[3] === 1) break;
    }
    return layers.reduce((below, color) => over(color, below), [255, 255, 255]);
  };
  const behind = (element) => {
    if (!(element instanceof SVGElement)) return paperOf(element);
    const style = getComputedStyle(element), page = paperOf(element.closest("svg"));
    if (style.stroke !== "none") return over(parts(style.stroke), page);
    const disc = element.parentElement.matches(".point, #query")
      ? element.parentElement.querySelector("circle:not(.touch), path") : null;
    return disc ? over(parts(getComputedStyle(disc).fill), page) : page;
  };
  const low = [];
  let inDrawings = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !element.checkVisibility()) continue;
    if (element.closest("script, style, title, button:disabled")) continue;
    const style = getComputedStyle(element), drawn = element instanceof SVGElement;
    inDrawings += drawn;
    const back = behind(element);
    const front = over(parts(drawn ? style.fill : style.color), back);
    const [a, b] = [luminance(front), luminance(back)].sort((p, q) => q - p);
    const contrast = (a + 0.05) / (b + 0.05);
    if (!(contrast >= 4.5)) low.push([walker.currentNode.data.slice(0, 30), contrast]);
  }
  return { low, inDrawings };
}"""
# Roles that a reader of the screen announces; without a name they say nothing.
NAMED = {
    *("button", "slider", "radio", "checkbox", "combobox", "textbox", "spinbutton"),
    *("image", "application", "radiogroup", "region", "DisclosureTriangle", "table"),
}
AXE = Path("node_modules/axe-core/axe.min.js")


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
                watched.wait_for(
                    "document.querySelector('.plot svg').getBoundingClientRect().width"
                    " <= document.querySelector('.plot').clientWidth + 1"
                )
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                found = page.evaluate(TEXTS)
                assert found["low"] == []
                assert found["inDrawings"] > 20
                screenshot(page, f"{name}-{width}-{scheme}")


def unnamed(page) -> list[str]:
    """Return the roles of what the browser's accessibility tree gives no name."""
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    told = [each for each in nodes if not each["ignored"]]
    assert {"main", "heading", "slider", "radio"} <= {e["role"]["value"] for e in told}
    return [
        each["role"]["value"]
        for each in told
        if each["role"]["value"] in NAMED
        and not each.get("name", {}).get("value", "").strip()
    ]


def test_every_control_of_the_panels_has_a_name(default_file, browser):
    with played(browser, default_file, OPEN) as watched:
        watched.page.locator("#watch-where").wait_for()
        assert unnamed(watched.page) == []
        tree = watched.page.locator("#panels").aria_snapshot()
        for words in ("Registers by tokens", "The program", "After layer", "Play"):
            assert words in tree


def test_axe_finds_nothing_serious(default_file, browser):
    """Runs where axe-core is: `npm install axe-core`, or ALGOSCOPE_AXE=axe.min.js."""
    script = Path(os.environ.get("ALGOSCOPE_AXE", AXE))
    if not script.is_file():
        pytest.skip("axe-core is not installed here")
    for fragment, width, scheme in (
        ("", 360, "light"),
        (TWO, 1280, "dark"),
        (OPEN, 768, "light"),
    ):
        with played(
            browser, default_file, fragment, width=width, color_scheme=scheme
        ) as watched:
            watched.page.evaluate(script.read_text(encoding="utf-8"))
            found = watched.page.evaluate("axe.run().then((run) => run.violations)")
            serious = [(each["impact"], each["id"]) for each in found]
            assert serious == []


def test_every_control_has_a_name_and_can_be_reached(default_file, browser):
    with played(browser, default_file) as watched:
        page = watched.page
        assert unnamed(page) == []
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


def test_it_prints_on_white_paper_and_changes_nothing(default_file, browser):
    fragment = TWO.replace("&tour=5", "&open=attention")
    middle = """() => {
      const canvas = document.querySelector(".plot canvas"), { width, height } = canvas;
      const copy = new OffscreenCanvas(width, height).getContext("2d");
      copy.drawImage(canvas, 0, 0);
      const at = [(width - 1) / 2, (height - 1) / 2, 1, 1]; // where the answer is 0
      return copy.getImageData(...at).data[0];
    }"""
    with played(browser, default_file, fragment, color_scheme="dark") as watched:
        page = watched.page
        before = watched.state
        assert page.evaluate(middle) < 60
        page.evaluate("dispatchEvent(new Event('beforeprint'))")
        assert page.evaluate(middle) > 200
        page.emulate_media(media="print")
        paper = "getComputedStyle(document.body).backgroundColor"
        assert page.evaluate(paper) == "rgb(255, 255, 255)"
        assert page.locator("#undo").is_hidden()
        assert page.locator("#attention canvas").first.is_visible()
        page.emulate_media(media="screen")
        page.evaluate("dispatchEvent(new Event('afterprint'))")
        assert page.evaluate(middle) < 60
        assert page.pdf(format="A4").startswith(b"%PDF-")
        assert watched.state == before


def test_panels_catch_up_with_what_was_dragged(default_file, browser):
    """While dragging they take turns; at rest each shows the present examples."""
    with played(browser, default_file, OPEN) as watched:
        page, said = watched.page, "document.getElementById('panels').innerText"
        page.locator("#watch-where").wait_for()
        kept = """(app) => {
          const { learner } = app;
          app.update({ query: [0.3] });
          return app.learner === learner;
        }"""
        assert watched.evaluate(kept)  # only the query moves: nothing is learned anew
        before = page.evaluate(said)
        watched.drag(1, 30, -40)
        page.evaluate(RENDERED)
        after, address = page.evaluate(said), watched.address
        assert after != before
    with played(browser, default_file, address) as watched:
        watched.page.locator("#watch-where").wait_for()
        watched.wait_for(f"{said} !== ''")
        again = watched.page.evaluate(said)
        rounding = r"difference [^)]*"  # the address has six digits
        assert re.sub(rounding, "", again) == re.sub(rounding, "", after)


def test_time_of_a_frame_is_reported(default_file, browser, record_property):
    """The processor's time while dragging, for the report of the run; not asserted."""
    drag = """async (app, name) => {
      app.choose(name);
      for (let i = 0; i < 8; i++) {
        const x = app.state.points.x.map((each) => [...each]);
        x[0][0] += 0.01;
        app.update({ points: { x, y: app.state.points.y } }, { lasting: false });
        await new Promise((drawn) => requestAnimationFrame(drawn));
      }
    }"""
    with played(browser, default_file) as watched:
        session = watched.page.context.new_cdp_session(watched.page)
        session.send("Performance.enable", {"timeDomain": "threadTicks"})

        def seconds() -> float:
            measured = session.send("Performance.getMetrics")["metrics"]
            return {each["name"]: each["value"] for each in measured}["TaskDuration"]

        for panels in ([], ["depth"], ["depth", "watch", "attention", "patch"]):
            watched.evaluate("(app, open) => app.update({ open })", panels)
            for name in MODELS:
                before = seconds()
                watched.evaluate(drag, name)
                took = (seconds() - before) / 8 * 1000
                what = f"{name} with {len(panels)} panels open"
                record_property(f"milliseconds per frame, {what}", took)
                print(f"{what}: {took:.1f} ms per frame")
                assert took > 0
