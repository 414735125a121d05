"""`algoscope identify`: which learning algorithm a predictor runs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from algoscope.cli.console import (
    Target,
    find_target,
    print_identification,
    stopping_cleanly,
)
from algoscope.foundation.files import json_text


@dataclass(frozen=True)
class Identify:
    """Say which learning algorithm a predictor runs."""

    target: Target
    dim: int | None = None
    """d of the test data. By default the model's, otherwise 4."""
    num_examples: int | None = None
    """The most examples before a query. By default 20, or what a model has room for."""
    num_datasets: int | None = None
    """Datasets to ask about. By default 192, and 96 for what is not run by JAX."""
    domain: Literal["task", "everywhere"] | None = None
    """Where the answer must hold. By default a model's task, everywhere for others."""
    noise_variance: float | None = None
    """σ² of the task. By default as a model was trained, otherwise 0."""
    prior_variance: float | None = None
    """τ² of the task. By default as a model was trained, otherwise 1."""
    seed: int = 0
    """Seed of the test data."""
    timeout: float = 60.0
    """Seconds after which an answer counts as missing."""
    out: Path | None = None
    """Write the identification to this file."""
    json: bool = False
    """Print the identification as JSON."""


def run_identify(command: Identify) -> None:
    """Say which algorithm the target runs."""
    from algoscope.identification import identify

    predictor, task = find_target(command)
    with stopping_cleanly():
        found = identify(
            predictor,
            task,
            num_examples=command.num_examples,
            num_datasets=command.num_datasets,
            domain=command.domain,
            seed=command.seed,
        )
    if command.out:
        found.save(command.out)
    if command.json:
        print(json_text(asdict(found)))
        return
    print_identification(found)
