"""`layers`: what would a learner answer after each layer, and by which algorithm?

A linear read-out of every layer is fitted in closed form (`read_outs`), and asked on
held-out datasets. Its answers are compared with the labels, with least squares, and
with iterative algorithms after every number of steps (`iterations`). The weights that
they imply (eq. 16) are compared with those of least squares and of the task.

A read-out that is fitted can itself add skill. The floors show how much: the read-out
of layer 0, which sees the query alone, and those of a control, by default the same
network with random weights.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import Summary, summarize
from algoscope.comparison.linearization import Queries, implied_weights, linearity
from algoscope.comparison.metrics import cosine_similarity, squared_distance
from algoscope.comparison.predict import (
    HELD_OUT,
    Inputs,
    Labels,
    draw_datasets,
    held_out,
    predict_exactly,
)
from algoscope.foundation import provenance
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.layerwise.iterations import iterations, match
from algoscope.layerwise.read_outs import (
    BATCH,
    LONGEST,
    NUM_TRAINING,
    ReadOuts,
    fitting_data,
)
from algoscope.layerwise.result import LEARNER, LayersResult
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import OpenedLearner, predict_intact
from algoscope.model.tokens import QUERIES
from algoscope.predictors import ols
from algoscope.probing.states import untrained
from algoscope.tasks.task import Task

ANSWERS = "read-outs"  # in names of stages


@dataclass(frozen=True)
class LayersConfig:
    """How many datasets read-outs are fitted to, and asked on.

    Example:
        >>> import algoscope as asc
        >>> asc.LayersConfig(num_test=200).num_training
        1000
    """

    num_examples: int | None = None  # N inputs per dataset; None: all, at most 41
    num_training: int = NUM_TRAINING
    num_test: int = 500
    prefix: int | None = None  # n, where weights are implied; None: 2d, if they fit
    num_queries: int | None = None  # from which weights are implied; None: 4d
    num_implied: int = 100  # of the test datasets, whose weights are implied
    seed: int = 0

    def __post_init__(self):
        for name in ("num_examples", "prefix", "num_queries"):
            if getattr(self, name) is not None:
                require_at_least(name, getattr(self, name), 1)
        for name in ("num_training", "num_test", "num_implied"):
            require_at_least(name, getattr(self, name), 2)
        require_at_least("seed", self.seed, 0)

    def sizes_for(self, learner: OpenedLearner) -> tuple[int, int, int]:
        """Return N, n and the number of queries; reject what does not fit."""
        room = learner.max_examples + 1
        longest = min(room, LONGEST) if self.num_examples is None else self.num_examples
        if not 2 <= longest <= room:
            rule = f"be from 2 to {room}, as many as {learner.name} takes"
            raise InvalidValueError("num_examples", rule, longest)
        prefix = min(2 * learner.dim, longest - 1)
        if self.prefix is not None:
            prefix = self.prefix
        if prefix >= longest:
            rule = f"be below the {longest} examples of a dataset"
            raise InvalidValueError("prefix", rule, prefix)
        queries = 4 * learner.dim if self.num_queries is None else self.num_queries
        require_at_least("num_queries", queries, learner.dim)
        return longest, prefix, queries


def layers(
    learner: OpenedLearner,
    task: Task | None = None,
    config: LayersConfig | None = None,
    *,
    controls: Sequence[OpenedLearner] | None = None,
    progress: Progress | bool = True,
) -> LayersResult:
    """Read an answer out of every layer of a learner, and of its controls.

    The default task is the learner's own. The default control is the learner with
    random weights: `untrained`, or `shuffled` for a torch module.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d1")
        >>> small = asc.LayersConfig(num_examples=4, num_training=100, num_test=50)
        >>> found = asc.layers(learner, config=small, controls=[], progress=False)
        >>> found.layer_names[-1], bool(found.spd[-1, 0] < found.spd[0, 0])
        ('layer 4', True)
    """
    config = LayersConfig() if config is None else config
    task = task or learner.task
    if learner.dim != task.dim:
        rule = f"have the dimension {learner.dim} of {learner.name}"
        raise InvalidValueError("task", rule, task.dim)
    others = _default_controls(learner) if controls is None else list(controls)
    for each in others:
        if each.dim != task.dim or each.max_examples < config.sizes_for(learner)[0] - 1:
            rule = f"take the datasets of {learner.name}"
            raise InvalidValueError("controls", rule, each.name)
    with shown(progress) as report:
        return _layers(learner, task, config, others, report)


def _default_controls(learner: OpenedLearner) -> list[OpenedLearner]:
    if isinstance(learner, InContextLearner):
        return [untrained(learner)]
    shuffled = getattr(learner, "shuffled", None)
    return [] if shuffled is None else [shuffled()]


class _Data(NamedTuple):
    """What all learners are fitted to, and asked."""

    training: tuple[Inputs, Labels]
    x: Inputs
    y: Labels
    least_squares: Labels  # predictions of OLS


def _layers(
    learner: OpenedLearner,
    task: Task,
    config: LayersConfig,
    controls: list[OpenedLearner],
    progress: Progress,
) -> LayersResult:
    longest, prefix, num_queries = config.sizes_for(learner)
    x, y = held_out(
        task,
        num_datasets=config.num_test,
        num_examples=longest,
        seed=config.seed,
    )
    training = fitting_data(task, config.num_training, longest, config.seed)
    data = _Data(training, x, y, predict_exactly(ols, x, y))
    total = (config.num_training + config.num_test) * (1 + len(controls))
    steps = Steps(progress, ANSWERS, total)
    read_outs = ReadOuts.fit(learner, *training, steps)
    answers = read_outs.answers(learner, x, y, steps)
    own = _intact(learner, x, y)
    references = {LEARNER: own, "OLS": data.least_squares, "zero": np.zeros_like(own)}
    matched = []
    for algorithm in iterations(task.dim):
        progress(f"matching {algorithm.name}", 0, None)
        matched.append((algorithm.name, match(algorithm, x, y, answers)))
    below = [_floor(each, data, steps) for each in controls]
    rng = np.random.default_rng(config.seed)
    count = min(config.num_implied, config.num_test)
    queries = rng.normal(size=(count, num_queries, task.dim)).astype(np.float32)
    w = _true_weights(task, config, longest)[:count]
    weights = _weights(learner, read_outs, x[:count], y[:count], queries, prefix, w)
    risk, spd = _curves(answers, data)
    return LayersResult(
        learner=learner.name,
        controls=tuple(each.name for each in controls),
        dim=task.dim,
        task=repr(task),
        num_examples=longest - 1,
        prefix=prefix,
        layer_names=tuple(learner.layer_names),
        config=asdict(config),
        versions=provenance(),
        matches=tuple(m for _, each in matched for m in each.matches),
        distances={name: each.distances for name, each in matched},
        risk=_stacked(risk[:, :, 1:].mean(axis=2)),
        spd=_stacked(spd[:, :, 1:].mean(axis=2)),
        risk_by_prefix=risk.mean(axis=0),
        spd_by_prefix=spd.mean(axis=0),
        references={
            name: np.stack([each[:, 0].mean(axis=0) for each in _curves(p, data)])
            for name, p in ((k, v[:, None]) for k, v in references.items())
        },
        floors={each.name: found for each, found in zip(controls, below, strict=True)},
        weights=weights,
    )


def _intact(learner: OpenedLearner, x: Inputs, y: Labels) -> Labels:
    """Return the learner's own predictions, a batch at a time."""
    size = min(BATCH, len(x))
    starts = range(0, len(x), size)
    rows = [np.resize(np.arange(i, min(i + size, len(x))), size) for i in starts]
    found = [np.asarray(predict_intact(learner, x[i], y[i])) for i in rows]
    return np.concatenate(found)[: len(x)]


