"""Linear read-outs: what the state of the query after each layer says of its label.

One read-out per layer, a + bᵀz of the standardized state z at the token of the query,
is the ridge solution for the labels of training datasets, in closed form:

    b = (C + εI)⁻¹ c,   C = E[z zᵀ], c = E[z y], ε = 1e-6

It is shared by all n. That is the form of the learner's own read-out, so it asks what
the learner would answer if it stopped after this layer; one read-out for each n could
add skill of its own, such as a gain that depends on n.

A unit that is constant on the training datasets is not read (see `probing.states`).

Axes: `depth` layers, `prefixes` n = 0, 1, …, one query token each.
"""

import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import HELD_OUT, Inputs, Labels, held_out
from algoscope.foundation.files import (
    DamagedFileError,
    load_arrays,
    reading,
    save_arrays,
)
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.model.opened import OpenedLearner
from algoscope.model.tokens import QUERIES
from algoscope.tasks.task import Task

RIDGE = 1e-6  # ε, relative to the variance of a unit
BATCH = 250  # datasets whose states are held at a time
NUM_TRAINING = 1000  # datasets that read-outs are fitted to, by default
LONGEST = 41  # inputs of a dataset, by default
READ_OUTS, FORMAT = "readouts.safetensors", "algoscope read-outs"
ARRAYS = ("center", "weights")
FITTING = HELD_OUT + 20  # folded into keys: nothing else draws these datasets

QueryStates = Float[np.ndarray, "datasets depth prefixes hidden"]


def query_states(
    learner: OpenedLearner, x: Inputs, y: Labels, steps: Steps
) -> Iterator[tuple[slice, QueryStates]]:
    """Yield the states of the query tokens, a batch of datasets at a time.

    The last batch is filled up with its own rows: one shape, one compilation.
    """
    size = min(BATCH, len(x))
    for start in range(0, len(x), size):
        some = slice(start, min(start + size, len(x)))
        count = some.stop - start
        rows = np.resize(np.arange(start, some.stop), size)
        states = np.asarray(learner.hidden_states(x[rows], y[rows]))[:count]
        yield some, states[:, :, QUERIES]
        steps.add(count)


class ReadOuts(NamedTuple):
    """The read-outs of all layers: ŷ = offset + weightsᵀ (h − center)."""

    center: Float[np.ndarray, "depth hidden"]
    weights: Float[np.ndarray, "depth hidden"]
    offset: float

    @property
    def biases(self) -> Float[np.ndarray, " depth"]:
        """What each layer answers where its state is zero: ŷ = bias + weightsᵀ h."""
        return self.offset - np.einsum("lh,lh->l", self.center, self.weights)

    def __call__(
        self, states: Float[np.ndarray, "datasets depth *prefixes hidden"]
    ) -> Float[np.ndarray, "datasets depth *prefixes"]:
        """Return what each layer answers."""
        exact = np.moveaxis(states.astype(np.float64), 1, -2) - self.center
        answers = np.einsum("...lh,lh->...l", exact, self.weights) + self.offset
        return np.moveaxis(answers, -1, 1)

    @classmethod
    def fit(
        cls, learner: OpenedLearner, x: Inputs, y: Labels, steps: Steps
    ) -> "ReadOuts":
        """Return the read-outs for the labels of these datasets."""
        moments: _Moments | None = None
        for some, states in query_states(learner, x, y, steps):
            if moments is None:
                moments = _Moments.around(states)
            moments.add(states, y[some].astype(np.float64))
        assert moments is not None
        return moments.solve()

    def save(self, directory: str | Path, learner: OpenedLearner) -> None:
        """Write the read-outs of a learner beside its weights."""
        arrays = {"center": self.center, "weights": self.weights}
        arrays["offset"] = np.array(self.offset)
        metadata = {"format": FORMAT, "learner": _short_digest(learner)}
        save_arrays(Path(directory) / READ_OUTS, arrays, metadata)

    @classmethod
    def load(cls, directory: str | Path, learner: OpenedLearner) -> "ReadOuts | None":
        """Return what `save` wrote; None if there is nothing for these weights."""
        path = Path(directory) / READ_OUTS
        if not path.is_file():
            return None
        arrays, metadata = load_arrays(path)
        shape = (learner.num_layers + 1, learner.hidden_size)
        fits = [arrays[name].shape for name in ARRAYS if name in arrays] == [shape] * 2
        owner = metadata.get("learner", _short_digest(learner))
        if metadata.get("format") == FORMAT and owner != _short_digest(learner):
            return None
        if metadata.get("format") != FORMAT or not fits or "offset" not in arrays:
            raise DamagedFileError(path, "does not hold read-outs of this learner")
        with reading(path, "does not hold read-outs"):
            return cls(arrays["center"], arrays["weights"], float(arrays["offset"]))

    def answers(
        self, learner: OpenedLearner, x: Inputs, y: Labels, steps: Steps
    ) -> Float[np.ndarray, "datasets depth prefixes"]:
        """Return what every layer answers at every x of these datasets."""
        return np.concatenate(
            [self(states) for _, states in query_states(learner, x, y, steps)]
        )


