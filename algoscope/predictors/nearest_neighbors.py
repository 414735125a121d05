"""k nearest neighbors, the paper's predictor that is not linear (§4.3)."""

from dataclasses import dataclass
from typing import Literal, get_args

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.predictors.naming import name_call
from algoscope.validation import (
    require_at_least,
    require_choice,
    require_examples,
    require_positive,
    require_query,
)

Weighting = Literal["uniform", "weighted"]


@dataclass(frozen=True)
class NearestNeighbors:
    """The mean label of the k nearest examples, or of all while there are fewer.

    `weighted` weighs a neighbor by ‖x − x′‖⁻ᵖ; those at distance 0 then outweigh all
    others. The paper's power p is 2; the authors' code has 1, which scikit-learn calls
    "distance". Without examples the prediction is 0.
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
        require_examples(x, y)
        require_query(query, x.shape[1])
        distances = jnp.sum((x - query[None]) ** 2, axis=-1)
        return self._mean_label(distances[None], y)[0]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it."""
        require_examples(x, y)
        distances = jnp.sum((x[:, None] - x[None]) ** 2, axis=-1)
        future = np.triu(np.ones((len(x), len(x)), bool))
        return self._mean_label(jnp.where(future, jnp.inf, distances), y)

    def _mean_label(
        self,
        distances: Float[Array, "queries examples"],
        y: Float[Array, " examples"],
    ) -> Float[Array, " queries"]:
        """Average the labels of the nearest; an infinite distance is no neighbor."""
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
            # In units of the nearest of them, so that no power can overflow.
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
