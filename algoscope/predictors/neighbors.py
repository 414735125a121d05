"""Predictors that average labels of near examples: k nearest neighbors (§4.3), kernels.

Their hypotheses are not linear in the query, so they have no weights.
"""

from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from algoscope.foundation.validation import (
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.predictors.protocols import Number, name_call
from algoscope.predictors.safe_numbers import predict_safely

Weighting = Literal["uniform", "weighted"]


@dataclass(frozen=True)
class NearestNeighbors:
    """The mean label of the k nearest examples, or of all if there are fewer.

    `weighted` weighs a neighbor by ‖x − x′‖⁻ᵖ; if some are at distance 0, only they
    count. The paper has the power p = 2; the authors' code has 1, which scikit-learn
    calls "distance". Without examples the prediction is 0.
    """

    num_neighbors: int = 3
    weighting: Weighting = "uniform"
    power: int | float = 2

    def __post_init__(self):
        require_at_least("num_neighbors", self.num_neighbors, 1)
        require_choice("weighting", self.weighting, get_args(Weighting))
        require_positive("power", self.power)

    @property
    def name(self) -> str:
        """The legend of figure 1, for example `KNN(3, uniform)`."""
        matters = self.weighting == "weighted" and self.power != 2
        power = self.power if matters else None
        return name_call("KNN", self.num_neighbors, self.weighting, power=power)

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        return predict_safely(self._predict, x, y, query)

    def _predict(self, x: Array, y: Array, query: Array) -> Array:
        distances = jnp.sum((x - query[None]) ** 2, axis=-1)
        return self._mean_label(distances[None], y)[0]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it."""
        return predict_safely(self._predict_prefixes, x, y)

    def _predict_prefixes(self, x: Array, y: Array) -> Array:
        distances = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
        future = np.triu(np.ones((len(x), len(x)), bool))
        return self._mean_label(jnp.where(future, jnp.inf, distances), y)

    def _mean_label(
        self,
        distances: Float[Array, "queries examples"],
        y: Float[Array, " examples"],
    ) -> Float[Array, " queries"]:
        """Average the labels of the nearest; an infinite distance means no neighbor."""
        if y.shape[0] == 0:
            return jnp.zeros(distances.shape[0], y.dtype)
        k = min(self.num_neighbors, y.shape[0])
        negative, nearest = jax.lax.top_k(-distances, k)
        near = -negative
        present = jnp.isfinite(near)
        weights = present.astype(y.dtype)
        if self.weighting == "weighted":
            exact = near == 0
            apart = present & ~exact
            # Relative to the nearest neighbor, so that no power can overflow.
            ratios = near[:, :1] / jnp.where(apart, near, 1)
            inverse = jnp.where(apart, ratios, 0) ** (self.power / 2)
            any_exact = jnp.any(exact, axis=-1, keepdims=True)
            weights = jnp.where(any_exact, exact.astype(y.dtype), inverse)
        total = jnp.sum(weights, axis=-1)
        mean = jnp.sum(weights * y[nearest], axis=-1) / jnp.where(total > 0, total, 1)
        return jnp.where(total > 0, mean, 0)


def knn(
    num_neighbors: int = 3, weighting: Weighting = "uniform", power: int | float = 2
) -> NearestNeighbors:
    """Return the k-nearest-neighbors predictor.

    Example:
        >>> knn(3, "weighted").name, knn(3, "weighted", power=1).name
        ('KNN(3, weighted)', 'KNN(3, weighted, power=1)')
    """
    return NearestNeighbors(num_neighbors, weighting, power)


def kernel_predictions(
    squares: Float[Array, "queries examples"],
    y: Float[Array, " examples"],
    seen: Bool[np.ndarray, "queries examples"],
    bandwidth: Number,
) -> Float[Array, " queries"]:
    """Return Σᵢ kᵢyᵢ / Σᵢ kᵢ, kᵢ = exp(−‖xᵢ − x′‖²/2h²), over the examples seen.

    Without examples it is 0. Far from all examples every kᵢ underflows, so all are
    divided by the largest first.
    """
    if y.shape[0] == 0:
        return jnp.zeros(squares.shape[0], y.dtype)
    scores = -squares / (2 * bandwidth**2)
    peak = jnp.max(jnp.where(seen, scores, -jnp.inf), axis=1, keepdims=True)
    # Unseen examples may be nearer than the peak, and their exponentials overflow.
    heights = jnp.where(seen, scores - jax.lax.stop_gradient(peak), 0)
    kernels = jnp.where(seen, jnp.exp(heights), 0)
    total = jnp.sum(kernels, axis=1)
    return kernels @ y / jnp.where(np.any(seen, axis=1), total, 1)


def kernel_prefix_predictions(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], *, bandwidth: Number
) -> Float[Array, " examples"]:
    """Return the prediction at each xᵢ from the examples before it."""
    squares = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
    past = np.tri(len(x), k=-1, dtype=bool)
    return kernel_predictions(squares, y, past, bandwidth)


@dataclass(frozen=True)
class KernelSmoother:
    """Kernel regression with a Gaussian kernel of width h, the `bandwidth`."""

    bandwidth: float

    def __post_init__(self):
        require_positive("bandwidth", self.bandwidth)

    @property
    def name(self) -> str:
        """For example `NadarayaWatson(0.5)`."""
        return name_call("NadarayaWatson", self.bandwidth)

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        return predict_safely(self._predict, x, y, query)

    def _predict(self, x: Array, y: Array, query: Array) -> Array:
        squares = jnp.sum((x - query[None]) ** 2, axis=-1)
        seen = np.ones((1, len(x)), bool)
        return kernel_predictions(squares[None], y, seen, self.bandwidth)[0]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it."""
        smooth = partial(kernel_prefix_predictions, bandwidth=self.bandwidth)
        return predict_safely(smooth, x, y)


def nadaraya_watson(bandwidth: float) -> KernelSmoother:
    """Return kernel regression with a Gaussian kernel.

    Example:
        >>> nadaraya_watson(0.5).name
        'NadarayaWatson(0.5)'
    """
    return KernelSmoother(bandwidth)
