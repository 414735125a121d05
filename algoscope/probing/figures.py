"""Figures 4 and 5 of the paper (§5, app. E), drawn from a `ProbingResult`.

Every panel with errors shows the floors: what probes read without the learner.
"""

from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.foundation.plotting import (
    COLORS,
    INK,
    MARKERS,
    STYLES,
    Look,
    ResultFigure,
    owner_of,
)
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.probing.floors import closed_form
from algoscope.probing.measurement import Measure, Measurement
from algoscope.probing.places import place_symbol
from algoscope.probing.result import ProbingResult
from algoscope.probing.targets import symbol

FLOOR = INK  # of floors, which are read without the learner
KINDS = {"linear": "linear", "mlp": "MLP"}
AXIS_LABELS = {
    "relative": "error / variance of the target",
    "error": "mean squared error per dimension",
}


def layers_figure(
    result: ProbingResult, axes: Axes | None = None, *, measure: Measure = "relative"
) -> Figure:
    """Return figure 4, left: the error per layer, one panel per target.

    Probes read at the result's first place. Bands are 95 % intervals. Dashed lines are
    the least error over the layers of a control, and dotted ones the floors, for the
    same kind of probe. With `axes`, only the first target is drawn, into them.
    """
    figure, panels = _panels(result, measure, axes)
    for panel, target in zip(panels, result.targets, strict=False):
        for index, kind in enumerate(result.kinds):
            color = COLORS[index % len(COLORS)]
            name = KINDS[kind]
            _draw_curve(panel, result.of(target, kind), measure, color, name)
            for style, control in zip(_dashes(result), result.controls, strict=True):
                means = result.of(target, kind, control).per_layer(measure).mean
                label = f"{name}, best of {control}"
                panel.axhline(np.min(means), color=color, ls=style, lw=1, label=label)
            floors = result.floors_of(target, kind)
            for place, (given, floor) in enumerate(floors.items()):
                style, label = (0, (1, 1 + 2 * place)), f"{name}, {given}"
                least = floor.per_layer(measure).mean[0]
                panel.axhline(least, color=color, ls=style, lw=1, label=label)
        _label_layers(panel, target)
    return _finished(figure, panels, f"What {result.learner} encodes", result, axes)


def prefixes_figure(result: ProbingResult, *, kind: str) -> Figure:
    """Return the error after n examples at every place, and all floors for this n.

    Each curve is that of the layer that is best on average. One panel per target.
    """
    require_choice("kind", kind, result.kinds)
    figure, panels = _panels(result, "relative")
    for panel, target in zip(panels, result.targets, strict=True):
        for index, place in enumerate(result.places):
            found = result.of(target, kind, place=place)
            layer = found.layers[found.best_layer()]
            label = f"{place_symbol(place)}, layer {layer}"
            color, marker = COLORS[index % len(COLORS)], MARKERS[index % len(MARKERS)]
            look = Look(color, "-", marker)
            _draw_prefixes(panel, result, found, look, label)
        own = result.of(target, kind)
        if 0 in own.layers:
            at_input = own.relative[:, own.layers.index(0)].mean(axis=0)
            panel.plot(result.prefixes, at_input, "-", color="0.7", label="the input")
        for style, control in zip(STYLES, result.controls, strict=False):
            found = result.of(target, kind, control)
            label = f"{control}, layer {found.layers[found.best_layer()]}"
            _draw_prefixes(panel, result, found, Look("0.4", style, ""), label)
        for style, (name, floor) in zip(
            STYLES, result.floors_of(target, kind).items(), strict=False
        ):
            _draw_prefixes(panel, result, floor, Look(FLOOR, style, ""), name)
        if {"moment", "w_ols"} <= set(result.targets) and target in ("moment", "w_ols"):
            formula = [closed_form(result.dim, n) for n in result.prefixes]
            panel.plot(
                result.prefixes, formula, "x", ms=4, color=FLOOR, label="(d+1)/(n+d+1)"
            )
        panel.set_title(symbol(target), fontsize=10)
        panel.set_xlabel("number of examples n")
        panel.set_xscale("log", base=2)
        panel.set_ylim(bottom=0)
    title = f"What {KINDS[kind]} probes of {result.learner} read, and floors"
    return _finished(figure, panels, title, result, None)


def _draw_prefixes(
    axes: Axes,
    result: ProbingResult,
    found: Measurement,
    look: Look,
    label: str,
) -> None:
    means = found.relative[:, found.best_layer()].mean(axis=0)
    axes.plot(result.prefixes, means, label=label, **look.line)
    axes.spines[["top", "right"]].set_visible(False)


