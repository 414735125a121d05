"""`algoscope <command>`: what each command does with its options.

Exit status: 0 done, 1 failed, 2 bad input (one line), 130 interrupted and saved.
JAX is imported by the commands that compute, so that help is instant.
"""

import contextlib
import io
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import tyro

from algoscope.configuration import PRESETS, TrainingConfig, preset
from algoscope.constructing import run_build, run_trace
from algoscope.measuring import (
    allow_precision,
    complain,
    report_comparison,
    run_compare,
    run_identify,
)
from algoscope.options import (
    Build,
    Command,
    Compare,
    Demo,
    Evaluate,
    Identify,
    Models,
    Presets,
    Trace,
    Train,
)
from algoscope.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
)

CORE_FLOPS = 35e9  # per second and core: what training reaches at H = 64


def estimated_seconds(config: TrainingConfig) -> float:
    """Return about how long a run takes on this machine's cores."""
    return config.steps * config.flops_per_step / (CORE_FLOPS * _num_cores())


def _num_cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def _cores_that_share(batch_size: int) -> int:
    """Return the most cores, one virtual device each, that divide a batch evenly."""
    return next(n for n in range(_num_cores(), 0, -1) if batch_size % n == 0)


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

    shared = 1 if command.coordinator else _cores_that_share(config.batch_size)
    jax.config.update("jax_num_cpu_devices", command.devices or shared)
    if command.coordinator is not None:
        jax.distributed.initialize(
            command.coordinator, command.num_processes, command.process_id
        )

    from algoscope.console import duration, small, training_progress
    from algoscope.runs import Run, execute
    from algoscope.training import TrainingDivergedError, data_mesh

    mesh = data_mesh(None if command.coordinator else command.devices)
    run = Run(out, config)
    if jax.process_index() == 0:
        run = Run.open(out, config, resume=command.resume)
    _note(
        f"Run {config.run_id} in {out}: {config.num_parameters:,} parameters, "
        f"{config.steps:,} steps of {config.flops_per_step / 1e9:.1f} GFLOP, about "
        f"{duration(estimated_seconds(config))} on {_num_cores()} cores; "
        f"{mesh.size} device(s)."
    )
    if run.finished:
        _note("This run is finished.")
    name = command.name or command.preset
    try:
        with training_progress(name) as watch:
            execute(
                run,
                name=name,
                mesh=mesh,
                watch=watch,
                evaluation_datasets=command.evaluation_datasets,
            )
    except TrainingDivergedError as error:
        complain(error)
        sys.exit(1)
    if jax.process_index() > 0:
        return
    last = run.metrics()[-1]
    if command.json:
        print(json.dumps({"run_id": config.run_id, "out": str(out), **last}))
        return
    print(
        f"{name}: loss {last['loss']:.4f}, SPD(OLS)/d {small(last['spd_ols'])}, "
        f"SPD(Bayes)/d {small(last['spd_bayes'])} after {config.steps:,} steps and "
        f"{duration(last['seconds'])}. Model: {out}"
    )


def run_evaluate(command: Evaluate) -> None:
    """Compare a model with the references and print, save or draw the result."""
    require_at_least("num_datasets", command.num_datasets, 1)
    require_at_least("seed", command.seed, 0)
    if command.num_examples is not None:
        require_at_least("num_examples", command.num_examples, 1)
    from algoscope.checkpoints import read_json
    from algoscope.comparison import compare
    from algoscope.learner import InContextLearner
    from algoscope.predictors import figure_1_references
    from algoscope.pretrained import CONFIG, locate
    from algoscope.tasks import LinearRegression

    learner = InContextLearner.from_pretrained(command.model)
    allow_precision(learner)
    trained = read_json(locate(command.model) / CONFIG).get("training", {})

    def choice(name: str, default: float) -> float:
        given = getattr(command, name)
        return trained.get(name, default) if given is None else given

    task = LinearRegression(
        learner.dim, choice("prior_variance", 1.0), choice("noise_variance", 0.0)
    )
    comparison = compare(
        learner,
        figure_1_references(),
        task,
        num_examples=command.num_examples or learner.max_examples,
        num_datasets=command.num_datasets,
        seed=command.seed,
    )
    report_comparison(comparison, command)


