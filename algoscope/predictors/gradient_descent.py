"""Batch gradient descent from w₀ = 0 on all examples of a prefix (§3.2, §4.3).

The loss is the sum Σᵢ (wᵀxᵢ − yᵢ)² + λ‖w‖², so its gradient is 2 (Sw − b + λw) with
S = XᵀX and b = XᵀY.
"""

from functools import partial

import jax.numpy as jnp
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
    require_at_least,
    require_not_negative,
    require_positive,
)


def gd_iterates(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    penalty: Number = 0.0,
    num_steps: int,
) -> Float[Array, "iterates prefixes dim"]:
    """Return the weights after 0, 1, …, k steps: w ← w − 2α (Sw − b + λw)."""
    gram, moment = prefix_moments(x, y)

    def step(w):
        return w - 2 * learning_rate * (apply(gram, w) - moment + penalty * w)

    return iterate(step, jnp.zeros_like(moment), num_steps)


def gd_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    penalty: Number = 0.0,
    num_steps: int = 1,
) -> Float[Array, "prefixes dim"]:
    """Return the weights after the last step; after one they are w = 2α Σᵢ xᵢyᵢ.

    The penalty has no gradient at w₀: it matters from the second step on.
    """
    return gd_iterates(
        x, y, learning_rate=learning_rate, penalty=penalty, num_steps=num_steps
    )[-1]


def gd(learning_rate: float, steps: int = 1, penalty: float = 0.0) -> LinearPredictor:
    """Return gradient descent: the paper's one step, or several.

    Example:
        >>> gd(0.02).name, gd(0.02, steps=8, penalty=0.1).name
        ('GD(0.02)', 'GD(0.02, steps=8, penalty=0.1)')
    """
    require_positive("learning_rate", learning_rate)
    require_at_least("steps", steps, 1)
    require_not_negative("penalty", penalty)
    return LinearPredictor(
        name_call(
            "GD",
            learning_rate,
            steps=steps if steps > 1 else None,
            penalty=penalty or None,
        ),
        partial(
            gd_prefix_weights,
            learning_rate=learning_rate,
            penalty=penalty,
            num_steps=steps,
        ),
    )


def gd_plus_plus_iterates(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    curvature: Number,
    num_steps: int,
) -> Float[Array, "iterates prefixes dim"]:
    """Return the weights of GD++ (von Oswald et al., 2023) after 0, 1, …, k steps.

    A step replaces all inputs and the query by x ← (I − γXᵀX) x, and then descends on
    the residuals in these coordinates. In the first coordinates the inputs are Tx, T a
    polynomial in S, and

        T ← T (I − γTST),   w ← w + 2αT² (b − Sw)

    With γ = 0 it is gradient descent.
    """
    gram, moment = prefix_moments(x, y)
    eye = jnp.eye(x.shape[1], dtype=x.dtype)[None]

    def step(state):
        w, t = state
        t = t @ (eye - curvature * (t @ gram @ t))
        rest = apply(t, apply(t, moment - apply(gram, w)))
        return w + 2 * learning_rate * rest, t

    start = jnp.zeros_like(moment), jnp.broadcast_to(eye, gram.shape)
    return iterate(step, start, num_steps, lambda state: state[0])


def gd_plus_plus(
    learning_rate: float, curvature: float, steps: int = 1
) -> LinearPredictor:
    """Return GD++ with the rate α, the curvature correction γ and k steps.

    Example:
        >>> gd_plus_plus(0.02, 0.01, 2).name
        'GD++(0.02, 0.01, 2)'
    """
    require_positive("learning_rate", learning_rate)
    require_not_negative("curvature", curvature)
    require_at_least("steps", steps, 1)
    return LinearPredictor(
        name_call("GD++", learning_rate, curvature, steps),
        last_iterate(
            gd_plus_plus_iterates,
            learning_rate=learning_rate,
            curvature=curvature,
            num_steps=steps,
        ),
    )
