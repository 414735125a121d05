"""A limit on how long a black box may think about one question."""

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager


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
