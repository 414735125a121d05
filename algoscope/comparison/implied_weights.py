"""The linear function that a predictor implies after n examples (eq. 16).

The actual weights for algorithms that have them, as in the paper; for all others the
least squares of their predictions on fresh queries.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.comparison.metrics import implied_weights
from algoscope.comparison.predict import (
    Inputs,
    Labels,
    diverged_is_infinite,
    predict_queries,
)
from algoscope.predictors import BlackBox, LinearPredictor, Predictor


class Implied(NamedTuple):
    """The implied weights, and the answers to the queries, after 0, 1, … examples."""

    weights: Float[np.ndarray, "datasets prefixes dim"]
    answers: Float[np.ndarray, "datasets prefixes queries"]


def implied(
    predictor: Predictor | BlackBox,
    x: Inputs,
    y: Labels,
    queries: Float[np.ndarray, "datasets queries dim"],
) -> Implied:
    """Return ŵ after each proper prefix of the datasets, and the predictions behind it.

    The last example of a dataset is a query in other metrics, and not used here.
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
