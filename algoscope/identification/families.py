"""The families of learning algorithms that `identify` considers.

A family is an algorithm with free parameters: continuous ones, which `fitting` searches
in a range, and discrete choices such as the number of steps, which are all tried. Its
`predict` returns the predictions of all choices at once, each from the examples before.

To add a family, add an entry to `FAMILIES`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.predictors.accelerated import (
    chebyshev_iterates,
    conjugate_gradients_iterates,
    heavy_ball_iterates,
    newton_iterates,
)
from algoscope.predictors.gradient_descent import (
    average_prefix_weights,
    gd_iterates,
    gd_plus_plus_iterates,
    zero_prefix_weights,
)
from algoscope.predictors.lasso import lasso_prefix_weights, lasso_weights
from algoscope.predictors.least_squares import (
    ols_prefix_weights,
    prefix_moments,
    prefix_sizes,
    ridge_prefix_weights,
    rls_prefix_weights,
)
from algoscope.predictors.neighbors import kernel_prefix_predictions, knn
from algoscope.predictors.optimal_rates import optimal_gd_prefix_weights
from algoscope.predictors.stochastic import kaczmarz_prefix_weights, sgd_prefix_weights

Predictions = Float[Array, "choices examples"]

NEAR_ZERO = 0.01  # where the grid of a parameter that may be 0 becomes geometric
STEPS = (*range(1, 17), 24, 32, 48, 64)
FEW_STEPS = tuple(range(1, 13))
NEIGHBORS = tuple(range(1, 13))
WEIGHTINGS: tuple[tuple[Any, Any], ...] = (  # of neighbors, with the power
    ("uniform", 2),
    ("weighted", 2),
    ("weighted", 1),
)


@dataclass(frozen=True)
class Parameter:
    """A continuous parameter, and the range in which it is searched."""

    name: str
    low: float
    high: float
    scale: Literal["log", "linear", "from zero"] = "log"

    def grid(self, size: int) -> np.ndarray:
        """Return coordinates over the whole range; on a log scale, logarithms."""
        if self.scale == "from zero":
            steps = np.linspace(0, math.log1p(self.high / NEAR_ZERO), size)
            return NEAR_ZERO * np.expm1(steps)
        spaced = np.geomspace if self.scale == "log" else np.linspace
        points = spaced(self.low, self.high, size)
        return np.log(points) if self.scale == "log" else points

    def value(self, coordinate: Any) -> Any:
        """Return the value at a coordinate, which JAX may trace."""
        if self.scale != "log":
            return coordinate
        exp = math.exp if isinstance(coordinate, float) else jnp.exp
        return exp(coordinate)


@dataclass(frozen=True, eq=False)
class Family:
    """A learning algorithm with free parameters."""

    name: str
    predict: Callable[..., Predictions]
    parameters: tuple[Parameter, ...] = ()
    choices: tuple[dict[str, Any], ...] = ({},)
    fixed: tuple[tuple[str, Any], ...] = ()  # parameters of this variant

    @property
    def num_parameters(self) -> int:
        """How many parameters distinguish it: continuous, discrete and fixed ones."""
        return len(self.parameters) + (len(self.choices) > 1) + len(self.fixed)


def _predict_next(
    weights: Float[Array, "*choices prefixes dim"], x: Float[Array, "examples dim"]
) -> Float[Array, "*choices examples"]:
    """Return wᵢᵀxᵢ₊₁: the weights after i examples, applied to the next input."""
    return jnp.einsum("...nd,nd->...n", weights[..., :-1, :], x)


def _linear(prefix_weights: Callable) -> Callable[..., Predictions]:
    """Return `predict` of a family without choices, from its weights."""

    def predict(x, y, **parameters):
        return _predict_next(prefix_weights(x, y, **parameters), x)[None]

    return predict


def _iterative(
    iterates: Callable, steps: tuple[int, ...]
) -> Callable[..., Predictions]:
    """Return `predict` of a family whose choices are numbers of steps."""

    def predict(x, y, **parameters):
        w = iterates(x, y, num_steps=max(steps), **parameters)
        return _predict_next(w[np.array(steps)], x)

    return predict


def _centered(weights: Callable) -> Callable[..., Predictions]:
    """Return `predict` of a solver with an intercept, which fits centered data.

    ŷ = ȳ + wᵀ(x′ − x̄), with w from XᵀX − n x̄x̄ᵀ and XᵀY − n x̄ȳ.
    """

    def predict(x, y, **parameters):
        gram, moment = prefix_moments(x, y)
        counts = prefix_sizes(moment)
        mean_x, mean_y = _prefix_means(x), _prefix_means(y[:, None])[:, 0]
        gram = gram - counts[:, None, None] * mean_x[:, :, None] * mean_x[:, None, :]
        moment = moment - counts[:, None] * mean_x * mean_y[:, None]
        w = weights(gram, moment, counts, **parameters)
        moved = jnp.sum(w[:-1] * (x - mean_x[:-1]), axis=-1)
        return (mean_y[:-1] + moved)[None]

    return predict


def _prefix_means(
    values: Float[Array, "examples dim"],
) -> Float[Array, "prefixes dim"]:
    """Return the mean of each prefix, and 0 without examples."""
    return jnp.concatenate(
        [
            jnp.zeros((1, values.shape[1]), values.dtype),
            jnp.cumsum(values, axis=0)
            / jnp.arange(1, len(values) + 1, dtype=values.dtype)[:, None],
        ]
    )


def _ridge_from_moments(gram, moment, counts, *, penalty):
    eye = jnp.eye(gram.shape[-1], dtype=gram.dtype)
    return jnp.linalg.solve(gram + penalty * eye[None], moment[..., None])[..., 0]


def _ols_from_moments(gram, moment, counts):
    # The moments have the squared condition number of x: eigenvalues below 10⁻¹¹ of
    # the largest count as rounding errors of directions that were not seen.
    values, vectors = jnp.linalg.eigh(gram)
    kept = values > 1e-11 * jnp.maximum(values[:, -1:], 1e-300)
    inverse = jnp.where(kept, 1 / jnp.where(kept, values, 1), 0)
    return jnp.einsum("nij,nj,nkj,nk->ni", vectors, inverse, vectors, moment)


def _affine_sgd(x, y, *, learning_rate, penalty, power=0.0):
    """SGD with an intercept: one more weight, with input 1 and without penalty."""
    extended = jnp.concatenate([x, jnp.ones((len(x), 1), x.dtype)], axis=1)
    penalties = jnp.concatenate(
        [jnp.full(x.shape[1], penalty, x.dtype), jnp.zeros(1, x.dtype)]
    )
    w = sgd_prefix_weights(
        extended, y, learning_rate=learning_rate, penalty=penalties, power=power
    )
    return _predict_next(w, extended)[None]


def _neighbors(x, y):
    return jnp.stack(
        [
            knn(k, weighting, power).predict_prefixes(x, y)
            for weighting, power in WEIGHTINGS
            for k in NEIGHBORS
        ]
    )


def _running_mean(x, y):
    return _prefix_means(y[:, None])[None, :-1, 0]


def _kernel(x, y, *, bandwidth):
    return kernel_prefix_predictions(x, y, bandwidth=bandwidth)[None]


def _steps(steps: tuple[int, ...]) -> tuple[dict[str, Any], ...]:
    return tuple({"steps": k} for k in steps)


NEIGHBOR_CHOICES = tuple(
    {"k": k, "weighting": weighting, **({"power": 1} if power == 1 else {})}
    for weighting, power in WEIGHTINGS
    for k in NEIGHBORS
)
PENALTY = Parameter("penalty", 1e-4, 1e2)
SPARSE_PENALTY = Parameter("penalty", 1e-4, 1e1)
RATE = Parameter("learning_rate", 1e-4, 1.0)
PENALTY_FROM_ZERO = Parameter("penalty", 0.0, 1e1, "from zero")
INTERCEPT = (("intercept", True),)
DECAY = (("power", 0.25),)

# Of two families that fit equally well with equally many parameters, the earlier wins.
FAMILIES: tuple[Family, ...] = (
    Family("zero", _linear(zero_prefix_weights)),
    Family("mean", _running_mean),
    Family("average", _linear(average_prefix_weights)),
    Family("ols", _linear(ols_prefix_weights)),
    Family("ols", _centered(_ols_from_moments), fixed=INTERCEPT),
    Family("ridge", _linear(ridge_prefix_weights), (PENALTY,)),
    Family("ridge", _centered(_ridge_from_moments), (PENALTY,), fixed=INTERCEPT),
    Family(
        "optimal_gd",
        _linear(optimal_gd_prefix_weights),
        (Parameter("noise_to_prior", 1e-2, 1e3),),
    ),
    Family("knn", _neighbors, choices=NEIGHBOR_CHOICES),
    Family("nadaraya_watson", _kernel, (Parameter("bandwidth", 0.05, 20.0),)),
    Family("sgd", _linear(sgd_prefix_weights), (RATE,)),
    Family("sgd", _linear(sgd_prefix_weights), (RATE, PENALTY_FROM_ZERO)),
    Family("sgd", _affine_sgd, (RATE, PENALTY_FROM_ZERO), fixed=INTERCEPT),
    Family(
        "sgd",
        partial(_affine_sgd, **dict(DECAY)),
        (RATE, PENALTY_FROM_ZERO),
        fixed=INTERCEPT + DECAY,
    ),
    Family(
        "kaczmarz",
        _linear(kaczmarz_prefix_weights),
        (Parameter("learning_rate", 1e-3, 1.99),),
    ),
    Family("gd", _iterative(gd_iterates, STEPS), (RATE,), _steps(STEPS)),
    Family(
        "gd",
        _iterative(gd_iterates, FEW_STEPS[1:]),
        (RATE, PENALTY_FROM_ZERO),
        _steps(FEW_STEPS[1:]),
    ),
    Family("newton", _iterative(newton_iterates, STEPS[:16]), (), _steps(STEPS[:16])),
    Family(
        "conjugate_gradients",
        _iterative(conjugate_gradients_iterates, FEW_STEPS),
        (),
        _steps(FEW_STEPS),
    ),
    Family("lasso", _linear(lasso_prefix_weights), (SPARSE_PENALTY,)),
    Family("lasso", _centered(lasso_weights), (SPARSE_PENALTY,), fixed=INTERCEPT),
    Family(
        "rls",
        _linear(rls_prefix_weights),
        (Parameter("forgetting", 0.5, 0.98, "linear"), PENALTY),
    ),
    Family(
        "heavy_ball",
        _iterative(heavy_ball_iterates, FEW_STEPS[1:]),
        (RATE, Parameter("momentum", 0.02, 0.99, "linear")),
        _steps(FEW_STEPS[1:]),
    ),
    Family(
        "gd_plus_plus",
        _iterative(gd_plus_plus_iterates, FEW_STEPS[:8]),
        (RATE, Parameter("curvature", 0.0, 0.3, "from zero")),
        _steps(FEW_STEPS[:8]),
    ),
    Family(
        "chebyshev",
        _iterative(chebyshev_iterates, FEW_STEPS),
        (Parameter("low", 1e-3, 1.0), Parameter("high", 1.0, 30.0)),
        _steps(FEW_STEPS),
    ),
)
