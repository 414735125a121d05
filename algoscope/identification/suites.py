"""Datasets that tell learning algorithms apart, in the task's distribution and outside.

Algorithms that agree on the task they were made for differ on other data: k steps of
gradient descent depend on the scale of x where ridge regression hardly does, an average
depends on the label of an outlier, one pass over the examples depends on their order.
Each suite changes the task in one such way.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import held_out
from algoscope.tasks.task import Task


class Questions(NamedTuple):
    """Datasets to ask a predictor about, each with the suite that it belongs to."""

    x: Float[np.ndarray, "datasets examples dim"]
    y: Float[np.ndarray, "datasets examples"]
    suite: list[str]

    def take(self, index: np.ndarray) -> "Questions":
        """Return the datasets at these indices."""
        return Questions(self.x[index], self.y[index], [self.suite[i] for i in index])


Change = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def _scaled(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Inputs scaled by 0.5 or by 1.5."""
    return x * rng.choice([0.5, 1.5], size=(len(x), 1, 1))


def stretched(
    rng: np.random.Generator, x: np.ndarray, deviations: np.ndarray
) -> np.ndarray:
    """Inputs with these standard deviations along random axes, E‖x‖² unchanged."""
    dim = x.shape[-1]
    scale = deviations * np.sqrt(dim / np.sum(deviations**2))
    rotations = np.linalg.qr(rng.standard_normal((len(x), dim, dim)))[0]
    return (x * scale) @ rotations


def skewed(rng: np.random.Generator, x: np.ndarray, power: float = 1.0) -> np.ndarray:
    """Inputs with standard deviations sᵢ ∝ i⁻ᵖ along random axes."""
    return stretched(rng, x, np.arange(1, x.shape[-1] + 1) ** -power)


def _orthogonal(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Inputs of which each d in a row are orthogonal; no two have the same length."""
    datasets, examples, dim = x.shape
    frames = rng.standard_normal((datasets, -(-examples // dim), dim, dim))
    rows = np.linalg.qr(frames)[0].reshape(datasets, -1, dim)
    lengths = np.sqrt(dim) * rng.uniform(0.5, 1.4, (datasets, examples, 1))
    return lengths * rows[:, :examples]


def duplicated(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Each input twice in a row."""
    return np.repeat(x, 2, axis=1)[:, : x.shape[1]]


def shifted(rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
    """Inputs whose mean is not 0."""
    return x + rng.standard_normal((len(x), 1, x.shape[-1]))


INPUTS: dict[str, Change] = {
    "scaled": _scaled,
    "skewed": skewed,
    "orthogonal": _orthogonal,
    "duplicated": duplicated,
    "shifted": shifted,
}
SUITES = ("task", *INPUTS, "noisy", "outlier")
KINDS = {  # what the suites are called in a sentence
    "task": "its task",
    "scaled": "scaled inputs",
    "skewed": "skewed inputs",
    "orthogonal": "orthogonal inputs",
    "duplicated": "repeated inputs",
    "shifted": "shifted inputs",
    "noisy": "noisy labels",
    "outlier": "an outlier",
}


def draw_suite(
    name: str, task: Task, *, num_datasets: int, num_examples: int, seed: int
) -> Questions:
    """Return datasets of one suite.

    Except in the task's own suite, labels have noise of a tenth of the signal's
    variance or more, so that algorithms that interpolate and those that smooth differ.
    """
    suite = [name] * num_datasets
    if name == "task":
        x, y = held_out(
            task, num_datasets=num_datasets, num_examples=num_examples, seed=seed
        )
        return Questions(x.astype(np.float64), y.astype(np.float64), suite)
    rng = np.random.default_rng([seed, SUITES.index(name)])
    x = rng.standard_normal((num_datasets, num_examples, task.dim))
    w = rng.standard_normal((num_datasets, task.dim))
    w *= np.sqrt(task.prior_variance or 1.0)
    if name in INPUTS:
        x = INPUTS[name](rng, x)
    y = np.einsum("bnd,bd->bn", x, w)
    scale = np.sqrt(np.mean(y**2, axis=1, keepdims=True))
    noise = 1.0 if name == "noisy" else 0.3
    y = y + noise * scale * rng.standard_normal(y.shape)
    if name == "outlier":
        where = rng.integers(0, max(num_examples // 4, 1), size=num_datasets)
        y[np.arange(num_datasets), where] += 10 * scale[:, 0]
    return Questions(x, y, suite)


def draw_questions(
    suites: tuple[str, ...],
    task: Task,
    *,
    sizes: tuple[int, ...],
    num_examples: int,
    seed: int,
) -> list[Questions]:
    """Return one set per size, with datasets of every suite.

    A quarter of them or more are of the task, the others are shared out evenly.
    """
    others = len(suites) - 1
    ends = {
        name: np.cumsum([0, *(_count(name, size, others) for size in sizes)])
        for name in suites
    }
    parts = {
        name: draw_suite(
            name,
            task,
            num_datasets=int(ends[name][-1]),
            num_examples=num_examples,
            seed=seed,
        )
        for name in suites
    }
    found = []
    for place in range(len(sizes)):
        rows = {name: slice(*ends[name][place : place + 2]) for name in suites}
        found.append(
            Questions(
                np.concatenate([parts[name].x[rows[name]] for name in suites]),
                np.concatenate([parts[name].y[rows[name]] for name in suites]),
                [s for name in suites for s in parts[name].suite[rows[name]]],
            )
        )
    return found


def _count(name: str, size: int, others: int) -> int:
    """Return how many of `size` datasets are of a suite."""
    if others == 0:
        return size
    if name == "task":
        return max(size // 4, 1)
    return max(-(-3 * size // (4 * others)), 1)


def most_contested(
    questions: Questions,
    predictions: Float[np.ndarray, "hypotheses datasets examples"],
    num_datasets: int,
) -> Questions:
    """Return the datasets on which the hypotheses disagree most.

    The disagreement of two hypotheses on a dataset is relative to the labels and to
    their median disagreement. A dataset is scored by the pair that disagrees least on
    it, so that the chosen datasets separate all pairs.
    """
    predictions = predictions[:, :, 1:]  # before the first example nothing is learned
    scale = np.mean(questions.y**2, axis=1) + 1e-300
    with np.errstate(over="ignore", invalid="ignore"):  # a hypothesis may diverge
        pairs = [
            np.mean((a - b) ** 2, axis=1) / scale
            for i, a in enumerate(predictions)
            for b in predictions[:i]
        ]
        relative = np.array([pair / (np.median(pair) + 1e-300) for pair in pairs])
    score = np.where(np.isfinite(relative), relative, 0.0).min(axis=0)
    return questions.take(np.argsort(-score, kind="stable")[:num_datasets])
