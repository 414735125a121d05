"""SPD/d of many learners to the same references, over regions of n (figures 2, 3, 8).

References are asked once for all learners, on the same datasets. Every mean over a
region has a bootstrap interval over datasets, and so have the differences SPD(other) −
SPD(nearest) on the same datasets, `margins`, which tell more than two intervals do.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from algoscope.checkpoints import read_json, write_json
from algoscope.configuration import TrainingConfig
from algoscope.curves import Estimate, estimate_from_json, estimates_of
from algoscope.evaluation import held_out, predict_all, predict_exactly
from algoscope.experiments.measured import once, seconds_measured
from algoscope.learner import InContextLearner
from algoscope.metrics import (
    mean_over_region,
    squared_prediction_difference,
    summarize,
)
from algoscope.predictors import Predictor
from algoscope.probing.chunks import digest_of_learner
from algoscope.provenance import provenance
from algoscope.results import LABELS
from algoscope.tasks import LinearRegression

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
        identity = {"learner": digest_of_learner(learner), **self._identity(about)}

        def measure() -> None:
            found = self.distances(learner, name.removesuffix(".json"), about)
            write_json(directory / name, _shortened(asdict(found)))

        return once(directory, name, identity, measure)

    def seconds_measured(self, directory: Path, name: str, about: dict) -> float | None:
        """Return how long `directory/name` took, if it was measured, of any weights."""
        return seconds_measured(directory, name, self._identity(about), but="learner")

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
