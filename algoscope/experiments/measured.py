"""Measurements that are made once: an index of what a directory's files were made of.

    measured.json   name: {identity, seconds}

A file whose identity is the one asked for is not made again, so an interrupted
experiment goes on where it was and a finished one is only judged and drawn again.
"""

import json
import time
from collections.abc import Callable, Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from algoscope.checkpoints import read_json, write_json
from algoscope.learner import InContextLearner
from algoscope.probing.chunks import digest_of_learner
from algoscope.provenance import provenance
from algoscope.strict_json import json_text

INDEX = "measured.json"


def once(
    directory: Path, name: str, identity: dict[str, Any], measure: Callable[[], None]
) -> float:
    """Call `measure`, which writes the file `name`, unless that was done already.

    Returns the seconds that it took, now or then.
    """
    asked = _plain(identity)
    found = _recorded(directory, name)
    if found and found["identity"] == asked:
        return found["seconds"]
    start = time.perf_counter()
    measure()
    seconds = round(time.perf_counter() - start, 2)
    index = _read(directory) | {name: {"identity": asked, "seconds": seconds}}
    write_json(directory / INDEX, index)
    return seconds


def seconds_measured(
    directory: Path, name: str, identity: dict[str, Any], but: str
) -> float | None:
    """Return how long the file `name` took, if made of this `but` for one part."""
    found = _recorded(directory, name)
    if found is None:
        return None
    part = {key: value for key, value in found["identity"].items() if key != but}
    return found["seconds"] if part == _plain(identity) else None


def _recorded(directory: Path, name: str) -> dict[str, Any] | None:
    found = _read(directory).get(name)
    return found if (directory / name).exists() else None


def _plain(identity: dict[str, Any]) -> dict[str, Any]:
    """Return what a measurement is made of as it is read back."""
    return json.loads(json_text(identity))


def measure_only(
    directory: Path,
    name: str,
    config: Any,
    learner: InContextLearner,
    measure: Callable[[], None],
) -> float:
    """Measure a learner into the one file that an experiment has; see `once`."""
    identity = {
        "config": asdict(config),
        "learner": digest_of_learner(learner),
        "versions": provenance(),
    }
    seconds = once(directory, name, identity, measure)
    forget_others(directory, [name])
    return seconds


def forget_others(directory: Path, names: Collection[str]) -> None:
    """Delete the measurements that do not belong to this configuration."""
    index = _read(directory)
    for name in set(index) - set(names):
        (directory / name).unlink(missing_ok=True)
    if set(index) - set(names):
        kept = {name: index[name] for name in index if name in names}
        write_json(directory / INDEX, kept)


def names_in(directory: Path) -> list[str]:
    """Return the names of the files that were measured."""
    return list(_read(directory))


def _read(directory: Path) -> dict[str, Any]:
    path = directory / INDEX
    return read_json(path) if path.exists() else {}
