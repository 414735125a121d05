"""A program in any language as a black box: JSON lines to its stdin, from its stdout.

`ProcessPredictor` writes the questions and reads the replies; `Pipe` runs the program
and moves the lines. One selector serves stdin, stdout and stderr, so a program that
writes before it has read everything, or writes much to stderr, never blocks on us while
we wait for it. docs/bring_your_own_model.md describes the protocol.
"""

import json
import os
import selectors
import shlex
import signal
import subprocess
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.black_box import (
    TIMEOUT,
    Failures,
    PredictorFailedError,
    UnansweredError,
    answer_all,
)
from algoscope.foundation.text import one_line
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_positive,
)
from algoscope.predictors import Question

IN_FLIGHT = 8  # requests sent ahead, so that the program does not wait for us
LONGEST_REPLY = 2**24  # bytes
GRACE = 15.0  # seconds that a program has to end after its stdin is closed
PROTOCOL = "It must write one JSON object per request to stdout, all else to stderr."


class ProcessPredictor:
    """A program that answers questions, started once and stopped at the end.

    In a `with` statement it runs until the end of the block; otherwise until the
    iterator of `answers` ends.

    Example:
        >>> import sys
        >>> program = '''
        ... import json, sys
        ... for line in sys.stdin:
        ...     question = json.loads(line)
        ...     mean = sum(question["y"]) / len(question["y"])
        ...     reply = {"predictions": [mean] * len(question["queries"])}
        ...     print(json.dumps(reply), flush=True)
        ... '''
        >>> box = ProcessPredictor([sys.executable, "-c", program], "mean")
        >>> x, y = np.ones((4, 2)), np.arange(4.0)
        >>> [answer.tolist() for answer in box.answers([Question(x, y, x[:2])])]
        [[1.5, 1.5]]
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
        self._keep_running = False

    def __enter__(self) -> "ProcessPredictor":
        self._keep_running = True
        return self

    def __exit__(self, *_: object) -> None:
        self._keep_running = False
        self.close()

    def close(self) -> None:
        """Stop the program."""
        if self._pipe is not None:
            self._pipe.close()
        self._pipe = None

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question, NaN where the program failed."""
        if self._pipe is None:
            self._pipe = Pipe(self._command, self.name, self._timeout)
        complete = False
        try:
            yield from answer_all(
                self.name, self.failures, self._replies(self._pipe, iter(questions))
            )
            complete = True
        finally:
            # Unread replies would be taken for answers to later questions.
            if not (complete and self._keep_running):
                self.close()

    def _replies(
        self, pipe: "Pipe", questions: Iterator[Question]
    ) -> Iterator[tuple[int, Callable[[], Any]]]:
        """Yield the number of queries and the reply of each question, in order."""
        asked: deque[int] = deque()
        while True:
            while len(asked) < IN_FLIGHT and (question := next(questions, None)):
                asked.append(len(question.queries))
                pipe.send(_request(question))
            if not asked:
                break
            reply = self._parse(pipe.receive(self.failures.total + 1))
            yield asked.popleft(), lambda reply=reply: _predictions(reply)
        if pipe.has_surplus(last=not self._keep_running):
            event = "sent more replies than there were questions"
            raise PredictorFailedError(self.name, event, PROTOCOL)

    def _parse(self, line: bytes) -> dict:
        """Return the JSON object in a line; anything else ends the conversation."""
        try:
            reply = json.loads(line)
        except (ValueError, RecursionError):
            reply = None
        if not isinstance(reply, dict):
            shown = one_line(line.decode(errors="replace"), 60)
            event = f"sent a line that is not a JSON object: '{shown}'"
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


