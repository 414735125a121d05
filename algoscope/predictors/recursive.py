"""Recursive least squares with forgetting: ridge regression that ages its examples."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.predictors.moments import Number
from algoscope.predictors.naming import name_call
from algoscope.validation import InvalidValueError, require_positive


def rls_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    forgetting: Number,
    penalty: Number,
) -> Float[Array, "prefixes dim"]:
    """Return the minimizer of Σᵢ βⁿ⁻ⁱ (wᵀxᵢ − yᵢ)² + βⁿλ‖w‖² after each prefix.

    The recursion of ridge regression, where what came before is worth β in each step:

        g = Px / (βλ + xᵀPx),   w ← w + g (y − wᵀx),   P ← (P − g (Px)ᵀ) / β
    """
    dim = x.shape[1]

    def update(state, example):
        w, p = state
        x, y = example
        px = p @ x
        gain = px / (forgetting * penalty + x @ px)
        w = w + gain * (y - w @ x)
        return (w, (p - jnp.outer(gain, px)) / forgetting), w

    start = jnp.zeros(dim, x.dtype)
    _, w = jax.lax.scan(update, (start, jnp.eye(dim, dtype=x.dtype)), (x, y))
    return jnp.concatenate([start[None], w])


def rls(forgetting: float, penalty: float) -> LinearPredictor:
    """Return recursive least squares; without forgetting, β = 1, it is `ridge`.

    Example:
        >>> rls(0.95, 0.1).name
        'RLS(0.95, 0.1)'
    """
    require_positive("forgetting", forgetting)
    if forgetting > 1:
        raise InvalidValueError("forgetting", "be at most 1", forgetting)
    require_positive("penalty", penalty)
    return LinearPredictor(
        name_call("RLS", forgetting, penalty),
        partial(rls_prefix_weights, forgetting=forgetting, penalty=penalty),
    )
