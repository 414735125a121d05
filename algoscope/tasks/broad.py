"""Linear regression with a broad law of x, to train learners that survive a shift.

Without noise, minimum-norm least squares is the Bayes predictor for every law of x, as
long as the law of w is isotropic and does not depend on x. Training on many laws
therefore changes nothing about the best predictor; it changes for which inputs a
learner has to come near it. With noise no single ridge penalty is Bayes, since w has
several scales.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray

from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Dataset

PLAIN = 0.5  # share of the datasets with x ~ N(0, I)
SPREAD = 0.5  # deviation of the log scales of x and of w in the others

Inputs = Float[Array, "examples dim"]


def _rotated(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x under a random product of three reflections."""
    for v in jax.random.normal(key, (3, x.shape[1])):
        v = v * jax.lax.rsqrt(jnp.sum(v * v))
        x = x - 2 * (x @ v)[:, None] * v[None]
    return x


def _mapped(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x under a random linear map with singular values between 1/8 and 1."""
    values_key, rotation_key = jax.random.split(key)
    low, shape = -jnp.log(8.0), (x.shape[1],)
    values = jnp.exp(jax.random.uniform(values_key, shape, minval=low, maxval=0.0))
    return _rotated(rotation_key, x * values[None])


def _row_scaled(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x with a scale of its own for every row."""
    return x * jnp.exp(0.7 * jax.random.normal(key, (x.shape[0], 1)))


def _outlying(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x with about every eighth row two to four times as long."""
    which, size = jax.random.split(key)
    chosen = jax.random.uniform(which, (x.shape[0], 1)) < 0.125
    scale = jax.random.uniform(size, (x.shape[0], 1), minval=2.0, maxval=4.0)
    return x * jnp.where(chosen, scale, 1.0)


def _repeated(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x with about every third row a copy of the one before it."""
    count = x.shape[0]
    copied = jax.random.uniform(key, (count,)) < 0.35
    fresh = jnp.where(copied & (jnp.arange(count) > 0), -1, jnp.arange(count))
    return x[jax.lax.cummax(fresh)]


def _subspace(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x in a random subspace of 1 to d dimensions."""
    size_key, rotation_key = jax.random.split(key)
    size = jax.random.randint(size_key, (), 1, x.shape[1] + 1)
    return _rotated(rotation_key, x * (jnp.arange(x.shape[1]) < size)[None])


def _shifted(key: PRNGKeyArray, x: Inputs) -> Inputs:
    """Return x with a mean that is not 0."""
    return x + jax.random.normal(key, (1, x.shape[1]))


LAWS = (_mapped, _row_scaled, _outlying, _repeated, _subspace, _shifted)


@dataclass(frozen=True)
class BroadRegression(LinearRegression):
    """Linear functions of inputs from many laws: half N(0, I), half one of `LAWS`.

    In the second half, the inputs of a dataset are scaled to a mean |x|² of d, then
    inputs and weights each by a factor exp(ε), ε ~ N(0, 1/4). Labels are y = wᵀx +
    N(0, σ²) throughout.

    Example:
        >>> task = BroadRegression(dim=8)
        >>> task.sample(jax.random.key(0), num_examples=20).x.shape
        (20, 8)
    """

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset:
        """Draw one dataset. For many, `jax.vmap` over keys."""
        data_key, choice_key, law_key, scale_key, noise_key = jax.random.split(key, 5)
        plain = super().sample(data_key, num_examples)
        drawn = jnp.stack([law(law_key, plain.x) for law in LAWS])
        choice = jax.random.randint(choice_key, (), 0, 2 * len(LAWS))
        x = drawn[choice % len(LAWS)]
        x = x * jax.lax.rsqrt(jnp.mean(x * x) + 1e-6)
        x_scale, w_scale = jnp.exp(SPREAD * jax.random.normal(scale_key, (2,)))
        is_plain = choice < 2 * len(LAWS) * PLAIN
        x = jnp.where(is_plain, plain.x, x_scale * x)
        w = jnp.where(is_plain, plain.w, w_scale * plain.w)
        y = x @ w
        if self.noise_variance > 0:
            deviation = jnp.sqrt(self.noise_variance).astype(w.dtype)
            y = y + deviation * jax.random.normal(noise_key, y.shape, y.dtype)
        return Dataset(x, y, w)
