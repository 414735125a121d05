"""The report: find the results below some paths and write them as one page."""

import json
import re
import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from algoscope.experiments.record import RESULT
from algoscope.foundation.files import (
    MAX_JSON,
    DamagedFileError,
    read_whole,
    write_atomically,
)
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.layerwise.result import LayersResult
from algoscope.model.checkpoints import CONFIG
from algoscope.patching.result import PatchingResult
from algoscope.probing.result import ProbingResult
from algoscope.reporting.markdown import markdown_page
from algoscope.reporting.page import html_page
from algoscope.reporting.results import (
    comparison_section,
    experiment_section,
    identification_section,
    layers_section,
    patching_section,
    probing_section,
)
from algoscope.reporting.runs import construction_section, run_section, runs_section
from algoscope.reporting.section import Section

ENDINGS = (".html", ".md")
PLAYGROUND = "playground.html"  # the usual name of the page of `algoscope play`
MOST_RUNS = 12  # in a directory with more, runs have a row but no section each

SourceKind = Literal[
    "experiment",
    "run",
    "runs",
    "construction",
    "comparison",
    "identification",
    "probing",
    "patching",
    "layers",
]

# The kind of result for the field "format" of its JSON file.
KIND_OF_FORMAT: dict[str, SourceKind] = {
    "algoscope experiment": "experiment",
    "algoscope": "run",
    "algoscope probing": "probing",
    "algoscope patching": "patching",
    "algoscope layers": "layers",
    "algoscope comparison": "comparison",
    "algoscope identification": "identification",
}
# The name of that file where the result is the directory that holds it.
FILE_OF_KIND: dict[SourceKind, str] = {
    "experiment": RESULT,
    "run": CONFIG,
    "construction": CONFIG,
    "probing": ProbingResult.file,
    "patching": PatchingResult.file,
    "layers": LayersResult.file,
}
ACCEPTED = (
    "A report shows experiments, training runs, constructions, comparisons, "
    "identifications, probing and patching results, and read-outs of layers."
)

SECTION_MAKERS: dict[SourceKind, Callable[[Path], Section]] = {
    "experiment": experiment_section,
    "run": run_section,
    "construction": construction_section,
    "comparison": comparison_section,
    "identification": identification_section,
    "probing": probing_section,
    "patching": patching_section,
    "layers": layers_section,
}
# Errors that reading or drawing a damaged result can raise.
READING_ERRORS = (ArithmeticError, AttributeError, LookupError, OSError)
READING_ERRORS += (RecursionError, TypeError, ValueError)


@dataclass(frozen=True)
class Source:
    """One result on disk, or a directory of runs, or a file that cannot be read."""

    kind: SourceKind | Literal["damaged"]
    path: Path
    runs: tuple[Path, ...] = ()
    reason: str = ""  # why it cannot be read


@dataclass(frozen=True)
class Written:
    """The file that was written, and how much is in it."""

    out: Path
    sections: int  # one per result
    claims: int
    bytes: int


def report(
    paths: Sequence[Path | str] | Path | str,
    out: Path | str,
    *,
    title: str = "Results",
    progress: Progress | bool = True,
) -> Written:
    """Write all results that `paths` name or contain as one HTML or Markdown page.

    The ending of `out`, .html or .md, decides the format. The same files give the same
    page.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> out = tempfile.mkdtemp() + "/report.html"
        >>> found = asc.compare(asc.ols, ["ridge(0.1)"], asc.LinearRegression(2))
        >>> found.save(out + ".json")
        >>> asc.report(out + ".json", out).sections
        1
    """
    paths = [paths] if isinstance(paths, (str, Path)) else list(paths)
    paths, out = [Path(path) for path in paths], Path(out)
    if out.suffix not in ENDINGS:
        raise InvalidValueError("out", "end in .html or .md", f"'{out}'")
    if out.is_dir():
        raise InvalidValueError("out", "be a file", f"the directory '{out}'")
    if not paths:
        raise InvalidValueError("paths", "name at least one result", "none")
    sources = find_sources(paths)
    sections = []
    with shown(progress) as show:
        steps = Steps(show, "reading results", len(sources))
        for source in sources:
            sections.append(_section_or_reason(source, alone=len(sources) == 1))
            steps.add(note=str(source.path))
    command = shlex.join(["algoscope", "report", *map(str, paths), "-o", str(out)])
    if out.suffix == ".md":
        text = markdown_page(title, sections, command, out)
    else:
        text = html_page(title, sections, command, _playground_beside(out))
    content = text.encode()
    write_atomically(out, content)
    claims = sum(len(section.claims) for section in sections)
    return Written(out, len(sections), claims, len(content))


