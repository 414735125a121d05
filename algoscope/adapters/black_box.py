"""Asking a black box: its answers are checked, its failures counted, its time limited.

Two kinds of boxes run in this process: a Python function (`FunctionPredictor`) and a
scikit-learn regressor (`EstimatorPredictor`; paper §4.1). If a question raises, takes
too long or gets an unusable reply, its answer is NaN; a box that fails on almost all
questions is not asked again. `ask_each` does this for boxes in this process,
`answer_all` for replies of any kind.
"""

import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.foundation.text import one_line
from algoscope.foundation.user_code import describe
from algoscope.foundation.validation import InvalidTypeError, require_positive
from algoscope.predictors import PredictorFailedError, Question

# A box may need more examples than most questions have, such as 15 nearest neighbors.
FAILURES_AT_FIRST = 20  # so many failures and no answer: the box does not work
ENOUGH_QUESTIONS = 100  # after so many, a tenth must have been answered
TIMEOUT = 60.0  # seconds per question


class UnansweredError(Exception):
    """Why one question has no answer."""


@dataclass
class Failures:
    """How many of all questions a box did not answer, and the first reason."""

    count: int = 0
    total: int = 0
    first: str = ""

    def add(self, reason: str, count: int = 1) -> None:
        """Count some more, of one reason."""
        self.first = self.first or reason
        self.count += count

    def raise_if_hopeless(self, name: str) -> None:
        """Raise if the first questions all failed, or more than nine of ten of many."""
        none_yet = self.count == self.total >= FAILURES_AT_FIRST
        enough = self.total >= ENOUGH_QUESTIONS
        if none_yet or (enough and 10 * self.count > 9 * self.total):
            failed = f"failed on {self.count} of {self.total} questions"
            event = f"{failed}, first with {self.first}"
            remedy = "Try it on one dataset by hand, or ask it with more examples."
            raise PredictorFailedError(name, event, remedy)


class FunctionPredictor:
    """A Python function f(X, y, x_query) -> ŷ of arrays X [n, d], y [n], x_query [d].

    Every call receives its own copies of the arrays, which it may change.

    Example:
        >>> mean = FunctionPredictor(lambda X, y, x_query: y.mean(), "mean")
        >>> x, y = np.ones((4, 2)), np.arange(4.0)
        >>> [answer.tolist() for answer in mean.answers([Question(x, y, x[:2])])]
        [[1.5, 1.5]]
    """

    def __init__(
        self,
        function: Callable[[np.ndarray, np.ndarray, np.ndarray], Any],
        name: str | None = None,
        timeout: float = TIMEOUT,
    ):
        if not callable(function):
            rule = "be a function of X, y and x_query"
            raise InvalidTypeError("function", rule, repr(function))
        require_positive("timeout", timeout)
        self.name = name or getattr(function, "__name__", type(function).__name__)
        self.failures = Failures()
        self._function, self._timeout = function, timeout

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question, NaN where the function failed."""
        return ask_each(
            self.name, self.failures, questions, self._answer, self._timeout
        )

    def _answer(self, question: Question) -> list[Any]:
        return [
            self._predict(*(np.array(part, np.float64) for part in (*question[:2], q)))
            for q in question.queries
        ]

    def _predict(self, x: np.ndarray, y: np.ndarray, query: np.ndarray) -> Any:
        prediction = np.asarray(self._function(x, y, query))
        # A batch of one prediction, as scikit-learn returns it, counts as a number.
        return prediction.item() if prediction.shape in ((), (1,)) else prediction


def ask_each(
    name: str,
    failures: Failures,
    questions: Iterable[Question],
    answer: Callable[[Question], Any],
    timeout: float,
) -> Iterator[Float[np.ndarray, " queries"]]:
    """Yield the answers of a box that runs in this process, one question at a time."""

    def ask(question: Question) -> Any:
        try:
            with time_limit(timeout):
                return answer(question)
        except OutOfTime:
            raise UnansweredError(f"no answer within {timeout:g} s") from None
        except (Exception, SystemExit) as error:
            raise UnansweredError(describe(error)) from error

    replies = ((len(each.queries), lambda each=each: ask(each)) for each in questions)
    yield from answer_all(name, failures, replies)


def answer_all(
    name: str,
    failures: Failures,
    replies: Iterable[tuple[int, Callable[[], Any]]],
) -> Iterator[Float[np.ndarray, " queries"]]:
    """Yield one array per reply; each comes with its number of queries.

    A reply that raises `UnansweredError` is counted and answered with NaN.
    """
    for num_queries, reply in replies:
        failures.total += 1
        try:
            answer = as_predictions(reply(), num_queries)
        except UnansweredError as error:
            failures.add(str(error))
            answer = np.full(num_queries, np.nan)
        yield answer
        failures.raise_if_hopeless(name)


def as_predictions(reply: Any, num_queries: int) -> Float[np.ndarray, " queries"]:
    """Return a reply as an array; it must be one finite number for each query."""
    try:
        values = np.asarray(reply)
    except ValueError:  # rows of different lengths
        values = np.asarray(None)
    if values.dtype.kind not in "iuf":
        shown = one_line(repr(reply), 60)
        raise UnansweredError(f"{shown}, which is not an array of numbers")
    if values.shape != (num_queries,):
        shapes = f"{values.shape} instead of ({num_queries},)"
        raise UnansweredError(f"predictions of shape {shapes}")
    values = values.astype(np.float64)
    if not np.all(np.isfinite(values)):
        raise UnansweredError("a prediction that is NaN or infinite")
    return values


class OutOfTime(BaseException):
    """Raised inside the box; not an `Exception`, because the box might catch those."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise `OutOfTime` after some seconds; only the main thread can be interrupted.

    A timer that was already set is restored afterwards, with its remaining time.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(_signal, _frame):
        raise OutOfTime

    handler = signal.signal(signal.SIGALRM, interrupt)
    remaining, period = signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if remaining:
            left = max(remaining - (time.monotonic() - start), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, period)


