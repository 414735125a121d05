"""A running program: lines to it and from it, without blocking on either.

One selector serves stdin, stdout and stderr, so a program that writes before it has
read everything, or that writes much to stderr, never waits for us while we wait for it.
"""

import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from algoscope.adapters.failures import PredictorFailedError, one_line

LONGEST = 2**24  # bytes of one reply
GRACE = 15.0  # seconds for a program to end after its stdin has
PROTOCOL = "It must write one JSON object per request to stdout, all else to stderr."


class Pipe:
    """A program that was started, and the lines in flight."""

    def __init__(self, command: Sequence[str], name: str, timeout: float):
        self._name, self._timeout = name, timeout
        self._outgoing, self._incoming, self._said = bytearray(), bytearray(), b""
        self._ended = False
        pipe = subprocess.PIPE
        try:
            # A session of its own, so that what the program starts ends with it.
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
        """Queue a line; it is written while we wait for replies."""
        self._outgoing += line
        if self._stdin not in self._selector.get_map():
            self._selector.register(self._stdin, selectors.EVENT_WRITE)

    def has_surplus(self, *, last: bool) -> bool:
        """Return whether it has written more than was asked for.

        After the `last` question its stdin is closed, and all that it writes until it
        ends is looked at. A question that was answered before it was sent is enough.
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
                event = f"gave no reply within {self._timeout:g} s"
                raise self._failure(event, number, "Allow more time, or repair it.")
            if len(self._incoming) > LONGEST:
                event = f"sent more than {LONGEST} bytes without an end of line"
                raise self._failure(event, number, PROTOCOL)
            for key, _ in self._selector.select(left):
                self._serve(key.fileobj)
        end = self._incoming.index(b"\n") + 1
        line = bytes(self._incoming[:end])
        del self._incoming[:end]
        return line

    def _serve(self, stream: Any) -> None:
        if stream is self._stdin:
            try:
                written = os.write(stream.fileno(), self._outgoing[:65536])
            except BrokenPipeError:  # what it has answered is still to be read
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
            self._said = (self._said + chunk)[-2000:]

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
        """Return the error, with the last lines that the program wrote to stderr."""
        while self._stderr in self._selector.get_map():
            ready = [key.fileobj for key, _ in self._selector.select(0)]
            if self._stderr not in ready:
                break
            self._serve(self._stderr)
        lines = self._said.decode(errors="replace").splitlines()[-3:]
        said = one_line(" | ".join(line.strip() for line in lines if line.strip()))
        event += f" (question {number})" + (f"; its stderr: {said}" if said else "")
        return PredictorFailedError(self._name, event, remedy)

    def close(self) -> None:
        """Give an idle program a moment to end by itself, then end it."""
        self._selector.close()
        self._stdin.close()
        try:
            if not self._outgoing:
                with suppress(subprocess.TimeoutExpired):
                    self._process.wait(timeout=0.2)
        finally:
            with suppress(ProcessLookupError, PermissionError):  # nothing is left of it
                os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._stdout.close()
            self._stderr.close()
