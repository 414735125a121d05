"""A saved experiment as a section."""

import re
from collections import Counter
from pathlib import Path
from typing import Any

from algoscope.checkpoints import DamagedFileError
from algoscope.console import duration
from algoscope.experiments.record import RESULT, Record
from algoscope.report.sections import Picture, Section


def experiment_section(directory: Path) -> Section:
    """Return what the experiment in this directory found."""
    record = Record.load(directory)
    for table in record.tables:
        if any(len(row) != len(table.header) for row in table.rows):
            rule = f"hold as many cells as headings in each row of '{table.title}'"
            raise DamagedFileError(str(directory / RESULT), rule, "another number")
    facts = {
        "budget": record.budget,
        "computing time": duration(record.seconds),
    }
    details: dict[str, Any] = {"Configuration": record.config}
    if record.runs:
        counts = Counter(status.partition(":")[0] for status in record.runs.values())
        each = [f"{count} {status}" for status, count in sorted(counts.items())]
        facts["trained models"] = ", ".join(each)
        details["Trained models"] = record.runs
    return Section(
        title=f"{_label(record.figure)}: {record.title}",
        source=str(directory),
        findings=record.findings,
        pictures=tuple(_saved_figure(directory, name) for name in record.figures),
        tables=record.tables,
        claims=record.claims,
        facts=facts,
        command=record.command,
        details=details,
        versions=record.versions,
    )


def _label(figure: str) -> str:
    """Return fig7 as the paper writes it, and another name as it is."""
    return re.sub(r"^fig(\d+)$", r"Figure \1", figure)


def _saved_figure(directory: Path, name: str) -> Picture:
    if Path(name).name != name:
        rule = "name figures in its own directory"
        raise DamagedFileError(str(directory / RESULT), rule, f"'{name}'")
    svg, png = directory / f"{name}.svg", directory / f"{name}.png"
    for path in (svg, png):
        if not path.is_file():
            rule = "be a figure of the experiment beside it"
            remedy = "Run the experiment's command again."
            raise DamagedFileError(str(path), rule, "no file", remedy)
    try:
        text = svg.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DamagedFileError(str(svg), "be an SVG file", str(error)) from None
    return Picture(name, text, str(svg), png)
