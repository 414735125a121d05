"""Distances of learners to references, over regions of n, datasets and seeds.

`Distances` is what was measured of one learner: SPD/d to every reference over a few
regions of n, and bootstrap replicates of these means, from which paired differences
follow. `SeedGroup` joins learners that differ in nothing but their training seed; its
intervals cover seeds and datasets.
"""

import base64
from collections.abc import Callable, Collection, Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import (
    Estimate,
    estimate_from_json,
    interval_of,
    over_seeds,
)
from algoscope.comparison.result import LABELS
from algoscope.experiments.record import Difference, Verdict
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import read_json, write_json
from algoscope.foundation.text import with_interval
from algoscope.predictors import figure_1_references, zero

UNDER, AT, OVER, ALL = "under-determined", "determined", "over-determined", "all n"
IN_WORDS = {UNDER: "n < d", AT: "n = d", OVER: "n > d", ALL: "all n"}
FITTED_RIDGE, FITTED_GD = "fitted ridge", "fitted GD"
RISKS = ("risk of zero", "risk of Bayes")  # columns beside the distances
LEARNED = 0.25  # the least share of the possible gain: docs/verdicts.md
NEAR_ONE_STEP = 0.1  # of the gain of one step of gradient descent: docs/verdicts.md
NOT_LEARNED, UNCLEAR = "not learned", "unclear"  # phases that are no algorithm

FAMILIES = {
    "OLS": "OLS",
    "Ridge": "ridge",
    "GD": "gradient descent",
    "SGD": "gradient descent",
    "OptimalGD": "gradient descent",
    "KNN": "nearest neighbors",
    "Newton": "Newton",
    "ConjugateGradients": "conjugate gradients",
    FITTED_RIDGE: "ridge",
    FITTED_GD: "gradient descent",
}

Replicates = Float[np.ndarray, "resamples regions columns"]


def family(name: str) -> str:
    """Return the family of a reference by its name.

    Example:
        >>> family("Ridge(0.1)"), family("GD(0.01, steps=4)"), family("OLS")
        ('ridge', 'gradient descent', 'OLS')
    """
    return FAMILIES.get(name.split("(")[0], name)


def paper_names() -> tuple[str, ...]:
    """Return the names of the paper's references."""
    return tuple(reference.name for reference in figure_1_references())


def regions(dim: int, last: int) -> dict[str, tuple[int, int]]:
    """Return the first and last n of each region that n = 1, …, `last` covers.

    For d = 1 there is no n < d; n = 1 stands for it, as in the paper's figure 8.

    Example:
        >>> regions(8, 20)["over-determined"], regions(1, 20)["under-determined"]
        ((9, 20), (1, 1))
    """
    spans = {
        UNDER: (1, max(1, min(dim - 1, last))),
        AT: (dim, dim),
        OVER: (dim + 1, last),
        ALL: (1, last),
    }
    return {name: (a, b) for name, (a, b) in spans.items() if a <= b <= last}


def in_text(estimate: Estimate) -> str:
    """Return an estimate with its interval, as text."""
    return with_interval(estimate.mean, estimate.low, estimate.high)


