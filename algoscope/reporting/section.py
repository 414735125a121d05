"""What a page shows of one result, of whatever kind, in HTML or in Markdown."""

import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from matplotlib.figure import Figure

from algoscope.experiments.captions import Caption
from algoscope.experiments.record import OURS, Claim, Table, Verdict
from algoscope.experiments.rules import Rule
from algoscope.foundation.plotting import render_panels
from algoscope.reporting.markup import visible

LEGEND = (
    "Reproduced: the measurement agrees with what the paper says. Partly: in some "
    "settings or to some extent, as said with the claim. Not reproduced: it disagrees. "
    "Not testable: this budget cannot decide."
)
EARLIER = "This verdict was made by earlier rules, without a paired difference."

_ONE = r"[-−+<>≤≥~]?\s?(?:[\d.,]*\d(?:e[-+]?\d+)?(?: ?%)?|inf|nan|–)"
_INTERVAL = rf"{_ONE}(?: …|,) {_ONE}"
_NUMBER = re.compile(rf"(?:{_ONE}(?: ?[\[(]{_INTERVAL}[\])])?|{_INTERVAL})?")


@dataclass(frozen=True)
class Picture:
    """A figure as SVG text, and the path of its PNG file if it has one."""

    caption: Caption
    svg: str
    source: str  # the path that an error names if the SVG is rejected
    png: Path | None = None


@dataclass(frozen=True)
class JudgedClaim:
    """A claim and the rule that judged it, if it is known."""

    claim: Claim
    rule: Rule | None = None
    is_earlier: bool = False  # judged by rules that are not those of today

    @property
    def before(self) -> str:
        """The verdict by earlier rules, if it was another one."""
        before = self.rule.before if self.rule and not self.is_earlier else None
        return before or "" if before != self.claim.verdict else ""

    @property
    def remark(self) -> str:
        """What is said beside the verdict in a few words."""
        if self.is_earlier:
            return "earlier rules"
        return f"before: {self.before}" if self.before else ""

    @property
    def seeds(self) -> str:
        """How many training seeds it covers."""
        return str(self.claim.seeds or "–")

    @property
    def decides(self) -> str:
        """The difference that decides it."""
        return str(self.claim.difference or "–")

    def details(self) -> dict[str, str]:
        """Return what is known about it, under short headings.

        Example:
            >>> claim = Claim("minimum norm", "It says so.", "0.5", "partly", seeds=2)
            >>> JudgedClaim(claim).details()
            {'The paper says': 'It says so.', 'Measured here': '0.5', 'Seeds': '2'}
        """
        claim, rule = self.claim, self.rule
        said = claim.paper.removeprefix(OURS).strip()
        found = {"Claim of our own" if claim.is_ours else "The paper says": said}
        found |= {"Measured here": claim.measured}
        found |= {"What decides": self.decides} if claim.difference else {}
        found |= {"Seeds": self.seeds} if claim.seeds else {}
        if self.is_earlier:
            found["Rule"] = EARLIER
        elif rule:
            partly = f"partly if {rule.partly}."
            found["Rule"] = f"Reproduced if {rule.reproduced}; {partly}"
        found |= {"Why": claim.reason}
        if self.before and rule:
            found["Before"] = f"By earlier rules: {self.before}. Now: {rule.why}."
        return {name: text for name, text in found.items() if text}


@dataclass(frozen=True)
class Section:
    """One result: its figures and findings, then what they are based on."""

    title: str
    source: str  # the file or directory that it was read from
    findings: tuple[str, ...]  # sentences
    pictures: tuple[Picture, ...] = ()
    tables: tuple[Table, ...] = ()
    claims: tuple[JudgedClaim, ...] = ()
    facts: dict[str, str] = field(default_factory=dict)  # short names and values
    command: str = ""  # reproduces the result
    details: dict[str, Any] = field(default_factory=dict)  # name: JSON, shown folded
    versions: dict[str, str] = field(default_factory=dict)

    @property
    def further_findings(self) -> tuple[str, ...]:
        """The findings that no claim repeats."""
        measured = [each.claim.measured for each in self.claims]
        return tuple(f for f in self.findings if not any(f in m for m in measured))


def drawn(caption: str, alt: str, source: str, figure: Figure) -> Picture:
    """Return a figure as a picture of the page."""
    with warnings.catch_warnings():
        # A name may have letters that matplotlib's font lacks; the page shows it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        svg = render_panels(figure).decode()
    return Picture(Caption(caption, alt), visible(svg), source)


def claims_of(sections: Iterable[Section]) -> list[JudgedClaim]:
    """Return the claims of all sections."""
    return [each for section in sections for each in section.claims]


def count_verdicts(judged: Iterable[JudgedClaim]) -> str:
    """Return how many claims have which verdict, with our own claims counted apart.

    Example:
        >>> claim = Claim("a", "", "", "partly")
        >>> count_verdicts([JudgedClaim(claim), JudgedClaim(claim, is_earlier=True)])
        '2 claims: 2 partly. Verdicts by earlier rules: 1.'
    """
    parts = []
    every = list(judged)
    for whose, are_ours in (("", False), (" of our own, not of the paper", True)):
        some = [each.claim for each in every if each.claim.is_ours == are_ours]
        counts = Counter(claim.verdict for claim in some)
        total = counts.total()
        if total:
            each = [f"{counts[v]} {v}" for v in get_args(Verdict) if counts[v]]
            noun = f"claim{'s' if total != 1 else ''}"
            parts.append(f"{total} {noun}{whose}: {', '.join(each)}.")
    if earlier := sum(each.is_earlier for each in every):
        parts.append(f"Verdicts by earlier rules: {earlier}.")
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
