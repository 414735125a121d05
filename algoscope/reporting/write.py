"""From paths to a page: find the results, describe them, write the file."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from algoscope.foundation.files import DamagedFileError, write_atomically
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.validation import InvalidValueError
from algoscope.reporting.find import Kind, Source, find_sources
from algoscope.reporting.markdown import markdown_page
from algoscope.reporting.page import html_page
from algoscope.reporting.results import (
    comparison_section,
    experiment_section,
    identification_section,
    patching_section,
    probing_section,
)
from algoscope.reporting.runs import construction_section, run_section, store_section
from algoscope.reporting.section import Section

ENDINGS = (".html", ".md")
MAKERS: dict[Kind, Callable[[Path], Section]] = {
    "experiment": experiment_section,
    "run": run_section,
    "construction": construction_section,
    "comparison": comparison_section,
    "identification": identification_section,
    "probing": probing_section,
    "patching": patching_section,
}
# What reading and drawing something that is not what it says it is can raise.
SURPRISES = (ArithmeticError, AttributeError, LookupError, OSError)
SURPRISES += (RecursionError, TypeError, ValueError)


@dataclass(frozen=True)
class Written:
    """What was written."""

    out: Path
    sections: int
    claims: int
    bytes: int


def report(
    paths: Sequence[Path | str] | Path | str,
    out: Path | str,
    *,
    title: str = "Results",
    progress: Progress | bool = True,
) -> Written:
    """Write everything that `paths` name or hold as one page of HTML or Markdown.

    The same files give the same page.

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
        raise InvalidValueError("paths", "name results or runs", "none")
    sections = []
    sources = list(find_sources(paths))
    with shown(progress) as tell:
        steps = Steps(tell, "reading results", len(sources))
        for source in sources:
            sections.append(_section(source))
            steps.add(note=str(source.path))
    words = ["algoscope", "report", *map(str, paths), "-o", str(out)]
    command = shlex.join(words)
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
            return store_section(source.path, source.runs)
        return MAKERS[source.kind](source.path)
    except DamagedFileError:
        raise
    except SURPRISES as error:
        words = " ".join(f"{type(error).__name__}: {error}".split())
        problem = f"holds {source.kind} files that cannot be shown ({words})"
        raise DamagedFileError(source.path, problem) from error
