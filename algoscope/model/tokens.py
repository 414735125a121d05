"""Datasets as token sequences (paper §2.3).

A dataset (x₁,y₁), …, (xₙ,yₙ) becomes x̃₁, ỹ₁, …, x̃ₙ, ỹₙ with x̃ = [0, x] and
ỹ = [y, 0_d]: tokens of size d+1, two per example. A causal model predicts yᵢ at the
position of x̃ᵢ, where it has seen the i−1 examples before it; the outputs at other
positions are ignored.

JAX arrays are encoded as JAX arrays and NumPy arrays as NumPy arrays, so that
constructions keep double precision whatever JAX is set to.
"""

from typing import Any, TypeVar

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import InvalidValueError

AnyArray = TypeVar("AnyArray", Array, np.ndarray)
NumpyTokens = Float[np.ndarray, "*batch time token"]

QUERIES = slice(0, None, 2)  # the positions of x̃₁, x̃₂, …, where predictions are made
CALIBRATION_TOKENS = 8192  # that a calibration uses, from at least 64 datasets


def encode(
    x: Float[AnyArray, "*batch examples dim"], y: Float[AnyArray, "*batch examples"]
) -> Float[AnyArray, "*batch time token"]:
    """Return the 2n tokens x̃₁, ỹ₁, …, x̃ₙ, ỹₙ.

    Example:
        >>> encode(jnp.array([[1.0, 2.0]]), jnp.array([5.0])).tolist()
        [[0.0, 1.0, 2.0], [5.0, 0.0, 0.0]]
    """
    if x.shape[:-1] != y.shape:
        rule = f"hold one label for each of the examples of `x` {x.shape}"
        raise InvalidValueError("y", rule, f"shape {y.shape}")
    xp: Any = np if isinstance(x, np.ndarray) else jnp
    y = y[..., None].astype(x.dtype)
    x_tokens = xp.concatenate([xp.zeros_like(y), x], axis=-1)
    y_tokens = xp.concatenate([y, xp.zeros_like(x)], axis=-1)
    tokens = xp.stack([x_tokens, y_tokens], axis=-2)
    *batch, examples, _, size = tokens.shape
    return tokens.reshape(*batch, 2 * examples, size)


def encode_context(
    x: Float[AnyArray, "*batch examples dim"], y: Float[AnyArray, "*batch examples"]
) -> Float[AnyArray, "*batch time token"]:
    """Return the tokens up to x̃ₙ: all that a prediction of y₁, …, yₙ may depend on."""
    return encode(x, y)[..., :-1, :]


def append_query(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    query: Float[Array, " dim"],
) -> tuple[Float[Array, "longer dim"], Float[Array, " longer"]]:
    """Return the examples with the query as one more, whose label is never read."""
    return (
        jnp.concatenate([x, query[None].astype(x.dtype)]),
        jnp.concatenate([y, jnp.zeros(1, y.dtype)]),
    )


def example_tokens(
    dim: int, num_examples: int, num_datasets: int | None = None, seed: int = 0
) -> Float[np.ndarray, "datasets time token"]:
    """Return datasets of the paper's task: x, w ~ N(0, I), noise of deviation 0.1.

    By default there are enough of them for a calibration to see rare large numbers.
    """
    if num_datasets is None:
        num_datasets = max(64, CALIBRATION_TOKENS // (2 * num_examples + 1))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_datasets, num_examples + 1, dim))
    w = rng.normal(size=(num_datasets, dim, 1))
    y = (x @ w)[..., 0] + 0.1 * rng.normal(size=x.shape[:2])
    return encode_context(x, y)
