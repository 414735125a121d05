"""Saved results as pictures, in the paper's layout. Reads results, never models."""

from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.comparison import LABELS, Comparison
from algoscope.validation import require_choice

# Okabe and Ito's palette: distinguishable for color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")

# The same result gives the same file: no dates, no random identifiers.
METADATA = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
SETTINGS: Any = {"svg.hashsalt": "algoscope"}


def draw_comparison(comparison: Comparison, path: Path) -> None:
    """Draw figure 1 (left): SPD/d to each reference against the number of examples.

    The file's ending decides the format. Bands are 95 % bootstrap intervals.
    """
    require_choice("path ending", path.suffix, METADATA)
    path.parent.mkdir(parents=True, exist_ok=True)
    with matplotlib.rc_context(SETTINGS):
        figure = Figure(figsize=(10, 4.2))
        linear, logarithmic = figure.subplots(1, 2)
        for axes in (linear, logarithmic):
            _draw_curves(comparison, axes)
        linear.set_ylabel("SPD / d")
        linear.set_ylim(0, 0.8)
        logarithmic.set_yscale("log")
        logarithmic.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
        figure.suptitle(
            f"Which algorithm is {_plain(comparison.learner)}?  "
            f"d = {comparison.dim}, {comparison.num_datasets:,} datasets",
            fontsize=11,
        )
        figure.tight_layout()
        figure.savefig(path, dpi=150, metadata=METADATA[path.suffix])


def _plain(name: str) -> str:
    """Return a name so that dollars are drawn and not read as mathematics."""
    return name.replace("$", r"\$")


def _draw_curves(comparison: Comparison, axes: Axes) -> None:
    curves = [c for c in comparison.curves if c.first == comparison.learner]
    for index, curve in enumerate(curves):
        numbers = range(1, len(curve.mean))
        color = COLORS[index % len(COLORS)]
        style = "--"
        if curve.second != LABELS:
            style = STYLES[index // len(COLORS) % len(STYLES)]
        label = _plain(f"({curve.second}, {curve.first})")
        axes.plot(numbers, curve.mean[1:], style, color=color, label=label)
        low, high = curve.low[1:], curve.high[1:]
        axes.fill_between(numbers, low, high, color=color, alpha=0.2, lw=0)
    axes.axvline(comparison.dim, color="gray", lw=0.8, ls=":")
    axes.set_xlabel("number of examples n (dotted: n = d)")
    axes.spines[["top", "right"]].set_visible(False)
