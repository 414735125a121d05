"""Values as options of a command line."""

import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from algoscope.comparison.result import Comparison
from algoscope.construction.build import Construction, listing, read_construction
from algoscope.experiments.record import Table
from algoscope.foundation.files import DamagedFileError, read_json
from algoscope.foundation.text import duration, short
from algoscope.model.checkpoints import CONFIG, EVALUATION
from algoscope.reporting.section import Section, drawn, training_figure
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.run import METRICS, Run
from algoscope.training.sweeps.store import read_outcome


def options(values: dict[str, Any]) -> Iterator[str]:
    """Yield the words that give these values; a flag is given by its name alone.

    Example:
        >>> list(options({"num_layers": 2, "pre_norm": True}))
        ['--num-layers', '2', '--pre-norm']
    """
    for name, value in values.items():
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield str(value)


UNFINISHED = "unfinished"  # not started, running, or interrupted


def load_run(directory: Path) -> tuple[Run, dict[str, Any], list[dict[str, Any]]]:
    """Return the run, what config.json says about it, and its metrics."""
    about = read_json(directory / CONFIG)
    run = Run(directory, TrainingConfig.from_dict(about.get("training")))
    metrics = run.metrics()
    for row in metrics:
        if not isinstance(row, dict) or not {"step", "loss", "seconds"} <= set(row):
            problem = f"has a row without step, loss and seconds: {row!r}"
            raise DamagedFileError(directory / METRICS, problem)
    return run, about, metrics


def run_section(directory: Path) -> Section:
    """Return what is known of the run in this directory."""
    run, about, metrics = load_run(directory)
    config, name = run.config, str(about.get("name", directory.resolve().name))
    findings = [_progress(run, metrics)]
    pictures, tables, versions = [], [], about.get("versions", {})
    if metrics:
        pictures.append(drawn("Training", str(directory), training_figure(metrics)))
    if (directory / EVALUATION).exists():
        comparison = Comparison.load(directory / EVALUATION)
        findings.append(comparison.sentence)
        source = str(directory / EVALUATION)
        pictures.append(drawn("Comparison", source, comparison.plot()))
        tables.append(comparison_table(comparison))
        versions = versions or comparison.versions
    facts = {
        "run": config.run_id,
        "parameters": f"{config.num_parameters:,}",
        "training time": duration(metrics[-1]["seconds"] if metrics else 0.0),
    }
    return Section(
        title=f"Training run {name}",
        source=str(directory),
        findings=tuple(findings),
        pictures=tuple(pictures),
        tables=tuple(tables),
        facts=facts,
        command=train_command(config, name),
        details={"Configuration": asdict(config)},
        versions=versions,
    )


def comparison_table(comparison: Comparison) -> Table:
    """Return SPD/d to each reference, by regime."""
    header, rows = comparison.summary()
    title = f"SPD/d of {comparison.learner} to each reference"
    return Table(title, tuple(header), tuple(map(tuple, rows)))


def train_command(config: TrainingConfig, name: str) -> str:
    """Return the command that trains this run: the nearest preset, and what differs.

    Example:
        >>> train_command(TrainingConfig(steps=100), "short")
        'algoscope train --preset d8 --steps 100 --name short'
    """
    wanted = asdict(config)

    def changes(preset: str) -> dict[str, Any]:
        given = asdict(PRESETS[preset])
        return {key: wanted[key] for key in wanted if wanted[key] != given[key]}

    nearest = min(PRESETS, key=lambda preset: len(changes(preset)))
    words = ["algoscope", "train", "--preset", nearest, *options(changes(nearest))]
    words += ["--name", name] if name != nearest else []
    return shlex.join(words)


def newest(metrics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the newest value of everything that was measured."""
    return {key: value for row in metrics for key, value in row.items()}


def _progress(run: Run, metrics: Sequence[dict[str, Any]]) -> str:
    """Return how far the run came, and why not further."""
    outcome = read_outcome(run.config, run.directory)
    status = outcome.status if outcome else UNFINISHED
    done = f"{newest(metrics).get('step', 0):,} of {run.config.steps:,} steps"
    reason = f": {outcome.reason}" if outcome and outcome.reason else "."
    return f"{status.capitalize()} after {done}{reason}"


CHOICES = {
    "d": "dim",
    "τ²": "prior_variance",
    "σ²": "noise_variance",
    "L": "num_layers",
    "H": "hidden_size",
    "M": "num_heads",
    "learning rate": "learning_rate",
    "seed": "seed",
}
MEASURED = ("steps", "loss", "SPD(OLS)/d", "SPD(Bayes)/d", "status")
STORE_HEADER = ("run", "task", *CHOICES, *MEASURED)


def store_section(directory: Path, runs: Sequence[Path]) -> Section:
    """Return one row for each of the runs in a directory."""
    rows = []
    for path in runs:
        run, about, metrics = load_run(path)
        c, last = run.config, newest(metrics)
        outcome = read_outcome(c, path)
        rows.append(
            (
                str(about.get("name", path.name)),
                c.task,
                *(_shown(getattr(c, name)) for name in CHOICES.values()),
                f"{last.get('step', 0):,} of {c.steps:,}",
                *(short(last.get(key)) for key in ("loss", "spd_ols", "spd_bayes")),
                outcome.status if outcome else UNFINISHED,
            )
        )
    counts = Counter(row[-1] for row in rows)
    each = [f"{count:,} {status}" for status, count in sorted(counts.items())]
    return Section(
        title=f"Training runs in {directory.resolve().name}",
        source=str(directory),
        findings=(f"{len(rows):,} runs: {', '.join(each)}.",),
        tables=(Table("Runs", STORE_HEADER, tuple(rows)),),
    )


def _shown(value: float | int) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


LISTING_HEADER = ("layer", "part", "register", "rows", "operation")


def construction_section(directory: Path) -> Section:
    """Return the program of a saved construction, layer by layer."""
    construction = read_construction(directory)
    arrangement = construction.arrange()
    rows = tuple(
        (str(line.layer), line.part, line.register, line.rows, line.operation)
        for line in listing(arrangement)
    )
    return Section(
        title=f"Written by hand: {construction.name}",
        source=str(directory),
        findings=(
            f"{arrangement.num_layers} layers of width {arrangement.hidden_size} run "
            f"it for d = {construction.dim} after up to {construction.num_examples} "
            f"examples, in {construction.dtype}.",
        ),
        tables=(Table("What each layer does", LISTING_HEADER, rows),),
        command=build_command(construction, directory.resolve().name),
        details={"Construction": construction.as_dict()},
    )


def build_command(construction: Construction, out: str) -> str:
    """Return the command that writes this transformer.

    Example:
        >>> from algoscope.construction.algorithms import MinimumNorm
        >>> build_command(Construction(MinimumNorm(), dim=2), "mine")
        'algoscope build ols --dim 2 --examples 20 --out mine'
    """
    words = ["algoscope", "build", construction.algorithm.name]
    words += ["--dim", str(construction.dim)]
    words += ["--examples", str(construction.num_examples)]
    chosen = dict(construction.parameters)
    for each in fields(construction)[3:]:
        if getattr(construction, each.name) != each.default:
            chosen[each.name] = getattr(construction, each.name)
    return shlex.join([*words, *options(chosen), "--out", out])
