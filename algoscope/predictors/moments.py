"""The moments XᵀX and XᵀY after every prefix, and iterations on them (§3, §4.3).

Linear solvers need nothing else of the examples. An iterative solver holds one w per
prefix and updates all of them in each step.

Axes: `prefixes` of 0, 1, …, n examples; `iterates` after 0, 1, …, k steps.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

Number = float | Float[Array, ""]  # a hyper-parameter, which JAX may trace

Grams = Float[Array, "prefixes dim dim"]
Vectors = Float[Array, "prefixes dim"]
Iterates = Float[Array, "iterates prefixes dim"]


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
    return lambda x, y: iterates(x, y, **options)[-1]
