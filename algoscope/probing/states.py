"""The data of probing: datasets, targets and hidden states, the same for all probes.

A `Repeat` draws datasets and computes the targets on them; the hidden states of the
learner and of its controls on these datasets are standardized per unit, over datasets
and positions together, so that a mean over positions remains a mean of hidden states.
That makes training easier and changes nothing about what a probe can express: W_v and
the biases can undo it.

A constant unit is scaled to zero. It holds no information about the data, but in a
transformer written by hand it can be as large as 2³¹ (the pads of its layer norms), and
what remains of such a number after centering is rounding noise.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import (
    HELD_OUT,
    draw_datasets,
    run_in_batches,
    warn_in_batches,
)
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import OpenedLearner
from algoscope.model.stack import inner_sizes_of
from algoscope.model.transformer import random_transformer
from algoscope.predictors import RangeAware
from algoscope.probing.config import ProbingConfig
from algoscope.probing.targets import ProbeTarget, TargetSplit, target_values
from algoscope.tasks.task import Dataset, Task

BATCH = 128  # datasets per compiled call
TRAINING, TEST = HELD_OUT + 1, HELD_OUT + 2  # folded into keys: used by nothing else

States = Float[np.ndarray, "layers datasets time hidden"]
OtherStates = Float[np.ndarray, "layers others time hidden"]


class StateSplit(NamedTuple):
    """Hidden states on the training datasets and on the test datasets."""

    training: States
    test: OtherStates


@dataclass(frozen=True)
class Repeat:
    """The datasets of one repeat, and the values of the targets on them."""

    seed: int
    training: Dataset
    test: Dataset
    targets: dict[str, TargetSplit]
    task: str

    @classmethod
    def draw(
        cls, task: Task, config: ProbingConfig, targets: list[ProbeTarget], repeat: int
    ) -> "Repeat":
        """Draw the datasets of a repeat, each from its own seed."""
        seed = config.seed + repeat
        training, test = (
            draw_datasets(
                task,
                num_datasets=size,
                num_examples=config.num_examples,
                seed=seed,
                fold=fold,
            )
            for size, fold in (
                (config.num_training, TRAINING),
                (config.num_test, TEST),
            )
        )
        values = {
            target.name: TargetSplit(
                target_values(target, training, config.prefixes),
                target_values(target, test, config.prefixes),
            )
            for target in targets
        }
        return cls(seed, training, test, values, repr(task))

    def states(self, learner: OpenedLearner, layers: tuple[int, ...]) -> StateSplit:
        """Return the standardized hidden states of some layers."""
        return standardize(
            hidden_states(learner, self.training, layers),
            hidden_states(learner, self.test, layers),
        )


def hidden_states(
    learner: OpenedLearner, data: Dataset, layers: tuple[int, ...]
) -> States:
    """Return H⁽ˡ⁾ of some layers, for every dataset up to its last x."""
    x, y = np.asarray(data.x), np.asarray(data.y)
    if isinstance(learner, RangeAware):
        warn_in_batches(learner, x, y)
    found = run_in_batches(
        lambda x, y: learner.hidden_states(x, y)[:, np.asarray(layers)],
        x,
        y,
        size=BATCH,
    )
    return np.moveaxis(found, 1, 0)


def standardize(training: States, test: OtherStates) -> StateSplit:
    """Return both in float32, scaled to mean 0 and variance 1 on `training`."""
    kept = StateSplit(
        np.empty(training.shape, np.float32), np.empty(test.shape, np.float32)
    )
    for layer, states in enumerate(training):
        mean, deviation = spread(states)
        scale = np.where(deviation > 0, 1 / np.where(deviation > 0, deviation, 1), 0)
        for raw, scaled in ((training, kept.training), (test, kept.test)):
            scaled[layer] = (raw[layer].astype(np.float64) - mean) * scale
    return kept


def spread(
    states: Float[np.ndarray, "datasets time hidden"],
) -> tuple[Float[np.ndarray, " hidden"], Float[np.ndarray, " hidden"]]:
    """Return the mean and the standard deviation of each unit, 0 if it is constant.

    A unit counts as constant if it varies by less than a hundred units in the last
    place of its largest value.
    """
    exact = states.astype(np.float64)
    deviation = exact.std(axis=(0, 1))
    largest = np.abs(exact).max(axis=(0, 1))
    varies = deviation > 100 * np.finfo(states.dtype).eps * largest
    return exact.mean(axis=(0, 1)), np.where(varies, deviation, 0)


def untrained(learner: InContextLearner, seed: int = 0) -> InContextLearner:
    """Return a control: a learner of the same shape and task with random weights.

    Example:
        >>> untrained(InContextLearner.from_pretrained("linear-d2")).name
        'linear-d2, untrained'
    """
    transformer = learner.transformer
    _, num_heads, _, hidden_size = transformer.layers.w_q.shape
    return InContextLearner(
        random_transformer(
            seed,
            token_size=transformer.token_size,
            max_time=transformer.max_time,
            num_layers=transformer.num_layers,
            hidden_size=hidden_size,
            num_heads=num_heads,
            inner_size=max(inner_sizes_of(transformer.layers)),
            block=transformer.block,
        ),
        f"{learner.name}, untrained",
        task=learner.task,
    )
