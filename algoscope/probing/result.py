"""The result of `probe`: errors and attention of every probe, without the models.

Errors are mean squared errors per dimension of the target, on held-out datasets: a
`Measurement` for every learner, target, kind of probe and place.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from algoscope.comparison.intervals import interval_of
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import listed, number, with_interval
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.probing.measurement import (
    LEARNED,
    MeanWithInterval,
    Measure,
    Measurement,
    mean_with_interval,
)
from algoscope.probing.places import place_symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INPUT = "input"  # as a control: the learner's own H⁽⁰⁾
MOST_TARGETS = 3  # named in the sentence
ALL = slice(None)
ARRAYS = ("error", "variance", "attention")
NEWER_ARRAYS = ("blocks", "validation", "history")  # missing in older results


@dataclass(frozen=True, repr=False)
class ProbingResult(SavedResult):
    """All measurements of a learner and of its controls.

    Example:
        >>> import algoscope as asc
        >>> found = asc.ProbingResult.load("results/fig4")
        >>> found.of("w_ols", kind="mlp", place="labels").layers
        (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12)
    """

    kind: ClassVar[str] = "probing"
    file: ClassVar[str] = "probing.json"
    arrays_file: ClassVar[str] = "probing.safetensors"

    learner: str
    controls: tuple[str, ...]
    dim: int
    task: str
    prefixes: tuple[int, ...]
    config: dict[str, Any]
    versions: dict[str, str]
    measurements: tuple[Measurement, ...]
    floors: tuple[Measurement, ...] = ()  # what is read without a learner, see `floors`

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in the order in which they were given."""
        return tuple(dict.fromkeys(each.target for each in self.measurements))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of probes."""
        return tuple(dict.fromkeys(each.kind for each in self.measurements))

    @property
    def places(self) -> tuple[str, ...]:
        """Where probes read; the first is the default."""
        return tuple(dict.fromkeys(each.place for each in self.measurements))

    def of(
        self,
        target: str,
        kind: str,
        learner: str | None = None,
        place: str | None = None,
    ) -> Measurement:
        """Return one measurement, by default of the learner itself, at `places[0]`."""
        learner = self.learner if learner is None else learner
        place = self.places[0] if place is None else place
        require_choice("place", place, self.places)
        require_choice("target", target, self.targets)
        require_choice("kind", kind, self.kinds)
        require_choice("learner", learner, (self.learner, *self.controls))
        wanted = (target, kind, learner, place)
        for each in self.measurements:
            if (each.target, each.kind, each.learner, each.place) == wanted:
                return each
        rule = f"hold {kind} probes of {learner} for {target} at {place}"
        raise InvalidValueError("result", rule, "none")

    def floors_of(self, target: str, kind: str) -> dict[str, Measurement]:
        """Return the floors of one target and kind of probe, by what is given."""
        require_choice("target", target, self.targets)
        require_choice("kind", kind, self.kinds)
        return {
            each.learner: each
            for each in self.floors
            if (each.target, each.kind) == (target, kind)
        }

    def selectivity(
        self,
        target: str,
        kind: str,
        control: str,
        measure: Measure = "relative",
        place: str | None = None,
    ) -> MeanWithInterval:
        """Return, per layer, the control's error minus the learner's.

        `control` is the name of another learner, which is compared layer by layer, or
        `input`, the learner's own H⁽⁰⁾. Both were probed on the same datasets, so
        differences are taken within each repeat.
        """
        own = self.of(target, kind, place=place)
        require_choice("control", control, (INPUT, *self.controls))
        if control == INPUT:
            if 0 not in own.layers:
                rule = "include 0, the input, to compare with it"
                raise InvalidValueError("layers", rule, own.layers)
            first = own.layers.index(0)
            return _difference(own, own, measure, slice(first, first + 1))
        against = self.of(target, kind, control, place)
        if against.layers != own.layers:
            remedy = "Compare `per_layer` of both, or probe the layers that both have."
            rule = f"have been probed at the layers {own.layers}"
            raise InvalidValueError("control", rule, against.layers, remedy)
        return _difference(against, own, measure)

    def summary(self, measure: Measure = "relative") -> list[dict[str, Any]]:
        """Return a row per target, kind, learner and place: its best layer and error.

        A control's row holds its selectivity at the learner's best layer. Errors and
        selectivities are lists of mean, low and high.
        """
        rows = []
        for each in self.measurements:
            own = each.learner == self.learner
            best = each.best_layer(measure)
            errors = each.per_layer(measure)
            selectivity = None
            about = (each.target, each.kind)
            if not own and each.layers == self.of(*about, place=each.place).layers:
                of_layers = self.selectivity(*about, each.learner, measure, each.place)
                chosen = self.of(*about, place=each.place).best_layer(measure)
                selectivity = [float(part[chosen]) for part in of_layers]
            at_input = errors.mean[each.layers.index(0)] if 0 in each.layers else None
            rows.append(
                {
                    "target": each.target,
                    "kind": each.kind,
                    "learner": each.learner,
                    "place": each.place,
                    "best_layer": each.layers[best],
                    "error": [float(part[best]) for part in errors],
                    "input": None if at_input is None else float(at_input),
                    "selectivity": selectivity,
                }
            )
        return rows

    @property
    def sentence(self) -> str:
        """The layer and the kind of probe that read each target best, with the error.

        Of many targets, only those that are read best are named.
        """
        rows = [row for row in self.rows() if row["learner"] == self.learner]
        best = [
            min(
                (row for row in rows if row["target"] == target),
                key=lambda row: row["relative_error"],
            )
            for target in self.targets
        ]
        best.sort(key=lambda row: row["relative_error"])
        first = self.measurements[0]
        repeats, datasets = len(first.error), self.config.get("num_test", 0)
        once = first.blocks is None and repeats < 2
        texts = []
        for row in best[:MOST_TARGETS]:
            mean, bounds = row["relative_error"], (row["low"], row["high"])
            error = number(mean) if once else with_interval(mean, *bounds)
            where = f"{row['target']} best in layer {row['layer']}"
            at = "" if len(self.places) == 1 else f" at {place_symbol(row['place'])}"
            texts.append(f"{where}{at} ({row['kind']}, error {error})")
        if len(best) > MOST_TARGETS:
            texts.append(f"{len(best) - MOST_TARGETS} more targets less well")
        spread = "1 repeat" if once else f"95 % intervals over {repeats} repeats"
        if first.blocks is not None:
            spread = f"95 % intervals over {datasets:,} datasets, repeats: {repeats}"
        return (
            f"Probes of {self.learner} read {listed(texts)}; errors are relative to "
            f"the target's variance, 1 being no better than its mean ({spread})."
        )

    def rows(self) -> list[Row]:
        """Return a row per target, kind of probe, learner and layer, with intervals."""
        return [
            {
                "target": each.target,
                "kind": each.kind,
                "learner": each.learner,
                "place": each.place,
                "layer": layer,
                "relative_error": float(mean),
                "low": float(low),
                "high": float(high),
            }
            for each in self.measurements
            for layer, mean, low, high in zip(
                each.layers, *each.per_layer(), strict=True
            )
        ]

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw the error per layer (figure 4); into given axes, the first target's."""
        from algoscope.probing.figures import layers_figure

        return layers_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        listed, arrays = _packed(self.measurements, "")
        below, more = _packed(self.floors, "floor ")
        plain = {f.name: getattr(self, f.name) for f in fields(self)[:-2]}
        return {**plain, "measurements": listed, "floors": below}, arrays | more

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "ProbingResult":
        measurements = _unpacked(values.pop("measurements"), arrays, "")
        floors = _unpacked(values.pop("floors", []), arrays, "floor ")
        for name in ("controls", "prefixes"):
            values[name] = tuple(values[name])
        return cls(measurements=measurements, floors=floors, **values)


