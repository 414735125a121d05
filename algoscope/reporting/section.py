"""What a page shows of one result, of whatever kind, in HTML or in Markdown."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from matplotlib.figure import Figure

from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.foundation.plotting import render
from algoscope.reporting.markup import visible

CLAIM_HEADER = (
    "claim",
    "the paper says",
    "measured here",
    "seeds",
    "what decides",
    "verdict",
    "why",
)
LEGEND = (
    "Reproduced: the measurement agrees with the sentence beside it. Partly: in some "
    "settings or to some extent, as said beside it. Not reproduced: it disagrees. Not "
    "testable: this budget cannot decide."
)

_ONE = r"[-−+<>≤≥~]?\s?(?:[\d.,]*\d(?:e[-+]?\d+)?(?: ?%)?|inf|nan|–)"
_INTERVAL = rf"{_ONE}(?: …|,) {_ONE}"
_NUMBER = re.compile(rf"(?:{_ONE}(?: ?[\[(]{_INTERVAL}[\])])?|{_INTERVAL})?")


@dataclass(frozen=True)
class Picture:
    """A figure as SVG text, and the path of its PNG file if it has one."""

    title: str
    svg: str
    source: str  # the path that an error names if the SVG is rejected
    png: Path | None = None


@dataclass(frozen=True)
class Section:
    """One result: its findings first, then what they are based on."""

    title: str
    source: str  # the file or directory that it was read from
    findings: tuple[str, ...]  # sentences
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)  # short names and values
    command: str = ""  # reproduces the result
    details: dict[str, Any] = field(default_factory=dict)  # name: JSON, shown folded
    versions: dict[str, str] = field(default_factory=dict)


def drawn(title: str, source: str, figure: Figure) -> Picture:
    """Return a figure as a picture of the page."""
    with warnings.catch_warnings():
        # A name may have letters that matplotlib's font lacks; the page shows it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        svg = render(figure, ".svg", dpi=150).decode()
    return Picture(title, visible(svg), source)


def evidence(claim: Claim) -> tuple[str, str]:
    """Return how many seeds a claim covers and the difference that decides it.

    Example:
        >>> evidence(Claim("minimum norm", "", "", "partly", seeds=2))
        ('2', '–')
    """
    return str(claim.seeds or "–"), str(claim.difference or "–")


def numbered_claims(sections: Sequence[Section]) -> list[tuple[int, Claim]]:
    """Return every claim with the number of its section."""
    return [
        (number, claim)
        for number, section in enumerate(sections)
        for claim in section.claims
    ]


def count_verdicts(claims: Iterable[Claim]) -> str:
    """Return how many claims have which verdict, with our own claims counted apart.

    Example:
        >>> count_verdicts([Claim("a", "", "", "partly"), Claim("b", "", "", "partly")])
        '2 claims: 2 partly.'
    """
    parts = []
    every = list(claims)
    for whose, are_ours in (("", False), (" of our own, not of the paper", True)):
        counts = Counter(c.verdict for c in every if c.is_ours == are_ours)
        total = counts.total()
        if total:
            each = [f"{counts[v]} {v}" for v in get_args(Verdict) if counts[v]]
            noun = f"claim{'s' if total != 1 else ''}"
            parts.append(f"{total} {noun}{whose}: {', '.join(each)}.")
    return " ".join(parts)


def are_numbers(cells: Sequence[object]) -> bool:
    """Return whether a column of a table holds numbers, maybe with their intervals.

    Example:
        >>> are_numbers(["0.5 [0.41, 0.6]", "–"]), are_numbers(["0.5", "ridge"])
        (True, False)
    """
    return any(cells) and all(
        isinstance(cell, str) and _NUMBER.fullmatch(cell) for cell in cells
    )
