"""The causal tests of a learner, drawn from a `PatchingResult`."""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.foundation.plotting import COLORS, ResultFigure, owner_of
from algoscope.patching.edits import DIRECTIONS
from algoscope.patching.result import PatchingResult

MOST_NAMES = 24  # of positions below a map
AXIS_LABELS = {
    "moved": "share of the way to ŵ(D′)",
    "error": "relative error of the linear probe",
    "pattern": "slope of the answer",
}


def patching_figure(result: PatchingResult, axes: Axes | None = None) -> Figure:
    """Return a figure of all three tests: swaps, edits and ablations.

    Above are maps of layer × position: of swaps, of the probe's error, and of edits,
    white where the probe reads nothing to edit. Below are, per layer, swaps of the
    query's state and of all examples', edits, and ablations. Bands and bars are 95 %
    intervals. With `axes`, only the swaps per layer are drawn, into them.
    """
    if axes is not None:
        _draw_swaps(result, axes)
        return owner_of(axes)
    figure = ResultFigure(figsize=(13, 7))
    panels = figure.subplots(2, 3)
    titles = {
        "moved": "swap one state from D′ into D",
        "error": f"read {result.target}",
        "pattern": "move the reading by Δ",
    }
    for panel, (name, title) in zip(panels[0], titles.items(), strict=True):
        _draw_map(result, figure, panel, name, title)
    _draw_swaps(result, panels[1][0])
    _draw_edits(result, panels[1][1])
    _draw_ablations(result, panels[1][2])
    title = f"What {result.learner} uses  (d = {result.dim}, n = {result.num_examples})"
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    figure.tight_layout()
    return figure


def _draw_map(
    result: PatchingResult, figure: Figure, axes: Axes, name: str, title: str
) -> None:
    values = result.maps[name].mean[:, : len(result.positions)]
    image = axes.imshow(
        values, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="viridis"
    )
    figure.colorbar(image, ax=axes, label=AXIS_LABELS[name])
    every = max(1, -(-len(result.positions) // MOST_NAMES))
    places = range(0, len(result.positions), every)
    axes.set_xticks(places, [result.positions[i] for i in places], fontsize=6)
    axes.tick_params(axis="x", rotation=90)
    axes.set_ylabel("layer (0: input)")
    axes.set_title(title, fontsize=10)


def _draw_swaps(result: PatchingResult, axes: Axes) -> None:
    for color, place in zip(COLORS, ("query", "examples"), strict=False):
        _draw_line(result, axes, "moved", place, color, f"swap {place}")
    axes.set_ylabel(AXIS_LABELS["moved"])
    _finish(axes)


def _draw_edits(result: PatchingResult, axes: Axes) -> None:
    places = [(name, "query") for name in DIRECTIONS] + [("pattern", "examples")]
    for color, (name, place) in zip(COLORS, places, strict=False):
        _draw_line(result, axes, name, place, color, f"{name}, {place}")
    axes.axhline(1, color="gray", lw=0.8, ls=":")
    axes.set_ylabel(AXIS_LABELS["pattern"])
    _finish(axes)


def _draw_ablations(result: PatchingResult, axes: Axes) -> None:
    """Draw SPD/d to OLS without each part, in the order of the layers."""
    numbers = np.arange(len(result.ablations))
    means = np.array([each.mean for each in result.ablations])
    bounds = [[e.mean - e.low for e in result.ablations]]
    bounds.append([e.high - e.mean for e in result.ablations])
    is_mlp = np.array([each.first.endswith("MLP") for each in result.ablations])
    for color, name, chosen in (
        (COLORS[0], "head", ~is_mlp),
        (COLORS[1], "MLP", is_mlp),
    ):
        errors: Any = np.array(bounds)[:, chosen]
        axes.errorbar(
            numbers[chosen],
            means[chosen],
            errors,
            fmt="o",
            ms=3,
            color=color,
            label=f"without a {name}" if name == "head" else f"without an {name}",
        )
    axes.axhline(result.intact.mean, color="gray", lw=0.8, ls=":", label="intact")
    axes.set_yscale("log")
    per_layer = len(result.ablations) // max(1, int(is_mlp.sum()))
    layers = range(1, int(is_mlp.sum()) + 1)
    axes.set_xticks([per_layer * (each - 1) for each in layers], [*map(str, layers)])
    axes.set_xlabel("layer")
    axes.set_ylabel("SPD(OLS) / d")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7)


def _draw_line(
    result: PatchingResult, axes: Axes, name: str, place: str, color: str, label: str
) -> None:
    column = result.places.index(place)
    mean, low, high = (each[:, column] for each in result.maps[name])
    layers = range(len(mean))
    axes.plot(layers, mean, "o-", ms=3, color=color, label=label)
    axes.fill_between(layers, low, high, color=color, alpha=0.2, lw=0)


def _finish(axes: Axes) -> None:
    axes.set_xlabel("layer (0: input)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=7)
