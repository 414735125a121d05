"""`algoscope evaluate`: a model against the textbook algorithms of figure 1."""

from dataclasses import dataclass
from pathlib import Path

import tyro

from algoscope.commands.measuring import (
    allow_precision,
    report_comparison,
    require_drawable,
    task_for,
)
from algoscope.validation import require_at_least


@dataclass(frozen=True)
class Evaluate:
    """Compare a model with the textbook algorithms of figure 1."""

    model: tyro.conf.Positional[str]
    """A shipped model's name, or a directory."""
    num_datasets: int = 10_000
    """Held-out datasets."""
    num_examples: int | None = None
    """The most examples before a query. By default all there is room for."""
    noise_variance: float | None = None
    """σ² of the test data. By default as in training."""
    prior_variance: float | None = None
    """τ² of the test data. By default as in training."""
    seed: int = 0
    """Seed of the test data."""
    out: Path | None = None
    """Write the comparison to this file."""
    figure: Path | None = None
    """Draw the comparison to this .png, .svg or .pdf file."""
    json: bool = False
    """Print the comparison as JSON."""


def run_evaluate(command: Evaluate) -> None:
    """Compare a model with the references and print, save or draw the result."""
    require_at_least("num_datasets", command.num_datasets, 1)
    require_at_least("seed", command.seed, 0)
    if command.num_examples is not None:
        require_at_least("num_examples", command.num_examples, 1)
    require_drawable(command.figure)
    from algoscope.comparison import compare
    from algoscope.learner import InContextLearner
    from algoscope.predictors import figure_1_references

    learner = InContextLearner.from_pretrained(command.model)
    allow_precision(learner)
    comparison = compare(
        learner,
        figure_1_references(),
        task_for(command.model, learner.dim, command),
        num_examples=command.num_examples or learner.max_examples,
        num_datasets=command.num_datasets,
        seed=command.seed,
    )
    report_comparison(comparison, command)
