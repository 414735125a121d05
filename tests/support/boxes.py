"""Predictors as users may bring them, for tests of what asks them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from algoscope.predictors import LinearPredictor


@dataclass(frozen=True)
class Boxed:
    """A black box around a function of NumPy arrays (x, y, queries) -> answers.

    It answers NaN while there are fewer than `least` examples.
    """

    name: str
    function: Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]
    least: int = 1

    def answers(self, questions, /) -> Iterator[np.ndarray]:
        for x, y, queries in questions:
            if len(x) < self.least:
                yield np.full(len(queries), np.nan)
            else:
                yield np.asarray(self.function(x, y, queries), np.float64)


def ridge_answers(x, y, queries, penalty: float = 0.5) -> np.ndarray:
    matrix = x.T @ x + penalty * np.eye(x.shape[1])
    return queries @ np.linalg.solve(matrix, x.T @ y)


def curved_answers(x, y, queries) -> np.ndarray:
    """Return a smooth function of ridge predictions and one coordinate of the query."""
    linear = ridge_answers(x, y, queries)
    return np.sin(linear) + 0.1 * linear * queries[:, 0]


@dataclass(frozen=True)
class Curved:
    """What `curved_answers` computes from a linear predictor, for JAX to trace."""

    inner: LinearPredictor
    name: str = "curved"

    def __call__(self, x, y, query, /):
        linear = self.inner(x, y, query)
        return jnp.sin(linear) + 0.1 * linear * query[0]

    def predict_prefixes(self, x, y, /):
        linear = self.inner.predict_prefixes(x, y)
        return jnp.sin(linear) + 0.1 * linear * x[:, 0]


@dataclass(frozen=True)
class Opaque:
    """A predictor that does not tell its weights."""

    inner: LinearPredictor
    name: str = "opaque"

    def __call__(self, x, y, query, /):
        return self.inner(x, y, query)

    def predict_prefixes(self, x, y, /):
        return self.inner.predict_prefixes(x, y)
