"""Learners, places and distances for tests of experiments, without training."""

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from algoscope.comparison.intervals import Estimate
from algoscope.comparison.result import LABELS
from algoscope.experiments.learners import Place
from algoscope.experiments.references import Distances, paper_names
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import write_json
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import random_transformer
from algoscope.training.config import preset

TINY = replace(preset("demo"), num_layers=1, hidden_size=8, num_examples=5, steps=50)
REGIONS = ("under-determined", "over-determined", "all n")


def small_learner(
    seed: int = 0, dim: int = 2, num_examples: int = 5
) -> InContextLearner:
    """Return a transformer with random weights."""
    transformer = random_transformer(
        seed,
        token_size=dim + 1,
        max_time=2 * num_examples - 1,
        num_layers=1,
        hidden_size=8,
        num_heads=2,
    )
    return InContextLearner(transformer, f"random {seed}")


def place_in(directory: Path, name: str = "fig7", **choices: Any) -> Place:
    """Return the place of an experiment whose results and runs are in a directory."""
    return Place(directory / name, directory / "runs", engine="inline", **choices)


def distances(means: dict[str, float], width: float = 0.001, **about: Any) -> Distances:
    """Return distances with these means, and intervals of one half-width."""
    estimates = [
        Estimate("learner", name, mean, mean - width, mean + width, mean, 100)
        for name, mean in (means | {LABELS: 1.0}).items()
    ]
    nearest = min(means, key=lambda name: means[name])
    margins = [
        Estimate(nearest, name, gap, gap - width, gap + width, gap, 100)
        for name, mean in means.items()
        if name != nearest and (gap := mean - means[nearest]) >= 0
    ]
    return Distances(
        learner="learner",
        about=about,
        num_datasets=100,
        spans={region: [1, 7] for region in REGIONS},
        means=dict.fromkeys(REGIONS, estimates),
        margins=dict.fromkeys(REGIONS, margins),
    )


def near(reference: str) -> dict[str, float]:
    """Return distances to the paper's references of which one is the smallest."""
    return {name: 0.1 if name == reference else 0.3 for name in paper_names()}


def save_distances(directory: Path, name: str, found: Distances) -> None:
    """Write distances as an experiment does, with an entry in its cache."""
    Cache(directory).file(
        name, {"of": name}, lambda: write_json(directory / name, asdict(found))
    )
