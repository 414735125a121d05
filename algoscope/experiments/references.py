"""Whom learners are compared with: the paper's references, and those of later papers.

An iterative solver that has not converged resembles ridge regression, and the best step
of gradient descent shrinks with n; so "closest to ridge", and "far from GD(0.01)", say
little alone. The wider panel holds, beside the paper's references, the best single step
(`optimal_gd`), k steps at their best rate, and Newton's iteration (Fu et al., 2023).
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.comparison.intervals import (
    Estimate,
    estimate_from_json,
    estimates_of,
    summarize,
)
from algoscope.comparison.metrics import mean_over_region, squared_prediction_difference
from algoscope.comparison.predict import held_out, predict_all, predict_exactly
from algoscope.comparison.result import LABELS
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import read_json, write_json
from algoscope.foundation.machine import provenance
from algoscope.model.learner import InContextLearner
from algoscope.predictors import (
    Predictor,
    conjugate_gradients,
    figure_1_references,
    newton,
    optimal_gd,
    tuned_gd,
)
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig


@dataclass(frozen=True)
class Wider:
    """The sizes of the wider panel."""

    gd_steps: tuple[int, ...] = (2, 4, 8, 16)
    newton_steps: tuple[int, ...] = (2, 4, 6, 8, 10, 12, 16)
    gradients: tuple[int, ...] = (2, 4)  # steps of conjugate gradients
    num_tuning: int = 500  # datasets to find the best rates on


def later_references(
    task: LinearRegression, num_examples: int, sizes: Wider
) -> tuple[Predictor, ...]:
    """Return the references that later papers add."""
    return (
        optimal_gd(task.noise_variance / task.prior_variance),
        *(
            tuned_gd(task, steps, num_examples, num_datasets=sizes.num_tuning)
            for steps in sizes.gd_steps
        ),
        *map(newton, sizes.newton_steps),
        *map(conjugate_gradients, sizes.gradients),
    )


def paper_names() -> tuple[str, ...]:
    """Return the names of the paper's references."""
    return tuple(reference.name for reference in figure_1_references())


FAMILIES = {
    "OLS": "OLS",
    "Ridge": "ridge",
    "GD": "gradient descent",
    "SGD": "gradient descent",
    "OptimalGD": "gradient descent",
    "KNN": "nearest neighbors",
    "Newton": "Newton",
    "ConjugateGradients": "conjugate gradients",
}


def family(name: str) -> str:
    """Return the family of a reference by its name.

    Example:
        >>> family("Ridge(0.1)"), family("GD(0.01, steps=4)"), family("OLS")
        ('ridge', 'gradient descent', 'OLS')
    """
    return FAMILIES.get(name.split("(")[0], name)


Span = tuple[int, int]  # the first and the last n of a region


@dataclass(frozen=True)
class Distances:
    """One learner: SPD/d to each reference, and to the labels, over each region."""

    learner: str
    about: dict[str, Any]  # what tells it from the others, such as L and H
    num_datasets: int
    spans: dict[str, list[int]]
    means: dict[str, list[Estimate]]
    margins: dict[str, list[Estimate]]  # of the nearest reference over each other one

    def to(self, reference: str, region: str) -> Estimate:
        """Return the distance to one reference over a region."""
        return next(e for e in self.means[region] if e.second == reference)

    def nearest(self, region: str, among: Sequence[str] | None = None) -> Estimate:
        """Return the least distance to a reference, of all or of some."""
        names = [e for e in self.means[region] if e.second != LABELS]
        if among is not None:
            names = [e for e in names if e.second in among]
        return min(names, key=lambda estimate: estimate.mean)

    def stands_out(self, region: str, among: Sequence[str] | None = None) -> bool:
        """Return whether the nearest one's interval lies below all the others'."""
        best = self.nearest(region, among)
        return all(
            best.high < other.low
            for other in self.means[region]
            if other.second not in (best.second, LABELS)
            and (among is None or other.second in among)
        )

    def is_surely_nearest(self, region: str) -> bool:
        """Return whether the nearest one's margins over all others are above zero."""
        margins = [e for e in self.margins[region] if e.second != LABELS]
        return all(margin.low > 0 for margin in margins)

    @classmethod
    def load(cls, path: Path) -> "Distances":
        """Read what `Yardstick.measure_once` wrote."""
        values = read_json(path)
        for name in ("means", "margins"):
            values[name] = {
                region: [estimate_from_json(each) for each in estimates]
                for region, estimates in values[name].items()
            }
        return cls(**values)


def about_run(run: TrainingConfig) -> dict[str, Any]:
    """Return what tells one run of a grid from the others."""
    axes = ("dim", "num_layers", "hidden_size", "num_heads", "learning_rate")
    return {axis: getattr(run, axis) for axis in axes} | {"run": run.run_id}


@dataclass(frozen=True)
class Yardstick:
    """References on held-out datasets of one task."""

    task: LinearRegression
    references: tuple[Predictor, ...]
    num_examples: int
    num_datasets: int
    spans: dict[str, Span]
    seed: int = 0

    @cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        return held_out(
            self.task,
            num_datasets=self.num_datasets,
            num_examples=self.num_examples + 1,
            seed=self.seed,
        )

    @cached_property
    def _predictions(self) -> dict[str, np.ndarray]:
        x, y = self._data
        references = {r.name: predict_exactly(r, x, y) for r in self.references}
        return references | {LABELS: y}

    def measure_once(
        self, directory: Path, name: str, learner: InContextLearner, about: dict
    ) -> float:
        """Write the distances of a learner to `directory/name`; return the seconds."""
        identity = {"learner": learner.digest, **self._identity(about)}

        def measure() -> None:
            found = self.distances(learner, name.removesuffix(".json"), about)
            write_json(directory / name, _shortened(asdict(found)))

        return Cache(directory).file(name, identity, measure)

    def seconds_measured(self, directory: Path, name: str, about: dict) -> float | None:
        """Return the cached duration, ignoring which weights were measured."""
        return Cache(directory).seconds(name, self._identity(about), ignore="learner")

    def _identity(self, about: dict) -> dict[str, Any]:
        return {
            "about": about,
            "task": repr(self.task),
            "references": [reference.name for reference in self.references],
            "sizes": [self.num_examples, self.num_datasets, self.seed],
            "spans": self.spans,
            "versions": provenance(),
        }

    def distances(
        self, learner: InContextLearner, name: str, about: dict[str, Any]
    ) -> Distances:
        """Measure one learner."""
        own = predict_all(learner, *self._data)
        spd = {
            reference: squared_prediction_difference(own, each, self.task.dim)
            for reference, each in self._predictions.items()
        }
        means, margins = {}, {}
        for region, span in self.spans.items():
            samples = np.stack(
                [mean_over_region(each, *span) for each in spd.values()], axis=1
            )
            pairs = [(name, reference) for reference in spd]
            means[region] = estimates_of(pairs, summarize(samples, seed=self.seed))
            best = int(np.argmin(samples[:, :-1].mean(axis=0)))
            over = summarize(samples - samples[:, best : best + 1], seed=self.seed)
            between = [(pairs[best][1], reference) for reference in spd]
            margins[region] = [
                e for e in estimates_of(between, over) if e.first != e.second
            ]
        return Distances(
            learner=name,
            about=about,
            num_datasets=self.num_datasets,
            spans={region: list(span) for region, span in self.spans.items()},
            means=means,
            margins=margins,
        )


def _shortened(value: Any) -> Any:
    """Return floats with six significant digits: more are noise, and fill the file."""
    if isinstance(value, dict):
        return {key: _shortened(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_shortened(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
