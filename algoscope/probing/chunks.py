"""Finished parts of a probing run on disk, so that an interruption loses nothing.

A chunk is what one compiled program measures: one learner, repeat, target and kind, and
a few layers. Its file is named after a digest of all that decides its numbers, so it is
found by a rerun that would compute the same, and by no other.
"""

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.checkpoints import (
    DamagedFileError,
    load_arrays,
    named_leaves,
    save_arrays,
)
from algoscope.learner import InContextLearner
from algoscope.probing.fitting import Fitted


def digest_of_arrays(arrays: dict[str, np.ndarray]) -> str:
    """Return a digest of named arrays: the weights of a learner, a target's values."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def digest_of_learner(learner: InContextLearner) -> str:
    """Return a digest of the weights and of what is not a weight."""
    block = repr(learner.transformer.block)
    return block + digest_of_arrays(named_leaves(learner.transformer))


@dataclass(frozen=True)
class Chunks:
    """The chunks in a directory; without one, nothing is kept."""

    directory: Path | None

    def load(self, label: str, identity: dict[str, Any]) -> Fitted | None:
        """Return a finished chunk, or None."""
        path = self._path(label, identity)
        if path is None or not path.is_file():
            return None
        arrays, metadata = load_arrays(path)
        if metadata.get("identity") != _text(identity) or set(arrays) != set(
            Fitted._fields
        ):
            raise DamagedFileError(
                str(path), "hold the chunk it is named after", "another", "Delete it."
            )
        return Fitted(**arrays)

    def save(self, label: str, identity: dict[str, Any], fitted: Fitted) -> None:
        """Write a finished chunk, whole or not at all."""
        path = self._path(label, identity)
        if path is not None:
            save_arrays(path, fitted._asdict(), {"identity": _text(identity)})

    def _path(self, label: str, identity: dict[str, Any]) -> Path | None:
        if self.directory is None:
            return None
        readable = re.sub(r"[^\w.-]+", "-", label)
        name = hashlib.sha256(_text(identity).encode()).hexdigest()[:16]
        return self.directory / f"{readable}-{name}.safetensors"


def _text(identity: dict[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)
