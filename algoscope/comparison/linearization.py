"""The linear function that a predictor computes near its data: weights and gradients.

Implied weights (eq. 16, figure 6): algorithms that have weights report them, as in the
paper. For all others, ŵ is the least-squares fit to their answers on fresh queries, and
R² says how well it fits.

Gradients: the sensitivity ∂ŷ/∂x′ of a linear predictor is its weights, so it is a local
form of the implied weights and needs no queries (von Oswald et al., 2023). The
influence ∂ŷ/∂y of a linear smoother is its hat vector x′ᵀ(XᵀX + λI)⁻¹Xᵀ. Predictors in
JAX are differentiated by JAX, black boxes by central differences.
"""

from collections.abc import Callable, Hashable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.comparison.predict import (
    Inputs,
    Labels,
    ask,
    diverged_is_infinite,
    predict_queries,
    run_in_batches,
)
from algoscope.foundation.validation import InvalidValueError, require_positive
from algoscope.model.operands import range_warnings
from algoscope.predictors import BlackBox, LinearPredictor, Predictor, Question

Queries = Float[np.ndarray, "datasets queries dim"]
Answers = Float[np.ndarray, "datasets prefixes queries"]
Weights = Float[np.ndarray, "datasets prefixes dim"]

STEP = 1e-3  # of central differences: exact to about 1e-6, robust to single precision
SEQUENCES_PER_CALL = 512  # differentiated at a time


class Implied(NamedTuple):
    """The implied weights, and the answers to the queries, after 0, 1, … examples."""

    weights: Weights
    answers: Answers


def implied(
    predictor: Predictor | BlackBox, x: Inputs, y: Labels, queries: Queries
) -> Implied:
    """Return ŵ after n = 0, 1, … examples of each dataset, and the answers behind it.

    The last example of a dataset, which other metrics use as a query, is not used here.
    """
    if isinstance(predictor, LinearPredictor):
        weights = np.asarray(
            _read_off(predictor)(jnp.asarray(x[:, :-1]), jnp.asarray(y[:, :-1]))
        )
        weights = diverged_is_infinite(predictor, weights)
        with np.errstate(invalid="ignore"):
            answers = np.einsum("bnd,bqd->bnq", weights, queries)
        return Implied(weights, answers)
    parts = [
        predict_queries(predictor, x, y, queries, after=n) for n in range(x.shape[1])
    ]
    answers = diverged_is_infinite(predictor, np.stack(parts, axis=1))
    return Implied(implied_weights(queries, answers), answers)


def implied_weights(queries: Queries, answers: Answers) -> Weights:
    """Return ŵ = argmin_w Σᵢ (ŷᵢ − wᵀx′ᵢ)², the least-squares fit (eq. 16).

    ŵ is NaN where a query was not answered, and infinite where an answer is infinite.
    """
    num_queries, dim = queries.shape[1:]
    if num_queries < dim:
        rule = f"be at least d = {dim}, or the weights are not determined"
        raise InvalidValueError("number of queries", rule, num_queries)
    inverse = np.linalg.pinv(queries.astype(np.float64))
    with np.errstate(invalid="ignore", over="ignore"):
        weights = np.einsum("bdq,bnq->bnd", inverse, answers.astype(np.float64))
    missing = np.any(np.isnan(answers), axis=-1, keepdims=True)
    diverged = np.any(np.isinf(answers), axis=-1, keepdims=True)
    weights = np.where(diverged, np.inf, weights)
    return np.where(missing, np.nan, weights)


class FitSums(NamedTuple):
    """Sums of squares over the queries, per dataset and prefix."""

    residual: Float[np.ndarray, "datasets prefixes"]  # Σᵢ (ŷᵢ − ŵᵀx′ᵢ)²
    total: Float[np.ndarray, "datasets prefixes"]  # Σᵢ ŷᵢ²


def fit_sums(queries: Queries, answers: Answers, weights: Weights) -> FitSums:
    """Return how much of the answers the linear function ŵ leaves, and their size."""
    with np.errstate(invalid="ignore", over="ignore"):
        answers = answers.astype(np.float64)
        fitted = np.einsum("bqd,bnd->bnq", queries, weights)
        residual = np.sum((answers - fitted) ** 2, axis=-1)
        return FitSums(residual, np.sum(answers**2, axis=-1))


def linearity(
    queries: Queries, answers: Answers, weights: Weights
) -> Float[np.ndarray, "datasets prefixes"]:
    """Return R² = 1 − Σᵢ (ŷᵢ − ŵᵀx′ᵢ)² / Σᵢ ŷᵢ² of the linear fit, per dataset.

    The fit has no intercept, so the total is not centered: R² lies in [0, 1], and is
    about d/m for m answers that do not depend on the queries. NaN where all answers
    are zero. Figure 6 has further forms of it.
    """
    sums = fit_sums(queries, answers, weights)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return 1 - sums.residual / sums.total


