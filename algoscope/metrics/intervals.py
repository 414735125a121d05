"""Means over datasets, and how sure they are.

Near n = d the metrics are heavy-tailed, so every mean carries a bootstrap interval and
a median. A sample that is NaN was not measured: it is left out, and counted.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from algoscope.validation import InvalidValueError, require_at_least

RESAMPLES_PER_CALL = 50  # one matrix product for so many resamples


class Summary(NamedTuple):
    """Statistics over datasets, and how many datasets each of them rests on."""

    mean: Float[np.ndarray, " *rest"]
    low: Float[np.ndarray, " *rest"]
    high: Float[np.ndarray, " *rest"]
    median: Float[np.ndarray, " *rest"]
    counts: Int[np.ndarray, " *rest"]


def bootstrap_interval(
    samples: Float[np.ndarray, " datasets *rest"],
    *,
    level: float = 0.95,
    num_resamples: int = 1000,
    seed: int = 0,
) -> tuple[Float[np.ndarray, " *rest"], Float[np.ndarray, " *rest"]]:
    """Return a percentile bootstrap interval for the mean over datasets.

    Drawing n datasets with replacement is weighing them by multinomial counts. NaN
    weighs nothing. Where all samples are NaN, or one is infinite, the bounds are NaN.
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


def summarize(
    samples: Float[np.ndarray, " datasets *rest"], *, seed: int = 0
) -> Summary:
    """Return mean, 95 % interval, median and count over datasets, without the NaN."""
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


def _median(flat: Float[np.ndarray, "datasets columns"]) -> np.ndarray:
    empty = np.all(np.isnan(flat), axis=0)
    return np.where(empty, np.nan, np.nanmedian(np.where(empty, 0, flat), axis=0))
