"""PyTorch's .pt files, read without PyTorch and without running anything in them.

A .pt file is a zip of a pickle and of raw storages. A pickle is a program that may call
any function, so it is not given to `pickle`. `_Machine` runs the few instructions that
`torch.save` writes for dictionaries of tensors: they build plain values, and the only
things that they can name are those of `GLOBALS`. Nothing is imported, no attribute is
set, and there is no fall-back.

Storages must be stored uncompressed and as large as the pickle says, and every tensor
must lie inside its storage. Arrays are read-only views of the file's bytes, so a small
file cannot ask for much memory.
"""

import io
import math
import pickletools
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.foundation.files import DamagedFileError

STORAGES = {
    "torch.DoubleStorage": "<f8",
    "torch.FloatStorage": "<f4",
    "torch.HalfStorage": "<f2",
    "torch.LongStorage": "<i8",
    "torch.IntStorage": "<i4",
    "torch.ShortStorage": "<i2",
    "torch.CharStorage": "i1",
    "torch.ByteStorage": "u1",
    "torch.BoolStorage": "?",
}
CALLABLE = (
    "collections.OrderedDict",
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
)
GLOBALS = (*CALLABLE, *STORAGES)
MAX_PICKLE = 64 * 2**20  # bytes; a pickle holds names and shapes, not numbers
LEGACY = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."  # how torch.save began before 1.6
RESAVE = "Load it in a PyTorch that you trust and save `model.state_dict()` again."


def read_pickled(path: Path) -> Any:
    """Return what `torch.save` wrote: plain containers, numbers and NumPy arrays.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "state.pt"
        >>> _ = path.write_bytes(b"import os")
        >>> try:
        ...     read_pickled(path)
        ... except ValueError as error:
        ...     print(str(error).removeprefix(str(path)))
         is not a file of torch.save (no zip of a pickle).
    """
    content = path.read_bytes()
    if content.startswith(LEGACY) or content[257:262] == b"ustar":
        problem = "was written by PyTorch before 1.6, in a format that is not read"
        raise DamagedFileError(path, problem, RESAVE)
    try:
        records, root = _records(content)
        program = records(f"{root}data.pkl")
        return _Machine(lambda key: records(f"{root}data/{key}")).run(program)
    except _Unreadable as error:
        raise DamagedFileError(path, error.args[0], error.args[1]) from None
    except Exception as error:  # of a damaged zip or pickle: there are many kinds
        problem = f"is a damaged file of torch.save ({type(error).__name__})"
        raise DamagedFileError(path, problem) from error


class _Unreadable(Exception):
    """A problem and its remedy, before the file's name is known."""

    def __init__(self, problem: str, remedy: str = ""):
        super().__init__(problem, remedy)


def _records(content: bytes) -> tuple[Callable[[str], memoryview], str]:
    """Return a function from a record's name to its bytes, and the archive's root."""
    try:
        archive = zipfile.ZipFile(io.BytesIO(content))
    except (zipfile.BadZipFile, ValueError, OSError) as error:
        problem = "is not a file of torch.save (no zip of a pickle)"
        raise _Unreadable(problem) from error
    entries = {entry.filename: entry for entry in archive.infolist()}
    roots = [name.removesuffix("data.pkl") for name in entries]
    roots = [root for root in roots if f"{root}data.pkl" in entries]
    if len(roots) != 1:
        raise _Unreadable("is not a file of torch.save (no zip of a pickle)")
    packed = any(each.compress_type != zipfile.ZIP_STORED for each in entries.values())
    if packed or sum(each.file_size for each in entries.values()) > len(content):
        raise _Unreadable("has compressed or overlapping records, which are not read")

    def read(name: str) -> memoryview:
        if name not in entries:
            raise _Unreadable(f"lacks its record {name!r}")
        return memoryview(archive.read(entries[name]))

    root = roots[0]
    if f"{root}byteorder" in entries and bytes(read(f"{root}byteorder")) != b"little":
        raise _Unreadable("holds numbers in another byte order, which is not read")
    return read, root


class _Named(str):
    """A global that a pickle names; it is only ever compared with known names."""


class _Storage(np.ndarray):
    """The numbers of one record, which tensors are parts of."""


