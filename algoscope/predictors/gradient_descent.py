"""First-order learners that start from w₀ = 0 (§3.2, §4.3)."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.validation import require_not_negative, require_positive


def gd_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: float,
) -> Float[Array, "prefixes dim"]:
    """Return one step on all examples of each prefix: w = 2α Σᵢ xᵢyᵢ.

    It descends Σᵢ (wᵀxᵢ − yᵢ)²; a penalty would not matter, its gradient is 0 at w₀.
    """
    moments = jnp.cumsum(x * y[:, None], axis=0)
    start = jnp.zeros((1, x.shape[1]), x.dtype)
    return jnp.concatenate([start, 2 * learning_rate * moments])


def sgd_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: float,
    penalty: float = 0.0,
) -> Float[Array, "prefixes dim"]:
    """Return one pass over the examples in order, one step on each (eq. 11).

    w ← w − 2α (x wᵀx − xy + λw)
    """

    def update(w, example):
        x, y = example
        w = w - 2 * learning_rate * (x * (w @ x - y) + penalty * w)
        return w, w

    start = jnp.zeros(x.shape[1], x.dtype)
    _, w = jax.lax.scan(update, start, (x, y))
    return jnp.concatenate([start[None], w])


def gd(learning_rate: float) -> LinearPredictor:
    """Return one step of batch gradient descent.

    Example:
        >>> gd(0.02).name
        'GD(0.02)'
    """
    require_positive("learning_rate", learning_rate)
    return LinearPredictor(
        f"GD({learning_rate:g})",
        partial(gd_prefix_weights, learning_rate=learning_rate),
    )


def sgd(learning_rate: float, penalty: float = 0.0) -> LinearPredictor:
    """Return one pass of stochastic gradient descent.

    Example:
        >>> sgd(0.03).name, sgd(0.03, penalty=0.1).name
        ('SGD(0.03)', 'SGD(0.03, 0.1)')
    """
    require_positive("learning_rate", learning_rate)
    require_not_negative("penalty", penalty)
    arguments = f"{learning_rate:g}" + (f", {penalty:g}" if penalty else "")
    return LinearPredictor(
        f"SGD({arguments})",
        partial(sgd_prefix_weights, learning_rate=learning_rate, penalty=penalty),
    )
