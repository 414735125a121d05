"""Ordinary least squares, of minimum norm where it is under-determined (§2.3, §4.3)."""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor


def ols_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> Float[Array, "prefixes dim"]:
    """Return the minimum-norm minimizer of Σᵢ (wᵀxᵢ − yᵢ)² after each prefix.

    Greville's recursion. Let P project onto the directions not yet seen and
    S = (XᵀX)⁺. With c = Px, the part of a new x that is new, and s = Sx,

        c ≠ 0:  g = c/‖c‖²,       S ← S − (s gᵀ + g sᵀ) + (1 + xᵀs) g gᵀ,  P ← P − c gᵀ
        c = 0:  g = s/(1 + xᵀs),  S ← S − g sᵀ

    and in both cases w ← w + g (y − wᵀx). O(d²) per example; use float64 where X may
    be nearly singular.
    """
    dim = x.shape[1]
    # ‖Px‖² below this share of ‖x‖² is rounding: P is exact to a few units of it.
    threshold = 50 * dim * jnp.finfo(x.dtype).eps

    def update(state, example):
        w, seen, unseen = state
        x, y = example
        new, known = unseen @ x, seen @ x
        size, leverage = new @ new, 1 + x @ known
        is_new = size > threshold * (x @ x)
        gain = jnp.where(
            is_new, new / jnp.where(is_new, size, 1), known / jnp.maximum(leverage, 1)
        )
        cross = jnp.outer(known, gain)
        seen = jnp.where(
            is_new,
            seen - cross - cross.T + leverage * jnp.outer(gain, gain),
            seen - cross,
        )
        unseen = jnp.where(is_new, unseen - jnp.outer(new, gain), unseen)
        w = w + gain * (y - w @ x)
        return (w, seen, unseen), w

    start = jnp.zeros(dim, x.dtype)
    none, eye = jnp.zeros((dim, dim), x.dtype), jnp.eye(dim, dtype=x.dtype)
    _, w = jax.lax.scan(update, (start, none, eye), (x, y))
    return jnp.concatenate([start[None], w])


ols = LinearPredictor("OLS", ols_prefix_weights)
