"""Linear regression, and the control task whose weights are fixed (paper §2.3, §5)."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from algoscope.foundation.validation import (
    MOST_DIMENSIONS,
    require_at_least,
    require_not_negative,
    require_positive,
)
from algoscope.tasks.task import Dataset


def _draw(
    key: PRNGKeyArray, w: Float[Array, " dim"], num_examples: int, noise_variance: float
) -> Dataset:
    """Return x ~ N(0, I) and y = wᵀx + N(0, σ²)."""
    require_at_least("num_examples", num_examples, 1)
    x_key, noise_key = jax.random.split(key)
    x = jax.random.normal(x_key, (num_examples, w.shape[0]), w.dtype)
    y = x @ w
    if noise_variance > 0:
        noise = jax.random.normal(noise_key, (num_examples,), w.dtype)
        y = y + jnp.sqrt(noise_variance).astype(w.dtype) * noise
    return Dataset(x, y, w)


@dataclass(frozen=True)
class LinearRegression:
    """Linear functions: w ~ N(0, τ²I), x ~ N(0, I), y = wᵀx + N(0, σ²).

    Example:
        >>> task = LinearRegression(dim=8, noise_variance=0.25)
        >>> task.sample(jax.random.key(0), num_examples=40).x.shape
        (40, 8)
        >>> task.bayes_penalty
        0.25
    """

    dim: int
    prior_variance: float = 1.0  # τ²
    noise_variance: float = 0.0  # σ²

    def __post_init__(self):
        require_at_least("dim", self.dim, 1, most=MOST_DIMENSIONS)
        require_positive(
            "prior_variance",
            self.prior_variance,
            "For the control task, where w is fixed, use `FixedWeights`.",
        )
        require_not_negative("noise_variance", self.noise_variance)

    @classmethod
    def from_variances(
        cls, dim: int, prior_variance: float, noise_variance: float
    ) -> "LinearRegression":
        """Return the task of a configuration."""
        return cls(dim, prior_variance, noise_variance)

    @property
    def bayes_penalty(self) -> float:
        """The ridge penalty σ²/τ² whose predictor has minimum Bayes risk."""
        return self.noise_variance / self.prior_variance

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset:
        """Draw one dataset. For many, `jax.vmap` over keys."""
        w_key, data_key = jax.random.split(key)
        scale = jnp.sqrt(jnp.asarray(self.prior_variance, jnp.result_type(float)))
        w = scale * jax.random.normal(w_key, (self.dim,))
        return _draw(data_key, w, num_examples, self.noise_variance)


@dataclass(frozen=True)
class FixedWeights:
    """The control task (paper §5): w is always the all-ones vector.

    It has the form of `LinearRegression` but needs no learning in context, so what a
    probe finds in a model trained on it was not put there by a learning algorithm.

    Example:
        >>> FixedWeights(dim=3).sample(jax.random.key(0), num_examples=2).w
        Array([1., 1., 1.], dtype=float32)
    """

    dim: int
    noise_variance: float = 0.0  # σ²

    def __post_init__(self):
        require_at_least("dim", self.dim, 1, most=MOST_DIMENSIONS)
        require_not_negative("noise_variance", self.noise_variance)

    @classmethod
    def from_variances(
        cls, dim: int, prior_variance: float, noise_variance: float
    ) -> "FixedWeights":
        """Return the task of a configuration; `prior_variance` is ignored."""
        return cls(dim, noise_variance)

    @property
    def prior_variance(self) -> float:
        """The variance of w, which is zero."""
        return 0.0

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset:
        """Draw one dataset. For many, `jax.vmap` over keys."""
        return _draw(key, jnp.ones((self.dim,)), num_examples, self.noise_variance)
