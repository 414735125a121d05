"""Learners that differ in nothing but their seed, judged together.

A `SeedGroup` holds their distances to references on common datasets; its intervals and
paired differences cover seeds and datasets. What it calls learned, nearest, significant
and material follows docs/verdicts.md. A `Series` holds such groups by their size.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import Estimate, interval_of, over_seeds
from algoscope.comparison.result import LABELS
from algoscope.experiments.distances import (
    ALL,
    FITTED_GD,
    FITTED_RIDGE,
    IN_WORDS,
    RISKS,
    UNDER,
    Distances,
    family,
    in_text,
    paper_names,
)
from algoscope.experiments.record import Difference, Verdict
from algoscope.foundation.text import number
from algoscope.predictors import zero

# The bounds of docs/verdicts.md.
LEARNED = 0.25  # the least share of the possible gain
MATERIAL = 0.001  # the least difference in SPD/d that is material
NEAR_ONE_STEP = 0.1  # of the gain of one step of gradient descent
SYMBOLS = {"num_layers": "L", "hidden_size": "H"}
NOT_LEARNED, UNCLEAR = "not learned", "unclear"  # phases that are no algorithm


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
    def size(self) -> str:
        """What was learned, and how much was measured."""
        return (
            f"share learned {in_text(self.learned())}, {self.num_datasets:,} datasets, "
            f"seeds: {self.seeds}"
        )

    @property
    def references(self) -> list[str]:
        """The names of all references, without the labels."""
        first = next(iter(self.runs[0].means.values()))
        return [each.second for each in first if each.second != LABELS]

    def to(self, reference: str, region: str) -> Estimate:
        """Return the distance to one reference over a region: the mean over seeds."""
        found = [run.to(reference, region) for run in self.runs]
        first, mean = found[0], self.mean(reference, region)
        median = float(np.mean([each.median for each in found]))
        low, high = first.low, first.high
        if reference in self.runs[0].columns:
            low, high = _interval(self._replicates(reference, region))
        elif self.seeds > 1:
            low, high = min(e.low for e in found), max(e.high for e in found)
        return Estimate(first.first, reference, mean, low, high, median, first.count)

    def mean(self, reference: str, region: str) -> float:
        """Return the distance to one reference without its interval."""
        return float(np.mean([run.to(reference, region).mean for run in self.runs]))

    def robust(self, reference: str, region: str) -> str:
        """Return the median, and the mean without the largest 1 % of the datasets."""
        trimmed = np.mean([run.trimmed[region][reference] for run in self.runs])
        return f"{number(self.to(reference, region).median)}, {number(float(trimmed))}"

    def ranked(
        self, region: str, names: Collection[str] | None = None
    ) -> list[Estimate]:
        """Return the distances to references, all or these, from near to far."""
        return [self.to(name, region) for name in self._order(region, names)]

    def nearest(self, region: str, names: Collection[str] | None = None) -> Estimate:
        """Return the smallest distance to a reference, of all or of these."""
        return self.to(self._order(region, names)[0], region)

    def _order(self, region: str, names: Collection[str] | None) -> list[str]:
        chosen = [n for n in self.references if names is None or n in names]
        return sorted(chosen, key=lambda name: self.mean(name, region))

    def difference(self, near: str, far: str, region: str) -> Difference:
        """Return how much farther `far` is than `near`, on common datasets."""
        gaps = self._replicates(far, region) - self._replicates(near, region)
        mean = self.mean(far, region) - self.mean(near, region)
        words = IN_WORDS.get(region, region)
        of = f"SPD/d to {far} − SPD/d to {near}, {words}"
        return Difference(of, mean, *_interval(gaps))

    def is_nearer(self, near: str, far: str, region: str) -> bool:
        """Return whether `near` is significantly nearer than `far`."""
        return self.difference(near, far, region).low > 0

    def runner_up(self, near: str, region: str, names: Collection[str]) -> Difference:
        """Return the difference to the nearest of the other references."""
        far = self.nearest(region, {*names} - {near}).second
        return self.difference(near, far, region)

    def is_nearest(self, near: str, region: str, names: Collection[str]) -> bool:
        """Return whether `near` has the least mean, and is nearer than zero."""
        return self.nearest(region, names).second == near and self.is_nearer(
            near, zero.name, region
        )

    def is_significantly_nearest(
        self, near: str, region: str, names: Collection[str]
    ) -> bool:
        """Return whether `near` is nearer than each of the others, and than zero."""
        others = {*names, zero.name} - {near}
        return all(self.is_nearer(near, other, region) for other in others)

    def materially_nearer(
        self, names: Collection[str], than: str, region: str
    ) -> list[str]:
        """Return those of these references that are materially nearer than another."""
        gaps = {name: self.difference(name, than, region) for name in names}
        return [n for n, gap in gaps.items() if gap.low > 0 and gap.mean > MATERIAL]

    def nearer_fits(self, region: str, names: Collection[str]) -> str:
        """Say which fitted references are materially nearer than all of these."""
        nearest = self.nearest(region, names).second
        found = self.materially_nearer((FITTED_RIDGE, FITTED_GD), nearest, region)
        each = [
            f"{self.in_words(n)}, is nearer: {in_text(self.to(n, region))}"
            for n in found
        ]
        return "; ".join(each)

    def in_words(self, reference: str) -> str:
        """Return a name; that of a fitted reference has the parameters of each seed."""
        names = dict.fromkeys(run.fitted.get(reference, "") for run in self.runs)
        return f"{' or '.join(names)}, fitted" if any(names) else reference

    def learned(self) -> Estimate:
        """Return the share of the Bayes predictor's gain over zero, over all n."""
        own, nothing, best = (
            np.stack([run.column(name, ALL) for run in self.runs])
            for name in (LABELS, *RISKS)
        )
        shares = (nothing - own) / (nothing - best)
        low, high = _interval(over_seeds(shares))
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
        return bool(self.mean(LABELS, ALL) <= step + NEAR_ONE_STEP * (1 - step))

    @property
    def can_be_judged(self) -> bool:
        """Whether there are replicates; old measurements have none."""
        return all(run.replicates is not None for run in self.runs)

    def phase(self, region: str = UNDER) -> str:
        """Return the family of the nearest of the paper's references, if there is one.

        It must be significantly nearer than other families and than zero, and the
        learner must have learned.
        """
        nearest = family(self.nearest(region, paper_names()).second)
        if not self.can_be_judged:
            return nearest
        if not self._can_have_phase:
            return NOT_LEARNED
        return nearest if self.leads({nearest}, region) else UNCLEAR

    def leads(self, families: Collection[str], region: str) -> bool:
        """Return whether learners have learned, and one of these families leads.

        The nearest of the paper's references must be among them, and significantly
        nearer than every reference of another family and than zero.
        """
        nearest = self.nearest(region, paper_names()).second
        others = {n for n in paper_names() if family(n) not in families} | {zero.name}
        clear = all(self.is_nearer(nearest, other, region) for other in others)
        return self._can_have_phase and family(nearest) in families and clear

    @property
    def _can_have_phase(self) -> bool:
        enough = self.about["num_layers"] > 1 or self.has_taken_one_step
        return self.has_learned and enough

    @cached_property
    def _joined(self) -> Distances:
        """Distances whose replicates cover seeds."""
        found = [run.replicates for run in self.runs if run.replicates is not None]
        joined = over_seeds(np.stack(found)) if found else None
        return replace(self.runs[0], replicates=joined)

    def _replicates(self, column: str, region: str) -> Float[np.ndarray, " resamples"]:
        return self._joined.column(column, region)


