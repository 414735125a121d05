"""`algoscope report`: results and runs as one page to read."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from algoscope.cli import show
from algoscope.cli.destinations import require_file
from algoscope.foundation.files import json_text

EXAMPLES = """
algoscope report results --out report.html
algoscope report runs/my-d4 comparison.json --out my-d4.md --title 'My learner'
"""


@dataclass(frozen=True)
class Report:
    """Write results and runs as one page: HTML that needs nothing else, or Markdown."""

    paths: Annotated[
        tyro.conf.Positional[tuple[Path, ...]], tyro.conf.arg(metavar="PATH")
    ]
    """Experiments, training runs, transformers written by hand, comparisons,
    identifications, probing and patching results, or directories that hold them."""
    out: Path
    """The page to write: report.html or report.md."""
    title: str = "Results"
    """The page's title."""
    json: bool = False
    """Print what was written as JSON."""


def run_report(command: Report) -> None:
    """Write the page and say where it is."""
    require_file("out", command.out)
    from algoscope.reporting import report

    written = report(command.paths, command.out, title=command.title)
    if command.json:
        print(json_text({**asdict(written), "out": str(written.out)}))
        return
    results = f"{written.sections} result{'s' if written.sections != 1 else ''}"
    size = f"{written.bytes / 1e6:.1f} MB"
    show(f"{written.out}: {results}, {written.claims} claims, {size}.")
