"""Training runs, directories of them, and constructions as sections of a report.

Each run and construction comes with the command that reproduces it.
"""

import math
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from algoscope.comparison.result import Comparison
from algoscope.construction.algorithms.algorithm import WrittenAlgorithm
from algoscope.construction.build import Construction, read_construction
from algoscope.experiments.record import Table
from algoscope.foundation.files import read_json
from algoscope.foundation.plotting import COLORS
from algoscope.foundation.text import duration, one_line, short
from algoscope.model.checkpoints import CONFIG, EVALUATION
from algoscope.reporting.results import comparison_picture, comparison_table
from algoscope.reporting.section import Section, drawn
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.run import Run
from algoscope.training.sweeps.store import read_outcome

UNFINISHED = "unfinished"  # not started, running, or interrupted

SETTING_COLUMNS = {
    "d": "dim",
    "τ²": "prior_variance",
    "σ²": "noise_variance",
    "L": "num_layers",
    "H": "hidden_size",
    "M": "num_heads",
    "learning rate": "learning_rate",
    "seed": "seed",
}
OUTCOME_COLUMNS = ("steps", "loss", "SPD(OLS)/d", "SPD(Bayes)/d", "status")
RUNS_HEADER = ("run", "task", *SETTING_COLUMNS, *OUTCOME_COLUMNS)
LISTING_HEADER = ("layer", "part", "register", "rows", "operation")


def run_section(directory: Path) -> Section:
    """Return the run in this directory: its progress, curve, comparison and command."""
    run, about, metrics = _load_run(directory)
    config, name = run.config, str(about.get("name", directory.resolve().name))
    findings = [_how_far(run, metrics)]
    pictures, tables, versions = [], [], about.get("versions", {})
    if metrics:
        caption = "Training loss, and SPD/d to OLS and to the Bayes predictor."
        alt = "Two panels of lines against training steps."
        figure = training_figure(metrics)
        pictures.append(drawn(caption, alt, str(directory), figure))
    if (directory / EVALUATION).exists():
        comparison = Comparison.load(directory / EVALUATION)
        findings.append(comparison.sentence)
        source = str(directory / EVALUATION)
        pictures.append(comparison_picture(comparison, source))
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


def runs_section(directory: Path, runs: Sequence[Path]) -> Section:
    """Return a table with one row for each of the runs in a directory."""
    rows = []
    for path in runs:
        try:
            run, about, metrics = _load_run(path)
        except (OSError, ValueError, TypeError) as error:
            rows.append(_damaged_row(path, error))
            continue
        config, latest = run.config, _latest(metrics)
        outcome = read_outcome(config, path)
        settings = (getattr(config, name) for name in SETTING_COLUMNS.values())
        rows.append(
            (
                str(about.get("name", path.name)),
                config.task,
                *(f"{x:g}" if isinstance(x, float) else str(x) for x in settings),
                f"{latest.get('step', 0):,} of {config.steps:,}",
                *(short(latest.get(key)) for key in ("loss", "spd_ols", "spd_bayes")),
                outcome.status if outcome else UNFINISHED,
            )
        )
    counts = Counter(row[-1].partition(":")[0] for row in rows)
    each = [f"{count:,} {status}" for status, count in sorted(counts.items())]
    return Section(
        title=f"Training runs in {directory.resolve().name}",
        source=str(directory),
        findings=(f"{len(rows):,} runs: {', '.join(each)}.",),
        tables=(Table("Runs", RUNS_HEADER, tuple(rows)),),
    )


def _damaged_row(path: Path, error: Exception) -> tuple[str, ...]:
    """Return the row of a run that cannot be read, with the reason."""
    blank = ("–",) * (len(RUNS_HEADER) - 2)
    return (path.name, *blank, f"damaged: {one_line(str(error), 120)}")


