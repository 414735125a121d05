"""Tables and results as a user sees them in the terminal."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

from algoscope.foundation.text import short

if TYPE_CHECKING:
    from algoscope.comparison.result import Comparison
    from algoscope.identification import Identification

PLAIN_WIDTH = 200  # characters where the output is no terminal: no table is cut


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    table = Table(title=Text(title), title_justify="left")
    for index, name in enumerate(header):
        justify = "right" if index else "left"
        table.add_column(Text(name), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    console.print(table)


def print_comparison(comparison: "Comparison") -> None:
    """Print the table by regime and the sentence that answers."""
    header, rows = comparison.summary()
    print_table(f"SPD/d of {comparison.learner} to each reference", header, rows)
    print(comparison.sentence)


def print_identification(found: "Identification") -> None:
    """Print the ranked candidates, the answer per regime, and the answer."""
    names = [regime.name for regime in found.regimes]
    header = ["hypothesis", "distance", "95 % interval", *names]
    rows = [
        [
            candidate.name,
            short(candidate.distance),
            f"{short(candidate.low)}…{short(candidate.high)}",
            *(short(candidate.regimes[name]) for name in names),
        ]
        for candidate in found.candidates[:8]
    ]
    print_table(f"Which algorithm is {found.target}?", header, rows)
    for regime in found.regimes:
        span = "–".join(map(str, sorted({regime.first, regime.last})))
        print(
            f"{regime.name} (n = {span}): {regime.verdict}; nearest {regime.nearest} "
            f"at {short(regime.distance)}"
        )
    print(found.sentence)
