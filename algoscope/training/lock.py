"""Who trains a run: a lock that ends with the process that holds it.

The lock is `flock` on a file in the run's directory. The kernel releases it however the
process ends, SIGKILL and a power cut included, so no heartbeat is needed and no lock is
ever stale. The file stays, and names the last holder.
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


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Hold a run's lock while inside; reject a run that another process trains."""
    with held(directory) as free:
        if not free:
            host, process = owner(directory) or ("another host", "one")
            rule = "be a run that no other process is training"
            training = f"{directory}, which process {process} on {host} is training"
            raise InvalidValueError("out", rule, training)
        yield


def is_held(directory: Path) -> bool:
    """Return whether a process is training this run."""
    try:
        with open(directory / LOCK) as file:
            return not _acquire(file, fcntl.LOCK_SH, directory)
    except FileNotFoundError:
        return False


def owner(directory: Path) -> tuple[str, int] | None:
    """Return the host and the process that held the lock last, if any did."""
    try:
        host, process = (directory / LOCK).read_text().split()
        return host, int(process)
    except (FileNotFoundError, ValueError):
        return None


def _acquire(file: IO, kind: int, directory: Path) -> bool:
    """Return whether the lock was free; it is then ours until the file is closed."""
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        rule = "be on a file system with file locks"
        where = f"{directory} ({error.strerror})"
        raise InvalidValueError("store", rule, where) from error
    return True
