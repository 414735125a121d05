"""Who trains a run: a lock that dies with its owner.

The lock is `flock` on a file in the run's directory. The kernel releases it when the
owner ends in whatever way, SIGKILL and a power cut included, so no heartbeat is needed
and no lock is ever stale. The file stays, and says who held it last.
"""

import fcntl
import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from algoscope.foundation.validation import InvalidValueError

LOCK = "lock"


def _acquire(file: IO, kind: int, directory: Path) -> bool:
    """Return whether the lock was free, and now is ours until the file is closed."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        rule = "be on a file system with file locks"
        where = f"{directory} ({error.strerror})"
        raise InvalidValueError("store", rule, where) from error
    return True


@contextmanager
def held(directory: Path) -> Iterator[bool]:
    """Hold a run's lock while inside; yields False if another process holds it."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / LOCK, "a") as file:
        free = _acquire(file, fcntl.LOCK_EX, directory)
        if free:
            file.truncate(0)
            file.write(f"{platform.node()} {os.getpid()}\n")
            file.flush()
        yield free


def is_held(directory: Path) -> bool:
    """Return whether a process trains this run now."""
    try:
        with open(directory / LOCK) as file:
            return not _acquire(file, fcntl.LOCK_SH, directory)
    except FileNotFoundError:
        return False


def owner(directory: Path) -> tuple[str, int] | None:
    """Return the host and the process that held the lock last, if one ever did."""
    try:
        host, process = (directory / LOCK).read_text().split()
    except (FileNotFoundError, ValueError):
        return None
    return host, int(process)
