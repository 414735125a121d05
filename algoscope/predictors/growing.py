"""What the authors' code runs under the name of batch gradient descent.

The paper's algorithm takes one step on the whole prefix; it is `gd`.
"""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.predictors.moments import Number, prefix_moments
from algoscope.predictors.naming import name_call
from algoscope.validation import require_not_negative, require_positive


def gd_growing_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    penalty: Number = 0.0,
    clip: Number = 20.0,
) -> Float[Array, "prefixes dim"]:
    """Return one step on x₁, the next on x₁, x₂, and so on: n steps after n examples.

    Each coordinate of the gradient 2 (Sw − b + λw) is bounded by `clip`.
    """
    gram, moment = prefix_moments(x, y)

    def update(w, moments):
        gram, moment = moments
        gradient = 2 * (gram @ w - moment + penalty * w)
        w = w - learning_rate * jnp.clip(gradient, -clip, clip)
        return w, w

    start = jnp.zeros(x.shape[1], x.dtype)
    _, w = jax.lax.scan(update, start, (gram[1:], moment[1:]))
    return jnp.concatenate([start[None], w])


def gd_growing(
    learning_rate: float, clip: float = 20.0, penalty: float = 0.0
) -> LinearPredictor:
    """Return gradient descent on a prefix that grows by one example in every step.

    Example:
        >>> gd_growing(0.02).name
        'GDGrowing(0.02)'
    """
    require_positive("learning_rate", learning_rate)
    require_positive("clip", clip)
    require_not_negative("penalty", penalty)
    return LinearPredictor(
        name_call(
            "GDGrowing",
            learning_rate,
            clip=clip if clip != 20 else None,
            penalty=penalty or None,
        ),
        partial(
            gd_growing_prefix_weights,
            learning_rate=learning_rate,
            penalty=penalty,
            clip=clip,
        ),
    )
