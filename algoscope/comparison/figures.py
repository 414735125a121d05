"""Figures 1 and 6 of the paper, drawn from a `Comparison`, never from models."""

from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.comparison.intervals import Curve
from algoscope.comparison.result import LABELS, Comparison
from algoscope.foundation.plotting import (
    COLORS,
    STYLES,
    ResultFigure,
    owner_of,
    plain_name,
)
from algoscope.foundation.validation import InvalidValueError

Span = tuple[int, int]
Look = tuple[str, str]  # color and line style

TOP = {"spd": 0.8, "ilwd": 0.35}  # where the paper's axes end
LEGEND: Any = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5), "fontsize": 7}


def comparison_figure(
    comparison: Comparison,
    axes: Axes | None = None,
    *,
    labeled: tuple[str, ...] = (),
    spans: dict[str, Span] | None = None,
) -> Figure:
    """Return figure 1: SPD/d and ILWD/d to each reference per number of examples.

    Dashed lines are the risks of the learner and of the references in `labeled`. If
    ILWD was not measured, the right panel shows SPD/d on a logarithmic scale. `spans`
    limits the n of a metric. Bands are 95 % bootstrap intervals. With `axes`, only
    SPD/d is drawn, into them.
    """
    looks = _looks(comparison)
    if axes is not None:
        _draw_metric(axes, comparison, "spd", looks, labeled)
        axes.legend(title=f"{plain_name(comparison.learner)} and", fontsize=7)
        return owner_of(axes)
    figure = ResultFigure(figsize=(11, 4.2))
    left, right = figure.subplots(1, 2, width_ratios=(3, 2))
    measured_weights = "ilwd" in comparison.metrics
    _draw_metric(left, comparison, "spd", looks, labeled)
    _draw_metric(right, comparison, "ilwd" if measured_weights else "spd", looks)
    spans = spans or {}
    if "spd" in spans:
        left.set_xlim(spans["spd"])
    if not measured_weights:
        right.set_ylim(auto=True)
        right.set_yscale("log")
    elif "ilwd" in spans:
        right.set_xlim(spans["ilwd"])
    sizes = f"{comparison.num_datasets:,} datasets"
    if measured_weights:
        sizes += f" (ILWD: {comparison.settings['num_costly_datasets']:,})"
    name = plain_name(comparison.learner)
    handles, labels = left.get_legend_handles_labels()
    right.legend(handles, labels, title=f"{name} and", **LEGEND)
    title = (
        f"{name} and textbook algorithms, d = {comparison.dim}: {sizes}; bands: 95 %"
    )
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    return figure


def linearity_figure(comparison: Comparison, axes: Axes | None = None) -> Figure:
    """Return figure 6: R² of the linear fit to the predictions, per number of examples.

    A linear algorithm has R² = 1 for every n. Bands are 95 % bootstrap intervals.
    """
    if "r2" not in comparison.metrics:
        measured = ", ".join(["spd", *comparison.metrics])
        remedy = 'Measure it with `compare(..., metrics=("r2",))`.'
        raise InvalidValueError("comparison", "hold the metric r2", measured, remedy)
    panel = ResultFigure(figsize=(6.5, 4.2)).subplots() if axes is None else axes
    for index, curve in enumerate(comparison.of("r2")):
        _draw_curve(panel, curve, _look(index), plain_name(curve.first))
    _finish(panel, comparison, "R² of the linear fit")
    panel.set_ylim(0, 1.05)
    panel.legend(**LEGEND)
    figure = owner_of(panel)
    if axes is None:
        figure.suptitle(
            f"How linear is {plain_name(comparison.learner)}?  d = {comparison.dim}, "
            f"{comparison.settings['num_costly_datasets']:,} datasets, "
            f"{comparison.settings['num_queries']:,} queries",
            fontsize=11,
        )
        figure.tight_layout()
    return figure


def _looks(comparison: Comparison) -> dict[str, Look]:
    """Return a color and a style for each reference, the same in every panel."""
    own = [c.second for c in comparison.curves if c.first == comparison.learner]
    names = [name for name in own if name != LABELS]
    return {name: _look(index) for index, name in enumerate(names)}


def _look(index: int) -> Look:
    return COLORS[index % len(COLORS)], STYLES[index // len(COLORS) % len(STYLES)]


def _draw_metric(
    axes: Axes,
    comparison: Comparison,
    metric: str,
    looks: dict[str, Look],
    labeled: tuple[str, ...] = (),
) -> None:
    for reference, look in looks.items():
        curve = comparison.against(reference, metric)
        _draw_curve(axes, curve, look, plain_name(reference))
    if metric == "spd":
        for first in (comparison.learner, *labeled):
            pair = (first, LABELS)
            curve = next(c for c in comparison.curves if (c.first, c.second) == pair)
            color, _ = looks.get(first, ("0.5", ""))
            label = f"({plain_name(first)}, {LABELS})"
            _draw_curve(axes, curve, (color, "--"), label)
    _finish(axes, comparison, f"{metric.upper()} / d")
    axes.set_ylim(0, TOP[metric])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_curve(axes: Axes, curve: Curve, look: Look, label: str) -> None:
    """Draw a curve and its band for n ≥ 1."""
    color, style = look
    numbers = range(1, len(curve.mean))
    low, high = curve.low[1:], curve.high[1:]
    axes.plot(numbers, curve.mean[1:], style, color=color, label=label)
    axes.fill_between(numbers, low, high, color=color, alpha=0.2, lw=0)


def _finish(axes: Axes, comparison: Comparison, label: str) -> None:
    axes.set_ylabel(label)
    axes.axvline(comparison.dim, color="gray", lw=0.8, ls=":")
    axes.set_xlabel("number of examples n (dotted: n = d)")
    axes.spines[["top", "right"]].set_visible(False)
