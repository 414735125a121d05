"""Learners, places and distances for tests of experiments, without training."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.comparison.intervals import Estimate
from algoscope.comparison.result import LABELS
from algoscope.experiments.distances import (
    FITTED_GD,
    FITTED_RIDGE,
    RISKS,
    Distances,
    paper_names,
    regions,
)
from algoscope.experiments.learners import Place
from algoscope.experiments.seed_groups import SeedGroup
from algoscope.foundation.cache import Cache
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import random_transformer
from algoscope.predictors import zero
from algoscope.training.config import preset

TINY = replace(preset("demo"), num_layers=1, hidden_size=8, num_examples=5, steps=50)
SPANS = {name: list(span) for name, span in regions(8, 20).items()}


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


def distances(
    means: dict[str, float],
    width: float = 0.001,
    *,
    paired: float | None = None,
    risk: float = 0.2,
    spans: dict[str, list[int]] | None = None,
    unlike: dict[str, dict[str, float]] | None = None,
    **about: Any,
) -> Distances:
    """Return distances with these means in all regions, except for those in `unlike`.

    Intervals of the means have about the half-width `width`, those of their differences
    `paired`. The risk is that of the learner, where zero has 1 and the Bayes predictor
    0.1.
    """
    spans = spans or SPANS
    fits = {FITTED_RIDGE: 0.9, FITTED_GD: 0.9}
    whole = {zero.name: 0.8, **fits, **means, LABELS: risk}
    columns = [*whole, *RISKS]
    of_region = {r: whole | (unlike or {}).get(r, {}) for r in spans}
    levels = [[*of_region[r].values(), 1.0, 0.1] for r in spans]
    rng, own = np.random.default_rng(0), width if paired is None else paired
    noise = own / 2.8 * rng.normal(size=(400, 1, len(columns)))
    noise += np.sqrt(max(0, width**2 - own**2 / 2)) / 2 * rng.normal(size=(400, 1, 1))
    noise[..., -2:] = 0
    return Distances(
        learner="learner",
        about=about,
        num_datasets=100,
        spans=spans,
        means={
            region: [
                Estimate("learner", name, mean, mean - width, mean + width, mean, 100)
                for name, mean in found.items()
            ]
            for region, found in of_region.items()
        },
        trimmed=of_region,
        fitted={FITTED_RIDGE: "Ridge(0.003)", FITTED_GD: "GD(0.01, steps=8)"},
        columns=columns,
        replicates=np.array(levels) + noise,
    )


def group(*means: dict[str, float], **choices: Any) -> SeedGroup:
    """Return learners with these means, one for each seed."""
    return SeedGroup(tuple(distances(each, **choices) for each in means))


def near(reference: str) -> dict[str, float]:
    """Return distances to the paper's references of which one is the smallest."""
    return {name: 0.1 if name == reference else 0.3 for name in paper_names()}


def save_distances(directory: Path, name: str, found: Distances) -> None:
    """Write distances as an experiment does, with an entry in its cache."""
    Cache(directory).file(name, {"of": name}, lambda: found.save(directory / name))
