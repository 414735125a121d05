"""`algoscope train`: train a learner, or resume training one."""

import math
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from algoscope.cli import complain, note, show
from algoscope.cli.console import given, training_options
from algoscope.cli.destinations import require_directory
from algoscope.foundation import cores_for_batch, num_cores
from algoscope.foundation.files import json_text
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.training.config import TrainingConfig, estimated_seconds, preset

if TYPE_CHECKING:

    class TrainingOptions:
        """One option per field of `TrainingConfig`."""

else:
    TrainingOptions = training_options("TrainingOptions", lambda f: f.type | None, None)


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a run is trained, and on what."""

    preset: str = "demo"
    """Where to start from: demo, d1, d2, d4, control-d4, d8 or paper."""
    out: Path | None = None
    """The run's directory. By default runs/PRESET-ID."""
    resume: bool = False
    """Resume the run in this directory."""
    devices: int | None = None
    """Devices to divide the batch over. By default all; on a CPU, one per core."""
    coordinator: str | None = None
    """HOST:PORT of process 0, to train over several processes."""
    num_processes: int | None = None
    """How many processes train together."""
    process_id: int | None = None
    """Which of them this is, from 0."""
    evaluation_datasets: int = 10_000
    """Held-out datasets for the table in the finished model's card."""
    name: str | None = None
    """The model's name in its card and in figures. By default the preset's."""
    json: bool = False
    """Print the result as JSON."""


@dataclass(frozen=True, kw_only=True)
class Train(TrainingOptions, RunOptions):
    """Train an in-context learner: a preset, with any of its choices changed."""

    @property
    def config(self) -> TrainingConfig:
        """The preset with the changes."""
        changes = given(self, TrainingConfig.__dataclass_fields__)
        return replace(preset(self.preset), **changes)


def run_train(command: Train) -> None:
    """Train, or resume training, and print the result."""
    config = command.config
    distributed = (command.coordinator, command.num_processes, command.process_id)
    if len({value is None for value in distributed}) > 1:
        raise InvalidValueError(
            "coordinator",
            "come together with --num-processes and --process-id",
            ", ".join(str(value) for value in distributed),
        )
    if command.devices is not None:
        require_at_least("devices", command.devices, 1)
    require_at_least("evaluation_datasets", command.evaluation_datasets, 1)
    out = command.out or Path("runs") / f"{command.preset}-{config.run_id}"
    name = command.name or command.preset
    if not name.isprintable():
        raise InvalidValueError("name", "hold printable characters", repr(name))
    require_directory("out", out)
    if command.resume and not (out / "config.json").is_file():
        rule = "hold a run to resume it"
        remedy = "Leave out --resume to start it there."
        raise InvalidValueError("out", rule, f"'{out}' without one", remedy)

    import jax

    shared = 1 if command.coordinator else cores_for_batch(config.batch_size)
    jax.config.update("jax_num_cpu_devices", command.devices or shared)
    if command.coordinator is not None:
        jax.distributed.initialize(
            command.coordinator, command.num_processes, command.process_id
        )

    from algoscope.foundation.progress import shown
    from algoscope.foundation.text import duration, short
    from algoscope.training.loop import TrainingDivergedError, data_mesh
    from algoscope.training.run import InterruptedRunError, Run, execute, locked

    mesh = data_mesh(None if command.coordinator else command.devices)
    run, lock = Run(out, config), ExitStack()
    if jax.process_index() == 0:
        run = Run.open(out, config, resume=command.resume)
        lock.enter_context(locked(out))
    note(
        f"Run {config.run_id} in {out}: {config.num_parameters:,} parameters, "
        f"{config.steps:,} steps of {config.flops_per_step / 1e9:.1f} GFLOP, about "
        f"{duration(estimated_seconds(config))} on {num_cores()} cores; "
        f"{mesh.size} device(s)."
    )
    if run.finished:
        note("This run is finished.")
    try:
        with lock, shown(True, plain=True) as progress:
            execute(
                run,
                name=name,
                mesh=mesh,
                progress=progress,
                evaluation_datasets=command.evaluation_datasets,
            )
    except InterruptedRunError as stopped:
        raise InterruptedRunError(f"{stopped} Continue with --resume.") from None
    except TrainingDivergedError as error:
        complain(error)
        sys.exit(1)
    if jax.process_index() > 0:
        return
    last = {"loss": math.nan, "seconds": 0.0, **run.log.latest()}
    if command.json:
        print(json_text({"run_id": config.run_id, "out": str(out), **last}))
        return
    show(
        f"{name}: loss {last['loss']:.4f}, SPD(OLS)/d {short(last.get('spd_ols'))}, "
        f"SPD(Bayes)/d {short(last.get('spd_bayes'))} after {config.steps:,} steps and "
        f"{duration(last['seconds'])}. Model: {out}"
    )
