"""Where the runs of a sweep are, as a table that lives or as plain lines."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from algoscope.cli.console import print_table
from algoscope.foundation.text import duration, short
from algoscope.training.config import TrainingConfig
from algoscope.training.sweeps.grid import FIELDS
from algoscope.training.sweeps.store import ORDER, RunStatus, SweepStatus

MARGIN = 8  # lines of a terminal that are not rows of the table


def varying(configs: Sequence[TrainingConfig]) -> list[str]:
    """Return the fields in which the runs differ.

    Example:
        >>> from dataclasses import replace
        >>> config = TrainingConfig()
        >>> varying([config, replace(config, num_layers=2)])
        ['num_layers']
    """
    return [name for name in FIELDS if len({getattr(c, name) for c in configs}) > 1]


def _headline(status: SweepStatus) -> str:
    return f"{len(status.runs)} runs: {status.headline}"


def rows(
    runs: Sequence[RunStatus], names: Sequence[str]
) -> tuple[list[str], list[list[str]]]:
    """Return a header, and a row for each run."""
    header = ["run", *names, "state", "step", "loss", "SPD(OLS)/d", "left", "reason"]
    return header, [
        [
            run.config.run_id,
            *(_shown(run.config, name) for name in names),
            run.state,
            f"{run.step}/{run.config.steps}",
            short(run.loss),
            short(run.spd_ols),
            _left(run),
            run.reason.partition(". ")[0],
        ]
        for run in runs
    ]


def _shown(config: TrainingConfig, name: str) -> str:
    value = getattr(config, name)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _left(run: RunStatus) -> str:
    if run.state != "running" or not run.step:
        return "–"
    return duration(run.seconds * (run.config.steps / run.step - 1))


def print_status(status: SweepStatus) -> None:
    """Print every run."""
    names = varying([run.config for run in status.runs])
    print_table(_headline(status), *rows(status.runs, names))


@contextmanager
def sweep_progress() -> Iterator[Callable[[SweepStatus], None]]:
    """Show a live table in a terminal; elsewhere print a line when a run ends."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield _plain_watcher()
        return
    with Live(console=console, auto_refresh=False) as live:
        yield lambda status: live.update(
            _table(status, console.height - MARGIN), refresh=True
        )


def _table(status: SweepStatus, height: int) -> Table:
    """Return the runs that matter most now, as many as there is room for."""
    names = varying([run.config for run in status.runs])
    ordered = sorted(status.runs, key=lambda run: ORDER.index(run.state))
    header, cells = rows(ordered[: max(height, 1)], names)
    table = Table(title=Text(_headline(status)), title_justify="left")
    for name in header:
        table.add_column(Text(name), no_wrap=name != "reason")
    for *row, reason in cells:  # of which as much as there is room for
        table.add_row(*map(Text, row), Text(reason, no_wrap=True, overflow="ellipsis"))
    return table


def _plain_watcher() -> Callable[[SweepStatus], None]:
    told: set[RunStatus] | None = None

    def watch(status: SweepStatus) -> None:
        nonlocal told
        ended = [run for run in status.runs if run.ended]
        new = [] if told is None else [run for run in ended if run not in told]
        told = set(ended)
        names = varying([run.config for run in status.runs])
        for run in new:
            values = " ".join(f"{name}={_shown(run.config, name)}" for name in names)
            reason = f": {run.reason}" if run.reason else ""
            print(
                f"{run.config.run_id}  {values}  {run.state}{reason}  "
                f"step {run.step}/{run.config.steps}  loss {short(run.loss)}  "
                f"SPD(OLS)/d {short(run.spd_ols)}  ({_headline(status)})",
                file=sys.stderr,
                flush=True,
            )

    return watch