def _short_digest(learner: OpenedLearner) -> str:
    return hashlib.sha256(learner.digest.encode()).hexdigest()[:16]


def fitting_data(
    task: Task, num_datasets: int, num_examples: int, seed: int
) -> tuple[Inputs, Labels]:
    """Return datasets to fit read-outs to; nothing else draws them."""
    return held_out(
        task,
        num_datasets=num_datasets,
        num_examples=num_examples,
        seed=seed,
        fold=FITTING,
    )


def readouts(
    learner: OpenedLearner,
    task: Task | None = None,
    *,
    num_training: int = NUM_TRAINING,
    seed: int = 0,
    progress: Progress | bool = True,
) -> ReadOuts:
    """Fit one linear read-out to every layer of a learner, in closed form.

    The default task is the learner's own. They are the read-outs of `layers` with the
    same number of datasets and the same seed.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d1")
        >>> fitted = asc.readouts(learner, num_training=50, progress=False)
        >>> fitted.weights.shape  # the input and four layers, 32 units
        (5, 32)
        >>> x, y = np.ones((1, 3, 1), np.float32), np.ones((1, 3), np.float32)
        >>> states = np.asarray(learner.hidden_states(x, y))[:, :, ::2]
        >>> fitted(states).shape  # a dataset, five layers, n = 0, 1, 2
        (1, 5, 3)
    """
    require_at_least("num_training", num_training, 2)
    require_at_least("seed", seed, 0)
    task = task or learner.task
    if learner.dim != task.dim:
        rule = f"have the dimension {learner.dim} of {learner.name}"
        raise InvalidValueError("task", rule, task.dim)
    longest = min(learner.max_examples + 1, LONGEST)
    x, y = fitting_data(task, num_training, longest, seed)
    with shown(progress) as report:
        return ReadOuts.fit(learner, x, y, Steps(report, "read-outs", num_training))


class _Moments:
    """Sums over states and labels, around a point near the states for precision."""

    def __init__(self, near: np.ndarray, epsilon: float):
        depth, hidden = near.shape
        self.near, self.epsilon, self.count, self.labels = near, epsilon, 0, 0.0
        self.first, self.cross = np.zeros((2, depth, hidden))
        self.second = np.zeros((depth, hidden, hidden))
        self.largest = np.zeros((depth, hidden))

    @classmethod
    def around(cls, states: QueryStates) -> "_Moments":
        near = states.astype(np.float64).mean(axis=(0, 2))
        return cls(near, float(np.finfo(states.dtype).eps))

    def add(self, states: QueryStates, y: Float[np.ndarray, "datasets prefixes"]):
        """Count more datasets."""
        labels = y.reshape(-1)
        for layer in range(len(self.near)):
            h = states[:, layer].reshape(-1, states.shape[-1]).astype(np.float64)
            top = np.abs(h).max(axis=0)
            self.largest[layer] = np.maximum(self.largest[layer], top)
            h -= self.near[layer]
            self.first[layer] += h.sum(axis=0)
            self.second[layer] += h.T @ h
            self.cross[layer] += h.T @ labels
        self.count += len(labels)
        self.labels += labels.sum()

    def solve(self) -> ReadOuts:
        """Return the ridge solution of every layer."""
        mean, label = self.first / self.count, self.labels / self.count
        covariance = self.second / self.count - mean[:, :, None] * mean[:, None]
        cross = self.cross / self.count - mean * label
        deviation = np.sqrt(np.maximum(np.einsum("lhh->lh", covariance), 0))
        varies = deviation > 100 * self.epsilon * self.largest
        scale = np.where(varies, 1 / np.where(varies, deviation, 1), 0)
        correlation = covariance * scale[:, :, None] * scale[:, None]
        ridge = correlation + RIDGE * np.eye(mean.shape[1])
        solved = np.linalg.solve(ridge, (cross * scale)[..., None])[..., 0]
        return ReadOuts(self.near + mean, solved * scale, float(label))
