"""The result of `patch`: maps of causal effects and a figure, without the models."""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import Estimate, estimate_from_json, summarize
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import number, with_interval
from algoscope.foundation.validation import require_choice
from algoscope.model.opened import name_tokens
from algoscope.patching.edits import DIRECTIONS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HALF = 0.5  # of the way from one dataset's weights to the other's
MEASURES = ("moved", "ilwd", "error", *DIRECTIONS)  # the maps, in the order of rows
PLACES_IN_ROWS = ("query", "examples")
MOST_NAMES = 24  # of positions below a map
AXIS_LABELS = {
    "moved": "share of the way to ŵ(D′)",
    "error": "relative error of the linear probe",
    "pattern": "slope of the answer",
}


class Map(NamedTuple):
    """Means over datasets with 95 % intervals, per layer and place."""

    mean: Float[np.ndarray, "depth places"]
    low: Float[np.ndarray, "depth places"]
    high: Float[np.ndarray, "depth places"]

    @classmethod
    def of(cls, samples: Float[np.ndarray, "datasets depth places"]) -> "Map":
        """Return means and bootstrap intervals; NaN samples were not measured."""
        found = summarize(samples)
        return cls(found.mean, found.low, found.high)

    @classmethod
    def of_ratios(
        cls,
        numerators: Float[np.ndarray, "datasets depth places"],
        denominators: Float[np.ndarray, " datasets"],
    ) -> "Map":
        """Return ratios of sums over datasets, with intervals by the delta method.

        The samples r + (aᵢ − r bᵢ)/E[b] have the ratio r = Σa/Σb as their mean and, to
        first order, its standard error.
        """
        ratios = numerators.mean(axis=0) / denominators.mean()
        errors = numerators - ratios[None] * denominators[:, None, None]
        return cls.of(ratios[None] + errors / denominators.mean())

    @classmethod
    def exactly(cls, values: Float[np.ndarray, "depth places"]) -> "Map":
        """Return a map without intervals."""
        unknown = np.full_like(values, np.nan)
        return cls(values, unknown, unknown)


