"""Is a target encoded? Errors over seeds, compared on the same test datasets.

`Evidence` holds probing results of learners that differ in their training seed, each
with its controls, measured on common datasets. Errors are relative to the target's
variance and averaged over a region of n. Differences are paired: a bootstrap draws
blocks of test datasets, the same for both sides, and seeds.

A target is encoded if its error is significantly below every floor (docs/verdicts.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import interval_of, over_seeds, replicates
from algoscope.probing.floors import closed_form
from algoscope.probing.measurement import RESAMPLES, Measurement
from algoscope.probing.places import place_symbol
from algoscope.probing.result import ProbingResult
from algoscope.probing.targets import symbol

LEARNER = "learner"
PAIRS = {("moment", "w_ols"), ("w_ols", "moment")}  # that the closed form relates

PerSeed = Float[np.ndarray, " seeds"]
Resampled = Float[np.ndarray, "seeds resamples"]


class Margin(NamedTuple):
    """A difference, or a mean, with its 95 % interval over seeds and datasets."""

    of: str
    mean: float
    low: float
    high: float

    @property
    def is_positive(self) -> bool:
        """Whether it is significantly above 0."""
        return self.low > 0


@dataclass(frozen=True)
class Sample:
    """A number of every seed, with its bootstrap replicates over datasets."""

    of: str
    means: PerSeed
    resampled: Resampled

    def minus(self, other: "Sample") -> Margin:
        """Return the paired difference."""
        gaps = Sample(
            f"{self.of} − {other.of}",
            self.means - other.means,
            self.resampled - other.resampled,
        )
        return gaps.margin

    @property
    def margin(self) -> Margin:
        """The mean over seeds, with its interval."""
        low, high = interval_of(over_seeds(self.resampled)[:, None])
        mean = float(self.means.mean())
        return Margin(self.of, mean, float(low[0]), float(high[0]))


@dataclass(frozen=True)
class Evidence:
    """Probing results of several training seeds; controls are in the same order."""

    results: tuple[ProbingResult, ...]

    @property
    def first(self) -> ProbingResult:
        """The result of the first seed."""
        return self.results[0]

    @property
    def seeds(self) -> int:
        """How many there are."""
        return len(self.results)

    @property
    def regions(self) -> dict[str, list[int]]:
        """The regions of n that hold prefixes; n = 1 belongs to none of them."""
        dim, prefixes = self.first.dim, [n for n in self.first.prefixes if n > 1]
        found = {
            "n ≤ d": [n for n in prefixes if n <= dim],
            "n > d": [n for n in prefixes if n > dim],
            "all n": prefixes,
        }
        return {name: region for name, region in found.items() if region}

    def place(self, place: str | None = None) -> str:
        """Return the place asked for, or the default."""
        return self.first.places[0] if place is None else place

    def measurements(
        self, target: str, kind: str, who: str = LEARNER, place: str | None = None
    ) -> list[Measurement]:
        """Return those of every seed: of the learner, or of the control so named.

        A control is named as in the first result.
        """
        found = []
        for result in self.results:
            name = result.learner
            if who != LEARNER:
                name = result.controls[self.first.controls.index(who)]
            found.append(result.of(target, kind, name, self.place(place)))
        return found

    def error(
        self,
        target: str,
        kind: str,
        region: Sequence[int],
        *,
        who: str = LEARNER,
        place: str | None = None,
        layer: int | None = None,
    ) -> Sample:
        """Return the error in a layer, by default in the best by validation error."""
        found = self.measurements(target, kind, who, place)
        chosen = [self._indices(region)] * len(found)
        layers = [
            _best_layer(each, own) if layer is None else each.layers.index(layer)
            for each, own in zip(found, chosen, strict=True)
        ]
        return _sample(who, found, layers, chosen[0])

    def best_layers(
        self, target: str, kind: str, region: Sequence[int], who: str = LEARNER
    ) -> list[int]:
        """Return the best layer of every seed, on validation datasets."""
        found = self.measurements(target, kind, who)
        indices = self._indices(region)
        return [each.layers[_best_layer(each, indices)] for each in found]

    def floors(
        self,
        target: str,
        kind: str,
        region: Sequence[int],
        place: str | None = None,
    ) -> list[tuple[Sample, Sequence[int]]]:
        """Return all floors, and the part of the region that each one covers."""
        indices = self._indices(region)
        found: list[tuple[Sample, Sequence[int]]] = []
        for name in self.first.floors_of(target, kind):
            each = [result.floors_of(target, kind)[name] for result in self.results]
            sample = _sample(name, each, [0] * len(each), indices)
            found.append((sample, region))
        later = [n for n in region if n >= self.first.dim]
        others = {(target, other) for other in self.first.targets}
        if later and others & PAIRS:
            value = np.mean([closed_form(self.first.dim, n) for n in later])
            same = np.full((self.seeds, RESAMPLES), value)
            sample = Sample("(d+1)/(n+d+1)", np.full(self.seeds, value), same)
            found.append((sample, later))
        if 0 in self.measurements(target, kind, place=place)[0].layers:
            own = self.error(target, kind, region, place=place, layer=0)
            found.append((Sample("the input", own.means, own.resampled), region))
        for control in self.first.controls:
            other = self.error(target, kind, region, who=control, place=place)
            found.append((other, region))
        return found

    def above(
        self, target: str, kind: str, region: Sequence[int], place: str | None = None
    ) -> list[Margin]:
        """Return by how much each floor is above the error in the best layer."""
        margins = []
        for floor, covered in self.floors(target, kind, region, place):
            own = self.error(target, kind, covered, place=place)
            what = f"{symbol(target)}, {kind}"
            named = Sample(what, own.means, own.resampled)
            margins.append(floor.minus(named))
        return margins

    def is_encoded(self, target: str, kind: str, region: Sequence[int]) -> bool:
        """Return whether the error is significantly below every floor."""
        return all(each.is_positive for each in self.above(target, kind, region))

    def order(
        self, early: str, late: str, kind: str, region: Sequence[int]
    ) -> dict[str, Margin]:
        """Return how many layers later `late` is read, by the half-way and best layer.

        The half-way layer is where the error, interpolated between layers, has fallen
        half-way from that of the input to the least.
        """
        indices = self._indices(region)
        found: dict[str, list[Sample]] = {"half-way layer": [], "best layer": []}
        for target in (early, late):
            curves, resampled = [], []
            for each in self.measurements(target, kind):
                errors = _relative_blocks(each, indices)
                curves.append(errors.mean(axis=0)[None])
                resampled.append(replicates(errors, num_resamples=RESAMPLES))
            layers = np.array(self.measurements(target, kind)[0].layers)
            for name, of_curve in (("half-way layer", half_way), ("best layer", _best)):
                means = np.concatenate([of_curve(curve, layers) for curve in curves])
                more = np.stack([of_curve(curve, layers) for curve in resampled])
                found[name].append(Sample(f"{name} of {symbol(target)}", means, more))
        return {name: late.minus(early) for name, (early, late) in found.items()}

    def best_place(
        self, target: str, kind: str, place: str, region: Sequence[int]
    ) -> list[Margin]:
        """Return how much worse the other of three fixed places are than this one."""
        others = [p for p in ("last_label", "query", "labels") if p != place]
        own, *rest = (
            Sample(f"{symbol(target)} at {place_symbol(p)}", *_numbers(sample))
            for p in (place, *others)
            for sample in [self.error(target, kind, region, place=p)]
        )
        return [each.minus(own) for each in rest]

    def _indices(self, region: Sequence[int]) -> list[int]:
        return [self.first.prefixes.index(n) for n in region]


def _numbers(sample: Sample) -> tuple[PerSeed, Resampled]:
    return sample.means, sample.resampled


def _relative_blocks(
    found: Measurement, prefixes: Sequence[int]
) -> Float[np.ndarray, "blocks layers"]:
    """Return the error over the variance, of all repeats, averaged over prefixes."""
    if found.blocks is None:
        raise ValueError("The result was saved without errors of blocks of datasets.")
    errors = found.blocks.astype(np.float64) / found.variance[:, None, None]
    return errors[..., list(prefixes)].mean(axis=(0, 3))


def _sample(
    name: str, found: list[Measurement], layers: list[int], prefixes: list[int]
) -> Sample:
    of_seeds = [
        _relative_blocks(each, prefixes)[:, layer]
        for each, layer in zip(found, layers, strict=True)
    ]
    return Sample(
        name,
        np.array([each.mean() for each in of_seeds]),
        np.stack([replicates(each, num_resamples=RESAMPLES) for each in of_seeds]),
    )


def _best_layer(found: Measurement, prefixes: Sequence[int]) -> int:
    """Return the index of the least validation error."""
    assert found.validation is not None
    errors = found.validation / found.variance[:, None]
    return int(np.argmin(errors[..., list(prefixes)].mean(axis=(0, 2))))


def half_way(
    curves: Float[np.ndarray, "curves layers"], layers: np.ndarray
) -> Float[np.ndarray, " curves"]:
    """Return where each curve first falls to the middle of its first and least value.

    Example:
        >>> half_way(np.array([[1.0, 0.8, 0.2, 0.4]]), np.arange(4)).round(2).tolist()
        [1.33]
    """
    middle = (curves[:, :1] + curves.min(axis=1, keepdims=True)) / 2
    after = np.maximum(np.argmax(curves <= middle, axis=1), 1)
    rows = np.arange(len(curves))
    high, low = curves[rows, after - 1], curves[rows, after]
    fall = np.where(high > low, high - low, 1)
    share = np.clip((high - middle[:, 0]) / fall, 0, 1)
    return layers[after - 1] + share * (layers[after] - layers[after - 1])


def _best(
    curves: Float[np.ndarray, "curves layers"], layers: np.ndarray
) -> Float[np.ndarray, " curves"]:
    return layers[np.argmin(curves, axis=1)].astype(np.float64)
