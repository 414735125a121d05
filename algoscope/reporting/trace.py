"""A trace as one page: the formulas of every layer, and a heat map of its registers.

The page needs no other file and runs no script. Every map is a table, with the numbers
in its cells; colors only make them easier to compare. The whole of a number, what it
should be and the difference are in the title of its cell.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from algoscope.construction.trace import (
    SAYS,
    Shown,
    ShownRow,
    TracedStep,
    meanings,
    significant,
)
from algoscope.reporting.markup import Markup, element
from algoscope.reporting.page import STYLE, document

MAPS = Path(__file__).with_name("trace.css")
COLORS = "positive numbers are blue and negative ones orange, the stronger the larger"


def trace_page(
    title: str,
    about: str,
    steps: Sequence[TracedStep],
    show: Shown = "computed",
    first: int = 0,
) -> str:
    """Return the page; steps are numbered from `first`, as in `trace.as_text`."""
    styles = "".join(each.read_text(encoding="utf-8") for each in (STYLE, MAPS))
    numbered = list(enumerate(steps, first))
    links = [
        element("li", element("a", f"{number}. {step.label}", href=f"#step-{number}"))
        for number, step in numbered
    ]
    body = element(
        "body",
        element(
            "main",
            element("h1", title),
            element("p", f"{about} {SAYS[show]}"),
            _legend(steps),
            element("nav", element("ol", *links), aria_label="Layers", class_="layers"),
            *(_section(number, step, show) for number, step in numbered),
        ),
    )
    return document(f"Trace of {title}", styles, body)


def _legend(steps: Sequence[TracedStep]) -> Markup:
    says = {"colors": COLORS} | meanings(steps)
    pairs = [
        element("div", element("dt", name), element("dd", meaning))
        for name, meaning in says.items()
    ]
    return element(
        "details",
        element("summary", "How to read it"),
        element("dl", *pairs, class_="legend"),
        open="open",
    )


def _section(number: int, step: TracedStep, show: Shown) -> Markup:
    lines = [
        element(
            "li",
            element("span", line.part, class_="part"),
            " ",
            element("code", str(line)),
        )
        for line in step.lines
    ]
    formulas = [element("ul", *lines, class_="formulas")] if lines else []
    where = f"after {step.label}" if lines else "before the first layer"
    off = f"Largest difference: {step.largest_difference:.1e}"
    return element(
        "section",
        element("h2", step.title(number), id=f"step-{number}"),
        *formulas,
        element(
            "div",
            _map(step, show, f"Registers {where}: {show}"),
            class_="scroll",
            tabindex=0,
            role="region",
            aria_label=f"Registers {where}",
        ),
        element("p", off, class_="quiet"),
    )


def _map(step: TracedStep, show: Shown, caption: str) -> Markup:
    heads = [element("th", name, scope="col") for name in step.tokens]
    return element(
        "table",
        element("caption", caption),
        element("thead", element("tr", element("th", "register", scope="col"), *heads)),
        element("tbody", *(_row(step, row, show) for row in step.rows())),
        class_="map",
    )


def _row(step: TracedStep, row: ShownRow, show: Shown) -> Markup:
    numbers = getattr(row.register, show)[row.register.counts]
    largest = float(np.max(np.abs(numbers[np.isfinite(numbers)]), initial=0))
    mark = "→ " if row.is_written else ""
    cells = [
        _cell(step, row, show, column, largest) for column in range(len(step.tokens))
    ]
    return element("tr", element("th", f"{mark}{row.name}", scope="row"), *cells)


def _cell(
    step: TracedStep, row: ShownRow, show: Shown, column: int, largest: float
) -> Markup:
    """Return one number; its share of the largest is the strength of its color."""
    register, place = row.register, (column, row.component)
    value = float(getattr(register, show)[place])
    shown = step.text(row, column, show)
    share = 0.0
    if largest and np.isfinite(value):
        share = min(1.0, float(np.sqrt(abs(value) / largest)))
    kind = "zero" if shown == "0" else "plus" if value > 0 else "minus"
    counts = bool(register.counts[column])
    title = (
        f"{row.name} at {step.tokens[column]}: "
        f"computed {float(register.computed[place])!r}, "
        f"exact {float(register.exact[place])!r}, "
        f"difference {significant(float(register.difference[place]))}"
    )
    return element(
        "td",
        shown if counts else f"({shown})",
        class_=kind if counts else f"{kind} idle",
        style=f"--share: {share:.3f}",
        title=title,
    )
