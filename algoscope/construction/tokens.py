"""Datasets as token sequences in NumPy, up to the query (paper §2.3)."""

import numpy as np
from jaxtyping import Float

from algoscope.validation import InvalidValueError

Tokens = Float[np.ndarray, "*batch time token"]
COLUMNS = 8192  # so many columns are looked at, and at least those of 64 datasets


def context_tokens(
    x: Float[np.ndarray, "*batch longer dim"], y: Float[np.ndarray, "*batch examples"]
) -> Tokens:
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
