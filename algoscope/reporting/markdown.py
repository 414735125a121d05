"""Sections as Markdown, for pages such as docs/results.md."""

import os
import re
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from algoscope.experiments.record import Table
from algoscope.reporting.markup import visible
from algoscope.reporting.section import (
    CLAIM_HEADER,
    LEGEND,
    Section,
    are_numbers,
    count_verdicts,
    evidence,
    numbered_claims,
)


def markdown_page(
    title: str, sections: Sequence[Section], command: str, out: Path
) -> str:
    """Return the page: all claims in one table, then a part for each result."""
    parts = [f"# {escape(title)}", f"Made by {code(command)}."]
    claims = numbered_claims(sections)
    if claims:
        parts += ["## Claims", escape(count_verdicts(claim for _, claim in claims))]
        rows = [
            [
                *map(escape, (claim.name, claim.paper, claim.measured)),
                *map(escape, evidence(claim)),
                f"**{escape(claim.verdict)}**",
                escape(claim.reason),
                code(sections[number].command),
            ]
            for number, claim in claims
        ]
        parts += [table([*CLAIM_HEADER, "command"], rows), escape(LEGEND)]
    for section in sections:
        parts += _section(section, out)
    return "\n\n".join(parts) + "\n"


def _section(section: Section, out: Path) -> list[str]:
    parts = [f"## {escape(section.title)}"]
    parts.append("\n".join(f"* {escape(finding)}" for finding in section.findings))
    for picture in section.pictures:
        if picture.png:
            path = os.path.relpath(picture.png, out.parent or ".")
            parts.append(f"![{escape(picture.title)}]({quote(Path(path).as_posix())})")
    parts += [_table(each) for each in section.tables]
    if section.command:
        parts.append(block(section.command))
    facts = section.facts | {"from": section.source} | section.versions
    parts.append(escape("; ".join(f"{name}: {value}" for name, value in facts.items())))
    return [part for part in parts if part]


def _table(shown: Table) -> str:
    rows = [list(map(escape, row)) for row in shown.rows]
    return f"{escape(shown.title)}:\n\n{table(list(map(escape, shown.header)), rows)}"


def escape(text: object) -> str:
    r"""Return the Markdown that shows this text, on one line.

    Example:
        >>> print(escape("a|b <i>"))
        a\|b \<i>
    """
    line = " ".join(visible(str(text)).split())
    line = re.sub(r"([\\`*_\[\]<|~#&$])", r"\\\1", line)
    line = re.sub(r"^(>|[-+=](?=[-+=\s]|$))", r"\\\1", line)  # quote, list, rule
    return re.sub(r"^(\d+)([.)])(?=\s|$)", r"\1\\\2", line)


def code(text: object) -> str:
    """Return text formatted as code, on one line."""
    line = " ".join(visible(str(text)).split())
    if not line or set(line) & set("`|\\"):
        return f"<code>{escape(line)}</code>"
    return f"`{line}`"


def block(text: str) -> str:
    """Return any text as a block of code."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{visible(text)}\n{fence}"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table of cells in Markdown, with columns of numbers aligned right."""
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    rules = ["---:" if are_numbers(column) else "---" for column in columns]
    lines = [header, rules, *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
