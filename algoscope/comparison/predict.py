"""Predictions on held-out datasets, after every number of examples at once.

Every predictor sees the same datasets (common random numbers). References are computed
in float64 whatever the learner's precision, so that rounding of the references never
counts as a difference of the learner.
"""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator
from functools import lru_cache, partial
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from algoscope.foundation.progress import Progress
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.model.operands import range_warnings
from algoscope.predictors import (
    BatchedBox,
    BlackBox,
    Predictor,
    PredictorFailedError,
    Question,
    RangeAware,
)
from algoscope.tasks.task import Dataset, Task

BATCH = 250  # datasets per compiled call
HELD_OUT = 2**31  # folded into keys: larger than any step of training

Inputs = Float[np.ndarray, "datasets examples dim"]
Labels = Float[np.ndarray, "datasets examples"]
AnyPredictor = TypeVar("AnyPredictor", bound=Predictor | BlackBox)


def held_out(
    task: Task,
    *,
    num_datasets: int,
    num_examples: int,
    seed: int,
    fold: int = HELD_OUT,
) -> tuple[Inputs, Labels]:
    """Return x and y of fresh datasets, from keys that training does not use.

    Another `fold` gives other datasets; see `draw_datasets`.
    """
    require_at_least("num_datasets", num_datasets, 1)
    require_at_least("num_examples", num_examples, 1)
    require_at_least("seed", seed, 0)
    data = draw_datasets(
        task,
        num_datasets=num_datasets,
        num_examples=num_examples,
        seed=seed,
        fold=fold,
    )
    return np.asarray(data.x), np.asarray(data.y)


def draw_datasets(
    task: Task, *, num_datasets: int, num_examples: int, seed: int, fold: int
) -> Dataset:
    """Return datasets in float32; each `fold` of the seed's key gives others."""
    key = jax.random.fold_in(jax.random.key(seed), fold)
    with jax.enable_x64(False):
        return _sample(task, jax.random.split(key, num_datasets), num_examples)


@eqx.filter_jit
def _sample(task: Task, keys: Key[Array, " datasets"], num_examples: int) -> Dataset:
    return jax.vmap(lambda key: task.sample(key, num_examples))(keys)


def predict_all(predictor: Predictor | BlackBox, x: Inputs, y: Labels) -> Labels:
    """Return the predictions at every position of every dataset.

    A black box that answers single questions is not asked for predictions from no
    examples: these are NaN.
    """
    total = len(x)
    require_at_least("number of datasets", total, 1)
    if isinstance(predictor, BatchedBox):
        rows = (row for part in predictor.batches(x, y) for row in part)
        if isinstance(predictor, CountedBatches):
            predictor.total += y[:, 1:].size
        return _written(predictor, rows, np.full(y.shape, np.nan))
    if isinstance(predictor, BlackBox):
        questions = (
            Question(x[i, :n], y[i, :n], x[i, n : n + 1])
            for i in range(total)
            for n in range(1, x.shape[1])
        )
        asked = total * (x.shape[1] - 1)
        answers = _collect(predictor, questions, np.full((asked, 1), np.nan))
        missing = np.full((total, 1), np.nan)
        return np.concatenate([missing, answers.reshape(total, -1)], axis=1)
    if isinstance(predictor, RangeAware):
        warn_in_batches(predictor, x, y)
    return run_in_batches(_compiled(predictor), x, y, BATCH)


def predict_exactly(predictor: Predictor | BlackBox, x: Inputs, y: Labels) -> Labels:
    """Return the predictions computed in float64, for references."""
    with jax.enable_x64(True):
        return predict_all(predictor, x.astype(np.float64), y.astype(np.float64))


def predict_queries(
    predictor: Predictor | BlackBox,
    x: Inputs,
    y: Labels,
    queries: Float[np.ndarray, "datasets queries dim"],
    *,
    after: int,
) -> Float[np.ndarray, "datasets queries"]:
    """Return predictions for several queries after the first `after` examples.

    The datasets must be longer than that: a query takes the place of the next example,
    so the compiled program has the same shape whatever `after` is.
    """
    if not 0 <= after < x.shape[1]:
        rule = f"be between 0 and {x.shape[1] - 1}, one less than the examples of `x`"
        raise InvalidValueError("after", rule, after)
    if isinstance(predictor, BlackBox):
        if after == 0:
            return np.full(queries.shape[:2], np.nan)
        known = zip(x[:, :after], y[:, :after], queries, strict=True)
        questions = (Question(*parts) for parts in known)
        return _collect(predictor, questions, np.full(queries.shape[:2], np.nan))
    num_datasets, num_queries, _ = queries.shape
    sequences = np.repeat(x, num_queries, axis=0)
    sequences[:, after] = queries.reshape(-1, x.shape[2])
    answers = predict_all(predictor, sequences, np.repeat(y, num_queries, axis=0))
    return answers[:, after].reshape(num_datasets, num_queries)


