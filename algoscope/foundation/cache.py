"""Finished measurements on disk, so that an interruption loses nothing.

A measurement is reused if its *identity* is unchanged: everything that decides its
numbers, such as configuration, weights, data and versions.

`Cache.file` caches whole files under names of their own. Their identities stand in one
index in the same directory:

    measured.json   name: {identity, seconds}

`Cache.find` and `Cache.keep` cache many small parts of one measurement, each in a
safetensors file named after a digest of its identity, so that several processes can
fill one directory.
"""

import hashlib
import json
import re
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.foundation.files import (
    DamagedFileError,
    json_text,
    load_arrays,
    read_json,
    save_arrays,
    write_json,
)
from algoscope.foundation.text import visible

INDEX = "measured.json"
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Cache:
    """The finished measurements in a directory; None caches nothing."""

    directory: Path | None

    def file(
        self, name: str, identity: dict[str, Any], measure: Callable[[], None]
    ) -> float:
        """Call `measure`, which writes the file `name`, unless it is cached.

        Returns the seconds that the measurement took, now or when it was cached.
        """
        cached = self.seconds(name, identity)
        if cached is not None:
            return cached
        start = time.perf_counter()
        measure()
        seconds = round(time.perf_counter() - start, 2)
        if self.directory is not None:
            entry = {"identity": _as_read(identity), "seconds": seconds}
            write_json(self.directory / INDEX, self._index() | {name: entry})
        return seconds

    def seconds(
        self, name: str, identity: dict[str, Any], ignore: str | None = None
    ) -> float | None:
        """Return the cached duration if everything except the key `ignore` matches."""
        entry = self._index().get(name)
        if entry is None or self.directory is None:
            return None
        if not (self.directory / name).exists():
            return None
        known, wanted = (
            {key: value for key, value in each.items() if key != ignore}
            for each in (entry["identity"], _as_read(identity))
        )
        return entry["seconds"] if known == wanted else None

    @property
    def names(self) -> list[str]:
        """The names of the cached files."""
        return list(self._index())

    def keep_only(self, names: Collection[str]) -> None:
        """Delete the cached files of other names: they belong to older settings."""
        index = self._index()
        others = set(index) - set(names)
        if self.directory is None or not others:
            return
        for name in others:
            (self.directory / name).unlink(missing_ok=True)
        kept = {name: index[name] for name in index if name in names}
        write_json(self.directory / INDEX, kept)

    def find(self, label: str, identity: dict[str, Any]) -> Arrays | None:
        """Return the arrays that were kept for this identity, or None."""
        path = self._path(label, identity)
        if path is None or not path.is_file():
            return None
        arrays, metadata = load_arrays(path)
        if metadata.get("identity") != _text(identity):
            problem = "holds another measurement than its name says"
            raise DamagedFileError(path, problem, "Delete it.")
        return arrays

    def keep(self, label: str, identity: dict[str, Any], arrays: Arrays) -> None:
        """Write arrays for `find` to return."""
        path = self._path(label, identity)
        if path is not None:
            save_arrays(path, arrays, {"identity": _text(identity)})

    def _path(self, label: str, identity: dict[str, Any]) -> Path | None:
        if self.directory is None:
            return None
        readable = re.sub(r"[^\w.-]+", "-", label)
        digest = hashlib.sha256(_text(identity).encode()).hexdigest()[:16]
        return self.directory / f"{readable}-{digest}.safetensors"

    def _index(self) -> dict[str, Any]:
        path = None if self.directory is None else self.directory / INDEX
        if path is None or not path.exists():
            return {}
        index = read_json(path)
        for name, entry in index.items():
            if not _is_entry(entry) or not _is_name(name):
                problem = f"has a damaged entry for {visible(name, 80)}"
                remedy = "Delete the file to recompute its measurements."
                raise DamagedFileError(path, problem, remedy)
        return index


def _is_entry(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("identity"), dict)
        and isinstance(entry.get("seconds"), (int, float))
    )


def _is_name(name: str) -> bool:
    """Return whether a name is that of a file in the same directory: nothing else."""
    return Path(name).name == name and name.isprintable() and name not in ("", "..")


def _text(identity: dict[str, Any]) -> str:
    return json.dumps(identity, sort_keys=True)


def _as_read(identity: dict[str, Any]) -> dict[str, Any]:
    """Return an identity as it is read back from JSON."""
    return json.loads(json_text(identity))
