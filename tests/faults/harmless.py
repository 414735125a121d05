"""Watching code that reads what is damaged: it must end, and write nowhere else.

`harmless(place)` fails if the code inside does not end, or creates, changes or removes
a file that is not below `place`. Python reports such calls to its audit hooks.
"""

import contextlib
import os
import signal
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

# After which code hangs; one input takes milliseconds of CPU time.
SECONDS = {
    signal.SIGPROF: (signal.ITIMER_PROF, 60.0),
    signal.SIGALRM: (signal.ITIMER_REAL, 600.0),
}
WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
# Events of Python that change a file, and how many of their first arguments are paths.
CHANGES = {
    "os.mkdir": 1,
    "os.remove": 1,
    "os.rmdir": 1,
    "os.rename": 2,
    "os.symlink": 2,
    "os.link": 2,
    "os.truncate": 1,
    "os.chmod": 1,
    "shutil.rmtree": 1,
}
FORBIDDEN = {"os.system", "os.exec", "os.posix_spawn", "socket.connect"}


class HangsError(BaseException):
    """The code inside has not ended in time; no handler of errors catches it."""


class HarmsError(BaseException):
    """The code inside would have changed something else; it is kept from it."""


class _Watch:
    """What the hook has seen while it was switched on."""

    def __init__(self) -> None:
        self.places: tuple[str, ...] | None = None
        self.seen: list[str] = []

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.places is None:
            return
        if event in FORBIDDEN:
            self.refuse(f"{event} {arguments}")
        elif (
            event == "open"
            and isinstance(arguments[2], int)
            and (arguments[2] & WRITES)
        ):
            self.check(event, arguments[0])
        elif event in CHANGES:
            for path in arguments[: CHANGES[event]]:
                self.check(event, path)

    def check(self, event: str, path: Any) -> None:
        if isinstance(path, int) or self.places is None:
            return
        with contextlib.suppress(ValueError, TypeError):
            whole = os.path.abspath(os.fsdecode(path))
            is_device = event == "open" and whole == os.devnull
            if not is_device and not whole.startswith(self.places):
                self.refuse(f"{event} {whole}")

    def refuse(self, what: str) -> None:
        """Stop the call: an exception of a hook keeps it from being made."""
        self.seen.append(what)
        raise HarmsError(what)


_watch = _Watch()
_installed = False


@contextmanager
def harmless(place: Path) -> Iterator[None]:
    """Fail if the code inside hangs, or writes anywhere but below `place`."""
    global _installed
    if not _installed:
        sys.addaudithook(_watch)  # for good: hooks cannot be removed
        _installed = True
    cache = os.environ.get("JAX_COMPILATION_CACHE_DIR", str(place))
    own = [str(place), cache, f"{tempfile.gettempdir()}/tmp"]
    _watch.seen.clear()
    before = {number: signal.signal(number, _hangs) for number in SECONDS}
    for timer, seconds in SECONDS.values():
        signal.setitimer(timer, seconds)
    _watch.places = tuple(own)
    sys.dont_write_bytecode = True
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an overflow of absurd numbers is no harm
            yield
    finally:
        _watch.places = None
        sys.dont_write_bytecode = False
        for timer, _ in SECONDS.values():
            signal.setitimer(timer, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
    assert _watch.seen == []


def _hangs(number: int, frame: Any) -> None:
    raise HangsError(f"no end after {SECONDS[signal.Signals(number)][1]:g} seconds")
