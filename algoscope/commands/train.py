"""`algoscope train`: train a learner, or go on with one."""

import sys
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path

from algoscope.commands.given import given
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
from algoscope.machine import cores_that_share, estimated_seconds, num_cores
from algoscope.strict_json import json_text
from algoscope.validation import InvalidValueError, require_at_least


@dataclass(frozen=True)
class Train:
    """Train an in-context learner: a preset, with any of its choices changed."""

    preset: str = "demo"
    """Where to start from: demo, d1, d2, d4, control-d4, d8 or paper."""
    out: Path | None = None
    """The run's directory. By default runs/PRESET-ID."""
    resume: bool = False
    """Go on with the run in this directory."""
    steps: int | None = None
    """How many steps to train for."""
    seed: int | None = None
    """Seed of the initial weights and of the data."""
    task: TaskKind | None = None
    """linear: w is drawn for every dataset; control: w is always 1."""
    dim: int | None = None
    """d, the number of coordinates of x."""
    num_examples: int | None = None
    """n, the pairs (x, y) in a training sequence."""
    prior_variance: float | None = None
    """τ², the variance of w."""
    noise_variance: float | None = None
    """σ², the variance of the label noise."""
    num_layers: int | None = None
    """L, the depth."""
    hidden_size: int | None = None
    """H, the width."""
    num_heads: int | None = None
    """M, the attention heads."""
    block: BlockKind | None = None
    """The paper's block, or the modern one with a norm before attention."""
    activation: Activation | None = None
    """σ, the nonlinearity of the feed-forward part."""
    initialization: Initialization | None = None
    """How the first weights are drawn."""
    recipe: Recipe | None = None
    """fast: Muon; paper: Adam."""
    learning_rate: float | None = None
    """The highest learning rate."""
    weight_decay: float | None = None
    """Weight decay."""
    warmup: float | None = None
    """Share of the steps over which the learning rate rises."""
    clip: float | None = None
    """Largest norm of a gradient; 0: no limit."""
    batch_size: int | None = None
    """Datasets per step."""
    curriculum: bool | None = None
    """Grow the dimension and the length over the first third."""
    steps_per_call: int | None = None
    """Steps in one compiled call."""
    evaluate_every: int | None = None
    """Steps between two evaluations."""
    save_every: int | None = None
    """Steps between two saves."""
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

    @property
    def config(self) -> TrainingConfig:
        """The preset with the changes."""
        changes = given(self, TrainingConfig.__dataclass_fields__)
        return replace(preset(self.preset), **changes)


def run_train(command: Train) -> None:
    """Train, or go on training, and print what came out."""
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

    import jax

    shared = 1 if command.coordinator else cores_that_share(config.batch_size)
    jax.config.update("jax_num_cpu_devices", command.devices or shared)
    if command.coordinator is not None:
        jax.distributed.initialize(
            command.coordinator, command.num_processes, command.process_id
        )

    from algoscope.console import duration, small, training_progress
    from algoscope.runs import InterruptedRunError, Run, execute
    from algoscope.sweeps.locks import held, owner
    from algoscope.training import TrainingDivergedError, data_mesh

    mesh = data_mesh(None if command.coordinator else command.devices)
    run, locked = Run(out, config), ExitStack()
    if jax.process_index() == 0:
        run = Run.open(out, config, resume=command.resume)
        if not locked.enter_context(held(out)):
            rule = "be a run that no other process trains now"
            host, process = owner(out) or ("another host", "one")
            trainer = f"{out}, which process {process} on {host} trains"
            raise InvalidValueError("out", rule, trainer)
    note(
        f"Run {config.run_id} in {out}: {config.num_parameters:,} parameters, "
        f"{config.steps:,} steps of {config.flops_per_step / 1e9:.1f} GFLOP, about "
        f"{duration(estimated_seconds(config))} on {num_cores()} cores; "
        f"{mesh.size} device(s)."
    )
    if run.finished:
        note("This run is finished.")
    name = command.name or command.preset
    try:
        with locked, training_progress(name) as watch:
            execute(
                run,
                name=name,
                mesh=mesh,
                watch=watch,
                evaluation_datasets=command.evaluation_datasets,
            )
    except InterruptedRunError as stopped:
        raise InterruptedRunError(f"{stopped} --resume goes on.") from None
    except TrainingDivergedError as error:
        complain(error)
        sys.exit(1)
    if jax.process_index() > 0:
        return
    last = run.metrics()[-1]
    if command.json:
        print(json_text({"run_id": config.run_id, "out": str(out), **last}))
        return
    print(
        f"{name}: loss {last['loss']:.4f}, SPD(OLS)/d {small(last['spd_ols'])}, "
        f"SPD(Bayes)/d {small(last['spd_bayes'])} after {config.steps:,} steps and "
        f"{duration(last['seconds'])}. Model: {out}"
    )