def construction_section(directory: Path) -> Section:
    """Return a saved construction: what each of its layers does, and its command."""
    construction = read_construction(directory)
    arrangement = construction.arrange()
    rows = tuple(
        (str(line.layer), line.part, line.register, line.rows, line.operation)
        for line in arrangement.listing
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


def train_command(config: TrainingConfig, name: str) -> str:
    """Return the command that trains this run: the nearest preset, and what differs.

    Example:
        >>> from dataclasses import replace
        >>> from algoscope.training.config import preset
        >>> train_command(replace(preset("d8"), steps=100), "short")
        'algoscope train --preset d8 --steps 100 --name short'
    """
    wanted = asdict(config)

    def changes(preset: str) -> dict[str, Any]:
        given = asdict(PRESETS[preset])
        return {key: wanted[key] for key in wanted if wanted[key] != given[key]}

    nearest = min(PRESETS, key=lambda preset: len(changes(preset)))
    words = ["algoscope", "train", "--preset", nearest, *_options(changes(nearest))]
    words += ["--name", name] if name != nearest else []
    return shlex.join(words)


def build_command(construction: Construction, out: str) -> str:
    """Return the command that writes this transformer.

    Example:
        >>> from algoscope.construction.algorithms import MinimumNorm
        >>> build_command(Construction(MinimumNorm(), dim=2), "mine")
        'algoscope build ols --dim 2 --num-examples 20 --out mine'
    """
    chosen = {"dim": construction.dim, "num_examples": construction.num_examples}
    chosen |= construction.parameters
    for each in fields(construction):
        value, known = getattr(construction, each.name), ("algorithm", *chosen)
        if each.compare and each.name not in known and value != each.default:
            chosen[each.name] = value
    name = construction.algorithm.name
    if isinstance(construction.algorithm, WrittenAlgorithm):
        name = f"FILE.py:{name}"
    words = ["algoscope", "build", name, *_options(chosen)]
    return shlex.join([*words, "--out", out])


def _options(values: dict[str, Any]) -> Iterator[str]:
    """Yield command-line options with these values; True is a flag without a value.

    Example:
        >>> list(_options({"num_layers": 2, "pre_norm": True}))
        ['--num-layers', '2', '--pre-norm']
    """
    for name, value in values.items():
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield str(value)


def _load_run(directory: Path) -> tuple[Run, dict[str, Any], list[dict[str, Any]]]:
    """Return the run, the fields of its config.json, and its metrics."""
    about = read_json(directory / CONFIG)
    run = Run(directory, TrainingConfig.from_dict(about.get("training")))
    return run, about, run.log.rows()


def _latest(metrics: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the latest value of each metric; not every row has all of them."""
    return {key: value for row in metrics for key, value in row.items()}


def _how_far(run: Run, metrics: Sequence[dict[str, Any]]) -> str:
    """Return how many steps were trained, and why not more."""
    outcome = read_outcome(run.config, run.directory)
    status = outcome.status if outcome else UNFINISHED
    done = f"{_latest(metrics).get('step', 0):,} of {run.config.steps:,} steps"
    reason = f": {outcome.reason}" if outcome and outcome.reason else "."
    return f"{status.capitalize()} after {done}{reason}"


def training_figure(metrics: Sequence[dict[str, Any]]) -> Figure:
    """Return the loss and SPD/d to OLS and to the Bayes predictor over the steps."""
    figure = Figure(figsize=(9.2, 3.4))
    left, right = figure.subplots(1, 2)
    curves = (
        (left, "loss", "loss", "-"),
        (right, "spd_ols", "(OLS, learner)", "-"),
        (right, "spd_bayes", "(Bayes, learner)", "--"),  # the same without noise
    )
    for color, (axes, name, label, style) in zip(COLORS, curves, strict=False):
        points = [(row["step"], row[name]) for row in metrics if name in row]
        points = [point for point in points if _fits_log_axis(point[1])]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=color, label=label)
            axes.set_yscale("log")
    left.set_ylabel("training loss")
    right.set_ylabel("SPD / d, mean over n ≥ 1")
    if right.lines:
        right.legend(fontsize=8)
    for axes in (left, right):
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    return figure


def _fits_log_axis(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
