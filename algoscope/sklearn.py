"""An in-context learner as a scikit-learn regressor (paper §2.2).

`fit` trains nothing: it stores the examples as a context, and `predict` runs the
transformer on the context and one query at a time. The learner was trained on inputs
x ~ N(0, I) with d coordinates, weights w ~ N(0, I) and at most m examples, so `fit`
transforms the data to match:

    z = Pᵀ (x − mean) / scale,    prediction = mean + scale · learner(context, z)
"""

from functools import lru_cache
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_choice,
)
from algoscope.model.checkpoints import WEIGHTS, locate
from algoscope.model.learner import InContextLearner

try:
    from sklearn.base import BaseEstimator, RegressorMixin
    from sklearn.utils.validation import check_is_fitted, validate_data
except ModuleNotFoundError as error:
    message = "`ICLRegressor` needs scikit-learn: pip install 'algoscope[sklearn]'."
    raise ModuleNotFoundError(message, name=error.name) from None


@lru_cache(maxsize=8)
def _load(directory: str, _written: int) -> InContextLearner:
    return InContextLearner.from_pretrained(directory)


def _learner(model) -> InContextLearner:
    """Return the model, which is cached until its file changes."""
    directory = locate(model).resolve()
    return _load(str(directory), (directory / WEIGHTS).stat().st_mtime_ns)


@eqx.filter_jit
def _ask(
    learner: InContextLearner,
    x: Float[Array, "room dim"],
    y: Float[Array, " room"],
    num_examples: Int[Array, ""],
    queries: Float[Array, "block dim"],
    num_queries: Int[Array, ""],
) -> Float[Array, " block"]:
    """Return the predictions for the first `num_queries` queries.

    The query follows the examples; a causal learner ignores the padding after it, so
    one compilation serves any number of examples. Every query is computed alone, by the
    same program, so its prediction does not depend on the other queries in any bit.
    """

    def answer(i, predictions):
        filled = jax.lax.dynamic_update_index_in_dim(x, queries[i], num_examples, 0)
        prediction = learner.predict_prefixes(filled, y)[num_examples]
        return predictions.at[i].set(prediction)

    return jax.lax.fori_loop(0, num_queries, answer, jnp.zeros_like(queries[:, 0]))


def compress(
    x: Float[np.ndarray, "examples dim"],
    y: Float[np.ndarray, " examples"],
    num_rows: int,
) -> tuple[Float[np.ndarray, "rows dim"], Float[np.ndarray, " rows"]]:
    """Return m examples with the same second moments XᵀX/n and Xᵀy/n.

    With X = QR and any U with UᵀU = I, they are √(m/n) UR and √(m/n) UQᵀy. Least
    squares finds the same weights for them, and so does ridge regression with the
    penalty λm/n; the part of y that no linear function explains is lost. U is a fixed
    random rotation, so that all rows are of similar size.
    """
    q, r = np.linalg.qr(x)
    rotation = np.random.default_rng(0).standard_normal((num_rows, x.shape[1]))
    u = np.sqrt(num_rows / len(x)) * np.linalg.qr(rotation)[0]
    return u @ r, u @ (q.T @ y)


def conjugate_directions(
    x: Float[np.ndarray, "examples features"],
    y: Float[np.ndarray, " examples"],
    dim: int,
) -> Float[np.ndarray, "features dim"]:
    """Return P such that least squares on XP is d conjugate-gradient steps on (X, y).

    This is partial least squares. (XP)ᵀXP = nI, except that columns are 0 once y is
    fitted exactly.
    """
    directions, scores = np.zeros((x.shape[1], dim)), np.zeros((len(x), dim))
    residual, smallest = y, 1e-10 * np.linalg.norm(x.T @ y)
    for k in range(dim):
        direction = x.T @ residual
        if np.linalg.norm(direction) <= smallest:
            break
        for _ in range(2):  # the second pass removes rounding errors
            overlap = scores.T @ (x @ direction) / len(x)
            direction = direction - directions @ overlap
        size = np.sqrt(np.mean((x @ direction) ** 2))
        directions[:, k] = direction / size
        scores[:, k] = x @ directions[:, k]
        residual = residual - scores[:, k] * (scores[:, k] @ residual) / len(x)
    return directions


def _project(
    x: Float[np.ndarray, "rows features"], directions: Float[np.ndarray, "features dim"]
) -> Float[np.ndarray, "rows dim"]:
    """Return XP, summed feature by feature: BLAS rounds differently by row count."""
    projected = np.zeros((len(x), directions.shape[1]))
    for feature, direction in zip(x.T, directions, strict=True):
        projected += feature[:, None] * direction[None]
    return projected


def _fill(values: np.ndarray, size: int, dtype: Any) -> np.ndarray:
    """Return the values followed by zeros, `size` rows in all."""
    filled = np.zeros((size, *values.shape[1:]), dtype)
    filled[: len(values)] = values
    return filled


def _deviation(values: np.ndarray) -> np.ndarray:
    """Return the standard deviation of each column, or 1 if it is constant."""
    deviation = values.std(axis=0)
    tiny = 1e-12 * np.abs(values).max(axis=0)
    return np.where(deviation <= tiny, 1.0, deviation)


