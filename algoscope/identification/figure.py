"""Pictures: of an identification, and of whether it survives."""

from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.foundation.plotting import (
    Look,
    ResultFigure,
    looks,
    owner_of,
    plain_name,
)
from algoscope.identification.suites import KINDS

if TYPE_CHECKING:
    from algoscope.identification.result import Candidate, Identification
    from algoscope.identification.survival import ShiftedDistance, Survival

NUM_SHOWN = 6  # hypotheses
COLUMNS = 4  # of panels, one for each shift
SMALLEST = 1e-16  # distances below are drawn here


def identification_figure(found: "Identification", axes: Axes | None = None) -> Figure:
    """Return three panels: distances per kind of data and per n, and the answers.

    Into given axes, only the distances per kind of data are drawn.
    """
    shown = [c for c in found.candidates if np.isfinite(c.distance)][:NUM_SHOWN]
    if axes is not None:
        _draw_suites(axes, found, shown)
        return owner_of(axes)
    figure = ResultFigure(figsize=(13, 4.4), layout="constrained")
    one, two, three = figure.subplots(1, 3, width_ratios=(4, 4, 3))
    _draw_suites(one, found, shown)
    _draw_n(two, found, shown)
    _draw_answers(three, found)
    handles, labels = one.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=8)
    figure.suptitle(f"Which algorithm is {plain_name(found.target)}?", fontsize=11)
    return figure


def _lines(shown: "list[Candidate]") -> list[dict[str, Any]]:
    """Return how each hypothesis is drawn, the first one bold."""
    found = [look.line for look in looks([each.name for each in shown]).values()]
    return [line | {"lw": 2.4 if i == 0 else 1.2} for i, line in enumerate(found)]


def _draw_suites(axes: Axes, found: "Identification", shown: "list[Candidate]") -> None:
    """Draw ρ of each hypothesis on every kind of data."""
    named = found.statements[0]
    names = list(named.suites)
    for each, line in zip(shown, _lines(shown), strict=True):
        known = named.suites if each is named.nearest else each.suites
        values = [max(known.get(name, np.nan), SMALLEST) for name in names]
        axes.plot(values, range(len(names)), label=plain_name(each.name), **line)
    axes.axvline(found.limit, color="0.5", lw=0.8, ls="--")
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), [KINDS[name] for name in names], fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(f"distance ρ (dashed: {found.limit:g}, “behaves like”)")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_n(axes: Axes, found: "Identification", shown: "list[Candidate]") -> None:
    """Draw ρ of each hypothesis after n examples."""
    for each, line in zip(shown, _lines(shown), strict=True):
        values = np.maximum(np.array(each.per_n[1:], float), SMALLEST)
        axes.plot(range(1, len(each.per_n)), values, **line)
    if found.changes_at is not None:
        axes.axvline(found.changes_at + 0.5, color="0.3", lw=0.8)
    axes.axhline(found.limit, color="0.5", lw=0.8, ls="--")
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("number of examples n")
    axes.set_ylabel("distance ρ")
    axes.spines[["top", "right"]].set_visible(False)


def _draw_answers(axes: Axes, found: "Identification") -> None:
    """Draw the predictor's answers against those of the named hypothesis."""
    answers = found.answers
    (look,) = looks([found.nearest.name]).values()
    dots: dict[str, Any] = {"ms": 4, "alpha": 0.5, "color": look.color}
    axes.plot(answers["hypothesis"], answers["predictor"], ".", **dots)
    both = np.array([*answers["hypothesis"], *answers["predictor"]], float)
    both = both[np.isfinite(both)]
    if both.size:
        low, high = np.quantile(both, [0.01, 0.99])
        axes.plot([low, high], [low, high], color="0.5", lw=0.8)
        margin = 0.1 * (high - low) + 1e-9
        axes.set_xlim(low - margin, high + margin)
        axes.set_ylim(low - margin, high + margin)
    axes.set_xlabel(f"answer of {plain_name(found.nearest.family)}")
    axes.set_ylabel("answer of the predictor")
    axes.spines[["top", "right"]].set_visible(False)


def survival_figure(found: "Survival", axes: Axes | None = None) -> Figure:
    """Return one panel per shift; into given axes, all shifts by their number."""
    groups = [
        (name, list(each)) for name, each in groupby(found.distances, lambda d: d.shift)
    ]
    if axes is not None:
        lines = looks([name for name, _ in groups])
        for name, each in groups:
            values = [max(d.distance, SMALLEST) for d in each]
            axes.plot(values, label=name, **lines[name].line)
        axes.set_yscale("log")
        axes.legend(fontsize=6)
        return owner_of(axes)
    rows = -(-len(groups) // COLUMNS)
    figure = ResultFigure(figsize=(12, 2.5 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharey=True, squeeze=False)
    (look,) = looks([found.algorithm]).values()
    for panel, (name, each) in zip(panels.ravel(), groups, strict=False):
        _draw(panel, name, each, found.limit, look)
    for panel in panels.ravel()[len(groups) :]:
        panel.set_visible(False)
    for row in panels:
        row[0].set_ylabel("distance")
    target, algorithm = plain_name(found.target), plain_name(found.algorithm)
    figure.suptitle(f"Does {target} stay {algorithm}?", fontsize=11)
    return figure


def _draw(
    panel: Axes, name: str, each: "list[ShiftedDistance]", limit: float, look: Look
) -> None:
    sizes = [d.size for d in each]
    values = np.array([[d.low, d.distance, d.high] for d in each])
    low, middle, high = np.maximum(values, SMALLEST).T
    panel.plot(sizes, middle, **look.line)
    panel.fill_between(sizes, low, high, color=look.color, alpha=0.2, lw=0)
    panel.axhline(limit, color="0.5", lw=0.8, ls="--")
    panel.set_yscale("log")
    panel.set_title(name, fontsize=9)
    panel.set_xlabel(each[0].unit, fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
