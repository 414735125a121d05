"""Gradient descent on all examples at once (§3.2, §4.3), and two baselines.

With S = XᵀX and b = XᵀY, the gradient of Σᵢ (wᵀxᵢ − yᵢ)² + λ‖w‖² is 2 (Sw − b + λw).
All variants start at w₀ = 0. The baselines solve nothing: `zero` and `average`.

An iterative solver holds one w per prefix and updates all of them in each step.

Axes: `prefixes` of 0, 1, …, n examples; `iterates` after 0, 1, …, k steps.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import (
    MOST_STEPS,
    InvalidValueError,
    require_at_least,
    require_not_negative,
    require_positive,
)
from algoscope.predictors.least_squares import (
    Vectors,
    apply,
    prefix_moments,
    prefix_sizes,
)
from algoscope.predictors.protocols import (
    LinearPredictor,
    Number,
    Parametrized,
    name_call,
)

Iterates = Float[Array, "iterates prefixes dim"]


def zero_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> Float[Array, "prefixes dim"]:
    """Return w = 0 after each prefix."""
    return jnp.zeros((x.shape[0] + 1, x.shape[1]), x.dtype)


def average_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> Float[Array, "prefixes dim"]:
    """Return w = XᵀY/n after each prefix, and 0 without examples.

    It is least squares under the assumption XᵀX = nI.
    """
    _, moment = prefix_moments(x, y)
    return moment / jnp.maximum(prefix_sizes(moment), 1)[:, None]


zero = LinearPredictor("Zero", zero_prefix_weights)
average = LinearPredictor("Average", average_prefix_weights)


def iterate(
    step: Callable[[Any], Any],
    start: Any,
    num_steps: int,
    weights: Callable[[Any], Vectors] = lambda state: state,
) -> Iterates:
    """Return the weights of `start`, step(start), …, after 0, 1, …, k steps."""

    def advance(state, _):
        state = step(state)
        return state, weights(state)

    _, later = jax.lax.scan(advance, start, length=num_steps)
    return jnp.concatenate([weights(start)[None], later])


def last_iterate(
    iterates: Callable[..., Iterates], **options: Any
) -> Callable[[Float[Array, "examples dim"], Float[Array, " examples"]], Vectors]:
    """Return the weights after the last step, as a function of the examples."""
    comparable = not any(isinstance(each, np.ndarray) for each in options.values())
    return (Parametrized if comparable else partial)(_last, iterates, **options)


def _last(
    iterates: Callable[..., Iterates],
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    **options: Any,
) -> Vectors:
    return iterates(x, y, **options)[-1]


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
    """Return the weights after the last step; after one step, w = 2α Σᵢ xᵢyᵢ.

    The gradient of the penalty is 0 at w₀, so it matters from the second step on.
    """
    return gd_iterates(
        x, y, learning_rate=learning_rate, penalty=penalty, num_steps=num_steps
    )[-1]


def gd(learning_rate: float, steps: int = 1, penalty: float = 0.0) -> LinearPredictor:
    """Return gradient descent: one step, as in the paper, or several.

    Example:
        >>> gd(0.02).name, gd(0.02, steps=8, penalty=0.1).name
        ('GD(0.02)', 'GD(0.02, steps=8, penalty=0.1)')
    """
    require_positive("learning_rate", learning_rate)
    require_at_least("steps", steps, 1, most=MOST_STEPS)
    require_not_negative("penalty", penalty)
    return LinearPredictor(
        name_call(
            "GD",
            learning_rate,
            steps=steps if steps > 1 else None,
            penalty=penalty or None,
        ),
        Parametrized(
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

    Each step replaces all inputs and the query by x ← (I − γXᵀX) x, then descends on
    the residuals in the new coordinates. In terms of the original x the inputs are Tx,
    where T is a polynomial in S, and

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
    require_at_least("steps", steps, 1, most=MOST_STEPS)
    return LinearPredictor(
        name_call("GD++", learning_rate, curvature, steps),
        last_iterate(
            gd_plus_plus_iterates,
            learning_rate=learning_rate,
            curvature=curvature,
            num_steps=steps,
        ),
    )


def gd_growing_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    learning_rate: Number,
    penalty: Number = 0.0,
    clip: Number = 20.0,
) -> Float[Array, "prefixes dim"]:
    """Return n steps after n examples: the first on x₁, the next on x₁, x₂, and so on.

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
        Parametrized(
            gd_growing_prefix_weights,
            learning_rate=learning_rate,
            penalty=penalty,
            clip=clip,
        ),
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

    P is the identity by default.
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
    require_at_least("steps", steps, 1, most=MOST_STEPS)
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