@dataclass(frozen=True)
class Distances:
    """SPD/d of one learner to each reference and to the labels, over regions of n."""

    learner: str
    about: dict[str, Any]  # what distinguishes the learner, such as L and H
    num_datasets: int
    spans: dict[str, list[int]]  # region: first and last n
    means: dict[str, list[Estimate]]
    trimmed: dict[str, dict[str, float]] = field(default_factory=dict)
    fitted: dict[str, str] = field(default_factory=dict)  # their names with parameters
    columns: list[str] = field(default_factory=list)  # of the replicates
    replicates: Replicates | None = field(default=None, compare=False)

    def to(self, reference: str, region: str) -> Estimate:
        """Return the distance to one reference over a region."""
        return next(e for e in self.means[region] if e.second == reference)

    def save(self, path: Path) -> None:
        """Write the distances, with six digits: more would be noise."""
        values = _rounded({**asdict(self), "replicates": None})
        if self.replicates is not None:
            packed = self.replicates.astype("<f4").tobytes()
            values["replicates"] = base64.b64encode(packed).decode()
        write_json(path, values)

    @classmethod
    def load(cls, path: Path) -> "Distances":
        """Read what `save` wrote."""
        values = read_json(path)
        values.pop("margins", None)  # of measurements without replicates
        values["means"] = {
            region: [estimate_from_json(each) for each in estimates]
            for region, estimates in values["means"].items()
        }
        if packed := values.get("replicates"):
            shape = (-1, len(values["spans"]), len(values["columns"]))
            flat = np.frombuffer(base64.b64decode(packed), "<f4")
            values["replicates"] = flat.reshape(shape).astype(np.float64)
        return cls(**values)

    @classmethod
    def load_all(cls, directory: Path) -> "list[Distances]":
        """Read the distances of all learners that an experiment measured."""
        return [cls.load(directory / name) for name in Cache(directory).names]