def run_models(command: Models) -> None:
    """Print the shipped models."""
    from algoscope.cards import model_facts
    from algoscope.console import print_table, small
    from algoscope.pretrained import shipped_models

    facts = [model_facts(name) for name in shipped_models()]
    if command.json:
        print(json.dumps(facts))
        return
    header = ["model", "task", "d", "examples", "L", "H", "M", "SPD(OLS)/d"]
    rows = [
        [*(str(fact[name]) for name in header[:-1]), small(float(fact["spd_ols"]))]
        for fact in facts
    ]
    print_table("Models that come with algoscope", header, rows)


def run_presets(command: Presets) -> None:
    """Print the presets with their estimated cost."""
    if command.json:
        print(json.dumps({name: asdict(config) for name, config in PRESETS.items()}))
        return
    from algoscope.console import duration, print_table

    header = ["preset", "d", "n", "L", "H", "M", "parameters", "steps", "cost here"]
    rows = [
        [
            name,
            *map(
                str, (c.dim, c.num_examples, c.num_layers, c.hidden_size, c.num_heads)
            ),
            f"{c.num_parameters:,}",
            f"{c.steps:,}",
            f"about {duration(estimated_seconds(c))}",
        ]
        for name, c in PRESETS.items()
    ]
    print_table(f"Training presets, on {_num_cores()} cores", header, rows)


def run_demo(command: Demo) -> None:
    """Run the demonstration."""
    require_at_least("num_datasets", command.num_datasets, 1)
    import jax

    cores = _cores_that_share(preset("demo").batch_size)
    jax.config.update("jax_num_cpu_devices", cores)
    from algoscope import demo

    demo.run_demo(command.out, num_datasets=command.num_datasets)


RUNNERS: dict[type, Any] = {
    Train: run_train,
    Evaluate: run_evaluate,
    Compare: run_compare,
    Identify: run_identify,
    Build: run_build,
    Trace: run_trace,
    Models: run_models,
    Presets: run_presets,
    Demo: run_demo,
}
COMMANDS: dict[str, type] = {kind.__name__.lower(): kind for kind in RUNNERS}


def _note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _parse(arguments: Sequence[str]) -> Any:
    """Return the command, turning the parser's boxed complaints into one line."""
    complaint = io.StringIO()
    try:
        with contextlib.redirect_stderr(complaint):
            name, *rest = [*arguments, ""]
            if name in COMMANDS:  # building the parsers of the others would take longer
                kind, prog, rest = COMMANDS[name], f"algoscope {name}", rest[:-1]
                description = None
            else:
                kind, prog, rest = Command, "algoscope", arguments
                description = "See which learning algorithm an in-context learner runs."
            return tyro.cli(
                cast(Any, kind),
                prog=prog,
                description=description,
                args=list(rest),
                config=(tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone),
            )
    except SystemExit as stop:
        if stop.code:
            complain(_one_line(complaint.getvalue()))
        raise


def _one_line(boxed: str) -> str:
    """Return the words of a boxed message without its frame and advice on help.

    Example:
        >>> _one_line("╭─ Error ─╮\\n│ bad --steps │\\n│ ───── │\\n╰───╯")
        'bad --steps'
    """
    lines = [line.strip(" │") for line in boxed.splitlines()]
    words = [line for line in lines if line and not re.match(r"[╭╰]", line)]
    ends = [i for i, line in enumerate(words) if line.startswith("For full help")]
    kept = words[: ends[0]] if ends else words
    return " ".join(line for line in kept if set(line) != {"─"})


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command and exit with its status."""
    try:
        command = _parse(sys.argv[1:] if arguments is None else arguments)
        RUNNERS[type(command)](command)
    except (InvalidValueError, InvalidTypeError) as error:
        complain(error)
        sys.exit(2)
    except KeyboardInterrupt as interrupt:
        complain(interrupt or "interrupted.")
        sys.exit(130)


if __name__ == "__main__":
    main()
