"""Where results are: paths that a person names, and what is found below them."""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from algoscope.experiments.record import RESULT
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.checkpoints import CONFIG
from algoscope.patching.result import PatchingResult
from algoscope.probing.result import ProbingResult

MOST_RUNS = 12  # of one directory that get a section each, and not only a row

Kind = Literal[
    "experiment",
    "run",
    "runs",
    "construction",
    "comparison",
    "identification",
    "probing",
    "patching",
]

# What a file says about itself, and the name it has if its directory is the result.
KINDS: dict[str, Kind] = {
    "algoscope experiment": "experiment",
    "algoscope": "run",
    "algoscope probing": "probing",
    "algoscope patching": "patching",
    "algoscope comparison": "comparison",
    "algoscope identification": "identification",
}
NAMES: dict[Kind, str] = {
    "experiment": RESULT,
    "run": CONFIG,
    "construction": CONFIG,
    "probing": ProbingResult.file,
    "patching": PatchingResult.file,
}


@dataclass(frozen=True)
class Source:
    """One result on disk, or a directory of runs."""

    kind: Kind
    path: Path
    runs: tuple[Path, ...] = ()


def find_sources(paths: Iterable[Path]) -> list[Source]:
    """Return what the paths name or hold, each result once, in a natural order."""
    found: dict[tuple[Kind, Path], Source] = {}
    for path in paths:
        for source in _named(path):
            found.setdefault((source.kind, source.path.resolve()), source)
    return list(found.values())


def _named(path: Path) -> Iterator[Source]:
    if not path.exists():
        rule = "name files and directories that exist"
        raise InvalidValueError("paths", rule, f"'{path}'")
    source = _in_directory(path) if path.is_dir() else _in_file(path)
    if source:
        yield source
        return
    below = list(_below(path, set())) if path.is_dir() else []
    if not below:
        rule = (
            "be or hold experiments, runs, constructions, comparisons, "
            "identifications, probing or patching"
        )
        raise InvalidValueError(str(path), rule, "none of them")
    yield from below


def _below(directory: Path, visited: set[Path]) -> Iterator[Source]:
    """Yield the results in a directory that is none itself, at any depth."""
    if directory.resolve() in visited:  # a link that leads back
        return
    visited.add(directory.resolve())
    children = sorted(
        (child for child in directory.iterdir() if not child.name.startswith(".")),
        key=lambda child: _natural(child.name),
    )
    found = {child: _in_directory(child) for child in children if child.is_dir()}
    runs = tuple(
        path for path, source in found.items() if source and source.kind == "run"
    )
    if len(runs) > 1:
        yield Source("runs", directory, runs)
    for child in children:
        if child not in found:
            source = _in_file(child) if child.suffix == ".json" else None
            if source and source.kind not in NAMES:
                yield source
        elif (source := found[child]) is None:
            yield from _below(child, visited)
        elif source.kind != "run" or len(runs) <= MOST_RUNS:
            yield source


def _natural(name: str) -> list[Any]:
    """Return a key that sorts fig2 before fig10."""
    parts = re.split(r"(\d+)", name)
    return [int(part) if place % 2 else part for place, part in enumerate(parts)]


def _in_directory(directory: Path) -> Source | None:
    for kind, name in NAMES.items():
        path = directory / name
        if path.is_file() and _kind(path) == kind:
            return Source(kind, directory)
    return None


def _in_file(path: Path) -> Source | None:
    kind = _kind(path)
    if kind is None or NAMES.get(kind, path.name) != path.name:
        return None
    return Source(kind, path.parent if kind in NAMES else path)


def _kind(path: Path) -> Kind | None:
    """Return what a JSON file says it is, if it is one of ours."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        problem = f"is not a readable JSON file ({type(error).__name__})"
        raise DamagedFileError(path, problem) from error
    said = values.get("format") if isinstance(values, dict) else None
    kind = KINDS.get(said) if isinstance(said, str) else None
    if kind == "run" and "training" not in values:  # no run, but a transformer
        return "construction" if "construction" in values else None
    return kind
