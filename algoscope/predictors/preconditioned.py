"""Gradient descent from w₀ = 0 in coordinates where the loss is rounder.

S = XᵀX and b = XᵀY of each prefix; the loss is Σᵢ (wᵀxᵢ − yᵢ)².
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.predictors.moments import (
    Number,
    apply,
    iterate,
    last_iterate,
    prefix_moments,
)
from algoscope.predictors.naming import name_call
from algoscope.validation import (
    InvalidValueError,
    require_at_least,
    require_positive,
)


def preconditioned_gd_iterates(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    preconditioner: Float[Array | np.ndarray, "dim dim"] | None = None,
    num_steps: int,
) -> Float[Array, "iterates prefixes dim"]:
    """Return the weights after 0, 1, …, k steps: w ← w − 2α P (Sw − b).

    P is the identity unless it is given.
    """
    gram, moment = prefix_moments(x, y)
    if preconditioner is None:
        p = jnp.eye(x.shape[1], dtype=x.dtype)
    else:
        p = jnp.asarray(preconditioner, x.dtype)

    def step(w):
        return w - 2 * learning_rate * (apply(gram, w) - moment) @ p.T

    return iterate(step, jnp.zeros_like(moment), num_steps)


def preconditioned_gd(
    learning_rate: float,
    steps: int = 1,
    covariance: Float[Array | np.ndarray, "dim dim"] | None = None,
) -> LinearPredictor:
    """Return gradient descent preconditioned by the inverse covariance of the inputs.

    Example:
        >>> preconditioned_gd(0.02, 4).name
        'PreconditionedGD(0.02, 4)'
    """
    require_positive("learning_rate", learning_rate)
    require_at_least("steps", steps, 1)
    if covariance is None:
        inverse = None
    else:
        matrix = np.asarray(covariance, np.float64)
        square = matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1]
        if not square or not np.all(np.linalg.eigvals(matrix).real > 0):
            rule = "be a positive definite matrix"
            raise InvalidValueError("covariance", rule, matrix.tolist())
        inverse = np.linalg.inv(matrix)
    return LinearPredictor(
        name_call("PreconditionedGD", learning_rate, steps),
        last_iterate(
            preconditioned_gd_iterates,
            learning_rate=learning_rate,
            preconditioner=inverse,
            num_steps=steps,
        ),
    )
