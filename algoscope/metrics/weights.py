"""The linear function that a predictor implies (eq. 16), and how well it fits."""

import numpy as np
from jaxtyping import Float

from algoscope.validation import InvalidValueError


def implied_weights(
    queries: Float[np.ndarray, "datasets queries dim"],
    answers: Float[np.ndarray, "datasets prefixes queries"],
) -> Float[np.ndarray, "datasets prefixes dim"]:
    """Return ŵ = argmin_w Σᵢ (ŷᵢ − wᵀx′ᵢ)², the least squares of the answers (eq. 16).

    NaN where a query was not answered, infinite where an answer is.
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
    queries: Float[np.ndarray, "datasets queries dim"],
    answers: Float[np.ndarray, "datasets prefixes queries"],
    weights: Float[np.ndarray, "datasets prefixes dim"],
) -> Float[np.ndarray, "datasets prefixes"]:
    """Return R² = 1 − Σᵢ (ŷᵢ − ŵᵀx′ᵢ)² / Σᵢ ŷᵢ² of the linear fit (figure 6).

    The fit has no intercept, so the total is not centered: R² lies in [0, 1], and is
    about d/m for m answers that have nothing to do with the queries. NaN where all
    answers are zero.
    """
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        answers = answers.astype(np.float64)
        fitted = np.einsum("bqd,bnd->bnq", queries, weights)
        residual = np.sum((answers - fitted) ** 2, axis=-1)
        return 1 - residual / np.sum(answers**2, axis=-1)
