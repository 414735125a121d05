"""The result of `probe`: errors and attention of every probe, without the models.

Errors are mean squared errors per dimension of the target, on held-out datasets. The
mean of every block of test datasets is saved, so that intervals are those of a
bootstrap over repeats and blocks, and differences between probes on the same datasets
are paired. Results that were saved without blocks have intervals over repeats.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

import numpy as np
from jaxtyping import Float
from scipy import stats

from algoscope.comparison.intervals import interval_of, over_seeds, replicates
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import listed, number, with_interval
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.probing.places import place_symbol

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LEARNED = "learned"  # the place of results that were saved without one
RESAMPLES = 1000
INPUT = "input"  # as a control: the learner's own H⁽⁰⁾
MOST_TARGETS = 3  # named in the sentence
ALL = slice(None)
ARRAYS = ("error", "variance", "attention")
NEWER_ARRAYS = ("blocks", "validation", "history")  # missing in older results

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
    place: str = LEARNED
    blocks: Float[np.ndarray, "repeats blocks layers prefixes"] | None = None
    validation: Float[np.ndarray, "repeats layers prefixes"] | None = None
    history: Float[np.ndarray, "repeats moments layers prefixes"] | None = None

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

    def resampled(
        self, measure: Measure = "relative", prefixes: Sequence[int] | None = None
    ) -> Float[np.ndarray, "resamples layers"]:
        """Return bootstrap means over prefixes (by index), repeats and test datasets.

        They are paired with those of other probes on the same datasets.
        """
        if self.blocks is None:
            remedy = "Probe again: it was saved without errors of blocks of datasets."
            raise InvalidValueError("measurement", "hold blocks", "none", remedy)
        chosen = slice(None) if prefixes is None else list(prefixes)
        errors = self.blocks.astype(np.float64)
        if measure == "relative":
            errors = (
                errors
                / np.where(self.variance > 0, self.variance, np.nan)[:, None, None]
            )
        each = [
            replicates(repeat, num_resamples=RESAMPLES)
            for repeat in errors[..., chosen].mean(axis=-1)
        ]
        return over_seeds(np.stack(each))

    def per_layer(self, measure: Measure = "relative") -> MeanWithInterval:
        """Return the mean over prefixes, with its interval."""
        samples = self.samples(measure)
        if self.blocks is None:
            return mean_with_interval(samples)
        low, high = interval_of(self.resampled(measure))
        return MeanWithInterval(samples.mean(axis=0), low, high)

    def best_layer(self, measure: Measure = "relative") -> int:
        """Return the index in `layers` of the least error, on validation datasets."""
        if self.validation is None:
            return int(np.argmin(self.samples(measure).mean(axis=0)))
        errors = self.validation
        if measure == "relative":
            errors = errors / np.where(self.variance > 0, self.variance, 1)[:, None]
        return int(np.argmin(errors.mean(axis=(0, 2))))


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
