"""Numbers that carry their interval and their sample size, as they are saved."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from algoscope.metrics import Summary
from algoscope.strict_json import number

NUMBERS = ("mean", "low", "high", "median")


def regime_spans(dim: int, num_examples: int) -> list[tuple[str, int, int]]:
    """Return the regimes: name, first and last number of examples.

    Example:
        >>> regime_spans(8, 20)
        [('under-determined', 1, 7), ('determined', 8, 8), ('over-determined', 9, 20)]
    """
    spans = [
        ("under-determined", 1, min(dim - 1, num_examples)),
        ("determined", dim, dim),
        ("over-determined", dim + 1, num_examples),
    ]
    return [(name, a, b) for name, a, b in spans if a <= b <= num_examples]


@dataclass(frozen=True)
class Curve:
    """A metric of two predictors after n = 0, 1, … examples, with a 95 % interval.

    `counts` says how many datasets each mean rests on; where it is 0 nothing was
    measured and the mean is NaN. Without counts, every dataset was counted.
    """

    first: str
    second: str
    mean: list[float]
    low: list[float]
    high: list[float]
    median: list[float]
    counts: list[int] = field(default_factory=list)

    def average(self, start: int, stop: int) -> float:
        """Return the mean over n = start, …, stop, without the n not measured."""
        span = slice(start, stop + 1)
        means, counts = self.mean[span], self.counts[span]
        if counts and any(counts):
            means = [m for m, c in zip(means, counts, strict=True) if c]
        return float(np.mean(means))

    @property
    def columns(self) -> list[list]:
        """The columns that must have one number per n."""
        columns = [self.mean, self.low, self.high, self.median]
        return [*columns, self.counts] if self.counts else columns


@dataclass(frozen=True)
class Estimate:
    """One number about two predictors, with its 95 % interval and sample size."""

    first: str
    second: str
    mean: float
    low: float
    high: float
    median: float
    count: int


def curves_of(pairs: list[tuple[str, str]], summary: Summary) -> list[Curve]:
    """Return one curve per pair from a summary with the axes [pairs, prefixes]."""
    return [
        Curve(*pair, *(column[index].tolist() for column in summary))
        for index, pair in enumerate(pairs)
    ]


def estimates_of(pairs: list[tuple[str, str]], summary: Summary) -> list[Estimate]:
    """Return one estimate per pair from a summary with the axis [pairs]."""
    return [
        Estimate(*pair, *(column[index].item() for column in summary))
        for index, pair in enumerate(pairs)
    ]


def curve_from_json(values: dict[str, Any]) -> Curve:
    """Return the curve that was saved as a dictionary."""
    restored: dict[str, Any] = {
        name: [number(item) for item in values[name]]
        for name in NUMBERS
        if name in values
    }
    return Curve(**values | restored)


def estimate_from_json(values: dict[str, Any]) -> Estimate:
    """Return the estimate that was saved as a dictionary."""
    restored: dict[str, Any] = {
        name: number(values[name]) for name in NUMBERS if name in values
    }
    return Estimate(**values | restored)
