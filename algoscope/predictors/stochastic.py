"""Learners that take one step per example, in order, from w₀ = 0 (§3.2, §4.3)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.foundation.validation import require_not_negative, require_positive
from algoscope.predictors.protocols import (
    LinearPredictor,
    Number,
    Parametrized,
    name_call,
)


def sgd_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    penalty: Number | Float[Array, " dim"] = 0.0,
    power: Number = 0.0,
    clip: Number | None = None,
) -> Float[Array, "prefixes dim"]:
    """Return one pass over the examples in order, one step on each (eq. 11).

    w ← w − αₜ g,  g = 2 (x wᵀx − xy + λw),  αₜ = α / tᵖ  at the t-th example

    λ may differ between coordinates. `clip` bounds every coordinate of g; the authors'
    code clips at 20, the paper does not mention it.
    """
    times = jnp.arange(1, x.shape[0] + 1, dtype=x.dtype)

    def update(w, example):
        x, y, rate = example
        gradient = 2 * (x * (w @ x - y) + penalty * w)
        if clip is not None:
            gradient = jnp.clip(gradient, -clip, clip)
        w = w - rate * gradient
        return w, w

    start = jnp.zeros(x.shape[1], x.dtype)
    _, w = jax.lax.scan(update, start, (x, y, learning_rate * times**-power))
    return jnp.concatenate([start[None], w])


def sgd(
    learning_rate: float, penalty: float = 0.0, clip: float | None = None
) -> LinearPredictor:
    """Return one pass of stochastic gradient descent.

    Example:
        >>> sgd(0.03).name, sgd(0.03, penalty=0.1).name, sgd(0.03, clip=20.0).name
        ('SGD(0.03)', 'SGD(0.03, 0.1)', 'SGD(0.03, clip=20)')
    """
    require_positive("learning_rate", learning_rate)
    require_not_negative("penalty", penalty)
    if clip is not None:
        require_positive("clip", clip)
    penalties = [penalty] if penalty else []
    return LinearPredictor(
        name_call("SGD", learning_rate, *penalties, clip=clip),
        Parametrized(
            sgd_prefix_weights, learning_rate=learning_rate, penalty=penalty, clip=clip
        ),
    )


def kaczmarz_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number = 1.0,
) -> Float[Array, "prefixes dim"]:
    """Return one pass that moves w toward the plane wᵀx = y of each example in turn.

    w ← w + α x (y − wᵀx) / ‖x‖², and w ← w where x = 0. With α = 1, w is projected
    onto the plane.
    """

    def update(w, example):
        x, y = example
        square = x @ x
        w = w + learning_rate * x * (y - w @ x) / jnp.where(square > 0, square, 1)
        return w, w

    start = jnp.zeros(x.shape[1], x.dtype)
    _, w = jax.lax.scan(update, start, (x, y))
    return jnp.concatenate([start[None], w])


def kaczmarz(learning_rate: float = 1.0) -> LinearPredictor:
    """Return Kaczmarz's projections; with α < 1, normalized least mean squares (NLMS).

    Example:
        >>> kaczmarz().name, kaczmarz(0.5).name
        ('Kaczmarz', 'Kaczmarz(0.5)')
    """
    require_positive("learning_rate", learning_rate)
    rates = [] if learning_rate == 1 else [learning_rate]
    return LinearPredictor(
        name_call("Kaczmarz", *rates),
        Parametrized(kaczmarz_prefix_weights, learning_rate=learning_rate),
    )