def sensitivities(
    predictor: Predictor | BlackBox, x: Inputs, y: Labels, *, step: float = STEP
) -> Float[np.ndarray, "datasets prefixes dim"]:
    """Return ∂ŷ/∂x′ at x′ = xₙ₊₁ after n = 0, 1, … examples."""
    require_positive("step", step)
    if not isinstance(predictor, BlackBox):
        return _differentiate(_query_gradients, predictor, x, y)
    dim = x.shape[2]
    sides = step * np.concatenate([np.eye(dim), -np.eye(dim)])

    def questions(x, y):
        for n in range(1, len(x)):
            yield Question(x[:n], y[:n], x[n] + sides)

    answers = _answers(predictor, x, y, questions, x.shape[1] - 1)
    slopes = (answers[:, :dim] - answers[:, dim:]) / (2 * step)
    gradients = np.full(x.shape, np.nan)
    gradients[:, 1:] = slopes.reshape(len(x), -1, dim)
    return gradients


def influences(
    predictor: Predictor | BlackBox, x: Inputs, y: Labels, *, step: float = STEP
) -> Float[np.ndarray, "datasets prefixes examples"]:
    """Return ∂ŷ/∂yⱼ of the prediction at xₙ₊₁ after n = 0, 1, … examples.

    Entries beyond the n examples are 0.
    """
    require_positive("step", step)
    if not isinstance(predictor, BlackBox):
        return _differentiate(_label_gradients, predictor, x, y)
    places = [(n, j) for n in range(1, x.shape[1]) for j in range(n)]

    def questions(x, y):
        for n, j in places:
            for side in (step, -step):
                moved = y[:n].copy()
                moved[j] += side
                yield Question(x[:n], moved, x[n : n + 1])

    answers = _answers(predictor, x, y, questions, 2 * len(places))
    answers = answers.reshape(len(x), len(places), 2)
    gradients = np.zeros((*y.shape, y.shape[1]))
    gradients[:, 0] = np.nan
    rows, columns = np.array(places).reshape(-1, 2).T
    gradients[:, rows, columns] = (answers[..., 0] - answers[..., 1]) / (2 * step)
    return gradients


def _answers(
    box: BlackBox,
    x: Inputs,
    y: Labels,
    questions: Callable[[np.ndarray, np.ndarray], Iterator[Question]],
    count: int,
) -> np.ndarray:
    """Return one row of answers for each of the `count` questions per dataset."""
    x, y = x.astype(np.float64), y.astype(np.float64)
    every = (each for data in zip(x, y, strict=True) for each in questions(*data))
    return np.array(list(ask(box, every, count * len(x))), np.float64)


def _query_gradients(predictor: Any, x: Array, y: Array, n: Array) -> Array:
    def predict(query: Array) -> Array:
        return predictor.predict_prefixes(x.at[n].set(query), y)[n]

    return jax.grad(predict)(x[n])


def _label_gradients(predictor: Any, x: Array, y: Array, n: Array) -> Array:
    return jax.grad(lambda y: predictor.predict_prefixes(x, y)[n])(y)


def _at_every_prefix(gradient: Callable, predictor: Any, x: Array, y: Array) -> Array:
    prefixes = jnp.arange(x.shape[1])
    one_dataset = jax.vmap(partial(gradient, predictor), (None, None, 0))
    with range_warnings(False):  # predictions on the same data have warned
        return jax.vmap(one_dataset, (0, 0, None))(x, y, prefixes)


_of_module = eqx.filter_jit(_at_every_prefix)  # weights are arguments of the program


@lru_cache(maxsize=256)
def _of_function(gradient: Callable, predictor: Predictor) -> Callable:
    return jax.jit(partial(_at_every_prefix, gradient, predictor))


@lru_cache(maxsize=256)
def _read_off(predictor: LinearPredictor) -> Callable[[Array, Array], Array]:
    return jax.jit(jax.vmap(predictor.prefix_weights))


def _differentiate(
    gradient: Callable, predictor: Predictor, x: Inputs, y: Labels
) -> np.ndarray:
    if isinstance(predictor, eqx.Module):
        compiled = partial(_of_module, gradient, predictor)
    elif isinstance(predictor, Hashable):
        compiled = _of_function(gradient, predictor)
    else:
        compiled = _of_function.__wrapped__(gradient, predictor)
    size = min(len(x), max(1, SEQUENCES_PER_CALL // x.shape[1]))
    return diverged_is_infinite(predictor, run_in_batches(compiled, x, y, size))
