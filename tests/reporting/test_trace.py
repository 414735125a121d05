"""The page of a trace: readable everywhere, and nothing in it can act."""

import re
from pathlib import Path

import numpy as np
import pytest
from support.browser import opened

from algoscope.construction.compiler.compile import compile_program
from algoscope.construction.compiler.numerics import numerics
from algoscope.construction.language.program import Program
from algoscope.construction.paper.chain import theorem_1
from algoscope.construction.trace import TracedStep, trace_chain, trace_program
from algoscope.model.tokens import example_tokens
from algoscope.reporting.trace import trace_page

HOSTILE = "<img src=x onerror=\"document.title='hacked'\">"
WIDTH = "document.documentElement.scrollWidth"
PAPER = "getComputedStyle(document.body).backgroundColor"
CONTRAST = """() => {
  const luminance = (color) => {
    const parts = color.match(/[\\d.]+/g).map(Number).slice(0, 3)
      .map((part) => color.startsWith("color") ? part : part / 255)
      .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const ratios = [...document.querySelectorAll("td.plus, td.minus")].map((cell) => {
    const style = getComputedStyle(cell);
    const below = style.backgroundColor === "rgba(0, 0, 0, 0)"
      ? getComputedStyle(document.body).backgroundColor : style.backgroundColor;
    const pair = [luminance(style.color), luminance(below)].sort((a, b) => b - a);
    return (pair[0] + 0.05) / (pair[1] + 0.05);
  });
  return Math.min(...ratios);
}"""


@pytest.fixture(scope="module")
def chain() -> list[TracedStep]:
    x, y = np.array([[0.5, 1.0], [2.0, -1.0]]), np.array([1.0])
    return trace_chain(theorem_1(2, np.array([1.0, 2.0]), 0.25, 0.5), numerics(), x, y)


@pytest.fixture(scope="module")
def page(chain, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("page") / "trace.html"
    path.write_text(trace_page("theorem_1", "9 layers.", chain))
    return path


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_the_page_fits_and_can_be_read(browser, page, width, dark):
    with opened(browser, page, width=width, dark=dark) as found:
        assert found.page.evaluate(WIDTH) == width
        assert found.logged == []
        assert found.page.evaluate(CONTRAST) > 4.5
        paper = re.findall(r"\d+", found.page.evaluate(PAPER))
        assert (int(paper[0]) < 128) == dark


def test_every_layer_has_its_formulas_and_a_map_of_registers_by_tokens(
    browser, page, chain
):
    with opened(browser, page, width=1280) as found:
        sections = found.page.locator("section")
        assert sections.count() == len(chain)
        seventh = sections.nth(7)
        assert seventh.locator("h2").inner_text() == "7. w′: aff(w, g, w)"
        assert seventh.locator("code").all_inner_texts() == ["w = w − 0.5 · g"]
        heads = seventh.locator("thead th").all_inner_texts()
        assert heads == ["register", "x₁", "y₁", "query"]
        row = seventh.locator("tbody tr", has=found.page.locator("text=→ w[1]"))
        assert row.locator("th").get_attribute("scope") == "row"
        cell = row.locator("td").nth(1)
        exact = chain[7].registers["w"].exact[1, 0]
        assert float(cell.inner_text().replace("−", "-")) == pytest.approx(
            exact, rel=1e-3
        )
        title = cell.get_attribute("title") or ""
        assert title.startswith("w[1] at y₁: computed ")
        assert f"exact {float(exact)!r}" in title
        assert row.locator("td").nth(0).get_attribute("class") == "plus idle"
        found.page.locator("nav a", has_text="w′").first.click()
        assert found.page.evaluate("location.hash").startswith("#step-")


def test_names_cannot_act(browser, tmp_path):
    program = Program(1, 1)
    z = program.dot(program.x, program.x, HOSTILE)
    program.predict(program.dot(z, z, "</code><script>document.title=1</script>"))
    compiled = compile_program(program)
    steps = trace_program(compiled, compiled.transformer, example_tokens(1, 1, 1))
    path = tmp_path / "hostile.html"
    path.write_text(trace_page(f"</title>{HOSTILE}", HOSTILE, steps))
    text = path.read_text()
    assert "<script" not in text
    assert "<img" not in text
    with opened(browser, path, width=360) as found:
        assert found.page.title() == f"Trace of </title>{HOSTILE}"
        assert HOSTILE in found.page.locator("main").inner_text()
        assert found.page.evaluate(WIDTH) == 360


def test_the_policy_permits_nothing_from_outside(page):
    text = page.read_text()
    assert "default-src &#x27;none&#x27;" in text
    assert "<script" not in text
    assert not re.search(r"""(src|href)=["'](?!#)""", text)
