"""The hidden states that probes read, computed once and shared by all of them.

Units are standardized before probes see them: over datasets and positions together, so
that a mean over positions is still a mean of hidden states. It changes what Adam finds
easy, not what a probe can express: W_v and the biases can undo it.

A unit that is constant is scaled to zero. It says nothing about the data, but in a
transformer written by hand it may be as large as 2³¹ (the pads of its layer norms), and
what remains of such a number after centering is rounding noise, not a signal.
"""

from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.evaluation import HELD_OUT, run_in_batches, warn_in_batches
from algoscope.learner import InContextLearner
from algoscope.sequences import encode_context
from algoscope.tasks import Dataset
from algoscope.transformer import run_compiled

BATCH = 128  # datasets per compiled call
TRAINING, TEST = HELD_OUT + 1, HELD_OUT + 2  # folded into keys: datasets of its own

States = Float[np.ndarray, "layers datasets time hidden"]


class StateSplit(NamedTuple):
    """Hidden states on the datasets to fit on, and on those to be measured on."""

    training: States
    test: Float[np.ndarray, "layers others time hidden"]


def hidden_states(
    learner: InContextLearner, data: Dataset, layers: tuple[int, ...]
) -> States:
    """Return H⁽ˡ⁾ of the layers asked, for every dataset up to its last x."""
    x, y = np.asarray(data.x), np.asarray(data.y)
    warn_in_batches(learner, x, y)
    found = run_in_batches(
        lambda x, y: run_compiled(learner.transformer, encode_context(x, y)).hidden[
            :, jnp.asarray(layers)
        ],
        x,
        y,
        size=BATCH,
    )
    return np.moveaxis(found, 1, 0)


def spread(
    states: Float[np.ndarray, "datasets time hidden"],
) -> tuple[Float[np.ndarray, " hidden"], Float[np.ndarray, " hidden"]]:
    """Return the mean and the deviation of every unit, 0 if it is constant.

    A unit counts as constant if it varies by less than a hundred units in the last
    place of its largest value.
    """
    exact = states.astype(np.float64)
    deviation = exact.std(axis=(0, 1))
    largest = np.abs(exact).max(axis=(0, 1))
    varies = deviation > 100 * np.finfo(states.dtype).eps * largest
    return exact.mean(axis=(0, 1)), np.where(varies, deviation, 0)


def standardize(
    training: States, test: Float[np.ndarray, "layers others time hidden"]
) -> StateSplit:
    """Return both in float32 with the mean 0 and the variance 1 of `training`."""
    kept = StateSplit(
        np.empty(training.shape, np.float32), np.empty(test.shape, np.float32)
    )
    for layer, states in enumerate(training):
        mean, deviation = spread(states)
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        for raw, scaled in ((training, kept.training), (test, kept.test)):
            scaled[layer] = (raw[layer].astype(np.float64) - mean) * scale
    return kept
