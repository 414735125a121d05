"""Predictions of learners and references on held-out tasks, at every prefix at once.

Every predictor sees the same datasets (common random numbers). References are computed
in float64 whatever the learner's precision, so that what is measured is the learner.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.predictors import BlackBox, Predictor, Question
from algoscope.tasks import Task
from algoscope.validation import require_at_least

BATCH = 250  # datasets per compiled call

Inputs = Float[np.ndarray, "datasets examples dim"]
Labels = Float[np.ndarray, "datasets examples"]


def held_out(
    task: Task, *, num_datasets: int, num_examples: int, seed: int
) -> tuple[Inputs, Labels]:
    """Return x and y of fresh datasets, from keys that training does not use."""
    require_at_least("num_datasets", num_datasets, 1)
    require_at_least("num_examples", num_examples, 1)
    require_at_least("seed", seed, 0)
    held_out_key = jax.random.fold_in(jax.random.key(seed), 2**31)  # beyond any step
    keys = jax.random.split(held_out_key, num_datasets)
    with jax.enable_x64(False):
        data = jax.jit(jax.vmap(lambda key: task.sample(key, num_examples)))(keys)
    return np.asarray(data.x), np.asarray(data.y)


@eqx.filter_jit
def _run_module(predictor: Any, x: Array, y: Array) -> Array:
    return jax.vmap(predictor.predict_prefixes)(x, y)


def _compiled(predictor: Predictor) -> Callable[[Array, Array], Array]:
    """Return the predictor on a batch, compiled.

    The weights of a learner are arguments there, so new weights compile nothing.
    """
    if isinstance(predictor, eqx.Module):
        return partial(_run_module, predictor)
    return jax.jit(jax.vmap(predictor.predict_prefixes))


def predict_all(predictor: Predictor | BlackBox, x: Inputs, y: Labels) -> Labels:
    """Return the predictions at every position of every dataset.

    A black box is not asked for a prediction from no examples: it is NaN.
    """
    total = len(x)
    require_at_least("number of datasets", total, 1)
    if isinstance(predictor, BlackBox):
        questions = (
            Question(x[i, :n], y[i, :n], x[i, n : n + 1])
            for i in range(total)
            for n in range(1, x.shape[1])
        )
        answers = np.array([answer[0] for answer in predictor.answers(questions)])
        missing = np.full((total, 1), np.nan)
        return np.concatenate([missing, answers.reshape(total, -1)], axis=1)
    compiled = _compiled(predictor)
    batch = min(BATCH, total)
    predictions = []
    for start in range(0, total, batch):
        # The last batch is filled up with rows of its own: one shape, one compilation.
        rows = np.resize(np.arange(start, min(start + batch, total)), batch)
        part = compiled(jnp.asarray(x[rows]), jnp.asarray(y[rows]))
        predictions.append(np.asarray(part))
    return np.concatenate(predictions)[:total]


def predict_queries(
    predictor: Predictor | BlackBox,
    x: Inputs,
    y: Labels,
    queries: Float[np.ndarray, "datasets queries dim"],
) -> Float[np.ndarray, "datasets queries"]:
    """Return the predictions for several queries after all examples of each dataset."""
    if isinstance(predictor, BlackBox):
        asked = (Question(*parts) for parts in zip(x, y, queries, strict=True))
        return np.stack(list(predictor.answers(asked)))
    parts = [
        np.asarray(_ask(predictor, *map(jnp.asarray, (x[i], y[i], queries[i]))))
        for i in np.array_split(np.arange(len(x)), -(-len(x) // BATCH))
    ]
    return np.concatenate(parts)


@eqx.filter_jit
def _ask(predictor: Predictor, x: Array, y: Array, queries: Array) -> Array:
    one_dataset = jax.vmap(predictor, in_axes=(None, None, 0))
    return jax.vmap(one_dataset)(x, y, queries)


def predict_exactly(predictor: Predictor, x: Inputs, y: Labels) -> Labels:
    """Return the predictions computed in float64: for references."""
    with jax.enable_x64(True):
        return predict_all(predictor, x.astype(np.float64), y.astype(np.float64))
