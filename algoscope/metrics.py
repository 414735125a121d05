"""How far apart two predictors are (paper §4.1), with intervals.

All metrics are means over datasets; near n = d they are heavy-tailed, so they carry
bootstrap intervals, and comparisons use the same datasets for every predictor.
"""

import numpy as np
from jaxtyping import Float

from algoscope.validation import InvalidValueError, require_at_least


def squared_prediction_difference(
    first: Float[np.ndarray, "datasets examples"],
    second: Float[np.ndarray, "datasets examples"],
    dim: int,
) -> Float[np.ndarray, "datasets examples"]:
    """Return (A₁(D)(x′) − A₂(D)(x′))² / d for every dataset and prefix (eq. 15).

    The mean over datasets is SPD(A₁, A₂) / d.
    """
    require_at_least("dim", dim, 1)
    if first.shape != second.shape:
        rule = f"have the shape {first.shape} of `first`"
        raise InvalidValueError("second", rule, second.shape)
    return (first.astype(np.float64) - second.astype(np.float64)) ** 2 / dim


def bootstrap_interval(
    samples: Float[np.ndarray, " datasets *rest"],
    *,
    level: float = 0.95,
    num_resamples: int = 1000,
    seed: int = 0,
) -> tuple[Float[np.ndarray, " *rest"], Float[np.ndarray, " *rest"]]:
    """Return a percentile bootstrap interval for the mean over datasets.

    Drawing n datasets with replacement is weighing them by multinomial counts.
    """
    if not 0 < level < 1:
        raise InvalidValueError("level", "lie between 0 and 1", level)
    require_at_least("num_resamples", num_resamples, 2)
    n = len(samples)
    require_at_least("number of samples", n, 1)
    rng = np.random.default_rng(seed)
    flat = samples.reshape(n, -1).astype(np.float64)
    equally = np.full(n, 1 / n)
    means = np.stack(
        [rng.multinomial(n, equally) @ flat / n for _ in range(num_resamples)]
    )
    tail = 100 * (1 - level) / 2
    low, high = np.percentile(means, [tail, 100 - tail], axis=0)
    return low.reshape(samples.shape[1:]), high.reshape(samples.shape[1:])
