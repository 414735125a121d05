"""A training run as a section."""

import shlex
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from algoscope import verdict
from algoscope.checkpoints import DamagedFileError, read_json
from algoscope.comparison import Comparison
from algoscope.configuration import PRESETS, TrainingConfig
from algoscope.console import duration
from algoscope.experiments.record import Table
from algoscope.figures import draw_comparison
from algoscope.pretrained import CONFIG, EVALUATION
from algoscope.report.drawing import draw_training, drawn
from algoscope.report.options import options
from algoscope.report.sections import Section
from algoscope.runs import METRICS, Run
from algoscope.sweeps.outcomes import read_outcome

UNFINISHED = "unfinished"  # not started, running, or interrupted


def load_run(directory: Path) -> tuple[Run, dict[str, Any], list[dict[str, Any]]]:
    """Return the run, what config.json says about it, and its metrics."""
    about = read_json(directory / CONFIG)
    run = Run(directory, TrainingConfig.from_dict(about.get("training")))
    metrics = run.metrics()
    for row in metrics:
        if not isinstance(row, dict) or not {"step", "loss", "seconds"} <= set(row):
            rule = "hold step, loss and seconds in each row"
            raise DamagedFileError(str(directory / METRICS), rule, repr(row))
    return run, about, metrics


def run_section(directory: Path) -> Section:
    """Return what is known of the run in this directory."""
    run, about, metrics = load_run(directory)
    config, name = run.config, str(about.get("name", directory.resolve().name))
    findings = [_progress(run, metrics)]
    pictures, tables, versions = [], [], about.get("versions", {})
    if metrics:
        pictures.append(
            drawn("Training", str(directory), lambda path: draw_training(metrics, path))
        )
    if (directory / EVALUATION).exists():
        comparison = Comparison.load(directory / EVALUATION)
        findings.append(verdict.sentence(comparison))
        source = str(directory / EVALUATION)
        pictures.append(
            drawn("Comparison", source, lambda path: draw_comparison(comparison, path))
        )
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
    header, rows = verdict.table(comparison)
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
