"""A task of its own file, as a user would add one."""

from dataclasses import dataclass

import jax.numpy as jnp
from jaxtyping import PRNGKeyArray

from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Dataset


@dataclass(frozen=True)
class ShiftedRegression:
    """Linear functions plus one: y = wᵀx + 1."""

    dim: int
    prior_variance: float = 1.0
    noise_variance: float = 0.0

    @classmethod
    def from_variances(
        cls, dim: int, prior_variance: float, noise_variance: float
    ) -> "ShiftedRegression":
        return cls(dim, prior_variance, noise_variance)

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset:
        linear = LinearRegression(self.dim, self.prior_variance, self.noise_variance)
        data = linear.sample(key, num_examples)
        return Dataset(data.x, jnp.add(data.y, 1.0), data.w)