def _difference(
    other: Measurement, own: Measurement, measure: Measure, layers: slice = ALL
) -> MeanWithInterval:
    """Return, per layer, how much worse other probes are, on the same datasets."""
    gaps = other.samples(measure)[:, layers] - own.samples(measure)
    if other.blocks is None or own.blocks is None:
        return mean_with_interval(gaps)
    resampled = other.resampled(measure)[:, layers] - own.resampled(measure)
    return MeanWithInterval(gaps.mean(axis=0), *interval_of(resampled))


def _packed(
    measurements: Sequence[Measurement], prefix: str
) -> tuple[list[Row], dict[str, np.ndarray]]:
    """Return measurements as plain values, and their arrays by name."""
    listed, arrays = [], {}
    for index, each in enumerate(measurements):
        found = {name: getattr(each, name) for name in (*ARRAYS, *NEWER_ARRAYS)}
        arrays |= {
            f"{prefix}{index}.{name}": values
            for name, values in found.items()
            if values is not None
        }
        names = ("learner", "target", "kind", "place")
        about = {name: getattr(each, name) for name in names}
        listed.append({**about, "layers": list(each.layers)})
    return listed, arrays


def _unpacked(
    listed: list[Row], arrays: dict[str, np.ndarray], prefix: str
) -> tuple[Measurement, ...]:
    """Return the measurements that `_packed` described; old ones have fewer arrays."""

    def array(index: int, name: str) -> Any:
        return arrays.get(f"{prefix}{index}.{name}")

    return tuple(
        Measurement(
            learner=each["learner"],
            target=each["target"],
            kind=each["kind"],
            layers=tuple(each["layers"]),
            place=each.get("place", LEARNED),
            **{name: arrays[f"{prefix}{index}.{name}"] for name in ARRAYS},
            blocks=array(index, "blocks"),
            validation=array(index, "validation"),
            history=array(index, "history"),
        )
        for index, each in enumerate(listed)
    )
