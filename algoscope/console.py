"""What a person sees in the terminal: progress, tables, and plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.progress import Progress as ProgressBar
from rich.table import Table
from rich.text import Text

from algoscope import verdict
from algoscope.comparison import Comparison
from algoscope.runs import Progress

# When the output is not a terminal:
PLAIN_SECONDS = 10  # between two lines of progress
PLAIN_WIDTH = 200  # characters, so that no table is cut


def duration(seconds: float) -> str:
    """Return a duration to two digits of sense.

    Example:
        >>> duration(42.0), duration(1300.0), duration(5e6)
        ('42 s', '22 min', '58 days')
    """
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            amount = seconds / size
            return f"{amount:.0f} {unit}" if amount >= 9.95 else f"{amount:.1f} {unit}"
    return f"{seconds:.0f} s"


def small(value: float | None) -> str:
    """Return a small number with two significant digits, or a dash for none."""
    return "–" if value is None else f"{value:.2g}"


@contextmanager
def training_progress(label: str) -> Iterator[Callable[[Progress], None]]:
    """Show a live bar in a terminal; print a line now and then elsewhere."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_watcher(label)
        return
    columns = (
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("loss {task.fields[loss]}  SPD(OLS)/d {task.fields[spd]}"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with ProgressBar(*columns, console=console) as bar:
        task = bar.add_task(label, total=None, loss="–", spd="–")

        def watch(progress: Progress) -> None:
            bar.update(
                task,
                completed=progress.step,
                total=progress.steps,
                loss=f"{progress.loss:.4f}",
                spd=small(progress.spd_ols),
            )

        yield watch


def _plain_watcher(label: str) -> Callable[[Progress], None]:
    last = -float("inf")
    begin: Progress | None = None

    def watch(progress: Progress) -> None:
        nonlocal last, begin
        begin = begin or progress
        now = time.monotonic()
        if now - last < PLAIN_SECONDS and progress.step < progress.steps:
            return
        last = now
        steps = progress.step - begin.step
        left = ""
        if steps:
            pace = (progress.seconds - begin.seconds) / steps
            left = f"  left {duration(pace * (progress.steps - progress.step))}"
        print(
            f"{label}  step {progress.step}/{progress.steps}  "
            f"loss {progress.loss:.4f}  SPD(OLS)/d {small(progress.spd_ols)}{left}",
            file=sys.stderr,
            flush=True,
        )

    return watch


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


def print_comparison(comparison: Comparison) -> None:
    """Print the table by regime and the sentence that answers."""
    header, rows = verdict.table(comparison)
    print_table(f"SPD/d of {comparison.learner} to each reference", header, rows)
    print(verdict.sentence(comparison))
