"""Files: written whole or not at all, checked when read, never executed.

A file is written under a temporary name, flushed to the disk and renamed, so a reader
finds the old file or the new one, and a killed process leaves the old one. Nothing but
a regular file is ever replaced, appended to or read, and no link is followed to write:
not a device, a pipe or a directory. Arrays are stored as safetensors with a digest in
the header, so damage is detected.

JSON is strict, so that every parser reads it: NaN, which JSON does not have, is written
as null, and infinity as a string.
"""

import hashlib
import json
import math
import os
import re
import secrets
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from algoscope.foundation.validation import InvalidValueError

if TYPE_CHECKING:
    import numpy as np

Loaded = TypeVar("Loaded")
BROKEN = (  # what building an object out of damaged fields can raise
    ArithmeticError,
    AttributeError,
    LookupError,
    MemoryError,
    RuntimeError,
    StopIteration,
    TypeError,
    ValueError,
)

MAX_JSON = 2**28  # bytes; the largest results have some 2²⁰
MAX_HEADER = 2**24  # bytes of names and shapes in a file of arrays
PARTIAL = re.compile(r"\..*\.(\d+)-[0-9a-f]{16}\.partial")
NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)  # which Windows lacks
KINDS = {"F64": 8, "F32": 4, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1, "U32": 4}
KINDS |= {"F16": 2, "BF16": 2, "I16": 2, "U16": 2, "I8": 1, "U64": 8}


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
    require_regular(path)
    name = f".{path.name[:40]}.{os.getpid()}-{secrets.token_hex(8)}.partial"
    partial = path.with_name(name)
    created = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NOFOLLOW, 0o666)
    try:
        with naming(path), open(created, "wb") as file:
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


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Let errors inside say which file was written: those of a full disk do not."""
    try:
        yield
    except OSError as error:
        error.filename = error.filename or str(path)
        raise


def remove_partial_files(directory: Path) -> None:
    """Delete the unfinished files of processes of this machine that are gone."""
    for path in directory.iterdir():
        found = PARTIAL.fullmatch(path.name)
        if found and not _is_running(int(found[1])):
            path.unlink(missing_ok=True)


def _is_running(process: int) -> bool:
    try:
        os.kill(process, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        pass
    return True


def require_regular(path: Path) -> None:
    """Reject what is there if it is no regular file: a link, device, pipe, folder."""
    try:
        mode = path.lstat().st_mode
    except FileNotFoundError:
        return
    if stat.S_ISREG(mode):
        return
    kinds = {stat.S_IFLNK: "a link", stat.S_IFDIR: "a directory"}
    kind = kinds.get(stat.S_IFMT(mode), "a device or a pipe")
    problem = f"is {kind}, not a regular file, and is left as it is"
    raise DamagedFileError(path, problem, "Choose another path.")


def append(path: Path, content: bytes) -> None:
    """Add to the end of a regular file, which is created if it is missing."""
    require_regular(path)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | NOFOLLOW
    with naming(path), open(os.open(path, flags, 0o666), "ab") as file:
        file.write(content)


def sync(path: Path) -> None:
    """Wait until a file, if it is there, is on the disk."""
    if not path.is_file():
        return
    opened = os.open(path, os.O_RDONLY | NOFOLLOW)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def read_whole(path: Path, most: int) -> bytes:
    """Return a regular file of at most so many bytes; a link to one is followed."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise DamagedFileError(path, "is not a regular file")
    if found.st_size > most:
        problem = f"is too large ({found.st_size:,} bytes, of at most {most:,})"
        raise DamagedFileError(path, problem)
    return path.read_bytes()


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
        value = json.loads(read_whole(path, MAX_JSON).decode())
    except (FileNotFoundError, DamagedFileError):
        raise
    except (OSError, ValueError, RecursionError, MemoryError) as error:
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
    with reading(path, wrong):
        return build(values)


@contextmanager
def reading(path: Path, wrong: str) -> Iterator[None]:
    """Turn what a damaged file causes inside into one error that says it is `wrong`.

    Whatever is made of the content of a file is made in here: a field may be missing,
    of another type, of another size, or make no sense next to the others.

    Example:
        >>> with reading(Path("x.json"), "is not a saved sweep"):
        ...     {"grid": 1}["seed"]
        Traceback (most recent call last):
        ...
        algoscope.foundation.files.DamagedFileError: x.json is not a saved sweep \
(field 'seed' is missing or damaged).
    """
    try:
        yield
    except DamagedFileError:
        raise
    except KeyError as error:
        problem = f"{wrong} (field {error} is missing or damaged)"
        raise DamagedFileError(path, problem) from error
    except FileNotFoundError as error:
        problem = f"{wrong} ({error.filename} is missing)"
        raise DamagedFileError(path, problem) from error
    except BROKEN as error:
        reason = str(error) or type(error).__name__
        raise DamagedFileError(path, f"{wrong} ({reason})") from error


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


def load_arrays(
    path: Path, *, signed: bool = True
) -> "tuple[dict[str, np.ndarray], dict[str, str]]":
    """Return the arrays and the metadata that `save_arrays` wrote.

    Other programs write no digest; with `signed`, their files are rejected. Sizes are
    checked before anything is allocated.
    """
    import safetensors.numpy

    content = read_whole(path, _most_bytes())
    problem = f"is not a whole safetensors file ({len(content)} bytes)"
    try:
        metadata = _metadata(content)
        arrays = safetensors.numpy.load(content)
    except (safetensors.SafetensorError, *BROKEN) as error:
        raise DamagedFileError(path, problem) from error
    digest = metadata.pop("sha256", None)
    if digest is None and signed:
        problem = "holds no digest of its arrays, so damage to it would not be noticed"
        remedy = "If you trust it, `algoscope import DIR --out NEW` writes one."
        raise DamagedFileError(path, problem, remedy)
    if digest is not None and digest != digest_of_arrays(arrays):
        raise DamagedFileError(path, "was changed after it was written")
    return arrays, metadata


def _most_bytes() -> int:
    """Return half of the machine's memory: more arrays cannot be loaded and used."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") // 2
    except (AttributeError, ValueError, OSError):
        return 2**33


def _metadata(content: bytes) -> dict[str, str]:
    """Return the strings about the arrays; reject sizes that the file has not."""
    size = int.from_bytes(content[:8], "little")
    if size > min(MAX_HEADER, len(content) - 8):
        raise ValueError("the header does not fit")
    header = json.loads(content[8 : 8 + size])
    metadata = header.pop("__metadata__", None) or {}
    if not all(isinstance(text, str) for text in metadata.values()):
        raise ValueError("the metadata are not texts")
    total = sum(math.prod(a["shape"]) * KINDS[a["dtype"]] for a in header.values())
    if total != len(content) - 8 - size:
        raise ValueError("the arrays have other sizes than the file")
    return metadata
