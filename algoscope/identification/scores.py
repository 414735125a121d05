"""How far a fitted hypothesis is from what was observed, by kind of data and by n.

The distance on a suite leaves out the fifth of its datasets that fit worst: a solver
may fail on a few. Suites are never left out, and every one counts the same.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int

from algoscope.identification.hypothesis import Hypothesis
from algoscope.identification.observations import Observations

KEPT = 0.8  # of the datasets of a suite, those that a hypothesis fits best
RESAMPLES = 400  # for intervals and ties
EXACT = 1e-10  # (f − A)²/c up to this is rounding
LARGEST_ROUNDING = 1e-6  # no more than this counts as rounding, whatever was measured
EQUAL_SHARE = 0.9  # of the answers of each suite, and at each n, must be equal
NOISE_SLACK = 5.0  # standard errors, by which the box's own noise may be exceeded
FEWEST = 12  # answers at one n, for a judgement about that n
NEAR = 1.1  # distances within this factor of the smallest count as equal
UNEXPLAINED = 0.2  # the largest share of its answers that a named algorithm leaves
AT_BOUND = 10.0  # times nearer: a fit at the end of its range, to be named


@dataclass(frozen=True)
class Floor:
    """How exactly a box answers at all.

    `noise` is E(f − f′)²/2c for two answers to one question; `rounding` is (f − f′)²/c
    for the same question with its coordinates in another order.
    """

    noise: float
    rounding: float

    @property
    def is_noisy(self) -> bool:
        """Whether the same question gets different answers."""
        return self.noise > EXACT / 100

    @property
    def tolerance(self) -> float:
        """The largest (f − A)²/c at which two answers are equal."""
        return max(EXACT, min(10 * self.rounding, LARGEST_ROUNDING))


@dataclass(frozen=True, eq=False)
class Score:
    """A hypothesis, and (f − A)²/c at every question."""

    hypothesis: Hypothesis
    observed: Observations
    squares: Float[np.ndarray, "datasets examples"]

    @classmethod
    def of(cls, hypothesis: Hypothesis, observed: Observations) -> "Score":
        """Return the score of a hypothesis."""
        return cls(hypothesis, observed, hypothesis.squares(observed))

    @cached_property
    def per_dataset(self) -> Float[np.ndarray, " datasets"]:
        """ρ of every dataset."""
        return self.observed.per_dataset(self.squares)

    @cached_property
    def suites(self) -> dict[str, float]:
        """ρ on every suite, without the datasets that fit worst."""
        return {
            name: float(trimmed_mean(self.per_dataset[rows]))
            for name, rows in self.observed.suites.items()
        }

    @cached_property
    def untrimmed(self) -> dict[str, float]:
        """ρ on every suite, over all its datasets."""
        return {
            name: float(self.per_dataset[rows].mean())
            for name, rows in self.observed.suites.items()
        }

    @cached_property
    def distance(self) -> float:
        """ρ, the mean over suites."""
        return float(np.mean(list(self.suites.values()) or [np.inf]))

    @cached_property
    def per_n(self) -> Float[np.ndarray, " examples"]:
        """ρ after n examples, NaN where nothing was answered."""
        counted = self.observed.counted
        weights = self.observed.shares[:, None] * counted
        total = weights.sum(axis=0)
        sums = np.sum(weights * self.squares, axis=0)
        return np.where(total > 0, sums / np.where(total > 0, total, 1), np.nan)

    @cached_property
    def resampled(self) -> Float[np.ndarray, " resamples"]:
        """ρ over resampled datasets; the same draws for every score."""
        rng = np.random.default_rng(0)
        parts = []
        for rows in self.observed.suites.values():
            drawn = rng.integers(0, len(rows), (RESAMPLES, len(rows)))
            parts.append(trimmed_mean(self.per_dataset[rows][drawn]))
        return np.mean(parts, axis=0)

    @property
    def interval(self) -> tuple[float, float]:
        """The 95 % bootstrap interval of ρ."""
        low, high = np.quantile(self.resampled, [0.025, 0.975], method="inverted_cdf")
        return float(low), float(high)

    @cached_property
    def unexplained(self) -> float:
        """ρ as a share of that of `zero`: what it leaves of the predictor's answers."""
        nothing = self.observed.squares(np.zeros_like(self.observed.y))
        size = replace(self, squares=nothing).distance
        if self.distance == 0:
            return 0.0
        return self.distance / size if size > 0 else np.inf

    @property
    def explains(self) -> bool:
        """Whether it leaves little of the answers, or says that there is nothing."""
        nothing = self.hypothesis.family.name == "zero"
        return nothing or self.unexplained <= UNEXPLAINED

    def is_tied_with(self, nearest: "Score") -> bool:
        """Return whether this is not significantly farther away than the nearest."""
        if self.distance <= NEAR * nearest.distance:
            return True
        difference = self.resampled - nearest.resampled
        return bool(np.quantile(difference, 0.025) <= 0)

    def is_same(self, floor: Floor) -> bool:
        """Return whether it equals the box, up to rounding or the box's own noise.

        It must on every suite and at every n; a solver may fail on a few datasets.
        """
        if floor.is_noisy:
            return self._differs_by_noise()
        equal = self.squares <= floor.tolerance
        return all(
            equal[part].mean() >= EQUAL_SHARE
            for part in self.observed.parts
            if part.sum() >= min(FEWEST, self.observed.counted.sum())
        )

    def _differs_by_noise(self) -> bool:
        """Return whether the differences are no larger than between two answers."""
        asked_twice = np.isfinite(self.observed.noise)
        parts = [part & asked_twice for part in self.observed.parts]
        return bool(asked_twice.any()) and all(
            self._excess(part) <= NOISE_SLACK for part in parts if part.sum() >= FEWEST
        )

    def _excess(self, part: Bool[np.ndarray, "datasets examples"]) -> float:
        """Return by how many standard errors the differences exceed the noise.

        The error is that of two means of numbers that vary like the noise.
        """
        noise, squares = self.observed.noise[part], self.squares[part]
        error = np.sqrt(2 * np.mean(noise**2) / len(noise))
        excess = squares.mean() - noise.mean()
        return float(excess / error) if error > 0 else float(np.inf * (excess > 0))


