"""The distance of a hypothesis over the datasets that it fits best, with its interval.

A solver that did not converge on a few datasets, or ties that it breaks another way, do
not make another algorithm.
"""

import numpy as np
from jaxtyping import Float, Int

KEPT = 0.8  # of the datasets, those that a hypothesis fits best
RESAMPLES = 1000  # for an interval


def best_fitted(
    per_dataset: Float[np.ndarray, "*rest datasets"],
) -> Int[np.ndarray, "*rest kept"]:
    """Return the places of the datasets that fit best, the best first."""
    num_kept = max(round(KEPT * per_dataset.shape[-1]), 1)
    return np.argsort(per_dataset, axis=-1, kind="stable")[..., :num_kept]


def typical(
    per_dataset: Float[np.ndarray, "*rest datasets"],
) -> Float[np.ndarray, " *rest"]:
    """Return the mean over the datasets that fit best."""
    nearest = np.take_along_axis(per_dataset, best_fitted(per_dataset), axis=-1)
    return np.asarray(nearest.mean(axis=-1))


def interval(
    per_dataset: Float[np.ndarray, " datasets"], seed: int
) -> tuple[float, float]:
    """Return the 95 % bootstrap interval of `typical`, over all datasets."""
    n = len(per_dataset)
    drawn = np.random.default_rng(seed).integers(0, n, (RESAMPLES, n))
    # No interpolation: where a hypothesis diverges, a mean may be infinite.
    bounds = np.quantile(
        typical(per_dataset[drawn]), [0.025, 0.975], method="inverted_cdf"
    )
    return float(bounds[0]), float(bounds[1])
