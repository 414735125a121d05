"""Arrays on disk: written whole or not at all, checked when read, never executed.

A file is written beside its place, flushed to the disk and renamed over it, so a reader
finds the old file or the new one and a killed process leaves the old one. Arrays are
stored as safetensors with a digest in the header, so a damaged file is noticed.
"""

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import jax
import numpy as np
import safetensors.numpy
from safetensors import SafetensorError

from algoscope.strict_json import json_text
from algoscope.validation import InvalidValueError

Tree = TypeVar("Tree")


class DamagedFileError(InvalidValueError):
    """A file that is not what it should be: cut off, changed, or of another kind."""


def write_atomically(path: Path, content: bytes) -> None:
    """Replace the file at `path` by `content`, all of it or none."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.partial")
    try:
        with open(beside, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(directory)  # the rename itself must survive a power cut
    finally:
        os.close(directory)


def write_json(path: Path, value: object) -> None:
    """Write `value` as readable JSON, atomically."""
    write_atomically(path, (json_text(value, indent=2) + "\n").encode())


def read_json(path: Path) -> dict:
    """Return the JSON object in the file, or say in one line why there is none."""
    try:
        value = json.loads(path.read_text())
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise DamagedFileError(
            str(path), "be a readable JSON file", type(error).__name__
        ) from error
    if not isinstance(value, dict):
        raise DamagedFileError(str(path), "hold a JSON object", type(value).__name__)
    return value


def _digest(arrays: Mapping[str, np.ndarray]) -> str:
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = arrays[name]
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def save_arrays(
    path: Path, arrays: Mapping[str, np.ndarray], metadata: Mapping[str, str]
) -> None:
    """Write named arrays and a few strings about them to one safetensors file."""
    contiguous = {name: np.asarray(a, order="C") for name, a in arrays.items()}
    header = {**metadata, "sha256": _digest(contiguous)}
    write_atomically(path, safetensors.numpy.save(contiguous, metadata=header))


def load_arrays(path: Path) -> tuple[dict[str, np.ndarray], dict[str, str]]:
    """Return the arrays and the strings that `save_arrays` wrote."""
    content = path.read_bytes()
    try:
        arrays = safetensors.numpy.load(content)
        size = int.from_bytes(content[:8], "little")
        metadata = json.loads(content[8 : 8 + size]).get("__metadata__", {})
    except (SafetensorError, ValueError, KeyError) as error:
        raise DamagedFileError(
            str(path),
            "be a whole safetensors file",
            f"{len(content)} bytes that are not",
        ) from error
    digest = metadata.pop("sha256", None)
    if digest is not None and digest != _digest(arrays):
        raise DamagedFileError(
            str(path), "hold the arrays it was written with", "changed contents"
        )
    return arrays, metadata


def named_leaves(tree: object) -> dict[str, np.ndarray]:
    """Return the arrays of a pytree under the names of their places in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf)
        for path, leaf in leaves
    }


def restore_leaves(like: Tree, arrays: Mapping[str, np.ndarray], source: str) -> Tree:
    """Return a tree of the form of `like` holding `arrays`, each in its named place."""
    wanted = named_leaves(like)
    if set(wanted) != set(arrays):
        odd = sorted(set(wanted) ^ set(arrays))
        shown = ", ".join(odd[:3]) + (", …" if len(odd) > 3 else "")
        raise DamagedFileError(
            source, "hold the arrays of this model", f"a difference in {shown}"
        )
    for name, leaf in wanted.items():
        if (leaf.shape, leaf.dtype) != (arrays[name].shape, arrays[name].dtype):
            raise DamagedFileError(
                source,
                f"hold {name} as {leaf.dtype}{list(leaf.shape)}",
                f"{arrays[name].dtype}{list(arrays[name].shape)}",
            )
    treedef = jax.tree.structure(like)
    return jax.tree.unflatten(treedef, [arrays[name] for name in wanted])
