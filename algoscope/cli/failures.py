"""What a command says when it fails: one sentence with a remedy, and an exit status.

A failure that a user, a disk or a machine can cause is explained in plain words. What
is left is an error of this package: it asks for a report, with the versions.
"""

import errno
import os
import sys
from typing import NamedTuple

from algoscope.cli import UsageError
from algoscope.foundation.plugins import PluginError, blame
from algoscope.foundation.text import visible
from algoscope.foundation.user_code import describe
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

BAD_INPUT, FAILED = 2, 1  # exit status

SPACE = "Free some space and run the command again."
ELSEWHERE = "Choose another path."
SMALLER = "Use smaller sizes, such as fewer datasets, examples or dimensions."
# What the operating system reports: in words, with a remedy, and the exit status.
SYSTEM_ERRORS: dict[int, tuple[str, str, int]] = {
    errno.ENOSPC: ("the disk is full", SPACE, FAILED),
    errno.EDQUOT: ("the disk quota is used up", SPACE, FAILED),
    errno.EFBIG: ("the file would be larger than is allowed", SPACE, FAILED),
    errno.EACCES: ("permission is denied", ELSEWHERE, BAD_INPUT),
    errno.EPERM: ("permission is denied", ELSEWHERE, BAD_INPUT),
    errno.EROFS: ("the file system is read-only", ELSEWHERE, BAD_INPUT),
    errno.ENAMETOOLONG: ("the name is too long", ELSEWHERE, BAD_INPUT),
    errno.ELOOP: ("it is a link, or links go in a circle", ELSEWHERE, BAD_INPUT),
    errno.ENOTDIR: ("a part of the path is not a directory", ELSEWHERE, BAD_INPUT),
    errno.EISDIR: ("it is a directory", ELSEWHERE, BAD_INPUT),
    errno.ENOENT: ("it does not exist", "", BAD_INPUT),
    errno.EMFILE: ("too many files are open", "Raise the limit: ulimit -n.", FAILED),
    errno.ENOMEM: ("there is not enough memory", SMALLER, FAILED),
}


class Failure(NamedTuple):
    """The exit status and the sentence of a failed command."""

    status: int
    message: str


def explain(error: BaseException) -> Failure:
    """Return how a command ends that raised this error.

    Example:
        >>> explain(OSError(errno.ENOENT, "No such file", "runs/a.json"))
        Failure(status=2, message='runs/a.json: it does not exist.')
    """
    if isinstance(error, (InvalidValueError, InvalidTypeError, UsageError)):
        return Failure(BAD_INPUT, str(error))
    if isinstance(error, PluginError):
        return Failure(FAILED, str(error))
    if isinstance(error, MemoryError) or _is_out_of_memory(error):
        return Failure(FAILED, f"There is not enough memory. {SMALLER}")
    if isinstance(error, OSError) and error.errno is not None:
        return _of_system(error)
    if isinstance(error, RecursionError):
        return Failure(BAD_INPUT, "The input is nested too deeply to be read.")
    if isinstance(error, OverflowError):
        return Failure(BAD_INPUT, f"A number is too large: {error}. {SMALLER}")
    if isinstance(error, ModuleNotFoundError) and _is_foreign(error.name):
        message = f"The package {error.name} is not installed, which this needs."
        return Failure(FAILED, message)
    if isinstance(error, ImportError) and _is_foreign(error.name or ""):
        message = (
            f"A package cannot be loaded: {describe(error)}. There is not enough "
            "memory, or its installation is damaged."
        )
        return Failure(FAILED, message)
    if type(error).__name__ == "BrokenProcessPool":
        message = (
            "A worker process ended unexpectedly, perhaps for lack of memory. "
            "Run the command again: it resumes; fewer --workers need less memory."
        )
        return Failure(FAILED, message)
    plugin = blame(error)
    return Failure(FAILED, _internal(error) if plugin is None else str(plugin))


def _of_system(error: OSError) -> Failure:
    words, remedy, status = SYSTEM_ERRORS.get(
        error.errno or 0, (error.strerror or type(error).__name__, "", FAILED)
    )
    if error.errno == errno.ENOENT and not _has_directory():
        return Failure(BAD_INPUT, "The current directory was deleted. Go to another.")
    where = visible(error.filename, 200) if error.filename else "A file"
    return Failure(status, f"{where}: {words}. {remedy}".rstrip())


def _has_directory() -> bool:
    try:
        return bool(os.getcwd())
    except OSError:
        return False


def _is_out_of_memory(error: BaseException) -> bool:
    """Return whether XLA could not allocate; its errors have no class for this."""
    is_runtime = type(error).__name__ in ("XlaRuntimeError", "JaxRuntimeError")
    words = str(error).lower()
    return is_runtime and ("resource_exhausted" in words or "out of memory" in words)


def _is_foreign(name: str | None) -> bool:
    return name is not None and not name.startswith("algoscope")


def _internal(error: BaseException) -> str:
    from algoscope.foundation import provenance

    try:
        versions = ", ".join(f"{name} {each}" for name, each in provenance().items())
    except Exception:  # a report without versions is better than a second error
        versions = "unknown versions"
    python = ".".join(map(str, sys.version_info[:3]))
    return (
        f"This is an error of algoscope: {describe(error)}. Please report it, with the "
        f"command and: Python {python}, {versions}. --debug shows where it happened."
    )
