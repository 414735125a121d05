"""Predictors as users may bring them, for tests of what asks them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from algoscope.predictors import (
    BlackBox,
    LinearPredictor,
    PredictorFailedError,
    Question,
)

PENALTY = 0.3  # of `solve_ridge` and of `RIDGE_SERVER`


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


def solve_ridge(X, y, x_query):
    """Return ridge regression's prediction, as a user's function would."""
    gram = X.T @ X + PENALTY * np.eye(X.shape[1])
    return x_query @ np.linalg.solve(gram, X.T @ y)


# The same as a program. At its fifth question it does what replaces MISBEHAVIOR.
RIDGE_SERVER = """
import json, os, sys, time
import numpy as np

count = 0
for line in sys.stdin:
    count += 1
    data = {name: np.array(value) for name, value in json.loads(line).items()}
    x, y, queries = data["x"], data["y"], data["queries"]
    gram = x.T @ x + 0.3 * np.eye(x.shape[1])
    answers = [float(q @ np.linalg.solve(gram, x.T @ y)) for q in queries]
    reply = json.dumps({"predictions": answers})
    if count == 5:
        MISBEHAVIOR
    print(reply, flush=True)
"""


def questions(x: np.ndarray, y: np.ndarray) -> list[Question]:
    """Return one question per dataset: three examples, and the others as queries."""
    return [Question(a[:3], b[:3], a[3:]) for a, b in zip(x, y, strict=True)]


def ten_questions(rng: np.random.Generator) -> list[Question]:
    """Return questions with three examples and three queries in two dimensions."""
    return questions(rng.standard_normal((10, 6, 2)), rng.standard_normal((10, 6)))


def collect(box: BlackBox, asked) -> tuple[list[np.ndarray], Exception | None]:
    """Return the answers, and what was raised after them."""
    answers = []
    try:
        for answer in box.answers(asked):
            answers.append(answer)
    except PredictorFailedError as error:
        return answers, error
    return answers, None
