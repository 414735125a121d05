"""`algoscope sweep run | status | resume`: grids of training runs in one store."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro

from algoscope.cli.options import complain, note, training_options
from algoscope.foundation.files import json_text
from algoscope.foundation.machine import num_cores
from algoscope.foundation.validation import require_choice
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.cost import estimated_seconds
from algoscope.training.sweeps.engines import EngineKind, EngineOptions
from algoscope.training.sweeps.grid import FIELDS, GRIDS, Grid, SavedSweep, saved_sweeps

SHOWN = 3  # combinations that are left out, named before the sweep starts


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
    Axes = object
else:
    Axes = training_options("Axes", lambda f: tuple[f.type, ...], ())


@dataclass(frozen=True, kw_only=True)
class Run(Training, Axes):
    """Train every combination of the values that are given."""

    store: Path = Path("runs")
    """The directory that holds a directory for each run."""
    preset: str = "d8"
    """What the runs have in common: demo, d1, d2, d4, control-d4, d8 or paper."""
    grid: str | None = None
    """A grid by name: paper, the 2,016 runs of figure 8. Values given here replace its
    own."""
    evaluation_datasets: int = 1000
    """Held-out datasets for the table in each finished model's card."""

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
class Resume(Training):
    """Resume the sweeps of a store."""

    store: tyro.conf.Positional[Path]
    """The directory that holds the runs."""


@dataclass(frozen=True)
class Status:
    """Show where the runs of a store's sweeps are."""

    store: tyro.conf.Positional[Path]
    """The directory that holds the runs."""
    json: bool = False
    """Print the runs as JSON."""


Action = (
    Annotated[Run, tyro.conf.subcommand("run", prefix_name=False)]
    | Annotated[Status, tyro.conf.subcommand("status", prefix_name=False)]
    | Annotated[Resume, tyro.conf.subcommand("resume", prefix_name=False)]
)


@dataclass(frozen=True)
class Sweep:
    """Train a grid of learners, show its status, or resume it."""

    action: tyro.conf.OmitArgPrefixes[Action]


def run_sweep(command: Sweep) -> None:
    """Do what is asked."""
    action = command.action
    if isinstance(action, Status):
        _show(_configs(saved_sweeps(action.store).values()), action.store, action.json)
        return
    if isinstance(action, Run):
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


def _train(sweep: SavedSweep, action: Run | Resume) -> None:
    from algoscope.cli.sweep_table import sweep_progress
    from algoscope.foundation.text import duration
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
    from algoscope.cli.sweep_table import print_status
    from algoscope.training.sweeps.sweep import Watcher

    status = Watcher(configs, store).read()
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
