"""Ridge regression, and the Bayes predictor that it is (§2.3, §3.3, §4.3)."""

from functools import partial

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.predictors.least_squares import ols
from algoscope.predictors.moments import Number
from algoscope.validation import require_not_negative, require_positive


def ridge_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], *, penalty: Number
) -> Float[Array, "prefixes dim"]:
    """Return the minimizer of Σᵢ (wᵀxᵢ − yᵢ)² + λ‖w‖² after each prefix.

    The Sherman–Morrison recursion of Theorem 2, on P = λ(XᵀX + λI)⁻¹, whose norm
    never exceeds 1:

        g = Px / (λ + xᵀPx),   w ← w + g (y − wᵀx),   P ← P − g (Px)ᵀ

    P is exact to the machine's ε, so the weights are to about ε/λ.
    """
    dim = x.shape[1]

    def update(state, example):
        w, p = state
        x, y = example
        px = p @ x
        gain = px / (penalty + x @ px)
        w = w + gain * (y - w @ x)
        return (w, p - jnp.outer(gain, px)), w

    start = jnp.zeros(dim, x.dtype)
    _, w = jax.lax.scan(update, (start, jnp.eye(dim, dtype=x.dtype)), (x, y))
    return jnp.concatenate([start[None], w])


def ridge(penalty: float) -> LinearPredictor:
    """Return ridge regression with the penalty λ > 0.

    Example:
        >>> ridge(0.1).name
        'Ridge(0.1)'
    """
    require_positive("penalty", penalty, "For no penalty, use `ols`.")
    return LinearPredictor(
        f"Ridge({penalty:g})", partial(ridge_prefix_weights, penalty=penalty)
    )


def bayes(*, noise_variance: float, prior_variance: float) -> LinearPredictor:
    """Return the predictor of least risk for w ~ N(0, τ²I) and label noise σ².

    It is ridge regression with λ = σ²/τ², and minimum-norm least squares at σ² = 0.
    """
    require_not_negative("noise_variance", noise_variance)
    require_positive("prior_variance", prior_variance)
    penalty = noise_variance / prior_variance
    return ridge(penalty) if penalty else ols
