"""Locks of directories: a directory has one writer at a time if each holds its lock.

A lock is `flock` on a file in the directory. The kernel releases it however the process
ends, SIGKILL and a power cut included, so no heartbeat is needed and no lock is ever
stale. The file stays and names the last holder. It is never opened through a link.
"""

import os
import platform
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from algoscope.foundation.files import (
    NOFOLLOW,
    read_whole,
    remove_partial_files,
    require_regular,
)
from algoscope.foundation.validation import InvalidValueError

LOCK = "lock"
LONGEST = 1024  # bytes of what a lock says of its holder


@contextmanager
def held(directory: Path) -> Iterator[bool]:
    """Hold a directory's lock while inside; yields False if another process does.

    Whoever gets it removes what killed processes left unfinished.
    """
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / LOCK
    require_regular(path)
    flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | NOFOLLOW
    with open(os.open(path, flags, 0o666), "a") as file:
        free = _acquire(file, directory, shared=False)
        if free:
            file.truncate(0)
            file.write(f"{platform.node()} {os.getpid()}\n")
            file.flush()
            remove_partial_files(directory)
        yield free


def is_held(directory: Path) -> bool:
    """Return whether a process holds the lock of a directory."""
    path = directory / LOCK
    try:
        require_regular(path)
        with open(os.open(path, os.O_RDONLY | NOFOLLOW)) as file:
            return not _acquire(file, directory, shared=True)
    except FileNotFoundError:
        return False


def owner(directory: Path) -> tuple[str, int] | None:
    """Return the host and the process that held the lock last, if any did."""
    try:
        host, process = read_whole(directory / LOCK, LONGEST).decode().split()
        return host, int(process)
    except (FileNotFoundError, ValueError):
        return None


def _acquire(file: IO, directory: Path, *, shared: bool) -> bool:
    """Return whether the lock was free; it is then ours until the file is closed."""
    import fcntl  # which Windows lacks: files can be read there, not locked

    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    try:
        fcntl.flock(file, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        rule = "be on a file system with file locks"
        where = f"{directory} ({error.strerror})"
        raise InvalidValueError("store", rule, where) from error
    return True
