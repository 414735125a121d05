"""Where a command writes: checked before the work, and never a reason to lose it.

A path is tried before anything is measured, by creating a file beside it that has no
name. If writing fails all the same at the end, the result is saved to a temporary
directory, and the message says where.
"""

import errno
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from algoscope.cli import UsageError, show
from algoscope.cli.failures import explain
from algoscope.foundation.files import DamagedFileError, require_regular
from algoscope.foundation.validation import InvalidValueError


def require_file(option: str, path: Path | None) -> None:
    """Reject a file that could not be written; None is no file."""
    if path is None:
        return
    _require_name(option, path)
    with suppress(NotADirectoryError):  # which the next line tells better
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
        _create_nothing(nearest)
    except OSError as error:
        raise InvalidValueError(
            option, rule, f"'{nearest}' ({error.strerror})"
        ) from None


def _create_nothing(directory: Path) -> None:
    """Create a file and remove it; without a name, if the system can do that."""
    unnamed = getattr(os, "O_TMPFILE", None)  # of which a killed process leaves nothing
    if unnamed is not None:
        try:
            os.close(os.open(directory, os.O_WRONLY | unnamed, 0o600))
            return
        except OSError as error:
            if error.errno not in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
                raise
    tried, name = tempfile.mkstemp(prefix=".algoscope-", dir=directory)
    os.close(tried)
    os.unlink(name)


def write_or_rescue(
    path: Path, write: Callable[[Path], object], answer: str = ""
) -> None:
    """Call `write` with the path; if that fails, with one in a temporary directory.

    It then ends the command, with the reason and the place. Where nothing can be
    written at all, the answer is at least printed.
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
        show(answer)
        raise
