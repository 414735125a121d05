"""Where a command writes: checked before the work, and never a reason to lose it.

A path is tried before anything is measured, by creating a file beside it and removing
it again. If writing fails all the same at the end, the result is saved to a temporary
directory, and the message says where.
"""

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from algoscope.cli import UsageError
from algoscope.cli.failures import explain
from algoscope.foundation.files import DamagedFileError, require_regular
from algoscope.foundation.validation import InvalidValueError


def require_file(option: str, path: Path | None) -> None:
    """Reject a file that could not be written; None is no file."""
    if path is None:
        return
    _require_name(option, path)
    if os.path.lexists(path):
        require_regular(path)
    _require_writable(option, path.absolute().parent)


def require_directory(option: str, path: Path | None) -> None:
    """Reject a directory that could not be written to; None is no directory."""
    if path is None:
        return
    _require_name(option, path)
    if os.path.lexists(path) and not path.is_dir():
        raise InvalidValueError(option, "be a directory", f"'{path}'")
    _require_writable(option, path.absolute())


def _require_name(option: str, path: Path) -> None:
    try:
        os.fsencode(path).decode()
    except ValueError:  # a lone surrogate
        raise InvalidValueError(option, "be a path of characters", "other") from None
    if "\0" in str(path):
        raise InvalidValueError(option, "be a path of characters", "a zero byte")


def _require_writable(option: str, directory: Path) -> None:
    """Reject a directory if no file can be created in it, or in what is above it."""
    nearest = directory
    while not os.path.lexists(nearest) and nearest != nearest.parent:
        nearest = nearest.parent
    rule = "be where files can be written"
    if not nearest.is_dir():
        raise InvalidValueError(option, rule, f"'{nearest}', which is no directory")
    try:
        tried, name = tempfile.mkstemp(prefix=".algoscope-", dir=nearest)
        os.close(tried)
        os.unlink(name)
    except OSError as error:
        raise InvalidValueError(
            option, rule, f"'{nearest}' ({error.strerror})"
        ) from None


def write_or_rescue(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with the path; if that fails, with one in a temporary directory.

    It then ends the command, with the reason and the place.
    """
    try:
        write(path)
    except (OSError, DamagedFileError) as error:
        reason = explain(error).message
        with suppress(OSError, DamagedFileError):
            rescued = Path(tempfile.mkdtemp(prefix="algoscope-")) / path.name
            write(rescued)
            message = f"{reason} The result was saved to {rescued} instead."
            raise UsageError(message) from error
        raise
