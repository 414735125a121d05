"""Does a predictor change its algorithm with the number of examples?

Every span of n has its own nearest hypothesis, fitted to that span alone. A change
point c splits n = 1, …, N into two spans; it is reported if both spans are far better
described alone than n = 1, …, N by any one hypothesis.
"""

from dataclasses import dataclass

import numpy as np

from algoscope.identification.fitting import CLEAR, Scan, polish
from algoscope.identification.observations import Observations
from algoscope.identification.scores import Floor, Score, rank

TRIED = 4  # families that are fitted to a span, the nearest on the grid
GAIN = 0.1  # a change point must reduce the distance to this share
CHANGE_POINTS = 3  # that are looked at closely
ONE = 1e-8  # a nearer hypothesis describes all n; two parts bend more easily than one


@dataclass(frozen=True)
class Regime:
    """The answer for one range of the number of examples."""

    name: str
    first: int
    last: int
    verdict: str
    relation: str
    nearest: str
    parameters: dict
    distance: float


@dataclass(frozen=True, eq=False)
class Span:
    """The nearest hypothesis for one range of n."""

    first: int
    last: int
    score: Score
    same: bool  # equal to the box up to rounding or noise

    @property
    def weight(self) -> int:
        """How many n it covers."""
        return self.last - self.first + 1

    def describe(self, name: str, limit: float) -> Regime:
        """Return the answer for this span."""
        hypothesis = self.score.hypothesis
        fits = self.same or (self.score.distance <= limit and self.score.explains)
        relation = "is" if self.same else "behaves like" if fits else "none"
        return Regime(
            name=name,
            first=self.first,
            last=self.last,
            verdict=hypothesis.family.name if fits else "none",
            relation=relation,
            nearest=hypothesis.name,
            parameters=hypothesis.parameters if fits else {},
            distance=self.score.distance,
        )


def fit_span(
    first: int,
    last: int,
    scans: list[Scan],
    fitted: Observations,
    tested: Observations,
    floor: Floor,
    known: list[Score],
) -> Span | None:
    """Return the nearest hypothesis for n = first, …, last, or None without answers.

    The hypotheses that describe all n are considered too.
    """
    part, test = fitted.between(first, last), tested.between(first, last)
    if not part.suites or not test.suites:
        return None
    starts = sorted(
        (scan.starts(first, last) for scan in scans), key=lambda each: each[0][0]
    )
    hypotheses = [score.hypothesis for score in known]
    nearest = np.inf
    for each in starts[:TRIED]:
        loss, hypothesis = polish(each, part, max(nearest, CLEAR))
        nearest = min(nearest, loss)
        hypotheses.append(hypothesis)
    scores = [Score.of(hypothesis, test) for hypothesis in hypotheses]
    winner = rank(scores, floor)[0]
    return Span(first, last, winner, winner.is_same(floor))


def find_change(
    scans: list[Scan],
    fitted: Observations,
    tested: Observations,
    floor: Floor,
    ranked: list[Score],
) -> tuple[Span, Span] | None:
    """Return the two spans if a change of algorithm explains the answers far better."""
    positions = np.flatnonzero(tested.counted.any(axis=0))
    alone = ranked[0].distance
    if len(positions) < 2 or alone <= ONE:
        return None
    first, last = int(positions[0]), int(positions[-1])
    table = np.concatenate([scan.squares for scan in scans])
    sums = np.cumsum(np.nan_to_num(table, posinf=1e12), axis=1)
    left = sums - sums[:, first - 1, None]
    right = sums[:, last, None] - sums
    costs = left.min(axis=0) + right.min(axis=0)
    order = sorted(range(first, last), key=lambda c: costs[c])[:CHANGE_POINTS]
    best: tuple[float, Span, Span] | None = None
    for c in order:
        one = fit_span(first, c, scans, fitted, tested, floor, ranked[:3])
        two = fit_span(c + 1, last, scans, fitted, tested, floor, ranked[:3])
        if one is None or two is None:
            continue
        total = one.weight * one.score.distance + two.weight * two.score.distance
        total /= one.weight + two.weight
        if best is None or total < best[0]:
            best = (total, one, two)
    if best is None or best[0] > GAIN * alone:
        return None
    return best[1], best[2]
