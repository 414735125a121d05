"""The report: find the results below some paths and write them as one page."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from algoscope.foundation.files import DamagedFileError, write_atomically
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.reporting.find import Source, SourceKind, find_sources
from algoscope.reporting.markdown import markdown_page
from algoscope.reporting.page import html_page
from algoscope.reporting.results import (
    comparison_section,
    experiment_section,
    identification_section,
    patching_section,
    probing_section,
)
from algoscope.reporting.runs import construction_section, run_section, runs_section
from algoscope.reporting.section import Section

ENDINGS = (".html", ".md")
SECTION_MAKERS: dict[SourceKind, Callable[[Path], Section]] = {
    "experiment": experiment_section,
    "run": run_section,
    "construction": construction_section,
    "comparison": comparison_section,
    "identification": identification_section,
    "probing": probing_section,
    "patching": patching_section,
}
# Errors that reading or drawing a damaged result can raise.
READING_ERRORS = (ArithmeticError, AttributeError, LookupError, OSError)
READING_ERRORS += (RecursionError, TypeError, ValueError)


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
            sections.append(_section(source))
            steps.add(note=str(source.path))
    command = shlex.join(["algoscope", "report", *map(str, paths), "-o", str(out)])
    if out.suffix == ".md":
        text = markdown_page(title, sections, command, out)
    else:
        text = html_page(title, sections, command)
    content = text.encode()
    write_atomically(out, content)
    claims = sum(len(section.claims) for section in sections)
    return Written(out, len(sections), claims, len(content))


def _section(source: Source) -> Section:
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