@dataclass(frozen=True)
class Series:
    """The best learners, over seeds, for every value of one hyper-parameter."""

    dim: int
    axis: str
    runs: dict[int, SeedGroup]

    @property
    def seeds(self) -> int:
        """The least number of seeds at any size."""
        return min(run.seeds for run in self.runs.values())

    @property
    def num_datasets(self) -> int:
        """The datasets that each run was measured on."""
        return next(iter(self.runs.values())).num_datasets

    @property
    def references(self) -> list[str]:
        """The names of all references."""
        return next(iter(self.runs.values())).references

    def phases(self, region: str = UNDER) -> dict[int, str]:
        """Return the phase at every size."""
        return {value: run.phase(region) for value, run in self.runs.items()}

    def lead(self, value: int, families: Collection[str]) -> Difference:
        """Return how much nearer these families are than the others, for n < d."""
        near = [name for name in paper_names() if family(name) in families]
        far = [name for name in paper_names() if name not in near]
        run = self.runs[value]
        nearest, other = (run.nearest(UNDER, each).second for each in (near, far))
        found = run.difference(nearest, other, UNDER)
        return replace(found, of=f"{SYMBOLS[self.axis]} = {value}: {found.of}")

    def least_lead(self) -> Difference | None:
        """Return the lead that is the least significant, where models have learned."""
        leads = []
        for value, run in self.runs.items():
            if run.phase() != NOT_LEARNED:
                nearest = run.nearest(UNDER, paper_names()).second
                leads.append(self.lead(value, [family(nearest)]))
        return min(leads, key=lambda lead: lead.low, default=None)


def series_of(runs: Sequence[SeedGroup], axis: str) -> Series:
    """Keep, for every value on the axis, the learners of least risk."""
    best = {}
    for value in sorted({run.about[axis] for run in runs}):
        same = [run for run in runs if run.about[axis] == value]
        best[value] = min(same, key=lambda run: run.mean(LABELS, ALL))
    return Series(runs[0].about["dim"], axis, best)


def over_regions(
    judge: Callable[[str], tuple[Verdict, str]],
) -> tuple[Verdict, str]:
    """Return the verdict for n < d and over all n together, and the reason.

    A claim is reproduced if it is so in both regions, and partly if it is reproduced or
    partly so in one of them.
    """
    found = {region: judge(region) for region in (UNDER, ALL)}
    verdicts: set[Verdict] = {verdict for verdict, _ in found.values()}
    if len(set(found.values())) == 1:
        return found[UNDER]
    reason = " ".join(
        f"For {IN_WORDS[region]}: {verdict}. {why}".strip()
        for region, (verdict, why) in found.items()
    )
    if len(verdicts) == 1:
        return verdicts.pop(), reason
    if verdicts == {"not reproduced", "not testable"}:
        return "not reproduced", reason
    return "partly", reason


def _interval(resampled: Float[np.ndarray, " resamples"]) -> tuple[float, float]:
    low, high = interval_of(resampled[:, None])
    return low.item(), high.item()


def by_seed(runs: Iterable[Distances]) -> list[SeedGroup]:
    """Join runs that differ in their seed only, in the order of the first of each."""
    groups: dict[str, list[Distances]] = {}
    for run in runs:
        key = repr({k: v for k, v in run.about.items() if k not in ("seed", "run")})
        groups.setdefault(key, []).append(run)
    return [SeedGroup(tuple(group)) for group in groups.values()]
