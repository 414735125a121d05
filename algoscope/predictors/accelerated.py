"""Solvers that need fewer steps than gradient descent: momentum to Newton's iteration.

Let S = XᵀX and b = XᵀY. Heavy ball, Chebyshev and conjugate gradients remember the last
step: like gradient descent they start at w₀ = 0 and multiply by S once in a step, but
solve Sw = b in about the square root of its number of steps. Newton's iteration inverts
S itself, and squares the remaining error in every step.
"""

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.foundation.validation import (
    MOST_STEPS,
    InvalidValueError,
    require_at_least,
    require_not_negative,
    require_positive,
)
from algoscope.predictors.gradient_descent import iterate, last_iterate
from algoscope.predictors.least_squares import apply, prefix_moments, prefix_sizes
from algoscope.predictors.protocols import LinearPredictor, Number, name_call


def heavy_ball_iterates(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    momentum: Number,
    num_steps: int,
) -> Float[Array, "iterates prefixes dim"]:
    """Return Polyak's iterates: v ← βv − 2α (Sw − b), w ← w + v."""
    gram, moment = prefix_moments(x, y)

    def step(state):
        w, v = state
        v = momentum * v - 2 * learning_rate * (apply(gram, w) - moment)
        return w + v, v

    start = jnp.zeros_like(moment)
    return iterate(step, (start, start), num_steps, lambda state: state[0])


def heavy_ball(learning_rate: float, momentum: float, steps: int) -> LinearPredictor:
    """Return gradient descent with momentum β in [0, 1).

    Example:
        >>> heavy_ball(0.02, 0.5, 4).name
        'HeavyBall(0.02, 0.5, 4)'
    """
    require_positive("learning_rate", learning_rate)
    require_not_negative("momentum", momentum)
    if momentum >= 1:
        raise InvalidValueError("momentum", "be below 1", momentum)
    require_at_least("steps", steps, 1, most=MOST_STEPS)
    return LinearPredictor(
        name_call("HeavyBall", learning_rate, momentum, steps),
        last_iterate(
            heavy_ball_iterates,
            learning_rate=learning_rate,
            momentum=momentum,
            num_steps=steps,
        ),
    )


def chebyshev_iterates(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    low: Number,
    high: Number,
    num_steps: int,
) -> Float[Array, "iterates prefixes dim"]:
    """Return the Chebyshev semi-iteration for eigenvalues of S/n in [low, high].

    Of all methods of k steps it has the smallest worst-case error over that interval.
    With the middle θ and half the width δ of the interval, and r = (b − Sw)/n,

        v ← qq′δ²v + 2q′r,  w ← w + v,  q′ = 1/(2θ − δ²q)  after  q = 1/θ, v = r/θ

    Directions with an eigenvalue below `low` converge slowly, those above `high`
    diverge.
    """
    gram, moment = prefix_moments(x, y)
    sizes = jnp.maximum(prefix_sizes(moment), 1)
    gram, moment = gram / sizes[:, None, None], moment / sizes[:, None]
    middle, half_square = (low + high) / 2, ((high - low) / 2) ** 2

    def step(state):
        w, v, q, is_first = state
        rest = moment - apply(gram, w)
        following = jnp.where(is_first, q, 1 / (2 * middle - half_square * q))
        memory = jnp.where(is_first, 0, q * following * half_square)
        v = memory * v + jnp.where(is_first, q, 2 * following) * rest
        return w + v, v, following, jnp.zeros_like(is_first)

    start = jnp.zeros_like(moment)
    q = jnp.asarray(1 / middle, moment.dtype)
    state = (start, start, q, jnp.ones((), bool))
    return iterate(step, state, num_steps, lambda state: state[0])


def chebyshev(steps: int, low: float, high: float) -> LinearPredictor:
    """Return the Chebyshev semi-iteration for eigenvalues of XᵀX/n in [low, high].

    Example:
        >>> chebyshev(4, 0.2, 2.5).name
        'Chebyshev(4, 0.2, 2.5)'
    """
    require_at_least("steps", steps, 1, most=MOST_STEPS)
    require_positive("low", low)
    require_positive("high", high)
    if low > high:
        raise InvalidValueError("low", f"be at most `high`, which is {high}", low)
    return LinearPredictor(
        name_call("Chebyshev", steps, low, high),
        last_iterate(chebyshev_iterates, low=low, high=high, num_steps=steps),
    )


