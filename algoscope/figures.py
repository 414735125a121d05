"""Saved results as pictures, in the paper's layout. Reads results, never models."""

from pathlib import Path
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.canvas import require_ending, save_figure
from algoscope.comparison import LABELS, Comparison, Curve
from algoscope.measurements import LINEAR_FIT
from algoscope.validation import InvalidValueError

# Okabe and Ito's palette: distinguishable for color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")

LONGEST_NAME = 40  # characters; a command can be longer than a figure is wide


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw figure 1: SPD/d and ILWD/d to each reference per number of examples.

    Where ILWD was not measured, the right side shows SPD/d on a logarithmic scale. The
    file's ending decides the format. Bands are 95 % bootstrap intervals.
    """
    require_ending(path)
    figure = Figure(figsize=(10, 4.2))
    left, right = figure.subplots(1, 2)
    own = [c for c in comparison.curves if c.first == comparison.learner]
    _draw_curves(comparison, own, left)
    left.set_ylabel("SPD / d")
    left.set_ylim(0, 0.8)
    sizes = f"{comparison.num_datasets:,} datasets"
    if "ilwd" in comparison.metrics:
        _draw_curves(comparison, comparison.of("ilwd"), right)
        right.set_ylabel("ILWD / d")
        right.set_ylim(0, 0.35)
        sizes += f" (ILWD: {comparison.settings['num_costly_datasets']:,})"
    else:
        _draw_curves(comparison, own, right)
        right.set_yscale("log")
    handles, labels = left.get_legend_handles_labels()
    place: Any = {"loc": "center left", "bbox_to_anchor": (1.02, 0.5)}
    right.legend(handles, labels, fontsize=7, **place)
    figure.suptitle(
        f"Which algorithm is {_plain(comparison.learner)}?  "
        f"d = {comparison.dim}, {sizes}",
        fontsize=11,
    )
    figure.tight_layout()
    save_figure(figure, path)


def draw_linearity(comparison: Comparison, path: Path) -> None:
    """Draw figure 6: R² of the linear fit to the predictions, per number of examples.

    A linear algorithm lies at 1 throughout. Bands are 95 % bootstrap intervals.
    """
    require_ending(path)
    if "r2" not in comparison.metrics:
        measured = ", ".join(["spd", *comparison.metrics])
        remedy = 'Measure it with `compare(..., metrics=("r2",))`.'
        raise InvalidValueError("comparison", "hold the metric r2", measured, remedy)
    figure = Figure(figsize=(6.5, 4.2))
    axes = figure.subplots()
    _draw_curves(comparison, comparison.of("r2"), axes)
    axes.set_ylabel("R² of the linear fit")
    axes.set_ylim(0, 1.05)
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure.suptitle(
        f"How linear is {_plain(comparison.learner)}?  d = {comparison.dim}, "
        f"{comparison.settings['num_costly_datasets']:,} datasets, "
        f"{comparison.settings['num_queries']:,} queries",
        fontsize=11,
    )
    figure.tight_layout()
    save_figure(figure, path)


def _plain(name: str) -> str:
    """Return a name, not too long, whose dollars are not read as mathematics."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short.replace("$", r"\$")


def _draw_curves(comparison: Comparison, curves: list[Curve], axes: Axes) -> None:
    """Draw curves from one example on; the same place has the same color anywhere."""
    for index, curve in enumerate(curves):
        numbers = range(1, len(curve.mean))
        color = COLORS[index % len(COLORS)]
        style = "--"
        if curve.second != LABELS:
            style = STYLES[index // len(COLORS) % len(STYLES)]
        label = f"({_plain(curve.second)}, {_plain(curve.first)})"
        if curve.second == LINEAR_FIT:
            label = _plain(curve.first)
        axes.plot(numbers, curve.mean[1:], style, color=color, label=label)
        low, high = curve.low[1:], curve.high[1:]
        axes.fill_between(numbers, low, high, color=color, alpha=0.2, lw=0)
    axes.axvline(comparison.dim, color="gray", lw=0.8, ls=":")
    axes.set_xlabel("number of examples n (dotted: n = d)")
    axes.spines[["top", "right"]].set_visible(False)
