"""Any program as a black box: JSON lines through a pipe (paper §4.1).

Request: {"x": [[…], …], "y": […], "queries": [[…], …]}. Reply, in the same order:
{"predictions": […]} or {"error": "…"}. Numbers are written so that they round-trip.
"""

import json
import shlex
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.failures import (
    TIMEOUT,
    Failures,
    PredictorFailedError,
    UnansweredError,
    answer_all,
    one_line,
)
from algoscope.adapters.pipe import PROTOCOL, Pipe
from algoscope.predictors import Question
from algoscope.validation import InvalidTypeError, InvalidValueError, require_positive

IN_FLIGHT = 8  # requests sent ahead, so that the program does not wait for us


class ProcessPredictor:
    """A program that answers questions, started once and stopped at the end.

    Used in a `with` statement it lives as long as the block; otherwise as long as the
    generator of `answers`.
    """

    def __init__(
        self,
        command: Sequence[str],
        name: str | None = None,
        timeout: float = TIMEOUT,
    ):
        if isinstance(command, str):
            remedy = "Split it with `shlex.split`."
            rule = "be a list of words"
            raise InvalidTypeError("command", rule, repr(command), remedy)
        if not command:
            raise InvalidValueError("command", "name a program", "no words")
        require_positive("timeout", timeout)
        self.name = name or shlex.join(command)
        self.failures = Failures()
        self._command, self._timeout = list(command), timeout
        self._pipe: Pipe | None = None
        self._kept = False

    def __enter__(self) -> "ProcessPredictor":
        self._kept = True
        return self

    def __exit__(self, *_: object) -> None:
        self._kept = False
        self.close()

    def close(self) -> None:
        """Stop the program."""
        if self._pipe is not None:
            self._pipe.close()
        self._pipe = None

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question; NaN where the program has none."""
        if self._pipe is None:
            self._pipe = Pipe(self._command, self.name, self._timeout)
        complete = False
        try:
            yield from answer_all(
                self.name, self.failures, self._replies(self._pipe, iter(questions))
            )
            complete = True
        finally:
            # Replies that nobody has read would answer the next questions.
            if not (complete and self._kept):
                self.close()

    def _replies(
        self, pipe: Pipe, questions: Iterator[Question]
    ) -> Iterator[tuple[int, Callable[[], Any]]]:
        asked: deque[int] = deque()
        while True:
            while len(asked) < IN_FLIGHT and (question := next(questions, None)):
                asked.append(len(question.queries))
                pipe.send(_request(question))
            if not asked:
                break
            reply = self._parse(pipe.receive(self.failures.total + 1))
            yield asked.popleft(), lambda reply=reply: _predictions(reply)
        if pipe.has_surplus(last=not self._kept):
            event = "sent more replies than there were questions"
            raise PredictorFailedError(self.name, event, PROTOCOL)

    def _parse(self, line: bytes) -> dict:
        """Return the object in a line; anything else puts replies out of step."""
        try:
            reply = json.loads(line)
        except ValueError:
            reply = None
        if not isinstance(reply, dict):
            shown = one_line(line.decode(errors="replace"), 60)
            event = f"sent a line that is no JSON object: '{shown}'"
            raise PredictorFailedError(self.name, event, PROTOCOL)
        return reply


def _request(question: Question) -> bytes:
    names = ("x", "y", "queries")
    parts = (np.asarray(part, np.float64).tolist() for part in question)
    return json.dumps(dict(zip(names, parts, strict=True))).encode() + b"\n"


def _predictions(reply: dict) -> Any:
    if "predictions" in reply:
        return reply["predictions"]
    if "error" in reply:
        raise UnansweredError(one_line(f"error: {reply['error']}"))
    raise UnansweredError(f"a reply without predictions: {one_line(str(reply), 60)}")