def _curves(
    answers: Float[np.ndarray, "datasets curves prefixes"], data: _Data
) -> tuple[np.ndarray, np.ndarray]:
    """Return squared distances over d, to the labels and to OLS."""
    dim = data.x.shape[2]

    def distance(other: Labels) -> np.ndarray:
        same = np.broadcast_to(other[:, None].astype(np.float64), answers.shape)
        return squared_distance(answers[..., None], same[..., None], dim)

    return distance(data.y), distance(data.least_squares)


def _floor(
    control: OpenedLearner, data: _Data, steps: Steps
) -> Float[np.ndarray, "2 depth 3"]:
    """Return risk and SPD/d of a control's read-outs, with intervals."""
    fitted = ReadOuts.fit(control, *data.training, steps)
    found = _curves(fitted.answers(control, data.x, data.y, steps), data)
    return np.stack([_stacked(each[:, :, 1:].mean(axis=2)) for each in found])


def _stacked(samples: Float[np.ndarray, "datasets depth"]) -> np.ndarray:
    """Return mean, low and high of each layer as columns."""
    found: Summary = summarize(samples)
    return np.stack([found.mean, found.low, found.high], axis=-1)


def _true_weights(task: Task, config: LayersConfig, longest: int) -> np.ndarray:
    """Return w of the held-out datasets."""
    data = draw_datasets(
        task,
        num_datasets=config.num_test,
        num_examples=longest,
        seed=config.seed,
        fold=HELD_OUT,
    )
    return np.asarray(data.w, np.float64)


def _weights(
    learner: OpenedLearner,
    read_outs: ReadOuts,
    x: Inputs,
    y: Labels,
    queries: Queries,
    prefix: int,
    w: Float[np.ndarray, "datasets dim"],
) -> dict[str, Float[np.ndarray, "depth 3"]]:
    """Compare the weights that each layer implies after `prefix` examples.

    A query takes the place of the next example: the same shapes, one compilation.
    """
    count = queries.shape[1]
    sequences, labels = (np.repeat(each, count, axis=0) for each in (x, y))
    sequences[:, prefix] = queries.reshape(-1, x.shape[2])
    size = min(BATCH, len(sequences))
    found = []
    for start in range(0, len(sequences), size):
        rows = np.resize(np.arange(start, min(start + size, len(sequences))), size)
        states = np.asarray(learner.hidden_states(sequences[rows], labels[rows]))
        found.append(read_outs(states[:, :, QUERIES][:, :, prefix]))
    answers = np.concatenate(found)[: len(sequences)]
    by_dataset = answers.reshape(len(x), count, -1).transpose(0, 2, 1)
    implied = implied_weights(queries, by_dataset)
    solved = _ols_weights(x[:, :prefix], y[:, :prefix])
    measured: dict[str, Any] = {"r2": linearity(queries, by_dataset, implied)}
    for name, other in (("w_ols", solved), ("w", w)):
        same = np.broadcast_to(other[:, None], implied.shape)
        measured[f"cosine {name}"] = cosine_similarity(implied, same)
        measured[f"distance {name}"] = squared_distance(implied, same, x.shape[2])
    return {name: _stacked(each) for name, each in measured.items()}


def _ols_weights(x: Inputs, y: Labels) -> Float[np.ndarray, "datasets dim"]:
    """Return the minimum-norm least-squares weights of each dataset."""
    inverse = np.linalg.pinv(x.astype(np.float64))
    return np.einsum("bdn,bn->bd", inverse, y.astype(np.float64))