class _Machine:
    """The instructions of a pickle that builds dictionaries of tensors."""

    def __init__(self, record: Callable[[str], memoryview]):
        self.record = record
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[int, Any] = {}
        self.records: dict[str, memoryview] = {}

    def run(self, program: memoryview) -> Any:
        """Return the value that the program builds."""
        if len(program) > MAX_PICKLE:
            raise _Unreadable(f"has a pickle of more than {MAX_PICKLE} bytes")
        for opcode, argument, _ in pickletools.genops(bytes(program)):
            if opcode.name == "STOP":
                break
            self._step(opcode.name, argument)
        (value,) = self.stack
        return value

    def _step(self, name: str, argument: Any) -> None:
        push = self.stack.append
        if name in _CONSTANTS:
            push(_CONSTANTS[name]())
        elif name in _LITERALS:
            push(argument)
        elif name in _TUPLES:
            items = [self.stack.pop() for _ in range(_TUPLES[name])]
            push(tuple(reversed(items)))
        elif name in ("BINPUT", "LONG_BINPUT"):
            self.memo[argument] = self.stack[-1]
        elif name in ("BINGET", "LONG_BINGET"):
            push(self.memo[argument])
        elif name == "MARK":
            self.marks.append(len(self.stack))
        elif name == "TUPLE":
            push(tuple(self._since_mark()))
        elif name in ("APPEND", "APPENDS"):
            items = [self.stack.pop()] if name == "APPEND" else self._since_mark()
            _of_kind(self.stack[-1], list).extend(items)
        elif name in ("SETITEM", "SETITEMS"):
            items = self._last(2) if name == "SETITEM" else self._since_mark()
            _fill(_of_kind(self.stack[-1], dict), items)
        elif name == "GLOBAL":
            push(_known(argument.replace(" ", ".", 1)))
        elif name == "BINPERSID":
            push(self._storage(self.stack.pop()))
        elif name == "REDUCE":
            function, arguments = self._last(2)
            push(self._call(function, _of_kind(arguments, tuple)))
        elif name == "BUILD":  # the attribute `_metadata` of a state_dict: left out
            self.stack.pop()
            _of_kind(self.stack[-1], dict)
        elif name != "PROTO":
            raise _Unreadable(f"holds other things than tensors ({name})", RESAVE)

    def _last(self, count: int) -> list[Any]:
        items = self.stack[-count:]
        del self.stack[-count:]
        return items

    def _since_mark(self) -> list[Any]:
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def _storage(self, reference: Any) -> _Storage:
        """Return the storage of ("storage", kind, key, device, count)."""
        what, kind, key, _, count = _of_kind(reference, tuple)
        named = isinstance(kind, _Named) and kind in STORAGES
        if not (what == "storage" and named and isinstance(key, str)):
            raise _Unreadable("refers to something that is not a storage")
        if key not in self.records:
            self.records[key] = self.record(key)
        record, dtype = self.records[key], np.dtype(STORAGES[kind])
        if len(record) != _natural(count) * dtype.itemsize:
            raise _Unreadable("has a storage of another size than its pickle says")
        return _Storage((count,), dtype, record)

    def _call(self, function: Any, arguments: tuple) -> Any:
        """Return what one of `CALLABLE` would: an empty dictionary or an array."""
        if not isinstance(function, _Named) or function not in CALLABLE:
            raise _Unreadable("calls something that is not a function", RESAVE)
        if function == "collections.OrderedDict":
            if arguments:
                raise _Unreadable("builds a dictionary in an unusual way", RESAVE)
            return {}
        if function == "torch._utils._rebuild_parameter":
            return _of_kind(arguments[0], np.ndarray)
        storage, offset, size, stride, *_ = arguments
        return _array(_of_kind(storage, _Storage), offset, size, stride)


_CONSTANTS: dict[str, Callable[[], Any]] = {
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_DICT": dict,
    "EMPTY_LIST": list,
    "EMPTY_TUPLE": tuple,
}
_LITERALS = ("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT", "BINUNICODE")
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def _known(name: str) -> _Named:
    if name not in GLOBALS:
        raise _Unreadable(f"names {name[:80]!r}, which is not read", RESAVE)
    return _Named(name)


def _of_kind(value: Any, kind: type) -> Any:
    if type(value) is not kind:
        raise _Unreadable("is a damaged file of torch.save (a value of a wrong kind)")
    return value


def _natural(value: Any) -> int:
    if _of_kind(value, int) < 0:
        raise _Unreadable("has a tensor with a negative size")
    return value


def _fill(target: dict, items: list[Any]) -> None:
    """Add keys and values in turn; keys are plain, as hashing nested ones is slow."""
    for key in items[::2]:
        if type(key) not in (str, int, float, bool, type(None)):
            raise _Unreadable("has a dictionary with unusual keys", RESAVE)
    target.update(zip(items[::2], items[1::2], strict=True))


def _array(storage: _Storage, offset: Any, size: Any, stride: Any) -> np.ndarray:
    """Return a tensor as a view of its storage, which it must not exceed."""
    offset = _natural(offset)
    size = tuple(map(_natural, _of_kind(size, tuple)))
    stride = tuple(map(_natural, _of_kind(stride, tuple)))
    count, width = math.prod(size), storage.dtype.itemsize
    steps = zip(size, stride, strict=True)
    last = offset + sum((n - 1) * step for n, step in steps) if count else 0
    if count > len(storage) or (count and last >= len(storage)):
        raise _Unreadable("has a tensor that is larger than its storage")
    if not count:
        return np.zeros(size, storage.dtype)
    strides = tuple(step * width for step in stride)
    return np.ndarray(size, storage.dtype, storage, offset * width, strides)
