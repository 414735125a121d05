"""Implied weights: the linear function that a predictor computes (eq. 16, figure 6).

Algorithms that have weights report them, as in the paper. For all others, ŵ is the
least-squares fit to their answers on fresh queries, and R² says how well it fits.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import (
    Inputs,
    Labels,
    diverged_is_infinite,
    predict_queries,
)
from algoscope.foundation.validation import InvalidValueError
from algoscope.predictors import BlackBox, LinearPredictor, Predictor

Queries = Float[np.ndarray, "datasets queries dim"]
Answers = Float[np.ndarray, "datasets prefixes queries"]
Weights = Float[np.ndarray, "datasets prefixes dim"]


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
        read_off = jax.jit(jax.vmap(predictor.prefix_weights))
        weights = np.asarray(read_off(jnp.asarray(x[:, :-1]), jnp.asarray(y[:, :-1])))
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


def linearity(
    queries: Queries, answers: Answers, weights: Weights
) -> Float[np.ndarray, "datasets prefixes"]:
    """Return R² = 1 − Σᵢ (ŷᵢ − ŵᵀx′ᵢ)² / Σᵢ ŷᵢ² of the linear fit (figure 6).

    The fit has no intercept, so the total is not centered: R² lies in [0, 1], and is
    about d/m for m answers that do not depend on the queries. NaN where all answers
    are zero.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        answers = answers.astype(np.float64)
        fitted = np.einsum("bqd,bnd->bnq", queries, weights)
        residual = np.sum((answers - fitted) ** 2, axis=-1)
        return 1 - residual / np.sum(answers**2, axis=-1)
