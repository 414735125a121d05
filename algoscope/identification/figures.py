"""An identification as a picture. Reads results, never models."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.foundation.plotting import COLORS, owner_of, plain_name
from algoscope.identification.result import Identification

SHOWN = 8  # hypotheses


def identification_figure(
    found: Identification, axes: Axes | None = None, *, num_shown: int = SHOWN
) -> Figure:
    """Return the distance of the nearest hypotheses, overall and per regime.

    Large dots have 95 % intervals; small ones are the regimes. Right of the dotted line
    a hypothesis is too far away to count as the same algorithm.
    """
    shown = [c for c in found.candidates if np.isfinite(c.distance)][:num_shown]
    panel = (
        Figure(figsize=(8, 1.2 + 0.4 * len(shown))).subplots() if axes is None else axes
    )
    places = np.arange(len(shown))
    floor = min([c.distance for c in shown if c.distance > 0], default=1e-16) / 10
    for color, name in zip(COLORS[1:], [r.name for r in found.regimes], strict=False):
        values = [max(each.regimes[name], floor) for each in shown]
        panel.plot(values, places, "o", ms=3, color=color, label=name)
    means = np.array([max(each.distance, floor) for each in shown])
    bounds: Any = np.array(
        [
            [max(m - c.low, 0.0) for m, c in zip(means, shown, strict=True)],
            [max(c.high - m, 0.0) for m, c in zip(means, shown, strict=True)],
        ]
    )
    panel.errorbar(
        means, places, xerr=bounds, fmt="o", color=COLORS[0], capsize=3, label="all n"
    )
    panel.axvline(found.threshold, color="0.5", lw=0.8, ls=":")
    panel.set_xscale("log")
    panel.set_yticks(places, [plain_name(each.name) for each in shown], fontsize=8)
    panel.invert_yaxis()
    panel.set_xlabel("distance ρ (dotted: the most that counts as the same)")
    panel.spines[["top", "right"]].set_visible(False)
    panel.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure = owner_of(panel)
    if axes is None:
        panel.set_title(f"Which algorithm is {plain_name(found.target)}?", fontsize=10)
        figure.tight_layout()
    return figure
