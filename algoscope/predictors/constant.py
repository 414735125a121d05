"""Predictors that solve nothing: the floor under every comparison."""

import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.predictors.interface import LinearPredictor
from algoscope.predictors.moments import prefix_moments, prefix_sizes


def zero_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> Float[Array, "prefixes dim"]:
    """Return w = 0 after each prefix."""
    return jnp.zeros((x.shape[0] + 1, x.shape[1]), x.dtype)


def average_prefix_weights(
    x: Float[Array, "examples dim"], y: Float[Array, " examples"]
) -> Float[Array, "prefixes dim"]:
    """Return w = XᵀY/n after each prefix, and 0 without examples.

    It is least squares for one who believes that XᵀX is nI.
    """
    _, moment = prefix_moments(x, y)
    return moment / jnp.maximum(prefix_sizes(moment), 1)[:, None]


zero = LinearPredictor("Zero", zero_prefix_weights)
average = LinearPredictor("Average", average_prefix_weights)
