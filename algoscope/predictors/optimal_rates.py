"""Gradient descent with the best learning rate for a distribution of datasets.

The paper's rates are fixed, but the best rate falls with n: for d = 8, GD(0.02) is best
only near n = 16, and GD(0.01) near n = 41. For Gaussian data the best single step has a
closed form (`optimal_gd`); the best rate of several steps is searched (`tuned_gd`).
"""

from functools import partial
from typing import Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, PRNGKeyArray

from algoscope.foundation.validation import (
    MOST_STEPS,
    InvalidValueError,
    require_at_least,
    require_not_negative,
)
from algoscope.predictors.gradient_descent import gd, gd_prefix_weights
from algoscope.predictors.least_squares import prefix_moments, prefix_sizes
from algoscope.predictors.protocols import (
    LinearPredictor,
    Number,
    Parametrized,
    name_call,
)

GRID = 41  # learning rates per round
ROUNDS = 3  # each searches between the neighbors of the best rate so far


@runtime_checkable
class Examples(Protocol):
    """Inputs and labels, as in a `Dataset`."""

    @property
    def x(self) -> Float[Array, "*batch examples dim"]: ...

    @property
    def y(self) -> Float[Array, "*batch examples"]: ...


@runtime_checkable
class DatasetSampler(Protocol):
    """Anything that draws datasets from a random key; every `Task` is one."""

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Examples: ...


def optimal_gd_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    noise_to_prior: Number = 0.0,
    variances: Float[Array | np.ndarray, " dim"] | None = None,
) -> Float[Array, "prefixes dim"]:
    """Return the single step w = diag(η) XᵀY of least risk after each prefix.

    ηᵢ = 1 / ((n + 1) vᵢ + Σₖ vₖ + σ²/τ²)

    for w ~ N(0, τ²I), independent inputs xᵢ ~ N(0, vᵢ) and label noise σ². With v = 1
    the risk is dτ²(d + 1 + s)/(n + d + 1 + s), s = σ²/τ². Without noise it is the
    preconditioned step of Ahn et al. (2023), theorem 1.
    """
    _, moment = prefix_moments(x, y)
    dim = x.shape[1]
    v = jnp.ones(dim, x.dtype) if variances is None else jnp.asarray(variances, x.dtype)
    total = jnp.sum(v) + noise_to_prior
    return moment / ((prefix_sizes(moment)[:, None] + 1) * v[None] + total)


def optimal_gd(noise_to_prior: float = 0.0) -> LinearPredictor:
    """Return the single step of least risk for x ~ N(0, I) and the ratio σ²/τ².

    Example:
        >>> optimal_gd().name, optimal_gd(0.25).name
        ('OptimalGD', 'OptimalGD(0.25)')
    """
    require_not_negative("noise_to_prior", noise_to_prior)
    ratios = [noise_to_prior] if noise_to_prior else []
    return LinearPredictor(
        name_call("OptimalGD", *ratios),
        Parametrized(optimal_gd_prefix_weights, noise_to_prior=noise_to_prior),
    )


def optimal_preconditioned_gd(
    variances: Float[Array | np.ndarray, " dim"], noise_to_prior: float = 0.0
) -> LinearPredictor:
    """Return the single step of least risk for inputs of the given variances.

    Example:
        >>> optimal_preconditioned_gd(np.array([2.0, 0.5])).name
        'OptimalPreconditionedGD'
    """
    if variances.ndim != 1 or not np.all(np.asarray(variances) > 0):
        rule = "be one positive number per coordinate"
        raise InvalidValueError("variances", rule, np.asarray(variances).tolist())
    require_not_negative("noise_to_prior", noise_to_prior)
    ratios = [noise_to_prior] if noise_to_prior else []
    return LinearPredictor(
        name_call("OptimalPreconditionedGD", *ratios),
        partial(
            optimal_gd_prefix_weights,
            noise_to_prior=noise_to_prior,
            variances=variances,
        ),
    )


def tuned_gd(
    task: DatasetSampler,
    steps: int,
    num_examples: int,
    *,
    num_datasets: int = 500,
    seed: int = 0,
) -> LinearPredictor:
    """Return `gd` with the constant rate of least risk after 1, …, n examples.

    The risk is the mean over datasets and prefixes of the squared error at the next
    input. The rate is rounded to four digits, so that the name shows the whole value.

    Example:
        >>> from algoscope.tasks.linear import LinearRegression
        >>> tuned = tuned_gd(LinearRegression(dim=2), 4, 8, num_datasets=50)
        >>> tuned.name.startswith("GD(0.0"), tuned.name.endswith("steps=4)")
        (True, True)
    """
    require_at_least("steps", steps, 1, most=MOST_STEPS)
    require_at_least("num_examples", num_examples, 1)
    require_at_least("num_datasets", num_datasets, 1)
    keys = jax.random.split(jax.random.key(seed), num_datasets)
    data = jax.jit(jax.vmap(lambda key: task.sample(key, num_examples + 1)))(keys)

    low = 1e-6
    rate = high = 1.0
    for _ in range(ROUNDS):
        rates = np.geomspace(low, high, GRID)
        best = int(np.argmin(_risks(jnp.asarray(rates), data.x, data.y, steps)))
        rate = rates[best]
        low, high = rates[max(best - 1, 0)], rates[min(best + 1, GRID - 1)]
    return gd(float(f"{rate:.4g}"), steps)


@partial(jax.jit, static_argnums=3)
def _risks(
    rates: Float[Array, " rates"],
    x: Float[Array, "datasets examples dim"],
    y: Float[Array, "datasets examples"],
    steps: int,
) -> Float[Array, " rates"]:
    """Return the mean squared error at the next input, for each learning rate."""

    def error(rate, x, y):
        w = gd_prefix_weights(x, y, learning_rate=rate, num_steps=steps)
        return jnp.sum(w[1:-1] * x[1:], axis=1) - y[1:]

    over_datasets = jax.vmap(error, (None, 0, 0))
    mean = jax.lax.map(lambda rate: jnp.mean(over_datasets(rate, x, y) ** 2), rates)
    return jnp.where(jnp.isfinite(mean), mean, jnp.inf)  # diverged
