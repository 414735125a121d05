"""The reference sets that learners are compared with, and distances to them.

The paper's references are those of figure 1. They alone say little: an iterative solver
that has not converged resembles ridge regression, and the best step of gradient descent
shrinks with n. The wider reference set therefore adds the best single step
(`optimal_gd`), k steps at their best rate, conjugate gradients, and Newton's iteration
(Fu et al., 2023).

`Distances` is a short form of a `Comparison`, for one learner of many: it covers a few
regions of n instead of every n, and adds the paired differences between references. A
`ReferenceSet` makes the predictions of its references once for all of these learners.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
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
from algoscope.experiments.learners import MEASURED, Place, Spent, train_runs
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import read_json, write_json
from algoscope.foundation.machine import provenance
from algoscope.foundation.text import with_interval
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


def paper_names() -> tuple[str, ...]:
    """Return the names of the paper's references."""
    return tuple(reference.name for reference in figure_1_references())


@dataclass(frozen=True)
class WiderReferences:
    """What the wider reference set adds to the paper's references."""

    gd_steps: tuple[int, ...] = (2, 4, 8, 16)
    newton_steps: tuple[int, ...] = (2, 4, 6, 8, 10, 12, 16)
    gradients: tuple[int, ...] = (2, 4)  # steps of conjugate gradients
    num_tuning: int = 500  # datasets to find the best rates on

    def predictors(
        self, task: LinearRegression, num_examples: int
    ) -> tuple[Predictor, ...]:
        """Return the added references, with rates tuned for a task."""
        return (
            optimal_gd(task.noise_variance / task.prior_variance),
            *(
                tuned_gd(task, steps, num_examples, num_datasets=self.num_tuning)
                for steps in self.gd_steps
            ),
            *map(newton, self.newton_steps),
            *map(conjugate_gradients, self.gradients),
        )


def in_text(estimate: Estimate) -> str:
    """Return an estimate with its interval, as text."""
    return with_interval(estimate.mean, estimate.low, estimate.high)


@dataclass(frozen=True)
class Distances:
    """SPD/d of one learner to each reference and to the labels, over regions of n."""

    learner: str
    about: dict[str, Any]  # what distinguishes the learner, such as L and H
    num_datasets: int
    spans: dict[str, list[int]]  # region: first and last n
    means: dict[str, list[Estimate]]
    margins: dict[str, list[Estimate]]  # how much farther each is than the nearest one

    def to(self, reference: str, region: str) -> Estimate:
        """Return the distance to one reference over a region."""
        return next(e for e in self.means[region] if e.second == reference)

    def ranked(
        self, region: str, names: Collection[str] | None = None
    ) -> list[Estimate]:
        """Return the distances to references, all or these, from near to far."""
        found = [e for e in self.means[region] if e.second != LABELS]
        if names is not None:
            found = [e for e in found if e.second in names]
        return sorted(found, key=lambda estimate: estimate.mean)

    def nearest(self, region: str, names: Collection[str] | None = None) -> Estimate:
        """Return the smallest distance to a reference, of all or of these."""
        return self.ranked(region, names)[0]

    def stands_out(self, region: str, names: Collection[str] | None = None) -> bool:
        """Return whether the interval of the nearest one lies below all others."""
        best, *others = self.ranked(region, names)
        return all(best.high < other.low for other in others)

    def is_significantly_nearest(self, region: str) -> bool:
        """Return whether the nearest one is nearer by paired differences.

        That is, the intervals of the others' margins over it lie above zero.
        """
        margins = [e for e in self.margins[region] if e.second != LABELS]
        return all(margin.low > 0 for margin in margins)

    @classmethod
    def load(cls, path: Path) -> "Distances":
        """Read what `ReferenceSet.measure_once` wrote."""
        values = read_json(path)
        for name in ("means", "margins"):
            values[name] = {
                region: [estimate_from_json(each) for each in estimates]
                for region, estimates in values[name].items()
            }
        return cls(**values)

    @classmethod
    def load_all(cls, directory: Path) -> "list[Distances]":
        """Read the distances of all learners that an experiment measured."""
        return [cls.load(directory / name) for name in Cache(directory).names]


@dataclass(frozen=True)
class ReferenceSet:
    """References, and the held-out datasets of one task on which they are asked."""

    task: LinearRegression
    references: tuple[Predictor, ...]
    num_examples: int
    num_datasets: int
    spans: dict[str, tuple[int, int]]  # region: first and last n
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
        predictions = {r.name: predict_exactly(r, x, y) for r in self.references}
        return predictions | {LABELS: y}

    def measure_once(
        self, place: Place, name: str, learner: InContextLearner, about: dict[str, Any]
    ) -> Spent:
        """Write the distances of a learner to the file `name`, unless it is cached."""
        identity = {"learner": learner.digest, **self._identity(about)}

        def measure() -> None:
            short = name.removesuffix(".json")
            place.note(f"measuring {short}")
            found = self.distances(learner, short, about)
            write_json(place.directory / name, _rounded(asdict(found)))

        return Spent(Cache(place.directory).file(name, identity, measure))

    def cached_seconds(
        self, place: Place, name: str, about: dict[str, Any]
    ) -> float | None:
        """Return the cached duration, ignoring which weights were measured."""
        cache = Cache(place.directory)
        return cache.seconds(name, self._identity(about), ignore="learner")

    def _identity(self, about: dict[str, Any]) -> dict[str, Any]:
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
            best = int(np.argmin(samples[:, :-1].mean(axis=0)))  # without the labels
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


def measure_runs(
    place: Place,
    runs: Sequence[TrainingConfig],
    references: Mapping[int, ReferenceSet],
    name_of: Callable[[TrainingConfig], str],
) -> tuple[list[str], Spent]:
    """Train runs, measure each against the references of its d; return the file names.

    A run whose model is gone is not trained again if its distances are cached.
    """
    cached = {}
    for run in runs:
        of_run = references[run.dim]
        seconds = of_run.cached_seconds(place, name_of(run), _about(run))
        if seconds is not None:
            cached[run] = seconds
    trained, spent = train_runs(place, runs, cached)
    gone = [run for run in cached if spent.runs[run.run_id] == MEASURED]
    spent = sum((Spent(cached[run]) for run in gone), spent)
    for each in trained:
        run = each.config
        spent += references[run.dim].measure_once(
            place, name_of(run), each.learner, _about(run)
        )
    return [name_of(run) for run in [*gone, *(t.config for t in trained)]], spent


def _about(run: TrainingConfig) -> dict[str, Any]:
    """Return what distinguishes one run of a grid from the others."""
    axes = ("dim", "num_layers", "hidden_size", "num_heads", "learning_rate")
    return {axis: getattr(run, axis) for axis in axes} | {"run": run.run_id}


def _rounded(value: Any) -> Any:
    """Return floats with six significant digits: more would be noise."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
