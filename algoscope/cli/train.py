"""`algoscope train`: train a learner, or resume training one."""

import ipaddress
import math
import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from algoscope.cli import complain, note, show
from algoscope.cli.console import given, training_options, use_cores
from algoscope.cli.destinations import require_directory
from algoscope.foundation import cores_for_batch, num_cores
from algoscope.foundation.files import json_text
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.training.config import TrainingConfig, estimated_seconds, preset

# What a learner to start from decides.
SIZES = (
    "dim",
    "num_examples",
    "num_layers",
    "hidden_size",
    "num_heads",
    "block",
    "activation",
    "initialization",
)

if TYPE_CHECKING:

    class TrainingOptions:
        """One option per field of `TrainingConfig`."""

        __dataclass_fields__: dict[str, Any]

else:
    TrainingOptions = training_options("TrainingOptions", lambda f: f.type | None, None)

EXAMPLES = """
algoscope train --preset demo                            # half a minute
algoscope train --preset d4 --out runs/my-d4             # Ctrl-C saves
algoscope train --preset d4 --out runs/my-d4 --resume
algoscope train --preset d2 --num-layers 2 --noise-variance 0.25 --steps 4000
algoscope train --from my_sgd --steps 2000               # build --trainable wrote it
"""


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Where a run is trained, and on what."""

    preset: str | None = None
    """The choices to begin with: demo, d1, d2, d4, control-d4, d8, paper, or tune. By
    default demo, and tune with --from."""
    from_: Annotated[str | None, tyro.conf.arg(name="from")] = None
    """Train a saved learner further, such as one that `algoscope build --trainable`
    wrote. Its sizes take the place of the preset's."""
    random_layers: tuple[int, ...] = ()
    """Layers of that learner, from 1, to replace by random ones."""
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
        changes = given(self, TrainingOptions.__dataclass_fields__)
        return replace(preset(self.preset_name), **changes)

    @property
    def preset_name(self) -> str:
        """The preset that was chosen, or the default."""
        return self.preset or ("tune" if self.from_ else "demo")


def run_train(command: Train) -> None:
    """Train, or resume training, and print the result."""
    config = command.config
    _require_no_sizes(command)
    distributed = (command.coordinator, command.num_processes, command.process_id)
    if len({value is None for value in distributed}) > 1:
        raise InvalidValueError(
            "coordinator",
            "come together with --num-processes and --process-id",
            ", ".join(str(value) for value in distributed),
        )
    if command.coordinator is not None:
        _require_coordinator(command)
    if command.devices is not None:
        require_at_least("devices", command.devices, 1)
    require_at_least("evaluation_datasets", command.evaluation_datasets, 1)
    name = command.name or command.preset_name
    if not name.isprintable():
        raise InvalidValueError("name", "hold printable characters", repr(name))
    if command.out is not None:
        _require_place(command.out, command.resume)

    import jax

    shared = 1 if command.coordinator else cores_for_batch(config.batch_size)
    use_cores(command.devices or shared)
    if command.coordinator is not None:
        _join(command.coordinator, command.num_processes, command.process_id)

    from algoscope.foundation.progress import shown
    from algoscope.foundation.text import duration, short
    from algoscope.training.loop import TrainingDivergedError, data_mesh
    from algoscope.training.run import InterruptedRunError, Run, execute, locked
    from algoscope.training.start import starting_from

    mesh = data_mesh(None if command.coordinator else command.devices)
    start = _start(command)
    if start is not None:
        config = starting_from(config, start)
    out = command.out or Path("runs") / f"{command.preset_name}-{config.run_id}"
    _require_place(out, command.resume)
    run, lock = Run(out, config), ExitStack()
    if jax.process_index() == 0:
        run = Run.open(out, config, resume=command.resume, start=start)
        lock.enter_context(locked(out))
    size = config.num_parameters if start is None else start.transformer.num_parameters
    note(
        f"Run {config.run_id} in {out}: {size:,} parameters, "
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


def _require_coordinator(command: Train) -> None:
    """Reject an address or a process that cannot be."""
    host, _, port = (command.coordinator or "").rpartition(":")
    if not host or not port.isdecimal() or not 0 < int(port) < 2**16:
        found = repr(command.coordinator)
        raise InvalidValueError("coordinator", "be HOST:PORT", found)
    require_at_least("num_processes", command.num_processes or 0, 1)
    require_at_least("process_id", command.process_id or 0, 0)
    if (command.process_id or 0) >= (command.num_processes or 0):
        rule = f"be less than the {command.num_processes} processes"
        raise InvalidValueError("process_id", rule, command.process_id)


def _join(coordinator: str, num_processes: int | None, process_id: int | None) -> None:
    """Train with other processes; those of one machine listen to that machine only."""
    import jax

    host, _, port = coordinator.rpartition(":")
    address = "127.0.0.1" if host == "localhost" else host
    try:
        is_loopback = ipaddress.ip_address(address.strip("[]")).is_loopback
    except ValueError:  # a name
        is_loopback = False
    own = f"{address}:{port}" if is_loopback else None
    jax.distributed.initialize(
        coordinator, num_processes, process_id, coordinator_bind_address=own
    )


def _require_place(out: Path, resume: bool) -> None:
    """Reject a directory that cannot hold a run, or holds none to resume."""
    require_directory("out", out)
    if resume and not (out / "config.json").is_file():
        rule = "hold a run to resume it"
        remedy = "Leave out --resume to start it there."
        raise InvalidValueError("out", rule, f"'{out}' without one", remedy)


def _require_no_sizes(command: Train) -> None:
    """Reject sizes beside --from, and --random-layers without it."""
    if command.from_ is None:
        if command.random_layers:
            raise InvalidValueError(
                "random_layers", "come together with --from", command.random_layers
            )
        return
    for name, value in given(command, SIZES).items():
        raise InvalidValueError(
            name, "be left out beside --from, whose learner has its own", value
        )


def _start(command: Train) -> Any:
    """Return the learner to start from, if one is named."""
    if command.from_ is None:
        return None
    from algoscope.training.start import load_start, redraw

    start = load_start(command.from_)
    if command.random_layers:
        start = redraw(start, command.random_layers, command.config.seed)
    return start