def diverged_is_infinite(
    predictor: Predictor | BlackBox, values: Float[np.ndarray, " *shape"]
) -> Float[np.ndarray, " *shape"]:
    """Return the values with ∞ in place of NaN, unless a black box gave them.

    NaN from a JAX predictor means divergence (∞); from a black box, abstention. What
    diverged counts in every mean; what abstained is left out.
    """
    if isinstance(predictor, BlackBox):
        return values
    return np.where(np.isnan(values), np.asarray(np.inf, values.dtype), values)


def _compiled(predictor: Predictor) -> Callable[[Array, Array], Array]:
    """Return the predictor on a batch, compiled.

    The weights of a learner are arguments of the program, so new weights do not
    compile it again.
    """
    if isinstance(predictor, eqx.Module):
        return partial(_run_module, predictor)
    if isinstance(predictor, Hashable):
        return _compiled_once(predictor)
    return jax.jit(jax.vmap(predictor.predict_prefixes))


@eqx.filter_jit
def _run_module(predictor: Any, x: Array, y: Array) -> Array:
    with range_warnings(False):  # `predict_all` has warned
        return jax.vmap(predictor.predict_prefixes)(x, y)


@lru_cache(maxsize=256)
def _compiled_once(predictor: Predictor) -> Callable[[Array, Array], Array]:
    return jax.jit(jax.vmap(predictor.predict_prefixes))


def run_in_batches(
    compiled: Callable[[Array, Array], Array | np.ndarray],
    x: Inputs,
    y: Labels,
    size: int,
) -> Float[np.ndarray, "datasets *rest"]:
    """Return a compiled function of all datasets, computed `size` datasets at a time.

    The last batch is filled up with its own rows: one shape, one compilation.
    """
    parts = []
    for start in range(0, len(x), size):
        rows = np.resize(np.arange(start, min(start + size, len(x))), size)
        parts.append(np.asarray(compiled(jnp.asarray(x[rows]), jnp.asarray(y[rows]))))
    return np.concatenate(parts)[: len(x)]


def warn_in_batches(predictor: RangeAware, x: Inputs, y: Labels) -> None:
    """Let a predictor warn of datasets outside its range."""
    for start in range(0, len(x), BATCH):
        some = slice(start, start + BATCH)
        predictor.warn_outside_range(x[some], y[some])


class Counted:
    """A black box that reports how many of its questions it has answered."""

    def __init__(self, box: BlackBox, progress: Progress):
        self.box, self.progress = box, progress
        self.done = self.total = 0  # answered and asked, over all calls
        self.planned = 0  # what will be asked in the end, if it is known

    @property
    def name(self) -> str:
        """The name of the box."""
        return self.box.name

    def answers(self, questions: Iterable[Question], /) -> Iterator[np.ndarray]:
        """Yield the answers of the box, and count them."""
        for answer in self.box.answers(questions):
            self.report(1)
            yield answer

    def report(self, count: int) -> None:
        """Report so many more answers."""
        self.done += count
        total = max(self.total, self.planned)
        self.progress(f"asking {self.name}", self.done, total)


class CountedBatches(Counted):
    """The same for a box that answers in batches."""

    def __init__(self, box: BatchedBox, progress: Progress):
        super().__init__(box, progress)
        self._batches = box.batches

    def batches(self, x: Inputs, y: Labels, /) -> Iterator[Labels]:
        """Yield the answers of the box, and count them."""
        for part in self._batches(x, y):
            self.report(part[:, 1:].size)
            yield part


def counted(predictor: AnyPredictor, progress: Progress) -> AnyPredictor | Counted:
    """Return a black box that reports its answers; any other predictor unchanged."""
    if isinstance(predictor, BatchedBox):
        return CountedBatches(predictor, progress)
    return (
        Counted(predictor, progress) if isinstance(predictor, BlackBox) else predictor
    )


def is_slow(predictor: Predictor | BlackBox) -> bool:
    """Return whether a predictor is asked one question at a time."""
    return isinstance(predictor, BlackBox) and not isinstance(predictor, BatchedBox)


def ask(
    box: BlackBox, questions: Iterable[Question], count: int
) -> Iterator[np.ndarray]:
    """Return the answers to `count` questions; a `Counted` box adds up its total."""
    if isinstance(box, Counted):
        box.total += count
    return iter(box.answers(questions))


def _collect(
    box: BlackBox,
    questions: Iterable[Question],
    answers: Float[np.ndarray, "questions queries"],
) -> Float[np.ndarray, "questions queries"]:
    """Return the box's answers to the questions."""
    return _written(box, ask(box, questions, len(answers)), answers)


def _written(
    box: BlackBox,
    rows: Iterable[np.ndarray],
    answers: Float[np.ndarray, "rows columns"],
) -> Float[np.ndarray, "rows columns"]:
    """Write the rows into `answers`, as many as the box gives.

    If the box fails after some answers, these are kept, with a warning.
    """
    done = 0
    try:
        for row in rows:
            answers[done] = row
            done += 1
    except PredictorFailedError as error:
        if np.all(np.isnan(answers)):
            raise
        warnings.warn(
            f"{error} {done} of {len(answers)} answers are kept.", stacklevel=4
        )
    return answers
