"""Ending a command on request: Ctrl-C, SIGTERM and SIGHUP end it with status 130.

Long commands unwind first, so what they keep is saved. Three things can go wrong then,
and all are handled here.

An exception that is raised while C code calls back into Python is lost, and the command
would continue. So the request is repeated until the command has ended.

An exception that is raised while a library in C is imported can end in another error,
or abort the process. Nothing has been computed then, so the process leaves at once.

When Python ends, it destroys its modules, while after an interrupt threads of XLA and
BLAS may still compute what nobody waits for any more. That can crash the process. So
an interrupted process flushes what it printed and leaves without that last part.
"""

import _thread
import contextlib
import multiprocessing.util
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, NoReturn

from algoscope.cli import note

INTERRUPTED = 130  # exit status
STOPPING = ("SIGINT", "SIGTERM", "SIGHUP")  # a system has not all of them
PATIENCE = 1.0  # seconds after which a request that was lost is repeated


class Requests:
    """Whether the command was asked to stop; repeats a request that was lost."""

    def __init__(self, is_process: bool):
        self._made, self._over = threading.Event(), threading.Event()
        self._is_process = is_process  # which may leave, unlike a program that calls us

    @property
    def made(self) -> bool:
        """Whether a signal has come."""
        return self._made.is_set()

    def stop(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        if self._is_process and _is_importing(frame):
            print("algoscope: interrupted.", file=sys.__stderr__, flush=True)
            leave(INTERRUPTED)
        if not self.made:
            self._made.set()
            threading.Thread(target=self._repeat, daemon=True).start()
        raise KeyboardInterrupt

    def end(self) -> None:
        """Repeat no request any more."""
        self._over.set()

    def _repeat(self) -> None:
        told = not self._is_process
        while not self._over.wait(PATIENCE):
            if not _is_unwinding():
                _thread.interrupt_main()
            elif not told:
                told = True
                note("Stopping: waiting for what still runs, so that it is saved.")


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def _is_unwinding() -> bool:
    """Return whether the main thread handles an interrupt: saves, waits, cleans up."""
    found: Any = sys._current_exceptions().get(threading.main_thread().ident or 0)
    error = found[1] if isinstance(found, tuple) else found  # until Python 3.11
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextmanager
def stopping_on_request(is_process: bool = False) -> Iterator[Requests]:
    """Raise KeyboardInterrupt on each of the signals, in the main thread.

    With `is_process`, the process may also leave at once. A signal that is ignored, as
    SIGHUP is under nohup, remains so.
    """
    requests = Requests(is_process)
    if threading.current_thread() is not threading.main_thread():
        yield requests
        return
    before = {}
    for name in STOPPING:
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            continue
        before[number] = signal.signal(number, requests.stop)
    try:
        yield requests
    finally:
        requests.end()
        for number, handler in before.items():
            signal.signal(number, handler)


def leave(status: int) -> NoReturn:
    """End this process at once, with its children, after flushing what was printed."""
    for child in multiprocessing.active_children():
        child.terminate()
    with contextlib.suppress(Exception):  # removes locks, of which a tracker would warn
        vars(multiprocessing.util)["_run_finalizers"](0)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(status)
