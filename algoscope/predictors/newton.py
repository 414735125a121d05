"""Iterative Newton: the Newton–Schulz inversion of XᵀX, after every prefix.

Fu et al. (2023) find it closer to trained transformers than gradient descent: the
number of correct digits doubles in every step.
"""

import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.predictors.moments import apply, iterate, last_iterate, prefix_moments
from algoscope.predictors.naming import name_call
from algoscope.validation import require_at_least


def newton_iterates(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"], num_steps: int
) -> Float[Array, "iterates prefixes dim"]:
    """Return w = Mb after 0, 1, …, k steps, where M tends to S⁺.

    M ← 2M − MSM  from  M₀ = S / ‖SSᵀ‖_F, with S = XᵀX and b = XᵀY

    M₀ is 0 where S is. In directions that no example has, rounding doubles in every
    step: below about 30 steps it does not matter.
    """
    gram, moment = prefix_moments(x, y)
    square = jnp.sum((gram @ gram) ** 2, axis=(1, 2))
    norm = jnp.sqrt(jnp.where(square > 0, square, 1))

    def step(inverse):
        return 2 * inverse - inverse @ gram @ inverse

    return iterate(
        step, gram / norm[:, None, None], num_steps, lambda m: apply(m, moment)
    )


def newton(steps: int) -> LinearPredictor:
    """Return iterative Newton with the given number of steps.

    Example:
        >>> newton(4).name
        'Newton(4)'
    """
    require_at_least("steps", steps, 0)
    return LinearPredictor(
        name_call("Newton", steps), last_iterate(newton_iterates, num_steps=steps)
    )
