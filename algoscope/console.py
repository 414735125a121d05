"""What a person sees in the terminal: progress, tables, and plain lines elsewhere."""

import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
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
from algoscope.identification import Identification
from algoscope.predictors import BlackBox, Predictor, Question
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


@runtime_checkable
class Counter(Protocol):
    """Is told how much is done, of how much, and what was measured."""

    def __call__(self, done: int, total: int, measured: str = "") -> None: ...


@contextmanager
def counting() -> Iterator[Callable[[str], Counter]]:
    """Show how much is done of each named piece of work: bars, or plain lines."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_counter
        return
    with ProgressBar(
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[measured]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=console,
    ) as bar:

        def start(label: str) -> Counter:
            task = bar.add_task(label, total=None, measured="")

            def count(done: int, total: int, measured: str = "") -> None:
                bar.update(task, completed=done, total=total, measured=measured)

            return count

        yield start


def _plain_counter(label: str) -> Counter:
    """Print a line at once, then now and then, and at the end."""
    last = -float("inf")
    begin: tuple[float, int] | None = None  # the pace counts from the first report

    def count(done: int, total: int, measured: str = "") -> None:
        nonlocal last, begin
        now = time.monotonic()
        begin = begin or (now, done)
        if now - last < PLAIN_SECONDS and done < total:
            return
        last = now
        parts = [label, f"{done:,}/{total:,}", measured]
        if done > begin[1]:
            pace = (now - begin[0]) / (done - begin[1])
            parts.append(f"left {duration(pace * (total - done))}")
        print("  ".join(filter(None, parts)), file=sys.stderr, flush=True)

    return count


@contextmanager
def training_progress(label: str) -> Iterator[Callable[[Progress], None]]:
    """Show how far a run is, its loss and its distance to least squares."""
    with counting() as start:
        count = start(label)

        def watch(progress: Progress) -> None:
            measured = f"loss {progress.loss:.4f}  SPD(OLS)/d {small(progress.spd_ols)}"
            count(progress.step, progress.steps, measured)

        yield watch


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


@dataclass(frozen=True)
class Watched:
    """A black box that reports how many questions it has answered."""

    box: BlackBox
    watch: Callable[[int], None]

    @property
    def name(self) -> str:
        """The name of the box."""
        return self.box.name

    def answers(self, questions: Iterable[Question], /) -> Iterator[np.ndarray]:
        """Pass on the answers, counting them."""
        for count, answer in enumerate(self.box.answers(questions), start=1):
            self.watch(count)
            yield answer


@contextmanager
def measuring(
    predictor: Predictor | BlackBox,
) -> Iterator[tuple[Predictor | BlackBox, Callable[[str], None]]]:
    """Show, in a terminal, what a measurement is doing.

    Yields the predictor, watched if it is a black box, and a function that names the
    stage. Elsewhere stages are not shown: the result is.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield predictor, lambda stage: None
        return
    with console.status(Text(f"measuring {predictor.name}")) as status:

        def show(stage: str) -> None:
            status.update(Text(stage))

        def count(answered: int) -> None:
            show(f"asking {predictor.name}: {answered:,} answers")

        if isinstance(predictor, BlackBox):
            predictor = Watched(predictor, count)
        yield predictor, show


def print_identification(found: Identification) -> None:
    """Print the ranked candidates, the answer per regime, and the answer."""
    names = [regime.name for regime in found.regimes]
    header = ["hypothesis", "distance", "95 % interval", *names]
    rows = [
        [
            candidate.name,
            small(candidate.distance),
            f"{small(candidate.low)}…{small(candidate.high)}",
            *(small(candidate.regimes[name]) for name in names),
        ]
        for candidate in found.candidates[:8]
    ]
    print_table(f"Which algorithm is {found.target}?", header, rows)
    for regime in found.regimes:
        span = "–".join(map(str, sorted({regime.first, regime.last})))
        print(
            f"{regime.name} (n = {span}): {regime.verdict}; nearest {regime.nearest} "
            f"at {small(regime.distance)}"
        )
    print(found.sentence)