def conjugate_gradients_iterates(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], num_steps: int
) -> Float[Array, "iterates prefixes dim"]:
    """Return the w in span{b, Sb, …, Sᵏ⁻¹b} of least loss, for 0, 1, …, k steps.

    It is minimum-norm least squares after as many steps as X has distinct non-zero
    singular values. Once a prefix is solved up to rounding, its w stays constant.
    """
    gram, moment = prefix_moments(x, y)
    rounding = 10 * x.shape[1] * jnp.finfo(x.dtype).eps
    small = rounding**2 * _squares(moment)
    flat = rounding * jnp.trace(gram, axis1=1, axis2=2)

    def step(state):
        w, rest, v = state
        gram_v = apply(gram, v)
        curvature = jnp.sum(v * gram_v, axis=1)
        active = (_squares(rest) > small) & (curvature > flat * _squares(v))
        length = _ratio(_squares(rest), curvature, active)
        next_rest = rest - length[:, None] * gram_v
        turn = _ratio(_squares(next_rest), _squares(rest), active)
        next_v = jnp.where(active[:, None], next_rest + turn[:, None] * v, v)
        return w + length[:, None] * v, next_rest, next_v

    start = jnp.zeros_like(moment)
    return iterate(step, (start, moment, moment), num_steps, lambda state: state[0])


def conjugate_gradients(steps: int) -> LinearPredictor:
    """Return conjugate gradients with the given number of steps.

    Example:
        >>> conjugate_gradients(3).name
        'ConjugateGradients(3)'
    """
    require_at_least("steps", steps, 1, most=MOST_STEPS)
    return LinearPredictor(
        name_call("ConjugateGradients", steps),
        last_iterate(conjugate_gradients_iterates, num_steps=steps),
    )


def _squares(vectors: Float[Array, "prefixes dim"]) -> Float[Array, " prefixes"]:
    return jnp.sum(vectors**2, axis=1)


def _ratio(above: Array, below: Array, defined: Array) -> Array:
    """Return above/below, or 0 where it is not defined; derivatives are finite."""
    return jnp.where(defined, above, 0) / jnp.where(defined, below, 1)


def newton_iterates(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], num_steps: int
) -> Float[Array, "iterates prefixes dim"]:
    """Return w = Mb after 0, 1, …, k steps, where M tends to S⁺.

    M ← 2M − MSM  from  M₀ = S / ‖SSᵀ‖_F, with S = XᵀX and b = XᵀY

    M₀ is 0 where S is 0. In directions that no example has, rounding errors double in
    every step; below about 30 steps this does not matter.
    """
    gram, moment = prefix_moments(x, y)
    limit = -jnp.finfo(gram.dtype).minexp - 2
    # Tiny numbers have no fourth power; a power of 2 changes no digit.
    _, exponent = jnp.frexp(jnp.max(jnp.abs(gram), axis=(1, 2), keepdims=True))
    scale = jnp.ldexp(jnp.ones((), gram.dtype), -jnp.clip(exponent, -limit, limit))
    scaled = gram * jax.lax.stop_gradient(scale)
    square = jnp.sum((scaled @ scaled) ** 2, axis=(1, 2))
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))

    def step(inverse):
        return 2 * inverse - inverse @ gram @ inverse

    start = scaled / norm[:, None, None] * scale
    return iterate(step, start, num_steps, lambda m: apply(m, moment))


def newton(steps: int) -> LinearPredictor:
    """Return iterative Newton with the given number of steps.

    Example:
        >>> newton(4).name
        'Newton(4)'
    """
    require_at_least("steps", steps, 0, most=MOST_STEPS)
    return LinearPredictor(
        name_call("Newton", steps), last_iterate(newton_iterates, num_steps=steps)
    )
