"""Models that answer many questions at once, in one of two forms.

    causal    f(x[B, N, d], y[B, N]) -> [B, N]
    context   f(x[B, n, d], y[B, n], queries[B, q, d]) -> [B, q]

A causal model predicts the label at every position from the examples before it, as a
decoder does (Garg et al. 2022, and the learners of this package). A context model
predicts at several queries from one set of examples (prior-fitted networks, TabPFN).

`causal` and `from_context` wrap such a function. Before the first question they check
on a small batch that it has this form. A batch that raises is divided until the
datasets that cause it are alone; their answers are NaN, and all others are kept.
"""

import itertools
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from algoscope.adapters.black_box import (
    TIMEOUT,
    Failures,
    OutOfTime,
    time_limit,
)
from algoscope.comparison.predict import Inputs, Labels
from algoscope.foundation.text import one_line
from algoscope.foundation.user_code import describe
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.predictors import PredictorFailedError, Question
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Task

DType = Literal["float32", "float64"]

BATCH = 64  # datasets per call: more do not fit into the cache of a core
AHEAD = 8  # batches of questions that are sorted by their length
TRIED = (3, 5)  # datasets and positions of the first batch, which checks the form
TRIED_DIM = 3  # if the function takes any
SAME = 1e-3  # relative change of predictions that counts as rounding


