"""Least squares with and without a penalty, and the Bayes predictors (§2.3, §4.3).

The linear predictors that minimize a quadratic loss exactly: ordinary least squares,
ridge regression, and recursive least squares, which forgets old examples. Ridge is the
Bayes predictor for weights w ~ N(0, τ²I); `discrete_bayes` is the one for weights from
a finite pool. All that least squares needs of the examples are the moments XᵀX and XᵀY;
`prefix_moments` has them after every prefix, for the solvers of the other files.

Axes: `prefixes` of 0, 1, …, n examples.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import (
    InvalidValueError,
    require_not_negative,
    require_positive,
)
from algoscope.predictors.protocols import (
    LinearPredictor,
    Number,
    Parametrized,
    name_call,
)

Grams = Float[Array, "prefixes dim dim"]
Vectors = Float[Array, "prefixes dim"]


def prefix_moments(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> tuple[Grams, Vectors]:
    """Return S = XᵀX and b = XᵀY after 0, 1, …, n examples.

    Example:
        >>> x, y = jnp.array([[1.0], [2.0]]), jnp.array([3.0, 4.0])
        >>> gram, moment = prefix_moments(x, y)
        >>> gram[:, 0, 0].tolist(), moment[:, 0].tolist()
        ([0.0, 1.0, 5.0], [0.0, 3.0, 11.0])
    """
    return (
        _prefix_sums(x[:, :, None] * x[:, None, :]),
        _prefix_sums(x * y[:, None]),
    )


def _prefix_sums(terms: Array) -> Array:
    start = jnp.zeros((1, *terms.shape[1:]), terms.dtype)
    return jnp.concatenate([start, jnp.cumsum(terms, axis=0)])


def prefix_sizes(moment: Vectors) -> Float[Array, " prefixes"]:
    """Return 0, 1, …, n in the precision of the data."""
    return jnp.arange(moment.shape[0], dtype=moment.dtype)


def apply(matrices: Grams, w: Vectors) -> Vectors:
    """Return the matrix-vector product of every prefix."""
    return jnp.einsum("nij,nj->ni", matrices, w)


def ols_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> Float[Array, "prefixes dim"]:
    """Return the minimum-norm minimizer of Σᵢ (wᵀxᵢ − yᵢ)² after each prefix.

    Greville's recursion. Let P project onto the directions not yet seen and
    S = (XᵀX)⁺. With c = Px, the unseen part of a new x, and s = Sx,

        c ≠ 0:  g = c/‖c‖²,       S ← S − (s gᵀ + g sᵀ) + (1 + xᵀs) g gᵀ,  P ← P − c gᵀ
        c = 0:  g = s/(1 + xᵀs),  S ← S − g sᵀ

    and in both cases w ← w + g (y − wᵀx). O(d²) per example; use float64 if X may be
    nearly singular.
    """
    dim = x.shape[1]
    # P is exact up to rounding, so ‖Px‖² below this share of ‖x‖² counts as 0.
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


def ridge_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], *, penalty: Number
) -> Float[Array, "prefixes dim"]:
    """Return the minimizer of Σᵢ (wᵀxᵢ − yᵢ)² + λ‖w‖² after each prefix.

    The Sherman–Morrison recursion of Theorem 2, on P = λ(XᵀX + λI)⁻¹, whose norm
    never exceeds 1:

        g = Px / (λ + xᵀPx),   w ← w + g (y − wᵀx),   P ← P − g (Px)ᵀ

    P is exact up to the machine's ε, so the weights are exact up to about ε/λ.
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
        f"Ridge({penalty:g})", Parametrized(ridge_prefix_weights, penalty=penalty)
    )


def rls_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    forgetting: Number,
    penalty: Number,
) -> Float[Array, "prefixes dim"]:
    """Return the minimizer of Σᵢ βⁿ⁻ⁱ (wᵀxᵢ − yᵢ)² + βⁿλ‖w‖² after each prefix.

    The recursion of ridge regression, with all earlier terms multiplied by β per step:

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
    """Return recursive least squares; with β = 1 (no forgetting) it is `ridge`.

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
        Parametrized(rls_prefix_weights, forgetting=forgetting, penalty=penalty),
    )


def bayes(*, noise_variance: float, prior_variance: float) -> LinearPredictor:
    """Return the predictor of least risk for w ~ N(0, τ²I) and noise variance σ².

    It is ridge regression with λ = σ²/τ², and minimum-norm least squares at σ² = 0.

    Example:
        >>> bayes(noise_variance=0.25, prior_variance=1.0).name
        'Ridge(0.25)'
    """
    require_not_negative("noise_variance", noise_variance)
    require_positive("prior_variance", prior_variance)
    penalty = noise_variance / prior_variance
    return ridge(penalty) if penalty else ols


def discrete_bayes_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    pool: Float[Array | np.ndarray, "tasks dim"],
    noise_variance: Number,
) -> Float[Array, "prefixes dim"]:
    """Return the posterior mean of w for a uniform prior over the pool.

    w = Σᵢ pᵢwᵢ,  p = softmaxᵢ(−Σⱼ (yⱼ − wᵢᵀxⱼ)² / 2σ²)

    Without examples it is the mean of the pool.
    """
    pool = jnp.asarray(pool, x.dtype)
    losses = jnp.cumsum((y[:, None] - x @ pool.T) ** 2, axis=0)
    start = jnp.zeros((1, pool.shape[0]), x.dtype)
    scores = -jnp.concatenate([start, losses]) / (2 * noise_variance)
    return jax.nn.softmax(scores, axis=1) @ pool


def discrete_bayes(
    pool: Float[Array | np.ndarray, "tasks dim"], noise_variance: float
) -> LinearPredictor:
    """Return the predictor of least risk for w drawn from the rows of `pool`.

    A learner trained on few tasks may have memorized them instead of learning their
    distribution; then it is this predictor and not ridge (Raventós et al., 2023).

    Example:
        >>> discrete_bayes(np.eye(3), 0.25).name
        'DiscreteBayes(3 tasks, 0.25)'
    """
    if pool.ndim != 2 or pool.shape[0] == 0:
        rule = "have shape (tasks, dim), with one task or more"
        raise InvalidValueError("pool", rule, f"shape {pool.shape}")
    require_positive("noise_variance", noise_variance)
    return LinearPredictor(
        f"DiscreteBayes({pool.shape[0]} tasks, {noise_variance:g})",
        partial(
            discrete_bayes_prefix_weights, pool=pool, noise_variance=noise_variance
        ),
    )
