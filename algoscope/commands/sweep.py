"""`algoscope sweep run | status | resume`: grids of training runs in one store."""

import math
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import tyro

from algoscope.commands.messages import complain, note
from algoscope.configuration import (
    Activation,
    BlockKind,
    Initialization,
    Recipe,
    TaskKind,
    TrainingConfig,
    preset,
)
from algoscope.machine import estimated_seconds, num_cores
from algoscope.strict_json import json_text
from algoscope.sweeps.engines import EngineKind, EngineOptions
from algoscope.sweeps.grid import FIELDS, GRIDS, Grid
from algoscope.sweeps.saved import SavedSweep, saved_sweeps
from algoscope.validation import require_choice

SHOWN = 3  # combinations that are left out, named before the sweep starts


@dataclass(frozen=True, kw_only=True)
class Training:
    """How and where runs are trained."""

    engine: EngineKind = "processes"
    """inline: one after another; processes: one for each core; ray; slurm."""
    workers: int | None = None
    """How many runs go on at once. By default one for each core of the engine."""
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


@dataclass(frozen=True, kw_only=True)
class Run(Training):
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
    task: tuple[TaskKind, ...] = ()
    """linear, control."""
    dim: tuple[int, ...] = ()
    """d, the number of coordinates of x."""
    prior_variance: tuple[float, ...] = ()
    """τ², the variance of w."""
    noise_variance: tuple[float, ...] = ()
    """σ², the variance of the label noise."""
    num_examples: tuple[int, ...] = ()
    """n, the pairs (x, y) in a training sequence."""
    num_layers: tuple[int, ...] = ()
    """L, the depth."""
    hidden_size: tuple[int, ...] = ()
    """H, the width."""
    num_heads: tuple[int, ...] = ()
    """M, the attention heads."""
    block: tuple[BlockKind, ...] = ()
    """pre_norm, paper."""
    activation: tuple[Activation, ...] = ()
    """σ, the nonlinearity of the feed-forward part."""
    initialization: tuple[Initialization, ...] = ()
    """How the first weights are drawn."""
    recipe: tuple[Recipe, ...] = ()
    """fast, paper."""
    learning_rate: tuple[float, ...] = ()
    """The highest learning rate."""
    weight_decay: tuple[float, ...] = ()
    """Weight decay."""
    warmup: tuple[float, ...] = ()
    """Share of the steps over which the learning rate rises."""
    clip: tuple[float, ...] = ()
    """Largest norm of a gradient; 0: no limit."""
    steps: tuple[int, ...] = ()
    """How many steps to train for."""
    batch_size: tuple[int, ...] = ()
    """Datasets per step."""
    curriculum: tuple[bool, ...] = ()
    """Grow the dimension and the length over the first third."""
    seed: tuple[int, ...] = ()
    """Seed of the initial weights and of the data."""
    steps_per_call: tuple[int, ...] = ()
    """Steps in one compiled call."""
    evaluate_every: tuple[int, ...] = ()
    """Steps between two evaluations."""
    save_every: tuple[int, ...] = ()
    """Steps between two saves."""

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
    """Go on with the sweeps of a store."""

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
    """Train a grid of learners, see how far it is, and go on with it."""

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
    from algoscope.commands.sweep_table import sweep_progress
    from algoscope.console import duration
    from algoscope.sweeps import train_all
    from algoscope.sweeps.progress import read_run

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
    from algoscope.commands.sweep_table import print_status
    from algoscope.sweeps.watching import Watcher

    progress = Watcher(configs, store).read()
    if as_json:
        runs = [
            {"run_id": run.config.run_id, "directory": str(store / run.config.run_id)}
            | asdict(run)
            for run in progress.runs
        ]
        print(json_text({"counts": progress.counts, "runs": runs}))
    else:
        print_status(progress)
    return progress.counts["failed"]