class BatchedPredictor(ABC):
    """A function of batches as a black box: what its two forms share.

    `task` is what the model was trained on. If it is not given and `dim` is, it is
    noiseless linear regression.
    """

    takes: str  # the arguments of the function, in words
    other_form: str  # what to use instead

    def __init__(
        self,
        function: Callable[..., Any],
        dim: int | None = None,
        *,
        name: str | None = None,
        max_examples: int | None = None,
        task: Task | None = None,
        batch_size: int = BATCH,
        dtype: DType = "float64",
        timeout: float = TIMEOUT,
    ):
        if isinstance(function, type) or not callable(function):
            rule = f"be a function {self.takes}"
            raise InvalidTypeError("function", rule, one_line(repr(function), 60))
        for key, value in (("dim", dim), ("max_examples", max_examples)):
            if value is not None:
                require_at_least(key, value, 1)
        if task is not None and dim not in (None, task.dim):
            raise InvalidValueError("task", f"have the dimension {dim}", task.dim)
        require_at_least("batch_size", batch_size, 1)
        require_choice("dtype", dtype, get_args(DType))
        require_positive("timeout", timeout)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.dim = dim if task is None else task.dim
        self.max_examples = max_examples
        self.task = LinearRegression(dim) if task is None and dim else task
        self.failures = Failures()
        self._function, self._timeout = function, timeout
        self._batch_size, self._dtype = batch_size, np.dtype(dtype)
        self._checked = False

    def batches(self, x: Inputs, y: Labels) -> Iterator[Labels]:
        """Yield the predictions at every position, some datasets at a time."""
        self._prepare(x.shape[2], x.shape[1] - 1)
        for start in range(0, len(x), self._batch_size):
            some = slice(start, start + self._batch_size)
            yield self._prefixes(x[some], y[some])
            self.failures.raise_if_hopeless(self.name)

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question, NaN where there is none."""
        waiting = iter(questions)
        while ahead := list(itertools.islice(waiting, AHEAD * self._batch_size)):
            longest = max(len(each.x) for each in ahead)
            self._prepare(ahead[0].x.shape[1], longest)
            answered: dict[int, np.ndarray] = {}
            for rows in self._alike(ahead):
                for start in range(0, len(rows), self._batch_size):
                    some = rows[start : start + self._batch_size]
                    found = self._together([ahead[row] for row in some])
                    answered.update(zip(some, found, strict=True))
            for row in range(len(ahead)):
                yield answered[row]
            self.failures.raise_if_hopeless(self.name)

    @abstractmethod
    def _alike(self, questions: list[Question]) -> list[list[int]]:
        """Return groups of questions that can be asked together, by their index."""

    @abstractmethod
    def _together(self, questions: list[Question]) -> list[np.ndarray]:
        """Return the answers to questions of one group."""

    @abstractmethod
    def _prefixes(self, x: Inputs, y: Labels) -> Labels:
        """Return the predictions at every position of one batch."""

    @abstractmethod
    def _try(self, x: Inputs, y: Labels) -> None:
        """Reject a function that has not this form, by a small batch."""

    def _prepare(self, dim: int, num_examples: int) -> None:
        """Reject data that do not fit; check the form before the first question."""
        if self.dim not in (None, dim):
            rule = f"have the dimension {self.dim} of {self.name}"
            raise InvalidValueError("x", rule, dim)
        if self.max_examples is not None and num_examples > self.max_examples:
            rule = f"hold at most {self.max_examples} examples before a query"
            raise InvalidValueError("x", rule, num_examples)
        if self._checked:
            return
        datasets, positions = TRIED
        if self.max_examples is not None:
            positions = min(positions, self.max_examples + 1)
        rng = np.random.default_rng(0)
        x = rng.standard_normal((datasets, positions, self.dim or dim))
        self._try(x, rng.standard_normal((datasets, positions)))
        self._checked = True

    def _attempt(self, shape: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
        """Return the answers to the first batch; if it fails, explain why."""
        try:
            reply = self._call(*arrays)
        except OutOfTime:
            event = f"gave no answer to its first batch within {self._timeout:g} s"
            remedy = "Allow it more time, or a smaller batch."
            raise PredictorFailedError(self.name, event, remedy) from None
        except (Exception, SystemExit) as error:
            event = f"failed on its first batch with {describe(error)}"
            remedy = f"It is called as a function {self.takes}. {self.other_form}"
            raise PredictorFailedError(self.name, event, remedy) from error
        if reply.shape != shape:
            rule = f"return {' × '.join(map(str, shape))} predictions {self.takes}"
            got = f"shape {reply.shape}"
            raise InvalidValueError(self.name, rule, got, self.other_form)
        return reply

    def _ask(self, shape: tuple[int, ...], *arrays: np.ndarray) -> np.ndarray:
        """Return the answers to a batch, whose first axis can be divided."""
        try:
            found = self._call(*arrays)
            if found.shape != shape:
                raise ValueError(f"predictions of shape {found.shape}, not {shape}")
        except (Exception, SystemExit, OutOfTime) as error:
            if shape[0] == 1:
                late = isinstance(error, OutOfTime)
                reason = f"no answer within {self._timeout:g} s" if late else ""
                self._count(np.full(shape, np.nan), reason or describe(error))
                self.failures.raise_if_hopeless(self.name)
                return np.full(shape, np.nan)
            halves = zip(*(np.array_split(array, 2) for array in arrays), strict=True)
            parts = [self._ask((len(each[0]), *shape[1:]), *each) for each in halves]
            return np.concatenate(parts)
        self._count(found, "a prediction that is NaN or infinite")
        return np.where(np.isfinite(found), found, np.nan)

    def _count(self, found: np.ndarray, reason: str) -> None:
        missing = int(np.sum(~np.isfinite(found)))
        self.failures.total += found.size
        if missing:
            self.failures.add(reason, missing)

    def _call(self, *arrays: np.ndarray) -> np.ndarray:
        copies = [np.array(array, self._dtype) for array in arrays]
        with time_limit(self._timeout):
            return as_array(self._function(*copies))


def as_array(reply: Any) -> Float[np.ndarray, "..."]:
    """Return predictions as float64; a last axis of size 1 is dropped.

    Tensors of other libraries are converted (`as_numpy`).
    """
    values = as_numpy(reply)
    if values.dtype.kind not in "iuf":
        shown = one_line(repr(reply), 60)
        raise TypeError(f"{shown}, which is not an array of numbers")
    if values.ndim == 3 and values.shape[-1] == 1:
        values = values[..., 0]
    return values.astype(np.float64)


def as_numpy(values: Any) -> np.ndarray:
    """Return a tensor as an array, also if it carries gradients or is on a device.

    Half precision becomes float32: NumPy lacks one kind of it. PyTorch is not imported.
    """
    for method in ("detach", "cpu"):
        if hasattr(values, method):
            values = getattr(values, method)()
    if str(getattr(values, "dtype", "")) in ("torch.bfloat16", "torch.float16"):
        values = values.float()
    return np.asarray(values)


class CausalPredictor(BatchedPredictor):
    """f(x[B, N, d], y[B, N]) -> [B, N]: at each position, from what is before it."""

    takes = "of x [B, N, d] and y [B, N]"
    other_form = (
        "For a function of x, y and queries, use `from_context`; for one question at "
        "a time, `FunctionPredictor`."
    )

    def _prefixes(self, x: Inputs, y: Labels) -> Labels:
        return self._ask(y.shape, x, y)

    def _alike(self, questions: list[Question]) -> list[list[int]]:
        return [list(range(len(questions)))]

    def _together(self, questions: list[Question]) -> list[np.ndarray]:
        """Ask each query at the end of its examples, filled up with zeros.

        What comes after a position does not change the prediction there.
        """
        length = 1 + max(len(each.x) for each in questions)
        count = sum(len(each.queries) for each in questions)
        x = np.zeros((count, length, questions[0].x.shape[1]))
        y = np.zeros((count, length))
        at, row = np.zeros(count, int), 0
        for each in questions:
            n, rows = len(each.x), slice(row, row + len(each.queries))
            x[rows, :n], y[rows, :n], x[rows, n] = each.x, each.y, each.queries
            at[rows], row = n, rows.stop
        parts = [
            self._ask(y[some].shape, x[some], y[some])
            for start in range(0, count, self._batch_size)
            for some in [slice(start, start + self._batch_size)]
        ]
        found = np.concatenate(parts)[np.arange(count), at]
        ends = np.cumsum([len(each.queries) for each in questions])[:-1]
        return np.split(found, ends)

    def _try(self, x: Inputs, y: Labels) -> None:
        found, again = (self._attempt(y.shape, x, y) for _ in range(2))
        allowed = 10 * np.abs(found - again).max() + SAME * np.abs(found).max()
        for i in range(x.shape[1]):
            later_x, later_y = x.copy(), y.copy()
            later_x[:, i + 1 :] += 1
            later_y[:, i:] += 1
            moved = (
                self._attempt(y.shape, later_x, later_y)[:, : i + 1] - found[:, : i + 1]
            )
            if np.abs(moved).max() > allowed:
                rule = "be causal: what comes after a query must not change its answer"
                got = f"a prediction at position {i + 1} that later labels change"
                raise InvalidValueError(self.name, rule, got, self.other_form)


class ContextPredictor(BatchedPredictor):
    """f(x[B, n, d], y[B, n], queries[B, q, d]) -> [B, q]."""

    takes = "of x [B, n, d], y [B, n] and queries [B, q, d]"
    other_form = (
        "For a function of x and y alone, use `causal`; for one question at a time, "
        "`FunctionPredictor`."
    )

    def _prefixes(self, x: Inputs, y: Labels) -> Labels:
        found = np.full(y.shape, np.nan)
        for n in range(1, x.shape[1]):
            asked = x[:, :n], y[:, :n], x[:, n : n + 1]
            found[:, n] = self._ask((len(x), 1), *asked)[:, 0]
        return found

    def _alike(self, questions: list[Question]) -> list[list[int]]:
        groups = defaultdict(list)
        for index, each in enumerate(questions):
            groups[len(each.x), len(each.queries)].append(index)
        return list(groups.values())

    def _together(self, questions: list[Question]) -> list[np.ndarray]:
        x, y, queries = (np.stack(part) for part in zip(*questions, strict=True))
        return list(self._ask(queries.shape[:2], x, y, queries))

    def _try(self, x: Inputs, y: Labels) -> None:
        n = max(x.shape[1] - 2, 1)
        self._attempt((len(x), 2), x[:, :n], y[:, :n], x[:, -2:])


def causal(
    function: Callable[..., Any], dim: int | None = None, **options: Any
) -> CausalPredictor:
    """Return a causal model, f(x[B, N, d], y[B, N]) -> [B, N], as a predictor.

    Options: `name`; `max_examples`, the most that fit before a query; `task`, what it
    was trained on; `batch_size`; `dtype` of the arrays it receives (float64 or
    float32); `timeout`, in seconds per batch. Arrays are NumPy's; tensors that it
    returns are converted.

    Example:
        >>> import algoscope as asc
        >>> def one_step(x, y):  # of gradient descent, from w = 0
        ...     sums = np.cumsum(x * y[..., None], axis=1) - x * y[..., None]
        ...     return 0.04 * np.sum(sums * x, axis=-1)
        >>> model = asc.causal(one_step, dim=2)
        >>> found = asc.compare(model, ["gd(0.02)", "ols"], num_datasets=20)
        >>> found.nearest(1, 20)[0][0]
        'GD(0.02)'
    """
    return CausalPredictor(function, dim, **options)


def from_context(
    function: Callable[..., Any], dim: int | None = None, **options: Any
) -> ContextPredictor:
    """Return a model f(x[B, n, d], y[B, n], queries[B, q, d]) -> [B, q] as a predictor.

    The options are those of `causal`.

    Example:
        >>> import algoscope as asc
        >>> def least_squares(x, y, queries):
        ...     return queries @ np.linalg.pinv(x) @ y[..., None]  # [B, q, 1]
        >>> model = asc.from_context(least_squares, dim=2)
        >>> found = asc.compare(model, ["gd(0.02)", "ols"], num_datasets=20)
        >>> found.nearest(1, 20)[0][0]
        'OLS'
    """
    return ContextPredictor(function, dim, **options)
