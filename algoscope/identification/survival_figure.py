"""The picture of a survival: one panel per shift, the distance against its size."""

from itertools import groupby

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.foundation.plotting import COLORS, ResultFigure, owner_of, plain_name
from algoscope.identification.survival import ShiftedDistance, Survival

COLUMNS = 4
SMALLEST = 1e-16  # distances below are drawn here


def survival_figure(found: Survival, axes: Axes | None = None) -> Figure:
    """Return one panel per shift; into given axes, all shifts by their number."""
    groups = [
        (name, list(each)) for name, each in groupby(found.distances, lambda d: d.shift)
    ]
    if axes is not None:
        for place, (name, each) in enumerate(groups):
            values = [max(d.distance, SMALLEST) for d in each]
            axes.plot(values, ".-", label=name, color=COLORS[place % len(COLORS)])
        axes.set_yscale("log")
        axes.legend(fontsize=6)
        return owner_of(axes)
    rows = -(-len(groups) // COLUMNS)
    figure = ResultFigure(figsize=(12, 2.5 * rows), layout="constrained")
    panels = figure.subplots(rows, COLUMNS, sharey=True, squeeze=False)
    for panel, (name, each) in zip(panels.ravel(), groups, strict=False):
        _draw(panel, name, each, found.limit)
    for panel in panels.ravel()[len(groups) :]:
        panel.set_visible(False)
    for row in panels:
        row[0].set_ylabel("distance")
    target, algorithm = plain_name(found.target), plain_name(found.algorithm)
    figure.suptitle(f"Does {target} stay {algorithm}?", fontsize=11)
    return figure


def _draw(panel: Axes, name: str, each: list[ShiftedDistance], limit: float) -> None:
    sizes = [d.size for d in each]
    values = np.array([[d.low, d.distance, d.high] for d in each])
    low, middle, high = np.maximum(values, SMALLEST).T
    panel.plot(sizes, middle, "o-", ms=4, color=COLORS[0])
    panel.fill_between(sizes, low, high, color=COLORS[0], alpha=0.2, lw=0)
    panel.axhline(limit, color="0.5", lw=0.8, ls="--")
    panel.set_yscale("log")
    panel.set_title(name, fontsize=9)
    panel.set_xlabel(each[0].unit, fontsize=8)
    panel.spines[["top", "right"]].set_visible(False)
