"""What happens when a black box fails: one policy for functions, estimators, processes.

An exception, a wrong shape, something that is no number, NaN, or no answer in time:
that question is answered with NaN, counted, and the first reason is kept. A box that
fails too often is not asked again: `PredictorFailedError`, after all that it answered.
"""

import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.time_limit import OutOfTime, time_limit
from algoscope.predictors import PredictorFailedError, Question

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
