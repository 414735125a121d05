"""How much of a long piece of work is done: one protocol for all of it.

Training, sweeps, comparisons, identification, probing, patching and experiments report
to a `Progress`: a function of the stage, the steps done, and all steps. Whoever calls
them may pass their own function, False for silence, or True for bars where a person is
watching: in a terminal or in a notebook.
"""

import html
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from algoscope.foundation.text import duration

PLAIN_SECONDS = 10  # between two lines, when the output is not a terminal


@runtime_checkable
class Progress(Protocol):
    """Is told, for each stage of some work, the steps done and all steps.

    `total` is None where nobody knows it. `note` is a few words on what was measured.
    A stage without steps is reported once, with 0 of None.
    """

    def __call__(
        self, stage: str, done: int, total: int | None, note: str = ""
    ) -> None: ...


def silent(stage: str, done: int, total: int | None, note: str = "") -> None:
    """Report nothing."""


class Steps:
    """Counts the steps of one stage, and reports each."""

    def __init__(self, progress: Progress, stage: str, total: int | None):
        self.progress, self.stage, self.total, self.done = progress, stage, total, 0

    def add(self, steps: int = 1, note: str = "") -> None:
        """Count some more."""
        self.done += steps
        self.progress(self.stage, self.done, self.total, note)


@contextmanager
def shown(progress: Progress | bool, *, plain: bool = False) -> Iterator[Progress]:
    """Yield whom to report to: a caller's function, bars, lines, or nobody.

    True shows bars in a terminal and in a notebook; with `plain`, which commands use,
    it prints a line now and then where the output is neither.
    """
    if not isinstance(progress, bool):
        yield progress
    elif not progress:
        yield silent
    elif _in_notebook():
        yield _notebook_bars()
    elif sys.stderr is not None and sys.stderr.isatty():
        with _terminal_bars() as bars:
            yield bars
    else:
        yield _lines() if plain else silent


@contextmanager
def _terminal_bars() -> Iterator[Progress]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from rich.progress import Progress as Bars

    with Bars(
        TextColumn("{task.description}", style="bold", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
    ) as bars:
        tasks: dict[str, Any] = {}

        def report(stage: str, done: int, total: int | None, note: str = "") -> None:
            if (done, total) == (0, None):
                bars.console.print(stage, markup=False, highlight=False)
                return
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, note=note)
            bars.update(tasks[stage], completed=done, total=total, note=note)

        yield report


def _lines() -> Progress:
    """Print the first report of a stage, then one now and then, and the last."""
    pace = _Pace()

    def report(stage: str, done: int, total: int | None, note: str = "") -> None:
        if not pace.is_due(stage, done, total, PLAIN_SECONDS):
            return
        count = f"{done:,}/{total:,}" if total is not None else f"{done:,}"
        count = "" if (done, total) == (0, None) else count
        left = pace.left(stage, done, total)
        print("  ".join(filter(None, [stage, count, note, left])), file=sys.stderr)
        sys.stderr.flush()

    return report


def _notebook_bars() -> Progress:
    """Show one line with a bar per stage, updated in place below the cell."""
    from IPython.display import (  # pyright: ignore[reportMissingImports]
        HTML,
        display,
    )

    pace, handles = _Pace(), {}

    def report(stage: str, done: int, total: int | None, note: str = "") -> None:
        if not pace.is_due(stage, done, total, 0.2):
            return
        limits = f'value="{done}" max="{total}"' if total is not None else ""
        count = f"{done:,} of {total:,}" if total is not None else f"{done:,}"
        words = "  ".join(filter(None, [count, note, pace.left(stage, done, total)]))
        line = HTML(
            f"<div>{html.escape(stage)} <progress {limits}></progress> "
            f"{html.escape(words)}</div>"
        )
        if stage in handles:
            handles[stage].update(line)
        else:
            handles[stage] = display(line, display_id=True)

    return report


class _Pace:
    """When each stage was last reported, and how fast it goes."""

    def __init__(self, clock: Callable[[], float] = time.monotonic):
        self.clock = clock
        self.begin: dict[str, tuple[float, int]] = {}  # the first report of a stage
        self.last: dict[str, float] = {}

    def is_due(self, stage: str, done: int, total: int | None, seconds: float) -> bool:
        now = self.clock()
        self.begin.setdefault(stage, (now, done))
        if now - self.last.get(stage, -seconds) < seconds and done != total:
            return False
        self.last[stage] = now
        return True

    def left(self, stage: str, done: int, total: int | None) -> str:
        since, before = self.begin[stage]
        if total is None or done <= before:
            return ""
        seconds = (self.clock() - since) / (done - before) * (total - done)
        return f"left {duration(seconds)}"


def _in_notebook() -> bool:
    """Return whether a Jupyter kernel runs this program."""
    shell = sys.modules.get("IPython")
    active = shell.get_ipython() if shell is not None else None
    return active is not None and "IPKernelApp" in getattr(active, "config", {})
