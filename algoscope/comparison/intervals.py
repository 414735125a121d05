"""Means over datasets with 95 % bootstrap intervals: `Summary`, `Curve`, `Estimate`.

`summarize` turns samples, one per dataset, into a `Summary`. Results hold summaries by
the names of two predictors: a `Curve` for every number of examples n, an `Estimate` for
a single number. Curves are averaged over regimes of n (`regime_spans`).

Near n = d the metrics are heavy-tailed, so every mean has an interval and a median.
A NaN sample was not measured: it is left out, and `counts` says how many remain.
"""

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from algoscope.foundation.files import parse_number
from algoscope.foundation.validation import InvalidValueError, require_at_least

NUMBERS = ("mean", "low", "high", "median")  # what a curve and an estimate hold
RESAMPLES_PER_CALL = 50  # computed with one matrix product


class Summary(NamedTuple):
    """Statistics over datasets; `counts` are the datasets behind each of them."""

    mean: Float[np.ndarray, " *rest"]
    low: Float[np.ndarray, " *rest"]
    high: Float[np.ndarray, " *rest"]
    median: Float[np.ndarray, " *rest"]
    counts: Int[np.ndarray, " *rest"]


@dataclass(frozen=True)
class Curve:
    """A metric of two predictors after n = 0, 1, … examples, with a 95 % interval.

    `counts` holds the number of datasets behind each mean; where it is 0, nothing was
    measured and the mean is NaN. Empty `counts` mean that no dataset is missing.
    """

    first: str
    second: str
    mean: list[float]
    low: list[float]
    high: list[float]
    median: list[float]
    counts: list[int] = field(default_factory=list)

    def average(self, start: int, stop: int) -> float:
        """Return the mean over n = start, …, stop, skipping each n not measured."""
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


def summarize(
    samples: Float[np.ndarray, " datasets *rest"], *, seed: int = 0
) -> Summary:
    """Return mean, 95 % interval, median and count over datasets, ignoring NaN."""
    low, high = bootstrap_interval(samples, seed=seed)
    flat = samples.reshape(len(samples), -1).astype(np.float64)
    missing = np.isnan(flat)
    count = np.sum(~missing, axis=0)
    total = np.sum(np.where(missing, 0, flat), axis=0)
    mean = np.where(count > 0, total / np.maximum(count, 1), np.nan)
    median = np.median(flat, axis=0) if not np.any(missing) else _median(flat)
    shape = samples.shape[1:]
    return Summary(
        mean.reshape(shape), low, high, median.reshape(shape), count.reshape(shape)
    )


def bootstrap_interval(
    samples: Float[np.ndarray, " datasets *rest"],
    *,
    level: float = 0.95,
    num_resamples: int = 1000,
    seed: int = 0,
) -> tuple[Float[np.ndarray, " *rest"], Float[np.ndarray, " *rest"]]:
    """Return a percentile bootstrap interval for the mean over datasets.

    Drawing n datasets with replacement weights them by multinomial counts. NaN has no
    weight. Where all samples are NaN, or one is infinite, the bounds are NaN.
    """
    if not 0 < level < 1:
        raise InvalidValueError("level", "lie between 0 and 1", level)
    require_at_least("num_resamples", num_resamples, 2)
    n = len(samples)
    require_at_least("number of samples", n, 1)
    rng = np.random.default_rng(seed)
    flat = samples.reshape(n, -1).astype(np.float64)
    present = np.isfinite(flat)
    complete = bool(np.all(present))
    values = flat if complete else np.where(present, flat, 0)
    equally = np.full(n, 1 / n)
    means = []
    for start in range(0, num_resamples, RESAMPLES_PER_CALL):
        size = min(RESAMPLES_PER_CALL, num_resamples - start)
        weights = rng.multinomial(n, equally, size).astype(np.float64)
        total = n if complete else weights @ present
        with np.errstate(invalid="ignore"):  # a resample may hold no sample: 0/0
            means.append(weights @ values / total)
    bad = np.any(np.isinf(flat), axis=0) | ~np.any(present, axis=0)
    stacked = np.where(bad, 0, np.concatenate(means))
    tail = 100 * (1 - level) / 2
    bounds = np.nanpercentile(stacked, [tail, 100 - tail], axis=0)
    low, high = np.where(bad, np.nan, bounds)
    return low.reshape(samples.shape[1:]), high.reshape(samples.shape[1:])


def replicates(
    samples: Float[np.ndarray, " datasets *rest"],
    *,
    num_resamples: int = 400,
    seed: int = 0,
) -> Float[np.ndarray, " resamples *rest"]:
    """Return the bootstrap means themselves: those over the resampled datasets.

    The same seed draws the same datasets, so replicates of several learners on common
    datasets are paired: their differences are replicates of the paired difference.
    """
    require_at_least("num_resamples", num_resamples, 2)
    n = len(samples)
    require_at_least("number of samples", n, 1)
    rng = np.random.default_rng(seed)
    flat = samples.reshape(n, -1).astype(np.float64)
    means = []
    for start in range(0, num_resamples, RESAMPLES_PER_CALL):
        size = min(RESAMPLES_PER_CALL, num_resamples - start)
        weights = rng.multinomial(n, np.full(n, 1 / n), size).astype(np.float64)
        means.append(weights @ flat / n)
    return np.concatenate(means).reshape(num_resamples, *samples.shape[1:])


def over_seeds(
    of_each: Float[np.ndarray, " seeds resamples *rest"], *, seed: int = 0
) -> Float[np.ndarray, " resamples *rest"]:
    """Return replicates of the mean over training seeds (hierarchical bootstrap).

    Each replicate draws seeds with replacement, on the datasets that it resampled.
    """
    count, resamples = of_each.shape[:2]
    rng = np.random.default_rng(seed)
    weights = rng.multinomial(count, np.full(count, 1 / count), resamples) / count
    return np.einsum("rs,sr...->r...", weights, of_each)


def interval_of(
    resampled: Float[np.ndarray, " resamples *rest"], level: float = 0.95
) -> tuple[Float[np.ndarray, " *rest"], Float[np.ndarray, " *rest"]]:
    """Return the percentile interval of bootstrap replicates."""
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail], axis=0)
    return np.asarray(low), np.asarray(high)  # of one number, not a NumPy scalar


def _median(flat: Float[np.ndarray, "datasets columns"]) -> np.ndarray:
    """Return the median of each column, ignoring NaN; NaN for a column without more."""
    empty = np.all(np.isnan(flat), axis=0)
    return np.where(empty, np.nan, np.nanmedian(np.where(empty, 0, flat), axis=0))


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
        name: [parse_number(item) for item in values[name]]
        for name in NUMBERS
        if name in values
    }
    return Curve(**values | restored)


def estimate_from_json(values: dict[str, Any]) -> Estimate:
    """Return the estimate that was saved as a dictionary."""
    restored: dict[str, Any] = {
        name: parse_number(values[name]) for name in NUMBERS if name in values
    }
    return Estimate(**values | restored)


def regime_spans(dim: int, num_examples: int) -> list[tuple[str, int, int]]:
    """Return the regimes that n = 1, …, `num_examples` covers: name, first, last n.

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
