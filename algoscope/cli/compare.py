"""`algoscope compare`: any predictor against textbook algorithms."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from algoscope.cli.console import (
    Target,
    find_target,
    report_comparison,
    require_drawable,
    stopping_cleanly,
)
from algoscope.cli.destinations import require_file, write_or_rescue
from algoscope.foundation.validation import InvalidValueError, require_at_least

EXAMPLES = """
algoscope compare linear-d8 --figure figure.png          # figure 1 of the paper
algoscope compare linear-d8 --with ols 'newton(4)' 'gd(0.02, steps=8)' --metrics all
algoscope compare 'sklearn:Ridge(alpha=0.3)' --dim 3 --num-examples 10
algoscope compare python:my_module:predict --num-datasets 50 --out comparison.json
algoscope evaluate linear-d2 --num-datasets 1000
"""


@dataclass(frozen=True)
class Compare:
    """Compare any predictor with textbook algorithms, by every metric."""

    target: Target
    references: Annotated[tuple[str, ...], tyro.conf.arg(name="with")] = ()
    """Algorithms, such as ols ridge(0.1) newton(4). By default those of figure 1."""
    metrics: tuple[str, ...] = ("spd", "ilwd", "r2")
    """What is measured: spd, mspd, sim_e, r2_gold, ilwd, sim_w, r2, sensitivity,
    influence, symmetry; or all."""
    dim: int | None = None
    """d of the test data. By default the model's, otherwise 4."""
    num_examples: int | None = None
    """The most examples before a query. By default the model's, otherwise 20."""
    num_datasets: int | None = None
    """Held-out datasets. By default 10,000, and 200 for what is not run by JAX."""
    noise_variance: float | None = None
    """σ² of the test data. By default as a model was trained, otherwise 0."""
    prior_variance: float | None = None
    """τ² of the test data. By default as a model was trained, otherwise 1."""
    seed: int = 0
    """Seed of the test data."""
    timeout: float = 60.0
    """Seconds after which an answer counts as missing."""
    out: Path | None = None
    """Write the comparison to this file."""
    figure: Path | None = None
    """Draw SPD and ILWD (figure 1) to this .png, .svg or .pdf file."""
    linearity_figure: Path | None = None
    """Draw R² of the linear fit (figure 6) to this file."""
    json: bool = False
    """Print the comparison as JSON."""


@dataclass(frozen=True)
class Evaluate(Compare):
    """The same as `compare --metrics spd`."""

    metrics: tuple[str, ...] = ("spd",)
    """What is measured: spd, mspd, sim_e, r2_gold, ilwd, sim_w, r2, sensitivity,
    influence, symmetry; or all."""


def run_compare(command: Compare) -> None:
    """Compare the target with the references and print, save or draw the result."""
    if command.num_datasets is not None:
        require_at_least("num_datasets", command.num_datasets, 1)
    require_file("out", command.out)
    require_drawable(figure=command.figure, linearity_figure=command.linearity_figure)
    from algoscope.comparison.compare import compare
    from algoscope.comparison.metrics import ALL_METRICS
    from algoscope.comparison.result import linearity_figure
    from algoscope.foundation.plotting import save_figure
    from algoscope.predictors import parse_predictor

    references = tuple(map(parse_predictor, command.references))
    metrics = ALL_METRICS if command.metrics == ("all",) else command.metrics
    if command.linearity_figure and "r2" not in metrics:
        rule, given = "hold r2 for a linearity figure", " ".join(metrics)
        raise InvalidValueError("metrics", rule, given)
    predictor, task = find_target(command)
    with stopping_cleanly():
        comparison = compare(
            predictor,
            references or None,
            task,
            num_examples=command.num_examples,
            num_datasets=command.num_datasets,
            seed=command.seed,
            metrics=metrics,
        )
    report_comparison(comparison, command)
    if command.linearity_figure:
        drawn = linearity_figure(comparison)
        write_or_rescue(command.linearity_figure, lambda path: save_figure(drawn, path))


run_evaluate = run_compare
