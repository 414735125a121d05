"""`algoscope sweep run | status | resume`: grids of training runs in one store."""

import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

from algoscope.cli import complain, note
from algoscope.cli.console import print_table, training_options
from algoscope.cli.destinations import require_directory
from algoscope.foundation import num_cores
from algoscope.foundation.files import json_text
from algoscope.foundation.text import duration, short, visible
from algoscope.foundation.validation import require_choice
from algoscope.training.config import TrainingConfig, estimated_seconds, preset
from algoscope.training.sweeps.engines import EngineKind, EngineOptions
from algoscope.training.sweeps.grid import FIELDS, GRIDS, Grid, SavedSweep, saved_sweeps
from algoscope.training.sweeps.store import ORDER, RunStatus, SweepStatus

MARGIN = 8  # lines of a terminal that are not rows of the table
SHOWN = 3  # combinations that are left out, named before the sweep starts

SUBCOMMANDS = ("run", "status", "resume")
EXAMPLES = """
algoscope sweep run --preset d8 --num-layers 1 2 4 --store runs
algoscope sweep run --preset d2 --seed 0 1 2 --steps 2000 --workers 2
algoscope sweep run --grid paper --engine slurm --partition gpu
algoscope sweep status runs
algoscope sweep resume runs --retry
"""


Store = Annotated[tyro.conf.Positional[Path], tyro.conf.arg(metavar="STORE")]


@dataclass(frozen=True, kw_only=True)
class Training:
    """How and where runs are trained."""

    engine: EngineKind = "processes"
    """inline: one after another; processes: one per core; ray; slurm."""
    workers: int | None = None
    """How many runs are trained at once. By default one per core of the engine."""
    cpus_per_run: int = 1
    """Cores of each run."""
    address: str = "local"
    """Address of a Ray cluster. By default one is started on this machine."""
    partition: str | None = None
    """Slurm's partition."""
    minutes: int = 1440
    """Minutes after which Slurm ends a job."""
    retry: bool = False
    """Train diverged and failed runs again, from their beginning."""
    json: bool = False
    """Print the runs as JSON."""


if TYPE_CHECKING:

    class Axes:
        """Any number of values for each field of `TrainingConfig`."""

else:
    Axes = training_options("Axes", lambda f: tuple[f.type, ...], ())


@dataclass(frozen=True, kw_only=True)
class GridOptions(Training):
    """Which runs are trained, and where they are kept."""

    store: Path = Path("runs")
    """The directory that holds a directory for each run."""
    preset: str = "d8"
    """What the runs have in common: demo, d1, d2, d4, control-d4, d8 or paper."""
    grid: str | None = None
    """A grid by name: paper, the 2,016 runs of figure 8. Values given here replace its
    own."""
    evaluation_datasets: int = 1000
    """Held-out datasets for the table in each finished model's card."""


@dataclass(frozen=True, kw_only=True)
class RunSweep(Axes, GridOptions):
    """Train every combination of the values that are given."""

    @property
    def expanded(self) -> Grid:
        """The named grid, or the preset, with the values that are given."""
        given = {name: value for name in FIELDS if (value := getattr(self, name))}
        if self.grid is None:
            return Grid(preset(self.preset), given)
        require_choice("grid", self.grid, GRIDS)
        named = GRIDS[self.grid]
        return Grid(named.base, {**named.axes, **given})


@dataclass(frozen=True, kw_only=True)
class ResumeSweep(Training):
    """Resume the sweeps of a store."""

    store: Store
    """The directory that holds the runs."""


@dataclass(frozen=True)
class ShowStatus:
    """Show where the runs of a store's sweeps are."""

    store: Store
    """The directory that holds the runs."""
    json: bool = False
    """Print the runs as JSON."""


Action = (
    Annotated[RunSweep, tyro.conf.subcommand("run", prefix_name=False)]
    | Annotated[ShowStatus, tyro.conf.subcommand("status", prefix_name=False)]
    | Annotated[ResumeSweep, tyro.conf.subcommand("resume", prefix_name=False)]
)


@dataclass(frozen=True)
class Sweep:
    """Train a grid of learners, show its status, or resume it."""

    action: tyro.conf.OmitArgPrefixes[Action]


def run_sweep(command: Sweep) -> None:
    """Do what is asked."""
    action = command.action
    if isinstance(action, ShowStatus):
        _show(_configs(saved_sweeps(action.store).values()), action.store, action.json)
        return
    require_directory("store", action.store)
    if isinstance(action, RunSweep):
        sweeps = [SavedSweep(action.expanded, action.evaluation_datasets)]
    else:
        sweeps = list(saved_sweeps(action.store).values())
    for sweep in sweeps:
        _train(sweep, action)
    failed = _show(_configs(sweeps), action.store, action.json)
    if failed:
        complain(f"{failed} runs failed; `algoscope sweep resume` tries them again.")
        sys.exit(1)


def _configs(sweeps) -> list[TrainingConfig]:
    """Return the runs of several sweeps, each once."""
    return list(
        dict.fromkeys(config for sweep in sweeps for config in sweep.grid.configs)
    )


def _train(sweep: SavedSweep, action: RunSweep | ResumeSweep) -> None:
    from algoscope.training.sweeps import train_all
    from algoscope.training.sweeps.store import read_run

    grid, store = sweep.grid, action.store
    for reason in grid.left_out[:SHOWN]:
        note(f"Left out: {reason}")
    if more := len(grid.left_out[SHOWN:]):
        note(f"Left out: {more} more.")
    sweep.save(store)
    runs = [read_run(config, store) for config in grid.configs]
    settled = ("finished",) if action.retry else ("finished", "diverged")
    todo = [run for run in runs if run.state not in settled]
    seconds = math.fsum(
        estimated_seconds(run.config) * (1 - run.step / run.config.steps)
        for run in todo
    )
    note(
        f"Sweep {grid.sweep_id} in {store}: {len(runs)} runs, {len(todo)} to train, "
        f"about {duration(seconds)} on {num_cores()} cores "
        f"({duration(seconds * num_cores())} of one core)."
    )
    with sweep_progress() as watch:
        train_all(
            grid.configs,
            store,
            engine=action.engine,
            workers=action.workers,
            evaluation_datasets=sweep.evaluation_datasets,
            retry=action.retry,
            watch=watch,
            options=EngineOptions(
                cpus_per_run=action.cpus_per_run,
                address=action.address,
                partition=action.partition,
                minutes=action.minutes,
            ),
        )


def _show(configs: Sequence[TrainingConfig], store: Path, as_json: bool) -> int:
    """Print where the runs are; returns how many failed."""
    from algoscope.training.sweeps.store import read_sweep

    status = read_sweep(configs, store)
    if as_json:
        runs = [
            {"run_id": run.config.run_id, "directory": str(store / run.config.run_id)}
            | asdict(run)
            for run in status.runs
        ]
        print(json_text({"counts": status.counts, "runs": runs}))
    else:
        print_status(status)
    return status.counts["failed"]


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
            visible(run.reason.partition(". ")[0], 200),
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
            note(
                f"{run.config.run_id}  {values}  {run.state}{reason}  "
                f"step {run.step}/{run.config.steps}  loss {short(run.loss)}  "
                f"SPD(OLS)/d {short(run.spd_ols)}  ({_headline(status)})"
            )

    return watch
