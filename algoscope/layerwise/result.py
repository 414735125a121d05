"""The result of `layers`: read-outs of every layer and a figure, without the models."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import listed, number, with_interval
from algoscope.foundation.validation import require_choice
from algoscope.layerwise.iterations import Match

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNER = "learner"  # its own answers, among the references
WITH_INTERVAL = ("mean", "low", "high")
WEIGHTS = ("r2", "cosine w_ols", "distance w_ols", "cosine w", "distance w")
ARRAYS = ("risk", "spd", "risk_by_prefix", "spd_by_prefix")
TABLES = ("distances", "references", "floors", "weights")  # of arrays by name

Intervals = Float[np.ndarray, "depth 3"]  # mean, low and high


@dataclass(frozen=True, repr=False)
class LayersResult(SavedResult):
    """What a linear read-out of every layer answers, over the layers 0, …, L.

    `risk` and `spd` are squared distances over d to the labels and to OLS, means over
    n ≥ 1; `risk_by_prefix` and `spd_by_prefix` have them for each n, and `references`
    those of the learner's own answers, of OLS and of zero. `floors` are risk and SPD of
    the read-outs of each control. `matches` are the nearest steps of each algorithm,
    `distances` SPD/d to all of them. `weights` compares implied weights after `prefix`
    examples with those of OLS and of the task.

    Example:
        >>> import algoscope as asc
        >>> found = asc.LayersResult.load("results/layers/linear-d4")
        >>> found.match("Newton", layer=8).algorithm
        'Newton'
    """

    kind: ClassVar[str] = "layers"
    file: ClassVar[str] = "layers.json"
    arrays_file: ClassVar[str] = "layers.safetensors"

    learner: str
    controls: tuple[str, ...]
    dim: int
    task: str
    num_examples: int  # before the last query
    prefix: int
    layer_names: tuple[str, ...]
    config: dict[str, Any]
    versions: dict[str, str]
    matches: tuple[Match, ...]
    distances: dict[str, Float[np.ndarray, "depth steps"]]
    risk: Intervals
    spd: Intervals
    risk_by_prefix: Float[np.ndarray, "depth prefixes"]
    spd_by_prefix: Float[np.ndarray, "depth prefixes"]
    references: dict[str, Float[np.ndarray, "2 prefixes"]]  # risk, SPD
    floors: dict[str, Float[np.ndarray, "2 depths 3"]]  # risk, SPD
    weights: dict[str, Intervals]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """The names of the iterative algorithms."""
        return tuple(dict.fromkeys(each.algorithm for each in self.matches))

    def match(self, algorithm: str, layer: int) -> Match:
        """Return the nearest steps of an algorithm to one layer."""
        require_choice("algorithm", algorithm, self.algorithms)
        return next(
            each
            for each in self.matches
            if (each.algorithm, each.layer) == (algorithm, layer)
        )

    def steps(self, algorithm: str) -> list[int]:
        """Return the nearest number of steps for every layer."""
        return [
            self.match(algorithm, layer).steps for layer in range(len(self.layer_names))
        ]

    @property
    def own(self) -> tuple[float, float]:
        """Risk and SPD/d to OLS of the learner's own answers, means over n ≥ 1."""
        risk, spd = self.references[LEARNER][:, 1:].mean(axis=1)
        return float(risk), float(spd)

    @property
    def sentence(self) -> str:
        """The layer nearest to OLS, and the steps that the layers match."""
        best = int(np.argmin(self.spd[:, 0]))
        mean, low, high = map(float, self.spd[best])
        near = with_interval(mean, low, high)
        every = range(len(self.layer_names))
        steps = [
            f"{name} {', '.join(self.match(name, layer).shown for layer in every)}"
            for name in self.algorithms
        ]
        floors = [
            f"{who} {number(float(found[1, :, 0].min()))}"
            for who, found in self.floors.items()
        ]
        below = f"; floors: {listed(floors)}" if floors else ""
        return (
            f"A linear read-out of {self.learner} is nearest to least squares after "
            f"{self.layer_names[best]}: SPD(OLS)/d {near} (95 % interval), against "
            f"{number(float(self.spd[0, 0]))} at its input and {number(self.own[1])} "
            f"of its own answers{below}. The nearest numbers of steps, layer by layer: "
            f"{'; '.join(steps)}."
        )

    def rows(self) -> list[Row]:
        """Return a row per measure and layer, with intervals."""
        measured = {"risk": self.risk, "spd_ols": self.spd} | self.weights
        rows = [
            self._row(name, layer, values[layer])
            for name, values in measured.items()
            for layer in range(len(self.layer_names))
        ]
        for who, found in self.floors.items():
            for name, values in zip(("risk", "spd_ols"), found, strict=True):
                rows += [
                    self._row(f"{name} of {who}", layer, each)
                    for layer, each in enumerate(values)
                ]
        for each in self.matches:
            found = np.array([each.distance, each.low, each.high])
            row = self._row(f"spd to {each.algorithm}", each.layer, found)
            rows.append(row | {"steps": each.shown, "rate": each.rate})
        return rows

    def _row(self, name: str, layer: int, values: np.ndarray) -> Row:
        numbers = zip(WITH_INTERVAL, map(float, values), strict=True)
        return {"measure": name, "layer": layer, **dict(numbers)}

    def summary(self) -> dict[str, Any]:
        """Return, per layer, the main numbers and the steps that match."""
        risk, spd = self.own
        return {
            "learner": self.learner,
            "dim": self.dim,
            "num_examples": self.num_examples,
            "own": {"risk": risk, "spd_ols": spd},
            "layers": [
                {
                    "layer": layer,
                    "name": name,
                    "risk": float(self.risk[layer, 0]),
                    "spd_ols": float(self.spd[layer, 0]),
                    "cosine_w_ols": float(self.weights["cosine w_ols"][layer, 0]),
                    "distance_w_ols": float(self.weights["distance w_ols"][layer, 0]),
                    "matches": {
                        each: self.match(each, layer)._asdict()
                        for each in self.algorithms
                    },
                }
                for layer, name in enumerate(self.layer_names)
            ],
            "floors": {
                who: {
                    "risk": found[0, :, 0].tolist(),
                    "spd_ols": found[1, :, 0].tolist(),
                }
                for who, found in self.floors.items()
            },
        }

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw distances and matched steps; into given axes, only SPD/d per layer."""
        return layers_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        arrays = {name: getattr(self, name) for name in ARRAYS}
        names = {}
        for table in TABLES:
            names[table] = list(getattr(self, table))
            for index, values in enumerate(getattr(self, table).values()):
                arrays[f"{table}.{index}"] = values
        plain = {k: v for k, v in vars(self).items() if k not in (*ARRAYS, *TABLES)}
        plain["matches"] = [each._asdict() for each in self.matches]
        return plain | {"names": names}, arrays

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "LayersResult":
        names = values.pop("names")
        tables: dict[str, Any] = {
            table: {
                name: arrays[f"{table}.{index}"]
                for index, name in enumerate(names[table])
            }
            for table in TABLES
        }
        matches = tuple(Match(**each) for each in values.pop("matches"))
        for name in ("controls", "layer_names"):
            values[name] = tuple(values[name])
        own = {name: arrays[name] for name in ARRAYS}
        return cls(matches=matches, **values, **own, **tables)


def layers_figure(result: LayersResult, axes: "Axes | None" = None) -> "Figure":
    """Return a figure: SPD/d and risk per layer, steps and weights that match.

    Bands are 95 % intervals. With `axes`, only SPD/d per layer is drawn, into them.
    """
    from algoscope.foundation.plotting import ResultFigure, owner_of, plain_name

    if axes is not None:
        _draw_distances(result, axes, "spd")
        return owner_of(axes)
    figure = ResultFigure(figsize=(9.6, 7))
    panels = figure.subplots(2, 2)
    _draw_distances(result, panels[0][0], "spd")
    _draw_distances(result, panels[0][1], "risk")
    _draw_steps(result, panels[1][0])
    _draw_weights(result, panels[1][1])
    title = f"Read-outs of {plain_name(result.learner)}  (d = {result.dim}, "
    figure.suptitle(f"{title}n = 1, …, {result.num_examples})", fontsize=11)
    figure.tight_layout()
    return figure


def _draw_distances(result: LayersResult, axes: "Axes", name: str) -> None:
    """Draw SPD/d to OLS, or the risk, of the read-outs and of the floors."""
    from algoscope.foundation.plotting import plain_name

    index = ("risk", "spd").index(name)
    curves = {"read-out": getattr(result, name)}
    curves |= {plain_name(who): found[index] for who, found in result.floors.items()}
    for place, (label, found) in enumerate(curves.items()):
        _draw_line(axes, found, place, label)
    for style, (who, found) in zip(
        ("-", "--", ":"), result.references.items(), strict=True
    ):
        level = float(found[index, 1:].mean())
        if level > 0:
            label = "its own answers" if who == LEARNER else who
            axes.axhline(level, color="gray", lw=0.8, ls=style, label=label)
    axes.set_yscale("log")
    axes.set_ylabel("SPD(OLS) / d" if name == "spd" else "risk / d")
    _finish(axes)


def _draw_steps(result: LayersResult, axes: "Axes") -> None:
    """Draw the nearest number of steps of each algorithm."""
    from algoscope.foundation.plotting import looks

    layers = range(len(result.layer_names))
    for name, look in looks(list(result.algorithms)).items():
        axes.plot(layers, result.steps(name), label=name, **look.line)
    axes.set_yscale("symlog", linthresh=1)
    axes.set_ylabel("nearest number of steps")
    _finish(axes)


def _draw_weights(result: LayersResult, axes: "Axes") -> None:
    labels = {
        "cosine w_ols": "cosine to w_OLS",
        "cosine w": "cosine to w",
        "r2": "R² of the linear fit",
    }
    for place, (name, label) in enumerate(labels.items()):
        _draw_line(axes, result.weights[name], place, label)
    axes.set_ylabel(f"implied weights, n = {result.prefix}")
    _finish(axes)


def _draw_line(axes: "Axes", found: np.ndarray, place: int, label: str) -> None:
    from algoscope.foundation.plotting import COLORS, MARKERS

    layers, color = range(len(found)), COLORS[place % len(COLORS)]
    marker = f"{MARKERS[place % len(MARKERS)]}-"
    axes.plot(layers, found[:, 0], marker, ms=3, color=color, label=label)
    axes.fill_between(layers, found[:, 1], found[:, 2], color=color, alpha=0.2, lw=0)


def _finish(axes: "Axes") -> None:
    axes.set_xlabel("layer (0: input)")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(fontsize=8)
