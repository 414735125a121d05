"""Files: written whole or not at all, checked when read, never executed.

A file is written under a temporary name, flushed to the disk and renamed, so a reader
finds the old file or the new one, and a killed process leaves the old one. Arrays are
stored as safetensors with a digest in the header, so damage is detected.

JSON is strict, so that every parser reads it: NaN, which JSON does not have, is written
as null, and infinity as a string.

A directory has one writer at a time if each holds its lock, `flock` on a file in it.
The kernel releases it however the process ends, SIGKILL and a power cut included, so no
heartbeat is needed and no lock is ever stale. The file stays and names the last holder.
"""

import hashlib
import json
import math
import os
import platform
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar

from algoscope.foundation.validation import InvalidValueError

if TYPE_CHECKING:
    import numpy as np

Loaded = TypeVar("Loaded")

LOCK = "lock"


class DamagedFileError(InvalidValueError):
    """A file that is truncated, changed, or of another kind than expected.

    Example:
        >>> print(DamagedFileError("x.json", "is not JSON", "Delete it."))
        x.json is not JSON. Delete it.
    """

    def __init__(self, path: Path | str, problem: str, remedy: str = ""):
        ValueError.__init__(self, f"{path} {problem}.{' ' + remedy if remedy else ''}")


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at `path` by `content`, all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(partial, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    finally:
        partial.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself must survive a power cut
    finally:
        os.close(directory)


def json_text(value: Any, indent: int | None = None) -> str:
    """Return plain values as strict JSON.

    Example:
        >>> json_text({"mean": math.inf, "count": 3, "low": math.nan})
        '{"mean": "Infinity", "count": 3, "low": null}'
    """
    return json.dumps(_finite(value), indent=indent, allow_nan=False)


def _finite(value: Any) -> Any:
    """Replace NaN by None, and infinities by strings, at any depth."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def parse_number(value: float | str | None) -> float:
    """Return the number that `json_text` wrote.

    Example:
        >>> parse_number(None), parse_number("-Infinity"), parse_number(0.5)
        (nan, -inf, 0.5)
    """
    return math.nan if value is None else float(value)


def write_json(path: Path, value: object) -> None:
    """Write `value` as readable JSON, atomically."""
    write_atomically(path, (json_text(value, indent=2) + "\n").encode())


def read_json(path: Path) -> dict:
    """Return the JSON object in a file."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        problem = f"is not a readable JSON file ({type(error).__name__})"
        raise DamagedFileError(path, problem) from error
    if not isinstance(value, dict):
        problem = f"is not a JSON object (it holds a {type(value).__name__})"
        raise DamagedFileError(path, problem)
    return value


def write_saved(path: Path, kind: str, values: Mapping[str, Any]) -> None:
    """Write the fields of a saved object of one kind, such as "comparison"."""
    write_json(path, {"format": f"algoscope {kind}", **values})


def read_saved(
    path: Path, kind: str, build: Callable[[dict[str, Any]], Loaded]
) -> Loaded:
    """Return what `build` makes of the fields that `write_saved` wrote.

    Every saved file is read here, so all are checked in the same way: the format must
    be that of the kind, and `build` must find the fields that it needs.
    """
    values = read_json(path)
    wrong = f"is not a saved {kind}"
    found = values.pop("format", None)
    if found is None:
        raise DamagedFileError(path, f"{wrong} (field 'format' is missing)")
    if found != f"algoscope {kind}":
        raise DamagedFileError(path, f"{wrong} (its format is {found!r})")
    try:
        return build(values)
    except DamagedFileError:
        raise
    except KeyError as error:
        problem = f"{wrong} (field {error} is missing or damaged)"
        raise DamagedFileError(path, problem) from error
    except FileNotFoundError as error:
        problem = f"{wrong} ({error.filename} is missing)"
        raise DamagedFileError(path, problem) from error
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise DamagedFileError(path, f"{wrong} ({error})") from error


def digest_of_arrays(arrays: "Mapping[str, np.ndarray]") -> str:
    """Return a digest of the names, types, shapes and values of arrays."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_arrays(
    path: Path, arrays: "Mapping[str, np.ndarray]", metadata: Mapping[str, str]
) -> None:
    """Write named arrays and strings about them, `metadata`, to a safetensors file."""
    import numpy as np
    import safetensors.numpy

    contiguous = {name: np.asarray(a, order="C") for name, a in arrays.items()}
    header = {**metadata, "sha256": digest_of_arrays(contiguous)}
    write_atomically(path, safetensors.numpy.save(contiguous, metadata=header))


def load_arrays(path: Path) -> "tuple[dict[str, np.ndarray], dict[str, str]]":
    """Return the arrays and the metadata that `save_arrays` wrote."""
    import safetensors.numpy

    content = path.read_bytes()
    try:
        arrays = safetensors.numpy.load(content)
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    except (safetensors.SafetensorError, ValueError, KeyError) as error:
        problem = f"is not a whole safetensors file ({len(content)} bytes)"
        raise DamagedFileError(path, problem) from error
    digest = metadata.pop("sha256", None)
    if digest is not None and digest != digest_of_arrays(arrays):
        raise DamagedFileError(path, "was changed after it was written")
    return arrays, metadata


@contextmanager
def held(directory: Path) -> Iterator[bool]:
    """Hold a directory's lock while inside; yields False if another process does."""
    directory.mkdir(parents=True, exist_ok=True)
    with open(directory / LOCK, "a") as file:
        free = _acquire(file, directory, shared=False)
        if free:
            file.truncate(0)
            file.write(f"{platform.node()} {os.getpid()}\n")
            file.flush()
        yield free


def is_held(directory: Path) -> bool:
    """Return whether a process holds the lock of a directory."""
    try:
        with open(directory / LOCK) as file:
            return not _acquire(file, directory, shared=True)
    except FileNotFoundError:
        return False


def owner(directory: Path) -> tuple[str, int] | None:
    """Return the host and the process that held the lock last, if any did."""
    try:
        host, process = (directory / LOCK).read_text().split()
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
