"""Datasets as token sequences (paper §2.3).

A dataset (x₁,y₁), …, (xₙ,yₙ) becomes x̃₁, ỹ₁, …, x̃ₙ, ỹₙ with x̃ = [0, x] and
ỹ = [y, 0_d]: tokens of size d+1, two per example. A causal model predicts yᵢ at the
position of x̃ᵢ, where it has seen the i−1 examples before it; every other position's
output is ignored.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import InvalidValueError

Examples = Float[Array, "*batch examples dim"]
Labels = Float[Array, "*batch examples"]
Tokens = Float[Array, "*batch time token"]

QUERIES = slice(0, None, 2)  # the places of x̃₁, x̃₂, …, where predictions are made


def encode(x: Examples, y: Labels) -> Tokens:
    """Return the 2n tokens x̃₁, ỹ₁, …, x̃ₙ, ỹₙ.

    Example:
        >>> encode(jnp.array([[1.0, 2.0]]), jnp.array([5.0])).tolist()
        [[0.0, 1.0, 2.0], [5.0, 0.0, 0.0]]
    """
    if x.shape[:-1] != y.shape:
        rule = f"hold one label for each of the examples of `x` {x.shape}"
        raise InvalidValueError("y", rule, f"shape {y.shape}")
    y = y[..., None].astype(x.dtype)
    x_tokens = jnp.concatenate([jnp.zeros_like(y), x], axis=-1)
    y_tokens = jnp.concatenate([y, jnp.zeros_like(x)], axis=-1)
    tokens = jnp.stack([x_tokens, y_tokens], axis=-2)
    *batch, examples, _, size = tokens.shape
    return tokens.reshape(*batch, 2 * examples, size)


def encode_context(x: Examples, y: Labels) -> Tokens:
    """Return the tokens up to x̃ₙ: all that a prediction of y₁, …, yₙ may depend on."""
    return encode(x, y)[..., :-1, :]


def append_query(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    query: Float[Array, " dim"],
) -> tuple[Float[Array, "longer dim"], Float[Array, " longer"]]:
    """Return the examples with the query as one more, whose label nothing reads."""
    return (
        jnp.concatenate([x, query[None].astype(x.dtype)]),
        jnp.concatenate([y, jnp.zeros(1, y.dtype)]),
    )


def decode(tokens: Tokens) -> tuple[Examples, Labels]:
    """Return the x and y that `encode` put into `tokens`."""
    time = tokens.shape[-2]
    if time % 2:
        rule = "hold two tokens per example"
        raise InvalidValueError("tokens", rule, f"{time} tokens")
    return tokens[..., ::2, 1:], tokens[..., 1::2, 0]


NumpyTokens = Float[np.ndarray, "*batch time token"]
COLUMNS = 8192  # so many columns are looked at, and at least those of 64 datasets


def context_tokens(
    x: Float[np.ndarray, "*batch longer dim"], y: Float[np.ndarray, "*batch examples"]
) -> NumpyTokens:
    """Return [0, x₁], [y₁, 0], …, [0, x]: n labels for n + 1 inputs, the query last."""
    if y.shape != (*x.shape[:-2], x.shape[-2] - 1):
        rule = "hold one label for each row of `x` but the last, the query"
        raise InvalidValueError("y", rule, f"shape {y.shape} for {x.shape}")
    *batch, longer, dim = x.shape
    tokens = np.zeros((*batch, 2 * longer - 1, dim + 1))
    tokens[..., ::2, 1:], tokens[..., 1::2, 0] = x, y
    return tokens


def example_tokens(
    dim: int, num_examples: int, num_datasets: int | None = None, seed: int = 0
) -> Float[np.ndarray, "datasets time token"]:
    """Return datasets of the paper's task: x, w ~ N(0, I), noise of deviation 0.1.

    By default as many as a calibration takes to meet rare large numbers.
    """
    if num_datasets is None:
        num_datasets = max(64, COLUMNS // (2 * num_examples + 1))
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(num_datasets, num_examples + 1, dim))
    w = rng.normal(size=(num_datasets, dim, 1))
    y = (x @ w)[..., 0] + 0.1 * rng.normal(size=x.shape[:2])
    return context_tokens(x, y[:, :-1])
