"""How much of a long computation is done: one protocol for all of them.

Training, sweeps, comparisons, identification, probing, patching and experiments report
to a `Progress`, a callback with the stage, the steps done and the total. The public
functions accept such a callback, False for silence, or True for progress bars in a
terminal and in a notebook.
"""

import html
import math
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

from algoscope.foundation.text import duration, visible

PLAIN_SECONDS = 10.0  # between two lines, when the output is not a terminal
NOTEBOOK_SECONDS = 0.2  # between two updates of a bar


@runtime_checkable
class Progress(Protocol):
    """A callback that receives, for each stage, the steps done and the total.

    `total` is None if it is unknown, and `note` holds a few words, such as a loss. A
    stage without steps is reported once, with `done` 0 and `total` None.
    """

    def __call__(
        self, stage: str, done: int, total: int | None, note: str = ""
    ) -> None: ...


def silent(stage: str, done: int, total: int | None, note: str = "") -> None:
    """Report nothing."""


class Steps:
    """Counts the steps of one stage and reports each."""

    def __init__(self, progress: Progress, stage: str, total: int | None):
        self.progress, self.stage, self.total, self.done = progress, stage, total, 0

    def add(self, steps: int = 1, note: str = "") -> None:
        """Count more steps and report them."""
        self.done += steps
        self.progress(self.stage, self.done, self.total, note)


@contextmanager
def shown(progress: Progress | bool, *, plain: bool = False) -> Iterator[Progress]:
    """Yield the callback to report to: the caller's own, bars, lines, or `silent`.

    True shows bars in a terminal and in a notebook. Elsewhere it shows nothing, or with
    `plain`, which commands use, a line every few seconds.

    Example:
        >>> with shown(lambda *report: print(report)) as progress:
        ...     Steps(progress, "probing", total=2).add(note="layer 1")
        ('probing', 1, 2, 'layer 1')
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


def _in_notebook() -> bool:
    """Return whether a Jupyter kernel runs this program."""
    shell = sys.modules.get("IPython")
    active = shell.get_ipython() if shell is not None else None
    return active is not None and "IPKernelApp" in getattr(active, "config", {})


def _has_no_steps(done: int, total: int | None) -> bool:
    return (done, total) == (0, None)


@contextmanager
def _terminal_bars() -> Iterator[Progress]:
    """Show one bar per stage; a stage without steps is a line above them."""
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
            stage, note = visible(stage), visible(note)
            if _has_no_steps(done, total):
                bars.console.print(stage, markup=False, highlight=False)
                return
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, note=note)
            bars.update(tasks[stage], completed=done, total=total, note=note)

        yield report


def _notebook_bars() -> Progress:
    """Show one line with a bar per stage, updated in place below the cell."""
    from IPython.display import (  # pyright: ignore[reportMissingImports]
        HTML,
        display,
    )

    pace, handles = _Pace(NOTEBOOK_SECONDS), {}

    def report(stage: str, done: int, total: int | None, note: str = "") -> None:
        if not pace.is_due(stage, done, total):
            return
        parts = [html.escape(stage)]
        if not _has_no_steps(done, total):
            limits = f' value="{done}" max="{total}"' if total is not None else ""
            parts.append(f"<progress{limits}></progress>")
            parts.append(f"{done:,}" if total is None else f"{done:,} of {total:,}")
        parts += [html.escape(note), pace.left(stage, done, total)]
        line = HTML(f"<div>{' '.join(filter(None, parts))}</div>")
        if stage in handles:
            handles[stage].update(line)
        else:
            handles[stage] = display(line, display_id=True)

    return report


def _lines() -> Progress:
    """Print the first report of a stage, one every few seconds, and the last."""
    pace = _Pace(PLAIN_SECONDS)

    def report(stage: str, done: int, total: int | None, note: str = "") -> None:
        if not pace.is_due(stage, done, total):
            return
        count = f"{done:,}" if total is None else f"{done:,}/{total:,}"
        count = "" if _has_no_steps(done, total) else count
        parts = [stage, count, note, pace.left(stage, done, total)]
        line = visible("  ".join(filter(None, parts)))
        print(line, file=sys.stderr, flush=True)

    return report


class _Pace:
    """When each stage is next shown, and how long it will still take."""

    def __init__(self, seconds: float):
        self.seconds = seconds  # between two updates of a stage
        self.first: dict[str, tuple[float, int]] = {}  # when, and the steps done
        self.last: dict[str, float] = {}

    def is_due(self, stage: str, done: int, total: int | None) -> bool:
        """Return whether to show this report: the first, the last, or a timely one."""
        now = time.monotonic()
        self.first.setdefault(stage, (now, done))
        waited = now - self.last.get(stage, -math.inf)
        if waited < self.seconds and done != total:
            return False
        self.last[stage] = now
        return True

    def left(self, stage: str, done: int, total: int | None) -> str:
        """Return the time left at the pace since the first report, if it is known."""
        start, before = self.first[stage]
        if total is None or not before < done < total:
            return ""
        seconds = (time.monotonic() - start) / (done - before) * (total - done)
        return f"left {duration(seconds)}"