class Pipe:
    """A running program, and the lines on their way to and from it."""

    def __init__(self, command: Sequence[str], name: str, timeout: float):
        self._name, self._timeout = name, timeout
        self._outgoing, self._incoming, self._stderr_end = bytearray(), bytearray(), b""
        self._ended = False
        pipe = subprocess.PIPE
        try:
            # In its own session, so that processes that it starts end with it.
            self._process = subprocess.Popen(
                command, stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0,
                start_new_session=True,
            )  # fmt: skip
        except OSError as error:
            event = f"could not be started: {one_line(str(error))}"
            remedy = "Check that the command runs in a terminal."
            raise PredictorFailedError(name, event, remedy) from None
        streams = self._process.stdin, self._process.stdout, self._process.stderr
        self._stdin, self._stdout, self._stderr = (s for s in streams if s is not None)
        self._selector = selectors.DefaultSelector()
        for stream in (self._stdin, self._stdout, self._stderr):
            os.set_blocking(stream.fileno(), False)
        for stream in (self._stdout, self._stderr):
            self._selector.register(stream, selectors.EVENT_READ)

    def send(self, line: bytes) -> None:
        """Queue a line; it is written while waiting for replies."""
        self._outgoing += line
        if self._stdin not in self._selector.get_map():
            self._selector.register(self._stdin, selectors.EVENT_WRITE)

    def has_surplus(self, *, last: bool) -> bool:
        """Return whether the program has sent more replies than it was asked for.

        After the `last` question its stdin is closed, and everything that it writes
        until it ends counts. So does a reply to a question that is not sent yet.
        """
        if self._outgoing:
            return True
        if last:
            self._stdin.close()
        deadline = time.monotonic() + (GRACE if last else 0)
        while not (self._incoming or self._ended):
            exited = self._process.poll() is not None
            ready = self._selector.select(0.05 if last else 0)
            for key, _ in ready:
                self._serve(key.fileobj)
            if (exited and not ready) or time.monotonic() >= deadline:
                break
        return bool(self._incoming)

    def receive(self, number: int) -> bytes:
        """Return the next line, the reply to question `number`."""
        deadline = time.monotonic() + self._timeout
        while b"\n" not in self._incoming:
            left = deadline - time.monotonic()
            if self._ended:
                raise self._failure(f"{self._fate()} before it answered", number)
            if left <= 0:
                event = f"sent no reply within {self._timeout:g} s"
                raise self._failure(event, number, "Allow it more time, or repair it.")
            if len(self._incoming) > LONGEST_REPLY:
                event = f"sent more than {LONGEST_REPLY} bytes without an end of line"
                raise self._failure(event, number, PROTOCOL)
            for key, _ in self._selector.select(left):
                self._serve(key.fileobj)
        end = self._incoming.index(b"\n") + 1
        line = bytes(self._incoming[:end])
        del self._incoming[:end]
        return line

    def _serve(self, stream: Any) -> None:
        """Write to or read from a stream that is ready."""
        if stream is self._stdin:
            try:
                written = os.write(stream.fileno(), self._outgoing[:65536])
            except BrokenPipeError:  # its last answers are still to be read
                written = len(self._outgoing)
            del self._outgoing[:written]
            if not self._outgoing:
                self._selector.unregister(stream)
            return
        chunk = os.read(stream.fileno(), 65536)
        if not chunk:
            self._selector.unregister(stream)
            self._ended = self._ended or stream is self._stdout
        elif stream is self._stdout:
            self._incoming += chunk
        else:
            self._stderr_end = (self._stderr_end + chunk)[-2000:]

    def _fate(self) -> str:
        """Return how the program ended."""
        try:
            status = self._process.wait(timeout=1)
        except subprocess.TimeoutExpired:
            return "closed its stdout"
        killed = f"died of signal {-status}"
        return killed if status < 0 else f"exited with status {status}"

    def _failure(
        self, event: str, number: int, remedy: str = "Run the command by hand."
    ) -> PredictorFailedError:
        """Return an error with the last lines that the program wrote to stderr."""
        while self._stderr in self._selector.get_map():
            ready = [key.fileobj for key, _ in self._selector.select(0)]
            if self._stderr not in ready:
                break
            self._serve(self._stderr)
        lines = self._stderr_end.decode(errors="replace").splitlines()[-3:]
        written = one_line(" | ".join(line.strip() for line in lines if line.strip()))
        event += f" (question {number})" + (
            f"; its stderr: {written}" if written else ""
        )
        return PredictorFailedError(self._name, event, remedy)

    def close(self) -> None:
        """Give an idle program a moment to end by itself, then kill it."""
        self._selector.close()
        self._stdin.close()
        try:
            if not self._outgoing:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=0.2)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # it has ended
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._stdout.close()
            self._stderr.close()