@dataclass(frozen=True, repr=False)
class PatchingResult(SavedResult):
    """The three causal tests of one learner.

    `maps` holds, per layer 0, …, L and place (each position, and `examples`, all before
    the query): `moved` and `ilwd` of interchange, `error` of the linear probe, and the
    slopes `weights`, `pattern` and `random` of edits. `ablations` are SPD/d to OLS, the
    mean over n ≥ 1, without a head or MLP; `intact` is that of the whole learner. There
    are no ablations of a learner whose heads are not known.

    Example:
        >>> import algoscope as asc
        >>> found = asc.PatchingResult.load("results/patching/linear-d4")
        >>> found.at("moved", layer=12, place="query")[0]  # all of the way
        1.0
    """

    kind: ClassVar[str] = "patching"
    file: ClassVar[str] = "patching.json"
    arrays_file: ClassVar[str] = "patching.safetensors"

    learner: str
    dim: int
    task: str
    num_examples: int
    target: str
    apart: float  # ILWD/d of D and D′ before anything is swapped
    config: dict[str, Any]
    versions: dict[str, str]
    maps: dict[str, Map]
    intact: Estimate
    ablations: tuple[Estimate, ...]  # `first` names the missing part

    @property
    def positions(self) -> tuple[str, ...]:
        """The names of positions: x1, y1, …, and the query."""
        return tuple(name_tokens(self.num_examples))

    @property
    def places(self) -> tuple[str, ...]:
        """The names of what is swapped: the positions, and `examples`."""
        return (*self.positions, "examples")

    def at(self, name: str, layer: int, place: str) -> tuple[float, float, float]:
        """Return mean, low and high of a map at one layer and place."""
        require_choice("map", name, self.maps)
        require_choice("place", place, self.places)
        column = self.places.index(place)
        mean, low, high = (float(each[layer, column]) for each in self.maps[name])
        return mean, low, high

    def summary(self) -> dict[str, Any]:
        """Return means at the query per layer, and SPD(OLS)/d without each part.

        `parts` are sorted, the part without which SPD(OLS)/d is largest first.
        """
        columns = {
            "query": ("moved", "query"),
            "examples": ("moved", "examples"),
            **{name: (name, "query") for name in ("error", *DIRECTIONS)},
        }
        layers = [
            {"layer": layer}
            | {
                name: self.at(key, layer, place)[0]
                for name, (key, place) in columns.items()
            }
            for layer in range(len(self.maps["moved"].mean))
        ]
        parts = sorted(self.ablations, key=lambda each: -each.mean)
        return {
            "learner": self.learner,
            "num_examples": self.num_examples,
            "layers": layers,
            "intact": self.intact.mean,
            "parts": [{"without": p.first, "spd_ols": p.mean} for p in parts],
        }

    @property
    def sentence(self) -> str:
        """The first layer whose query state carries the weights, and the main part."""
        query = self.maps["moved"].mean[:, self.places.index("query")]
        layers = [layer for layer, moved in enumerate(query) if moved >= HALF]
        often, where = "never", ""
        if layers:
            moved = with_interval(*self.at("moved", layers[0], "query"))
            often, where = "first", f" in layer {layers[0]} ({moved})"
        return (
            f"In {self.learner} after {self.num_examples} examples, swapping the "
            f"query's state {often} moves the implied weights half of the way to the "
            f"other dataset's{where}; {self._ablated} (95 % intervals)."
        )

    @property
    def _ablated(self) -> str:
        """What ablations show, or that there are none."""
        intact = with_interval(self.intact.mean, self.intact.low, self.intact.high)
        if not self.ablations:
            return f"its heads are not known and not ablated; SPD(OLS)/d is {intact}"
        worst = max(self.ablations, key=lambda each: each.mean)
        without = with_interval(worst.mean, worst.low, worst.high)
        return (
            f"SPD(OLS)/d is largest without {worst.first}: {without}, intact {intact}"
        )

    def rows(self) -> list[Row]:
        """Return each map at the query and at all examples, then each ablation.

        Every row has its interval; `maps` holds the other places as well.
        """
        rows = [
            {"measure": name, "layer": layer, "place": place}
            | dict(zip(Map._fields, self.at(name, layer, place), strict=True))
            for name in MEASURES
            if name in self.maps
            for place in PLACES_IN_ROWS
            for layer in range(len(self.maps[name].mean))
        ]
        for each in self.ablations:
            layer, part = each.first.removeprefix("layer ").split(", ")
            about = {"measure": "spd_ols", "layer": int(layer)}
            about["place"] = f"without {part}"
            rows.append(about | {name: getattr(each, name) for name in Map._fields})
        return rows

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw all three tests; into given axes, only the swaps per layer."""
        return patching_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        arrays = {
            f"{name}.{part}": values
            for name, found in self.maps.items()
            for part, values in found._asdict().items()
        }
        plain = {k: v for k, v in vars(self).items() if k != "maps"}
        plain["intact"] = asdict(self.intact)
        plain["ablations"] = [asdict(each) for each in self.ablations]
        return plain, arrays

    @classmethod
    def from_fields(
        cls, values: Row, arrays: dict[str, np.ndarray]
    ) -> "PatchingResult":
        names = dict.fromkeys(key.partition(".")[0] for key in arrays)
        maps = {
            name: Map(*(arrays[f"{name}.{part}"] for part in Map._fields))
            for name in names
        }
        ablations = tuple(map(estimate_from_json, values.pop("ablations")))
        intact = estimate_from_json(values.pop("intact"))
        return cls(maps=maps, intact=intact, ablations=ablations, **values)


def patching_figure(result: PatchingResult, axes: "Axes | None" = None) -> "Figure":
    """Return a figure of all three tests: swaps, edits and ablations.

    Above are maps of layer × position: of swaps, of the probe's error, and of edits,
    white where the probe reads nothing to edit. Below are, per layer, swaps of the
    query's state and of all examples', edits, and ablations. Bands and bars are 95 %
    intervals. With `axes`, only the swaps per layer are drawn, into them.
    """
    from algoscope.foundation.plotting import ResultFigure, owner_of

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
    result: PatchingResult, figure: "Figure", axes: "Axes", name: str, title: str
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


def _draw_swaps(result: PatchingResult, axes: "Axes") -> None:
    from algoscope.foundation.plotting import COLORS

    for color, place in zip(COLORS, ("query", "examples"), strict=False):
        _draw_line(result, axes, "moved", place, color, f"swap {place}")
    axes.set_ylabel(AXIS_LABELS["moved"])
    _finish(axes)


def _draw_edits(result: PatchingResult, axes: "Axes") -> None:
    from algoscope.foundation.plotting import COLORS

    places = [(name, "query") for name in DIRECTIONS] + [("pattern", "examples")]
    for color, (name, place) in zip(COLORS, places, strict=False):
        _draw_line(result, axes, name, place, color, f"{name}, {place}")
    axes.axhline(1, color="gray", lw=0.8, ls=":")
    axes.set_ylabel(AXIS_LABELS["pattern"])
    _finish(axes)


def _draw_ablations(result: PatchingResult, axes: "Axes") -> None:
    """Draw SPD/d to OLS without each part, in the order of the layers."""
    from algoscope.foundation.plotting import COLORS

    if not result.ablations:
        intact = number(result.intact.mean)
        text = f"no ablations: heads are not known\nSPD(OLS)/d intact: {intact}"
        axes.text(0.5, 0.5, text, ha="center", va="center", fontsize=8)
        axes.set_axis_off()
        return
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
    axes.legend(fontsize=8)


def _draw_line(
    result: PatchingResult, axes: "Axes", name: str, place: str, color: str, label: str
) -> None:
    from algoscope.foundation.plotting import COLORS, MARKERS

    column = result.places.index(place)
    mean, low, high = (each[:, column] for each in result.maps[name])
    layers = range(len(mean))
    marker = f"{MARKERS[COLORS.index(color)]}-"
    axes.plot(layers, mean, marker, ms=3, color=color, label=label)
    axes.fill_between(layers, low, high, color=color, alpha=0.2, lw=0)


def _finish(axes: "Axes") -> None:
    axes.set_xlabel("layer (0: input)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8)
