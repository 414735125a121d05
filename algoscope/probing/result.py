"""The result of `probe`: errors and attention of every probe, without the models.

Errors are mean squared errors per dimension of the target, on held-out datasets. They
are averaged over prefixes first and over repeats then, so an interval says how much
other datasets and other initial probes would change the average.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import listed, number, with_interval
from algoscope.foundation.validation import InvalidValueError, require_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INPUT = "input"  # as a control: the learner's own H⁽⁰⁾
MOST_TARGETS = 3  # named in the sentence

Measure = Literal["error", "relative"]
PerLayer = Float[np.ndarray, " layers"]


class MeanWithInterval(NamedTuple):
    """A mean over repeats per layer, with 95 % intervals: NaN for a single repeat."""

    mean: PerLayer
    low: PerLayer
    high: PerLayer


def mean_with_interval(
    samples: Float[np.ndarray, "repeats layers"],
) -> MeanWithInterval:
    """Return mean ± t s/√r over r repeats, with Student's t for r − 1."""
    mean = samples.mean(axis=0)
    if len(samples) < 2:
        unknown = np.full_like(mean, np.nan)
        return MeanWithInterval(mean, unknown, unknown)
    spread = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    margin = stats.t.ppf(0.975, len(samples) - 1) * spread
    return MeanWithInterval(mean, mean - margin, mean + margin)


@dataclass(frozen=True)
class Measurement:
    """Probes of one kind for one target in one learner."""

    learner: str
    target: str
    kind: str
    layers: tuple[int, ...]
    error: Float[np.ndarray, "repeats layers prefixes"]
    variance: Float[np.ndarray, "repeats prefixes"]  # error of predicting the mean
    attention: Float[np.ndarray, "repeats layers prefixes time"]  # α

    @property
    def relative(self) -> Float[np.ndarray, "repeats layers prefixes"]:
        """The error over the target's variance: 1 is no better than its mean.

        It is NaN where the target is constant.
        """
        known = np.where(self.variance > 0, self.variance, np.nan)
        return self.error / known[:, None]

    def samples(
        self, measure: Measure = "relative"
    ) -> Float[np.ndarray, "repeats layers"]:
        """Return the mean over prefixes, for each repeat and layer."""
        require_choice("measure", measure, ("error", "relative"))
        return getattr(self, measure).mean(axis=2)

    def per_layer(self, measure: Measure = "relative") -> MeanWithInterval:
        """Return the mean over prefixes, with its interval over repeats."""
        return mean_with_interval(self.samples(measure))

    def best_layer(self, measure: Measure = "relative") -> int:
        """Return the index in `layers` of the least error."""
        return int(np.argmin(self.per_layer(measure).mean))


@dataclass(frozen=True, repr=False)
class ProbingResult(SavedResult):
    """All measurements of a learner and of its controls.

    Example:
        >>> import algoscope as asc
        >>> found = asc.ProbingResult.load("results/fig4")
        >>> found.of("w_ols", kind="mlp").layers
        (0, 1, 2, 3, 4, 5, 6, 7, 8)
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

    @property
    def targets(self) -> tuple[str, ...]:
        """The targets, in the order in which they were given."""
        return tuple(dict.fromkeys(each.target for each in self.measurements))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of probes."""
        return tuple(dict.fromkeys(each.kind for each in self.measurements))

    def of(self, target: str, kind: str, learner: str | None = None) -> Measurement:
        """Return one measurement, by default of the learner itself."""
        learner = self.learner if learner is None else learner
        require_choice("target", target, self.targets)
        require_choice("kind", kind, self.kinds)
        require_choice("learner", learner, (self.learner, *self.controls))
        wanted = (target, kind, learner)
        return next(
            m for m in self.measurements if (m.target, m.kind, m.learner) == wanted
        )

    def selectivity(
        self, target: str, kind: str, control: str, measure: Measure = "relative"
    ) -> MeanWithInterval:
        """Return, per layer, the control's error minus the learner's.

        `control` is the name of another learner, which is compared layer by layer, or
        `input`, the learner's own H⁽⁰⁾. Both were probed on the same datasets, so
        differences are taken within each repeat.
        """
        own = self.of(target, kind)
        require_choice("control", control, (INPUT, *self.controls))
        if control == INPUT:
            if 0 not in own.layers:
                rule = "include 0, the input, to compare with it"
                raise InvalidValueError("layers", rule, own.layers)
            place = own.layers.index(0)
            other = own.samples(measure)[:, place : place + 1]
            return mean_with_interval(other - own.samples(measure))
        against = self.of(target, kind, control)
        if against.layers != own.layers:
            remedy = "Compare `per_layer` of both, or probe the layers that both have."
            rule = f"have been probed at the layers {own.layers}"
            raise InvalidValueError("control", rule, against.layers, remedy)
        return mean_with_interval(against.samples(measure) - own.samples(measure))

    def summary(self, measure: Measure = "relative") -> list[dict[str, Any]]:
        """Return a row per target, kind and learner: its best layer and error there.

        A control's row holds its selectivity at the learner's best layer. Errors and
        selectivities are lists of mean, low and high.
        """
        rows = []
        for each in self.measurements:
            own = each.learner == self.learner
            best = each.best_layer(measure)
            errors = each.per_layer(measure)
            comparable = (
                not own and each.layers == self.of(each.target, each.kind).layers
            )
            selectivity = None
            if comparable:
                of_layers = self.selectivity(
                    each.target, each.kind, each.learner, measure
                )
                chosen = self.of(each.target, each.kind).best_layer(measure)
                selectivity = [float(part[chosen]) for part in of_layers]
            at_input = errors.mean[each.layers.index(0)] if 0 in each.layers else None
            rows.append(
                {
                    "target": each.target,
                    "kind": each.kind,
                    "learner": each.learner,
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
        repeats = len(self.measurements[0].error)
        texts = []
        for row in best[:MOST_TARGETS]:
            mean, bounds = row["relative_error"], (row["low"], row["high"])
            error = number(mean) if repeats < 2 else with_interval(mean, *bounds)
            where = f"{row['target']} best in layer {row['layer']}"
            texts.append(f"{where} ({row['kind']}, error {error})")
        if len(best) > MOST_TARGETS:
            texts.append(f"{len(best) - MOST_TARGETS} more targets less well")
        spread = f"95 % intervals over {repeats} repeats" if repeats > 1 else "1 repeat"
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
        arrays, listed = {}, []
        for index, each in enumerate(self.measurements):
            names = ("error", "variance", "attention")
            arrays |= {f"{index}.{name}": getattr(each, name) for name in names}
            listed.append(
                {
                    "learner": each.learner,
                    "target": each.target,
                    "kind": each.kind,
                    "layers": list(each.layers),
                }
            )
        plain = {f.name: getattr(self, f.name) for f in fields(self)[:-1]}
        return {**plain, "measurements": listed}, arrays

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "ProbingResult":
        measurements = tuple(
            Measurement(
                learner=each["learner"],
                target=each["target"],
                kind=each["kind"],
                layers=tuple(each["layers"]),
                error=arrays[f"{index}.error"],
                variance=arrays[f"{index}.variance"],
                attention=arrays[f"{index}.attention"],
            )
            for index, each in enumerate(values.pop("measurements"))
        )
        for name in ("controls", "prefixes"):
            values[name] = tuple(values[name])
        return cls(measurements=measurements, **values)
