"""The Bayes predictor for tasks from a finite pool (Raventós et al., 2023).

A learner that was trained on few tasks may have learned these instead of the
distribution behind them: then it is this predictor, and not ridge regression.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import InvalidValueError, require_positive
from algoscope.predictors.moments import Number
from algoscope.predictors.protocols import LinearPredictor


def discrete_bayes_prefix_weights(
    x: Float[Array, "examples dim"],
    y: Float[Array, " examples"],
    *,
    pool: Float[Array | np.ndarray, "tasks dim"],
    noise_variance: Number,
) -> Float[Array, "prefixes dim"]:
    """Return the posterior mean of w, uniform over the pool beforehand.

    w = Σᵢ pᵢwᵢ,  p = softmaxᵢ(−Σⱼ (yⱼ − wᵢᵀxⱼ)² / 2σ²)

    Without examples it is the mean of the pool.
    """
    pool = jnp.asarray(pool, x.dtype)
    losses = jnp.cumsum((y[:, None] - x @ pool.T) ** 2, axis=0)
    start = jnp.zeros((1, pool.shape[0]), x.dtype)
    scores = -jnp.concatenate([start, losses]) / (2 * noise_variance)
    return jax.nn.softmax(scores, axis=1) @ pool


def discrete_bayes(
    pool: Float[Array | np.ndarray, "tasks dim"], noise_variance: float
) -> LinearPredictor:
    """Return the predictor of least risk for w drawn from the rows of `pool`.

    Example:
        >>> discrete_bayes(np.eye(3), 0.25).name
        'DiscreteBayes(3 tasks, 0.25)'
    """
    if pool.ndim != 2 or pool.shape[0] == 0:
        rule = "have shape (tasks, dim), with one task or more"
        raise InvalidValueError("pool", rule, f"shape {pool.shape}")
    require_positive("noise_variance", noise_variance)
    return LinearPredictor(
        f"DiscreteBayes({pool.shape[0]} tasks, {noise_variance:g})",
        partial(
            discrete_bayes_prefix_weights, pool=pool, noise_variance=noise_variance
        ),
    )
