"""The figure of an identification. It reads the result, never a model."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.foundation.plotting import COLORS, owner_of, plain_name
from algoscope.identification.result import Identification

NUM_SHOWN = 8  # hypotheses


def identification_figure(
    found: Identification, axes: Axes | None = None, *, num_shown: int = NUM_SHOWN
) -> Figure:
    """Return the distances of the nearest hypotheses, over all n and per regime.

    Large dots are the distances over all n, with 95 % intervals; small dots are those
    of the regimes. A hypothesis right of the dotted line is too far away to count as
    the same algorithm. Distances of 0 are drawn at the left edge.
    """
    shown = [c for c in found.candidates if np.isfinite(c.distance)][:num_shown]
    own = (
        Figure(figsize=(8, 1.2 + 0.4 * len(shown))).subplots() if axes is None else axes
    )
    rows = np.arange(len(shown))
    # On a log scale a distance of 0 needs a place: a tenth of the smallest other one.
    floor = min([c.distance for c in shown if c.distance > 0], default=1e-16) / 10
    for color, regime in zip(COLORS[1:], found.regimes, strict=False):
        values = [max(c.regimes[regime.name], floor) for c in shown]
        own.plot(values, rows, "o", ms=3, color=color, label=regime.name)
    means = np.array([max(c.distance, floor) for c in shown])
    lengths: Any = np.array(
        [
            [max(m - c.low, 0.0) for m, c in zip(means, shown, strict=True)],
            [max(c.high - m, 0.0) for m, c in zip(means, shown, strict=True)],
        ]
    )
    own.errorbar(
        means, rows, xerr=lengths, fmt="o", color=COLORS[0], capsize=3, label="all n"
    )
    own.axvline(found.threshold, color="0.5", lw=0.8, ls=":")
    own.set_xscale("log")
    own.set_yticks(rows, [plain_name(c.name) for c in shown], fontsize=8)
    own.invert_yaxis()
    own.set_xlabel("distance ρ (dotted: the most that counts as the same algorithm)")
    own.spines[["top", "right"]].set_visible(False)
    own.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure = owner_of(own)
    if axes is None:
        own.set_title(f"Which algorithm is {plain_name(found.target)}?", fontsize=10)
        figure.tight_layout()
    return figure
