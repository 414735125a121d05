"""What a page shows of one result, whatever kind of result it is."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from algoscope.experiments.record import Claim, Table
from algoscope.foundation.plotting import COLORS, render
from algoscope.reporting.svg import visible


@dataclass(frozen=True)
class Picture:
    """A figure as SVG text, and where its PNG is if there is one."""

    title: str
    svg: str
    source: str  # named where the SVG is refused
    png: Path | None = None


@dataclass(frozen=True)
class Section:
    """One result: what was found first, and what it rests on last."""

    title: str
    source: str  # the file or directory that it was read from
    findings: tuple[str, ...]  # sentences
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)  # name: value, both short
    command: str = ""  # what makes the result again
    details: dict[str, Any] = field(default_factory=dict)  # name: JSON, shown folded
    versions: dict[str, str] = field(default_factory=dict)


def drawn(title: str, source: str, figure: Figure) -> Picture:
    """Return a figure as a picture of the page."""
    with warnings.catch_warnings():
        # A name may have letters that the figure's font has not; the page shows it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        svg = render(figure, ".svg", dpi=150).decode()
    return Picture(title, visible(svg), source)


def training_figure(metrics: Sequence[dict[str, Any]]) -> Figure:
    """Return the loss and SPD/d to OLS and to the Bayes predictor over the steps."""
    figure = Figure(figsize=(10, 3.4))
    left, right = figure.subplots(1, 2)
    curves = (
        (left, "loss", "loss", "-"),
        (right, "spd_ols", "(OLS, learner)", "-"),
        (right, "spd_bayes", "(Bayes, learner)", "--"),  # the same without noise
    )
    for color, (axes, name, label, style) in zip(COLORS, curves, strict=False):
        points = [(row["step"], row[name]) for row in metrics if name in row]
        points = [point for point in points if _can_be_drawn(point[1])]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=color, label=label)
            axes.set_yscale("log")
    left.set_ylabel("training loss")
    right.set_ylabel("SPD / d, mean over n ≥ 1")
    if right.lines:
        right.legend(fontsize=7)
    for axes in (left, right):
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def _can_be_drawn(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
