"""A limit on how long a black box may think about one question."""

import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.foundation.validation import InvalidTypeError, require_positive
from algoscope.predictors import PredictorFailedError, Question


class OutOfTime(BaseException):
    """Raised inside the box; not an `Exception`, which the box might catch."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Interrupt what runs inside; only the main thread can be interrupted.

    A timer that was already set goes on afterwards, with what is left of its time.
    """
    main = threading.current_thread() is threading.main_thread()
    if not main or not hasattr(signal, "setitimer"):
        yield
        return

    def interrupt(_signal, _frame):
        raise OutOfTime

    handler = signal.signal(signal.SIGALRM, interrupt)
    remaining, interval = signal.setitimer(signal.ITIMER_REAL, seconds)
    start = time.monotonic()
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
        if remaining:
            left = max(remaining - (time.monotonic() - start), 1e-6)
            signal.setitimer(signal.ITIMER_REAL, left, interval)


# A box may need more examples than most questions have: 15 nearest neighbors, say.
ALL_OF_FIRST = 20  # so many failures and no answer: the box does not work
ENOUGH = 100  # after so many questions, a tenth of them must have been answered
TIMEOUT = 60.0  # seconds per question


class UnansweredError(Exception):
    """The reason why one question has no answer."""


@dataclass
class Failures:
    """How many of the questions that a box was asked it could not answer."""

    count: int = 0
    total: int = 0
    first: str = ""  # the first reason

    def add(self, reason: str) -> None:
        self.first = self.first or reason
        self.count += 1

    def refuse_hopeless(self, name: str) -> None:
        """Stop when the first questions all failed, or nine of ten of many."""
        none_yet = self.count == self.total == ALL_OF_FIRST
        if none_yet or (self.total >= ENOUGH and 10 * self.count > 9 * self.total):
            event = f"failed on {self.count} of {self.total} questions"
            remedy = "Try it on one dataset by hand, or ask it with more examples."
            event += f", first with {self.first}"
            raise PredictorFailedError(name, event, remedy)


def one_line(text: str, most: int = 300) -> str:
    """Return the text on one line, without a full stop, and not too long."""
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= most else line[: most - 1] + "…"


def describe(error: BaseException) -> str:
    """Return what was raised, and where.

    Example:
        >>> describe(ValueError("no\\nexamples."))
        'ValueError: no examples'
    """
    text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def as_predictions(reply: Any, num_queries: int) -> Float[np.ndarray, " queries"]:
    """Return the reply as an array, if it is one finite number for each query."""
    try:
        values = np.asarray(reply)
    except ValueError:  # rows of different lengths
        values = np.asarray(None)
    if values.dtype.kind not in "iuf":
        shown = one_line(repr(reply), 60)
        raise UnansweredError(f"{shown}, which is no array of numbers")
    if values.shape != (num_queries,):
        shapes = f"{values.shape} instead of ({num_queries},)"
        raise UnansweredError(f"predictions of shape {shapes}")
    values = values.astype(np.float64)
    if not np.all(np.isfinite(values)):
        raise UnansweredError("a prediction that is NaN or infinite")
    return values


def answer_all(
    name: str,
    failures: Failures,
    replies: Iterable[tuple[int, Callable[[], Any]]],
) -> Iterator[Float[np.ndarray, " queries"]]:
    """Yield one array per reply, a number of queries and a way to get at them."""
    for num_queries, reply in replies:
        failures.total += 1
        try:
            answer = as_predictions(reply(), num_queries)
        except UnansweredError as error:
            failures.add(str(error))
            answer = np.full(num_queries, np.nan)
        yield answer
        failures.refuse_hopeless(name)


def ask_each(
    name: str,
    failures: Failures,
    questions: Iterable[Question],
    answer: Callable[[Question], Any],
    timeout: float,
) -> Iterator[Float[np.ndarray, " queries"]]:
    """Yield the answers of a box that runs in this process."""

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


class FunctionPredictor:
    """f(X, y, x_query) -> ŷ, with NumPy arrays X [n, d], y [n] and x_query [d].

    Every call gets arrays of its own, which it may change.

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
        """Yield the predictions for each question; NaN where the function failed."""
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
        # scikit-learn's prediction for a batch of one query is a number too.
        return prediction.item() if prediction.shape in ((), (1,)) else prediction