class EstimatorPredictor:
    """A scikit-learn regressor, cloned and fitted for each question.

    With `incremental`, it receives the examples one by one, in order, through its
    `partial_fit`; the paper's SGD is such a learner (§3.2).

    Example:
        >>> from sklearn.linear_model import Ridge
        >>> box = EstimatorPredictor(Ridge(alpha=1.0, fit_intercept=False))
        >>> x = np.array([[1.0], [1.0]])
        >>> box.name, next(box.answers([Question(x, x[:, 0], x[:1])])).round(3).tolist()
        ('Ridge(fit_intercept=False)', [0.667])
    """

    def __init__(
        self,
        estimator: Any,
        name: str | None = None,
        *,
        incremental: bool = False,
        timeout: float = TIMEOUT,
    ):
        rule = "be a scikit-learn regressor"
        if isinstance(estimator, type):
            remedy = f"Create one: {estimator.__name__}()."
            raise InvalidTypeError("estimator", rule, estimator.__name__, remedy)
        if not is_regressor(estimator):
            remedy = "For another kind of object, use `FunctionPredictor`."
            raise InvalidTypeError("estimator", rule, one_line(repr(estimator)), remedy)
        if incremental and not hasattr(estimator, "partial_fit"):
            rule = "have `partial_fit` to be incremental"
            raise InvalidTypeError("estimator", rule, one_line(repr(estimator)))
        require_positive("timeout", timeout)
        self.name = name or one_line(repr(estimator))
        self.failures = Failures()
        self._estimator, self._incremental = estimator, incremental
        self._timeout = timeout

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question, NaN where it cannot be fitted."""
        return ask_each(
            self.name, self.failures, questions, self._answer, self._timeout
        )

    def _answer(self, question: Question) -> Any:
        from sklearn.base import clone

        x, y, queries = (np.array(part, np.float64) for part in question)
        learner: Any = clone(self._estimator)
        if self._incremental:
            for i in range(len(x)):
                learner.partial_fit(x[i : i + 1], y[i : i + 1])
        else:
            learner.fit(x, y)
        return learner.predict(queries)


def is_regressor(value: Any) -> bool:
    """Return whether a value is a regressor as scikit-learn defines them."""
    if not (hasattr(value, "fit") and hasattr(value, "__sklearn_tags__")):
        return False
    from sklearn import base

    return base.is_regressor(value)
