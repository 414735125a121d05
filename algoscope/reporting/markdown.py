"""Sections as Markdown, for pages such as docs/results.md."""

import html
import os
import re
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from algoscope.experiments.record import Table
from algoscope.reporting.markup import visible
from algoscope.reporting.section import (
    LEGEND,
    JudgedClaim,
    Picture,
    Section,
    are_numbers,
    claims_of,
    count_verdicts,
)

CLAIM_HEADER = ("claim", "verdict", "seeds", "what decides")
RULES = "verdicts.md"  # the page about rules, where it is beside this one


def markdown_page(
    title: str, sections: Sequence[Section], command: str, out: Path
) -> str:
    """Return the page: all claims in a short table, then a part for each result."""
    anchors, rows, body = Anchors(), [], []
    anchors.add(title)
    for section in sections:
        anchors.add(section.title)
        parts = [f"## {escape(section.title)}"]
        if not section.claims:
            parts += map(escape, section.findings)
        parts += [each for p in section.pictures for each in _picture(p, out)]
        for each in section.claims:
            rows.append(_row(each, anchors.add(each.claim.name)))
            parts += _claim(each)
        body += [*parts, *_more(section)]
    parts = [f"# {escape(title)}", f"Made by {code(command)}."]
    if claims := claims_of(sections):
        parts += [escape(count_verdicts(claims)), escape(LEGEND)]
        if (out.parent / RULES).is_file():
            told = "How verdicts are made, and which of them changed"
            parts[-1] += f" [{told}]({RULES})."
        parts.append(table(CLAIM_HEADER, rows))
    return "\n\n".join(each for each in [*parts, *body] if each) + "\n"


class Anchors:
    """The addresses that headings get on GitHub, and in most other places."""

    def __init__(self):
        self._seen: Counter[str] = Counter()

    def add(self, heading: str) -> str:
        """Return the address of the next heading of the page.

        Example:
            >>> anchors = Anchors()
            >>> anchors.add("Figure 1: d = 8"), anchors.add("Figure 1: d = 8")
            ('#figure-1-d--8', '#figure-1-d--8-1')
        """
        line = " ".join(visible(heading).split()).lower()
        name = re.sub(r"[^\w\- ]", "", line).replace(" ", "-")
        self._seen[name] += 1
        count = self._seen[name] - 1
        return f"#{name}-{count}" if count else f"#{name}"


def _row(judged: JudgedClaim, anchor: str) -> list[str]:
    claim = judged.claim
    remark = f" ({judged.remark})" if judged.remark else ""
    return [
        f"[{escape(claim.name)}]({anchor})",
        f"**{escape(claim.verdict)}**{remark}",
        judged.seeds,
        escape(judged.decides),
    ]


def _claim(judged: JudgedClaim) -> list[str]:
    claim = judged.claim
    told = [f"* **Verdict:** {escape(claim.verdict)}."]
    told += [f"* **{name}:** {escape(text)}" for name, text in judged.details().items()]
    return [f"### {escape(claim.name)}", "\n".join(told)]


def _picture(picture: Picture, out: Path) -> list[str]:
    if not picture.png:
        return []
    path = os.path.relpath(picture.png, out.parent or ".")
    image = f"![{escape(picture.caption.alt)}]({quote(Path(path).as_posix())})"
    text = escape(picture.caption.text)
    return [image, f"*{text}*"] if text else [image]


def _more(section: Section) -> list[str]:
    """Return what is folded: further findings, tables, and how it was made."""
    parts = []
    if section.claims and section.further_findings:
        found = "\n".join(f"* {escape(each)}" for each in section.further_findings)
        parts += _folded("Further findings", [found])
    is_folded = bool(section.pictures or section.claims)
    for each in section.tables:
        shown = _table(each)
        title = f"{escape(each.title)}:"
        parts += _folded(each.title, [shown]) if is_folded else [title, shown]
    made = [block(section.command)] if section.command else []
    facts = section.facts | {"from": section.source} | section.versions
    made.append(escape("; ".join(f"{name}: {value}" for name, value in facts.items())))
    return [*parts, *_folded("How it was made", made)]


def _folded(name: str, content: Sequence[str]) -> list[str]:
    line = " ".join(visible(name).split())
    head = f"<details>\n<summary>{html.escape(line)}</summary>"
    return [head, *content, "</details>"]


def _table(shown: Table) -> str:
    rows = [list(map(escape, row)) for row in shown.rows]
    return table(list(map(escape, shown.header)), rows)


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
