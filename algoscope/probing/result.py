"""What probing found, as data: saved, loaded and drawn without the models.

Errors are mean squared errors per dimension of the target, on held-out datasets. They
are averaged over prefixes before they are averaged over repeats, so an interval says
how much another draw of datasets and of initial probes would change the average.
"""

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import number
from algoscope.foundation.validation import InvalidValueError, require_choice

INPUT = "input"  # as a control: the learner's own H⁽⁰⁾

Measure = Literal["error", "relative"]
PerLayer = Float[np.ndarray, " layers"]


if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Interval(NamedTuple):
    """A mean over repeats with its 95 % interval, which takes two repeats or more."""

    mean: PerLayer
    low: PerLayer
    high: PerLayer


def interval(samples: Float[np.ndarray, "repeats layers"]) -> Interval:
    """Return mean ± t s/√r over r repeats, t being Student's for r − 1."""
    mean = samples.mean(axis=0)
    if len(samples) < 2:
        return Interval(mean, np.full_like(mean, np.nan), np.full_like(mean, np.nan))
    spread = samples.std(axis=0, ddof=1) / np.sqrt(len(samples))
    margin = stats.t.ppf(0.975, len(samples) - 1) * spread
    return Interval(mean, mean - margin, mean + margin)


@dataclass(frozen=True)
class Measurement:
    """Probes of one kind for one target in one learner."""

    learner: str
    target: str
    kind: str
    layers: tuple[int, ...]
    error: Float[np.ndarray, "repeats layers prefixes"]
    variance: Float[np.ndarray, "repeats prefixes"]  # the error of the mean answer
    attention: Float[np.ndarray, "repeats layers prefixes time"]  # α

    @property
    def relative(self) -> Float[np.ndarray, "repeats layers prefixes"]:
        """The error over the target's variance: 1 is no better than the mean.

        NaN where the target is constant.
        """
        known = np.where(self.variance > 0, self.variance, np.nan)
        return self.error / known[:, None]

    def samples(
        self, measure: Measure = "relative"
    ) -> Float[np.ndarray, "repeats layers"]:
        """Return the mean over prefixes, for every repeat."""
        require_choice("measure", measure, ("error", "relative"))
        return getattr(self, measure).mean(axis=2)

    def per_layer(self, measure: Measure = "relative") -> Interval:
        """Return the mean over prefixes, with its interval over repeats."""
        return interval(self.samples(measure))

    def best_layer(self, measure: Measure = "relative") -> int:
        """Return the place in `layers` of the least error."""
        return int(np.argmin(self.per_layer(measure).mean))


@dataclass(frozen=True, repr=False)
class ProbingResult(SavedResult):
    """All measurements of a learner and of its controls."""

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
        """The targets, in the order in which they were asked."""
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
    ) -> Interval:
        """Return, per layer, the control's error minus the learner's.

        `control` is the name of another learner, whose layers are compared one by one,
        or `input`, the learner's own H⁽⁰⁾. Both were probed on the same datasets, so
        differences are taken within a repeat.
        """
        own = self.of(target, kind)
        require_choice("control", control, (INPUT, *self.controls))
        if control == INPUT:
            if 0 not in own.layers:
                rule = "hold 0, the input, to be compared with it"
                raise InvalidValueError("layers", rule, own.layers)
            place = own.layers.index(0)
            other = own.samples(measure)[:, place : place + 1]
            return interval(other - own.samples(measure))
        against = self.of(target, kind, control)
        if against.layers != own.layers:
            remedy = "Compare `per_layer` of both, or probe the layers that both have."
            rule = f"have been probed at the layers {own.layers}"
            raise InvalidValueError("control", rule, against.layers, remedy)
        return interval(against.samples(measure) - own.samples(measure))

    def summary(self, measure: Measure = "relative") -> list[dict[str, Any]]:
        """Return a row per target, kind and learner: its best layer, and the error.

        A control's row has its selectivity at the learner's best layer; a mean stands
        with its interval.
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
        """What is decoded best from the learner, and where."""
        own = [each for each in self.measurements if each.learner == self.learner]
        texts = []
        for target in self.targets:
            of_target = [each for each in own if each.target == target]
            best = min(of_target, key=lambda m: m.per_layer().mean[m.best_layer()])
            place = best.best_layer()
            found, low, high = (float(part[place]) for part in best.per_layer())
            interval = "" if low != low else f" [{number(low)}, {number(high)}]"
            texts.append(
                f"{target} from layer {best.layers[place]} by {best.kind} probes, with "
                f"{number(found)}{interval} of its variance unexplained"
            )
        return f"{self.learner} encodes best {'; '.join(texts)}."

    def rows(self) -> list[Row]:
        """Return a row per target, kind of probe, learner and layer."""
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
        """Draw the error per layer (figure 4), or one target's into given axes."""
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