def _section_or_reason(source: Source, alone: bool) -> Section:
    """Return a result, or why it cannot be shown: one must not hide the others."""
    try:
        return _section(source)
    except DamagedFileError as error:
        if alone:
            raise
        title, path = f"Damaged: {source.path.name}", str(source.path)
        return Section(title=title, source=path, findings=(str(error),))


def _playground_beside(out: Path) -> str | None:
    """Return the address of the page that `algoscope play` wrote beside this one."""
    return PLAYGROUND if (out.parent / PLAYGROUND).is_file() else None


def _section(source: Source) -> Section:
    if source.kind == "damaged":
        raise DamagedFileError(source.path, source.reason)
    try:
        if source.kind == "runs":
            return runs_section(source.path, source.runs)
        return SECTION_MAKERS[source.kind](source.path)
    except DamagedFileError:
        raise
    except READING_ERRORS as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        problem = f"is a damaged result of kind '{source.kind}' ({words})"
        raise DamagedFileError(source.path, problem) from error


def find_sources(paths: Iterable[Path]) -> list[Source]:
    """Return each result that the paths name or contain once, in a natural order."""
    found: dict[tuple[str, Path], Source] = {}
    for path in paths:
        for source in _named(path):
            found.setdefault((source.kind, source.path.resolve()), source)
    return list(found.values())


def _named(path: Path) -> Iterator[Source]:
    if not path.exists():
        raise DamagedFileError(path, "does not exist")
    source = _in_directory(path) if path.is_dir() else _in_file(path)
    if source:
        yield source
        return
    below = list(_below(path, set())) if path.is_dir() else []
    if not below:
        problem = "holds no result" if path.is_dir() else "is not a saved result"
        raise DamagedFileError(path, problem, ACCEPTED)
    yield from below


def _below(directory: Path, visited: set[Path]) -> Iterator[Source]:
    """Yield the results at any depth below a directory that is not one itself."""
    if directory.resolve() in visited:  # a link to a directory above
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
            if source and source.kind not in FILE_OF_KIND:
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
    for kind, name in FILE_OF_KIND.items():
        path = directory / name
        if not path.is_file():
            continue
        found = _kind(path)
        if isinstance(found, Source):
            return found
        if found == kind:
            return Source(kind, directory)
    return None


def _in_file(path: Path) -> Source | None:
    kind = _kind(path)
    if isinstance(kind, Source):
        return kind
    if kind is None or FILE_OF_KIND.get(kind, path.name) != path.name:
        return None
    return Source(kind, path.parent if kind in FILE_OF_KIND else path)


def _kind(path: Path) -> SourceKind | Source | None:
    """Return the kind of a JSON file; None if it is no result, or why it is damaged."""
    try:
        values = json.loads(read_whole(path, MAX_JSON).decode())
    except (OSError, ValueError, RecursionError, MemoryError) as error:
        problem = f"is not a readable JSON file ({type(error).__name__})"
        return Source("damaged", path, reason=problem)
    format_ = values.get("format") if isinstance(values, dict) else None
    kind = KIND_OF_FORMAT.get(format_) if isinstance(format_, str) else None
    if kind == "run" and "training" not in values:  # a transformer alone
        return "construction" if "construction" in values else None
    return kind
