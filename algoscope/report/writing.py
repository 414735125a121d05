"""From paths to a page: find the results, describe them, write the file."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from algoscope.checkpoints import DamagedFileError, write_atomically
from algoscope.report.constructions import construction_section
from algoscope.report.experiments import experiment_section
from algoscope.report.markdown import markdown_page
from algoscope.report.measurements import (
    comparison_section,
    identification_section,
    patching_section,
    probing_section,
)
from algoscope.report.page import html_page
from algoscope.report.sections import Section
from algoscope.report.sources import Kind, Source, find_sources
from algoscope.report.stores import store_section
from algoscope.report.training import run_section
from algoscope.validation import InvalidValueError

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


def write_report(
    paths: Sequence[Path],
    out: Path,
    *,
    title: str = "Results",
    progress: Callable[[Path], None] = lambda path: None,
) -> Written:
    """Write everything that `paths` name or hold as one page of HTML or Markdown.

    The same files give the same page. `progress` is told what is being read.
    """
    if out.suffix not in ENDINGS:
        raise InvalidValueError("out", "end in .html or .md", f"'{out}'")
    if out.is_dir():
        raise InvalidValueError("out", "be a file", f"the directory '{out}'")
    if not paths:
        raise InvalidValueError("paths", "name results or runs", "none")
    sections = []
    for source in find_sources(paths):
        progress(source.path)
        sections.append(_section(source))
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
        what = f"an error, {words}"
        rule = f"hold {source.kind} files that can be shown"
        raise DamagedFileError(str(source.path), rule, what) from error