def trimmed_mean(
    distances: Float[np.ndarray, "*rest datasets"],
) -> Float[np.ndarray, " *rest"]:
    """Return the mean over the datasets that are fitted best."""
    num_kept = max(int(np.ceil(KEPT * distances.shape[-1])), 1)
    return np.asarray(np.sort(distances, axis=-1)[..., :num_kept].mean(axis=-1))


def best_fitted(score: Score) -> Int[np.ndarray, " kept"]:
    """Return the datasets of every suite that a hypothesis fits best, in order."""
    kept = []
    for rows in score.observed.suites.values():
        count = max(int(np.ceil(KEPT * len(rows))), 1)
        kept.append(rows[np.argsort(score.per_dataset[rows], kind="stable")[:count]])
    return np.sort(np.concatenate(kept)) if kept else np.zeros(0, int)


def rank(scores: list[Score], floor: Floor) -> list[Score]:
    """Return the scores, the winner first, then by distance.

    The winner is the simplest of those that equal the box; if none does, the simplest
    of those that are as near as the nearest. A fit at the end of its range is named
    only if it is much nearer than any other: the algorithm is then beyond the range,
    or another one that this family happens to bend to.
    """
    equal = [score for score in scores if score.is_same(floor)]
    winner = min(equal or _nearest(scores), key=_simplicity)
    others = [score for score in scores if score is not winner]
    return [winner, *sorted(others, key=lambda score: score.distance)]


def _simplicity(score: Score) -> tuple[bool, int]:
    return bool(score.hypothesis.bounds), score.hypothesis.family.complexity


def _nearest(scores: list[Score]) -> list[Score]:
    """Return the scores that count as the nearest."""
    least = min(score.distance for score in scores)
    inside = [score for score in scores if not score.hypothesis.bounds]
    least_inside = min((score.distance for score in inside), default=np.inf)
    if least_inside <= AT_BOUND * least:
        scores, least = inside, least_inside
    return [score for score in scores if score.distance <= NEAR * least]


def tied_families(ranked: list[Score], floor: Floor) -> list[Score]:
    """Return, for each family that is tied with the winner, its nearest member.

    A family that is nearer than a winner, which is simpler or not at the end of its
    range, is among them.
    """
    winner = ranked[0]
    nearest = min(ranked, key=lambda score: score.distance)
    same = winner.is_same(floor)
    found: dict[str, Score] = {}
    for score in ranked[1:]:
        name = score.hypothesis.family.name
        if name == winner.hypothesis.family.name or name in found:
            continue
        alike = score.is_same(floor) if same else score.is_tied_with(nearest)
        if alike or score.distance <= winner.distance:
            found[name] = score
    return list(found.values())