@dataclass(frozen=True)
class SeedGroup:
    """Learners that differ in nothing but their seed, measured on common datasets."""

    runs: tuple[Distances, ...]

    @property
    def seeds(self) -> int:
        """How many learners there are."""
        return len(self.runs)

    @property
    def about(self) -> dict[str, Any]:
        """What distinguishes the learners from those of other groups."""
        return self.runs[0].about

    @property
    def num_datasets(self) -> int:
        """The datasets that each learner was measured on."""
        return self.runs[0].num_datasets

    @property
    def references(self) -> list[str]:
        """The names of all references, without the labels."""
        first = next(iter(self.runs[0].means.values()))
        return [each.second for each in first if each.second != LABELS]

    def to(self, reference: str, region: str) -> Estimate:
        """Return the distance to one reference over a region: the mean over seeds."""
        found = [run.to(reference, region) for run in self.runs]
        first = found[0]
        mean, median = (
            float(np.mean([getattr(e, name) for e in found]))
            for name in ("mean", "median")
        )
        low, high = first.low, first.high
        if reference in self.runs[0].columns:
            low, high = map(float, interval_of(self._replicates(reference, region)))
        elif self.seeds > 1:
            low, high = min(e.low for e in found), max(e.high for e in found)
        return Estimate(first.first, reference, mean, low, high, median, first.count)

    def trimmed(self, reference: str, region: str) -> float:
        """Return the mean without the largest 1 % of the datasets."""
        return float(np.mean([run.trimmed[region][reference] for run in self.runs]))

    def ranked(
        self, region: str, names: Collection[str] | None = None
    ) -> list[Estimate]:
        """Return the distances to references, all or these, from near to far."""
        chosen = [n for n in self.references if names is None or n in names]
        found = [self.to(name, region) for name in chosen]
        return sorted(found, key=lambda estimate: estimate.mean)

    def nearest(self, region: str, names: Collection[str] | None = None) -> Estimate:
        """Return the smallest distance to a reference, of all or of these."""
        return self.ranked(region, names)[0]

    def difference(self, near: str, far: str, region: str) -> Difference:
        """Return how much farther `far` is than `near`, on common datasets."""
        gaps = self._replicates(far, region) - self._replicates(near, region)
        mean = self.to(far, region).mean - self.to(near, region).mean
        words = IN_WORDS.get(region, region)
        of = f"SPD/d to {far} − SPD/d to {near}, {words}"
        return Difference(of, mean, *map(float, interval_of(gaps)))

    def is_nearer(self, near: str, far: str, region: str) -> bool:
        """Return whether `near` is significantly nearer than `far`."""
        return self.difference(near, far, region).low > 0

    def runner_up(self, near: str, region: str, names: Collection[str]) -> Difference:
        """Return the difference to the nearest of the other references."""
        others = [each.second for each in self.ranked(region, names)]
        far = next(name for name in others if name != near)
        return self.difference(near, far, region)

    def is_significantly_nearest(
        self, near: str, region: str, names: Collection[str]
    ) -> bool:
        """Return whether `near` is nearer than each of the others, and than zero."""
        others = {*names, zero.name} - {near}
        return all(self.is_nearer(near, other, region) for other in others)

    def learned(self) -> Estimate:
        """Return the share of the Bayes predictor's gain over zero, over all n."""
        own, nothing, best = (
            np.stack([self._column(run, name, ALL) for run in self.runs])
            for name in (LABELS, *RISKS)
        )
        shares = (nothing - own) / (nothing - best)
        low, high = map(float, interval_of(over_seeds(shares)))
        mean = float(np.mean(shares))
        return Estimate("learner", "Bayes", mean, low, high, mean, self.num_datasets)

    @property
    def has_learned(self) -> bool:
        """Whether the share of the possible gain lies above the bound."""
        return self.learned().low > LEARNED

    @property
    def has_taken_one_step(self) -> bool:
        """Whether the risk is about that of the best single step of gradient descent.

        That step's risk after n examples is d(d+1)/(n+d+1).
        """
        dim, (_, last) = self.about["dim"], self.runs[0].spans[ALL]
        step = np.mean([(dim + 1) / (n + dim + 1) for n in range(1, last + 1)])
        return self.to(LABELS, ALL).mean <= step + NEAR_ONE_STEP * (1 - step)

    def phase(self, region: str = UNDER) -> str:
        """Return the family of the nearest of the paper's references, if there is one.

        It must be significantly nearer than other families and than zero, and the
        learner must have learned.
        """
        nearest = self.nearest(region, paper_names()).second
        if self.runs[0].replicates is None:  # measured without what it takes to judge
            return family(nearest)
        enough = self.about["num_layers"] > 1 or self.has_taken_one_step
        if not (self.has_learned and enough):
            return NOT_LEARNED
        others = {n for n in paper_names() if family(n) != family(nearest)}
        others.add(zero.name)
        clear = all(self.is_nearer(nearest, other, region) for other in others)
        return family(nearest) if clear else UNCLEAR

    def _replicates(self, column: str, region: str) -> Float[np.ndarray, " resamples"]:
        return over_seeds(
            np.stack([self._column(run, column, region) for run in self.runs])
        )

    @staticmethod
    def _column(
        run: Distances, column: str, region: str
    ) -> Float[np.ndarray, " resamples"]:
        if run.replicates is None:
            raise KeyError(f"{run.learner} was measured without replicates")
        place = list(run.spans).index(region), run.columns.index(column)
        return run.replicates[:, *place]


def over_regions(
    judge: Callable[[str], tuple[Verdict, str]],
) -> tuple[Verdict, str]:
    """Return the verdict for n < d and over all n together, and the reason.

    A claim is reproduced if it is so in both regions, and partly if in one of them.
    """
    found = {region: judge(region) for region in (UNDER, ALL)}
    verdicts = {verdict for verdict, _ in found.values()}
    if len(set(found.values())) == 1:
        return found[UNDER]
    reason = " ".join(
        f"For {IN_WORDS[region]}: {verdict}. {why}".strip()
        for region, (verdict, why) in found.items()
    )
    if len(verdicts) == 1:
        return verdicts.pop(), reason
    return "partly", reason


def by_seed(runs: Iterable[Distances]) -> list[SeedGroup]:
    """Join runs that differ in their seed only, in the order of the first of each."""
    groups: dict[str, list[Distances]] = {}
    for run in runs:
        key = repr({k: v for k, v in run.about.items() if k not in ("seed", "run")})
        groups.setdefault(key, []).append(run)
    return [SeedGroup(tuple(group)) for group in groups.values()]


def _rounded(value: Any) -> Any:
    """Return floats with six significant digits."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