def controls_figure(
    result: ProbingResult, axes: Axes | None = None, *, measure: Measure = "relative"
) -> Figure:
    """Return figure 5: the error in each control per layer, one panel per target."""
    if not result.controls:
        remedy = "Name them with `probe(..., controls=...)`."
        raise InvalidValueError("result", "hold controls", "none", remedy)
    figure, panels = _panels(result, measure, axes)
    for panel, target in zip(panels, result.targets, strict=False):
        pairs = [(c, kind) for c in result.controls for kind in result.kinds]
        for index, (control, kind) in enumerate(pairs):
            color = COLORS[index % len(COLORS)]
            found = result.of(target, kind, control)
            _draw_curve(panel, found, measure, color, f"{KINDS[kind]}, {control}")
        _label_layers(panel, target)
    return _finished(figure, panels, f"Controls of {result.learner}", result, axes)


def attention_figure(
    result: ProbingResult,
    *,
    kind: str,
    measure: Measure = "relative",
    place: str | None = None,
) -> Figure:
    """Return figure 4, right: where probes at the best layer look, for every prefix.

    α is averaged over repeats and divided by its largest value for each prefix, since
    attention spread over many positions would be dark otherwise. White are positions
    after the query, which the probe does not see.
    """
    require_choice("kind", kind, result.kinds)
    figure, panels = _panels(result, measure)
    for axes, target in zip(panels, result.targets, strict=True):
        found = result.of(target, kind, place=place)
        best = found.best_layer(measure)
        alpha = found.attention[:, best].mean(axis=0).T.astype(float)
        time = alpha.shape[0]
        last = 2 * np.asarray(result.prefixes)
        alpha /= alpha.max(axis=0)
        if found.place != "unmasked":
            alpha[np.arange(time)[:, None] > last] = np.nan
        image = axes.imshow(
            alpha, origin="lower", aspect="auto", vmin=0, vmax=1, cmap="viridis"
        )
        shown = range(0, len(last), 1 + len(last) // 10)
        axes.set_xticks(shown, [str(result.prefixes[place]) for place in shown])
        axes.set_xlabel("number of examples n")
        axes.set_ylabel("position")
        title = f"{symbol(target)}, layer {found.layers[best]}"
        axes.set_title(title, fontsize=10)
        figure.colorbar(image, ax=axes, label="α / its largest for n")
    return _titled(figure, f"Where {KINDS[kind]} probes of {result.learner} look")


def _panels(
    result: ProbingResult, measure: Measure, axes: Axes | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure with one panel per target, or the given axes."""
    require_choice("measure", measure, AXIS_LABELS)
    if axes is None:
        count = len(result.targets)
        figure = ResultFigure(figsize=(0.6 + 4.4 * count, 4.4), layout="constrained")
        panels = list(figure.subplots(1, count, squeeze=False)[0])
    else:
        figure, panels = owner_of(axes), [axes]
    for panel in panels:
        panel.set_ylabel(AXIS_LABELS[measure])
    return figure, panels


def _label_layers(axes: Axes, target: str) -> None:
    axes.set_title(symbol(target), fontsize=10)
    axes.set_xlabel("layer (0: input)")
    axes.set_ylim(bottom=0)


def _dashes(result: ProbingResult) -> list[Any]:
    """Return one line style per control."""
    return [(0, (5, 1 + 3 * index)) for index in range(len(result.controls))]


def _draw_curve(
    axes: Axes, found: Measurement, measure: Measure, color: str, label: str
) -> None:
    mean, low, high = found.per_layer(measure)
    marker = f"{MARKERS[COLORS.index(color)]}-"
    axes.plot(found.layers, mean, marker, ms=3, color=color, label=label)
    axes.fill_between(found.layers, low, high, color=color, alpha=0.2, lw=0)
    axes.spines[["top", "right"]].set_visible(False)


def _finished(
    figure: Figure,
    panels: list[Axes],
    title: str,
    result: ProbingResult,
    given: Axes | None,
) -> Figure:
    """Add the title and one legend, or one for each panel where they differ."""
    if given is not None:
        given.legend(fontsize=7)
        return figure
    handles, labels = panels[-1].get_legend_handles_labels()
    if all(panel.get_legend_handles_labels()[1] == labels for panel in panels):
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    else:
        for panel in panels:
            below = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.18)}
            panel.legend(ncols=2, fontsize=7, **below)
        width, height = figure.get_size_inches()
        figure.set_size_inches(width, height + 0.11 * len(labels))
    sizes = f"d = {result.dim}, {result.config['num_training']:,} datasets"
    repeats = result.config["repeats"]
    more = f", {repeats} repeats" if repeats > 1 else ""
    return _titled(figure, f"{title}  ({sizes}{more})")


def _titled(figure: Figure, title: str) -> Figure:
    figure.suptitle(title.replace("$", r"\$"), fontsize=11)
    return figure
