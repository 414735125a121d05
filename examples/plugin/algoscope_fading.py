"""A plug-in of algoscope: an average that forgets, and a task with sparse weights."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from algoscope import LinearRegression
from algoscope.foundation.validation import require_at_least, require_positive
from algoscope.identification.family import Family, Parameter, Points
from algoscope.identification.prefixes import Answers, Prefixes
from algoscope.tasks.task import Dataset


@dataclass(frozen=True)
class FadingMean:
    """Predicts Σᵢ γⁿ⁻ⁱ yᵢ / Σᵢ γⁿ⁻ⁱ whatever x is, and 0 without examples."""

    decay: float  # γ

    @property
    def name(self) -> str:
        """The call that builds it."""
        return f"FadingMean({self.decay:g})"

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        weights = self.decay ** jnp.arange(y.shape[0])[::-1]
        total = jnp.sum(weights)
        return jnp.sum(weights * y) / jnp.where(total > 0, total, 1)

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at every position from the examples before it."""
        age = jnp.arange(y.shape[0])[:, None] - jnp.arange(y.shape[0])[None] - 1
        weights = jnp.where(age >= 0, self.decay ** jnp.maximum(age, 0), 0)
        total = jnp.sum(weights, axis=1)
        return weights @ y / jnp.where(total > 0, total, 1)


def fading_mean(decay: float) -> FadingMean:
    """Return the mean of the labels in which an example counts γ times the next one."""
    require_positive("decay", decay)
    return FadingMean(decay)


def _fading_answers(prefixes: Prefixes, points: Points, choice: dict) -> Answers:
    """Return its predictions for many γ, on all prefixes of all datasets at once."""
    count = prefixes.num_examples
    age = np.arange(count)[:, None] - np.arange(count)[None] - 1
    decay = points["decay"][:, None, None]
    weights = np.where(age >= 0, decay ** np.maximum(age, 0), 0)
    total = weights.sum(axis=2)
    sums = np.einsum("pij,bj->pbi", weights, prefixes.y)
    return sums / np.where(total > 0, total, 1)[:, None, :]


FADING_MEAN = Family(
    "fading_mean", _fading_answers, (Parameter("decay", 0.05, 0.99, "linear"),)
)


@dataclass(frozen=True)
class SparseRegression(LinearRegression):
    """Linear functions of which only `active` coordinates matter, others each time."""

    active: int = 2

    def __post_init__(self):
        super().__post_init__()
        require_at_least("active", self.active, 1)

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset:
        """Draw one dataset."""
        data_key, mask_key = jax.random.split(key)
        plain = super().sample(data_key, num_examples)
        order = jax.random.permutation(mask_key, self.dim)
        w = jnp.where(order < self.active, plain.w, 0)
        noise = plain.y - plain.x @ plain.w
        return Dataset(plain.x, plain.x @ w + noise, w)
