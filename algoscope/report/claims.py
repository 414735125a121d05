"""The claims of all results together: what a reader wants first."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import get_args

from algoscope.experiments.record import Claim, Verdict
from algoscope.report.sections import Section

CLAIM_HEADER = ("claim", "the paper says", "measured here", "verdict", "why")
LEGEND = (
    "Reproduced: the measurement agrees with the paper's sentence. Partly: in some "
    "settings or to some extent, as said beside it. Not reproduced: it disagrees. Not "
    "testable: this budget cannot decide."
)


def numbered_claims(sections: Sequence[Section]) -> list[tuple[int, Claim]]:
    """Return every claim with the place of its section."""
    return [
        (number, claim)
        for number, section in enumerate(sections)
        for claim in section.claims
    ]


def counted(claims: Iterable[Claim]) -> str:
    """Return how many claims came out how.

    Example:
        >>> counted([Claim("a", "", "", "partly"), Claim("b", "", "", "reproduced")])
        '2 claims: 1 reproduced, 1 partly.'
    """
    counts = Counter(claim.verdict for claim in claims)
    each = [f"{counts[name]} {name}" for name in get_args(Verdict) if counts[name]]
    total = counts.total()
    return f"{total} claim{'s' if total != 1 else ''}: {', '.join(each)}."