class ICLRegressor(RegressorMixin, BaseEstimator):
    """A transformer that regresses in its forward pass, for scikit-learn.

    Args:
        model: a shipped model's name, or the directory of a saved learner.
        standardize: center and scale the features, and scale the labels to the variance
            that x ~ N(0, I) and w ~ N(0, I) give them. Predictions are scaled back.
        overflow: what to do with more examples than the context holds. "compress" makes
            fewer examples with the same second moments, which is exact for a learner
            that is least squares; "recent" uses the last ones; "error" rejects them.
        excess: what to do with more features than the learner has coordinates.
            "project" uses the directions of partial least squares; "error" rejects
            them. Fewer features are padded with zeros.
        block_size: how many queries one call of the compiled loop predicts.

    Example:
        >>> x = np.random.default_rng(0).standard_normal((200, 8))
        >>> y = x[:, 0] - 3 * x[:, 1] + 5
        >>> bool(ICLRegressor().fit(x, y).score(x, y) > 0.99)
        True
    """

    # scikit-learn requires parameters to be checked in `fit`; hence no annotations.
    def __init__(
        self,
        model="linear-d8",
        *,
        standardize=True,
        overflow="compress",
        excess="project",
        block_size=256,
    ):
        self.model = model
        self.standardize = standardize
        self.overflow = overflow
        self.excess = excess
        self.block_size = block_size

    def fit(self, X, y):
        """Store the examples as the context of the learner."""
        self._check_parameters()
        learner = _learner(self.model)
        checked: Any = validate_data(self, X, y, y_numeric=True)
        x, y = (part.astype(np.float64) for part in checked)
        self._check_data(learner, x)
        num_features, room = x.shape[1], learner.max_examples
        if self.overflow == "recent":
            x, y = x[-room:], y[-room:]
        self.x_mean_, self.x_scale_ = np.zeros(num_features), np.ones(num_features)
        self.y_mean_, self.y_scale_ = 0.0, 1.0
        if self.standardize:
            self.x_mean_, self.x_scale_ = x.mean(axis=0), _deviation(x)
            used = min(num_features, learner.dim)
            self.y_mean_, self.y_scale_ = y.mean(), _deviation(y) / np.sqrt(used)
        x, y = (x - self.x_mean_) / self.x_scale_, (y - self.y_mean_) / self.y_scale_
        if num_features > learner.dim:
            self.directions_ = conjugate_directions(x, y, learner.dim)
        else:
            self.directions_ = np.eye(num_features, learner.dim)
        x = _project(x, self.directions_)
        if len(x) > room:
            x, y = compress(x, y, room)
        self.x_context_, self.y_context_ = x, y
        return self

    def predict(self, X):
        """Return the learner's predictions, one query at a time."""
        check_is_fitted(self)
        checked: Any = validate_data(self, X, reset=False)
        x = checked.astype(np.float64)
        queries = _project((x - self.x_mean_) / self.x_scale_, self.directions_)
        learner, num_examples = _learner(self.model), len(self.x_context_)
        dtype = learner.transformer.w_e.dtype
        room = learner.max_examples + 1  # with the query
        x = _fill(self.x_context_, room, dtype)
        y = _fill(self.y_context_, room, dtype)
        answers = []
        for start in range(0, len(queries), self.block_size):
            asked = queries[start : start + self.block_size]
            block = _fill(asked, self.block_size, dtype)
            parts = (x, y, np.int32(num_examples), block, np.int32(len(asked)))
            answers.append(np.asarray(_ask(learner, *map(jnp.asarray, parts))))
        predictions = np.concatenate(answers, dtype=np.float64)[: len(queries)]
        return self.y_mean_ + self.y_scale_ * predictions

    def _check_parameters(self) -> None:
        if not isinstance(self.model, str | Path):
            rule = "be a model's name or a directory"
            raise InvalidTypeError("model", rule, repr(self.model))
        if not isinstance(self.standardize, bool | np.bool_):
            raise InvalidTypeError(
                "standardize", "be True or False", repr(self.standardize)
            )
        require_choice("overflow", self.overflow, ["compress", "recent", "error"])
        require_choice("excess", self.excess, ["project", "error"])
        require_at_least("block_size", self.block_size, 1)

    def _check_data(self, learner: InContextLearner, x: np.ndarray) -> None:
        (num_examples, num_features), room = x.shape, learner.max_examples
        if num_examples > room and self.overflow == "error":
            remedy = 'To use all of them, set overflow="compress".'
            raise InvalidValueError(
                "X", f"hold at most {room} examples", num_examples, remedy
            )
        if num_examples > room < learner.dim and self.overflow == "compress":
            rule = (
                f'be "recent" or "error" for a model with room for {room} examples only'
            )
            raise InvalidValueError("overflow", rule, '"compress"')
        if num_features > learner.dim and self.excess == "error":
            remedy = 'To use all of them, set excess="project".'
            raise InvalidValueError(
                "X", f"have at most {learner.dim} features", num_features, remedy
            )
