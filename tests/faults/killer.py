"""Killing a process at a file event: before it creates, renames, syncs or removes one.

`kill_at(place, k)` is for the process that is to die: from then on its k-th event below
the place is its last. `count_events(place, file)` writes how many there were, instead.
"""

import os
import signal
import sys
from pathlib import Path
from typing import Any

from faults.harmless import CHANGES, WRITES

# Unlike a handler at exit, a hook cannot miss anything: it is called before each event.


def kill_at(place: str, last: int) -> None:
    """End this process without any cleaning up, at its file event of this number."""
    seen = 0

    def die() -> None:
        nonlocal seen
        seen += 1
        if seen == last:
            os.kill(os.getpid(), signal.SIGKILL)

    _on_event(place, die)


def count_events(place: str, file: str) -> None:
    """Keep the number of file events so far in a file, which is not below the place."""
    seen = 0
    out = os.open(file, os.O_WRONLY | os.O_CREAT)

    def count() -> None:
        nonlocal seen
        seen += 1
        os.pwrite(out, str(seen).encode(), 0)

    _on_event(place, count)


def _on_event(place: str, act: Any) -> None:
    top = str(Path(place).resolve()) + os.sep

    def is_below(path: Any) -> bool:
        if not isinstance(path, (str, bytes, os.PathLike)):
            return False
        whole = os.path.abspath(os.fsdecode(path))
        return whole.startswith(top) and not whole.endswith((".stdout", ".stderr"))

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        opened = event == "open" and isinstance(arguments[2], int)
        if (opened and arguments[2] & WRITES and is_below(arguments[0])) or (
            event in CHANGES and any(map(is_below, arguments[: CHANGES[event]]))
        ):
            act()

    fsync = os.fsync

    def sync(descriptor: int) -> None:
        act()
        fsync(descriptor)

    os.fsync = sync
    sys.addaudithook(hook)
