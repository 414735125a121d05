"""The references that learners are compared with.

The paper's references are those of figure 1. They alone say little: an iterative solver
that has not converged resembles ridge regression, and the best step of gradient descent
shrinks with n. The wider reference set therefore adds the best single step
(`optimal_gd`), k steps at their best rate, conjugate gradients, and Newton's iteration
(Fu et al., 2023). `Spectra.fit` fits the penalty of a ridge regression, and the rate
and number of steps of gradient descent, to one learner.

A `ReferenceSet` makes the predictions of its references once for all learners of a task
and measures their `Distances`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import estimates_of, replicates, summarize
from algoscope.comparison.metrics import mean_over_region, squared_prediction_difference
from algoscope.comparison.predict import held_out, predict_all, predict_exactly
from algoscope.comparison.result import LABELS
from algoscope.experiments.distances import (
    FITTED_GD,
    FITTED_RIDGE,
    RISKS,
    Distances,
)
from algoscope.experiments.learners import MEASURED, Place, Spent, train_runs
from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.model.learner import InContextLearner
from algoscope.predictors import (
    Predictor,
    bayes,
    conjugate_gradients,
    gd,
    newton,
    optimal_gd,
    ridge,
    tuned_gd,
    zero,
)
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig

FITTED_STEPS = (1, 2, 4, 8, 16, 32)
GRID = 13  # values of a parameter per round of a fit
TUNING = 1000  # datasets on which references are fitted to a learner
LARGEST = 0.01  # share of the datasets that a trimmed mean leaves out
ROUNDS = 4  # each searches between the neighbors of the best value so far


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


@dataclass(frozen=True)
class Spectra:
    """What predictors of the form w = f(XᵀX) XᵀY need of the examples before each x.

    With XᵀX = Σᵢ λᵢ vᵢvᵢᵀ the prediction for x is Σᵢ f(λᵢ) (vᵢᵀx) (vᵢᵀXᵀY), and

        f(λ) = 1/(λ + penalty)        of ridge regression
        f(λ) = (1 − (1 − 2αλ)ᵏ)/λ     of k steps of gradient descent with the rate α

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x, y = rng.normal(size=(50, 6, 2)), rng.normal(size=(50, 6))
        >>> Spectra.of(x, y).fit(np.zeros_like(y))["fitted ridge"].name
        'Ridge(100)'
    """

    values: Float[np.ndarray, "datasets prefixes dim"]  # λᵢ after n = 1, 2, …
    parts: Float[np.ndarray, "datasets prefixes dim"]  # (vᵢᵀx) (vᵢᵀXᵀY)

    @classmethod
    def of(
        cls,
        x: Float[np.ndarray, "datasets examples dim"],
        y: Float[np.ndarray, "datasets examples"],
    ) -> "Spectra":
        """Return the eigenvalues and parts of every prefix of every dataset."""
        x, y = x.astype(np.float64), y.astype(np.float64)
        known, query = x[:, :-1], x[:, 1:]
        gram = np.cumsum(known[..., :, None] * known[..., None, :], axis=1)
        moment = np.cumsum(known * y[:, :-1, None], axis=1)
        values, vectors = np.linalg.eigh(gram)
        parts = np.einsum("snij,sni->snj", vectors, query)
        parts *= np.einsum("snij,sni->snj", vectors, moment)
        return cls(np.maximum(values, 0), parts)

    def fit(
        self, predictions: Float[np.ndarray, "datasets examples"]
    ) -> dict[str, Predictor]:
        """Return the ridge regression and the k steps of GD nearest to predictions.

        Near is the mean squared difference over the datasets and all n ≥ 1. Parameters
        are rounded to three digits.
        """
        wanted = predictions[:, 1:].astype(np.float64)

        def gap(weights: Float[np.ndarray, "datasets prefixes dim"]) -> float:
            with np.errstate(invalid="ignore"):  # of a learner that diverged
                return float(np.mean((np.sum(self.parts * weights, -1) - wanted) ** 2))

        def steps_of_gd(rate: float, steps: int) -> np.ndarray:
            left = (1 - 2 * rate * self.values) ** steps
            return (1 - left) / np.maximum(self.values, np.finfo(np.float64).tiny)

        penalty, _ = _search(lambda each: gap(1 / (self.values + each)), 1e-6, 1e2)
        of_steps = {
            steps: _search(lambda a, k=steps: gap(steps_of_gd(a, k)), 1e-4, 1.0)
            for steps in FITTED_STEPS
        }
        steps = min(of_steps, key=lambda each: of_steps[each][1])
        rate, _ = of_steps[steps]
        return {
            FITTED_RIDGE: ridge(_rounded(penalty)),
            FITTED_GD: gd(_rounded(rate), steps),
        }


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _search(
    gap: Callable[[float], float], low: float, high: float
) -> tuple[float, float]:
    """Return the parameter of least gap between two bounds, and the gap."""
    value, least = low, np.inf
    for _ in range(ROUNDS):
        values = np.geomspace(low, high, GRID).tolist()
        gaps = [gap(each) for each in values]
        best = int(np.argmin([g if np.isfinite(g) else np.inf for g in gaps]))
        value, least = values[best], gaps[best]
        low, high = values[max(best - 1, 0)], values[min(best + 1, GRID - 1)]
    return value, least


@dataclass(frozen=True)
class ReferenceSet:
    """References, and the held-out datasets of one task on which they are asked.

    Zero and the Bayes predictor are always among the references, and two that are
    fitted to each learner. Distances to `further` ones have no replicates.
    """

    task: LinearRegression
    references: tuple[Predictor, ...]
    num_examples: int
    num_datasets: int
    spans: dict[str, tuple[int, int]]  # region: first and last n
    seed: int = 0
    further: tuple[Predictor, ...] = ()

    @cached_property
    def _bayes(self) -> Predictor:
        variances = self.task.noise_variance, self.task.prior_variance
        return bayes(noise_variance=variances[0], prior_variance=variances[1])

    @cached_property
    def _judged(self) -> tuple[Predictor, ...]:
        named = {each.name: each for each in (*self.references, zero, self._bayes)}
        return tuple(named.values())

    def _draw(self, num_datasets: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
        return held_out(
            self.task,
            num_datasets=num_datasets,
            num_examples=self.num_examples + 1,
            seed=seed,
        )

    @cached_property
    def _data(self) -> tuple[np.ndarray, np.ndarray]:
        return self._draw(self.num_datasets, self.seed)

    @cached_property
    def _tuning(self) -> tuple[np.ndarray, np.ndarray]:
        return self._draw(min(TUNING, self.num_datasets), self.seed + 1)

    @cached_property
    def _spectra(self) -> Spectra:
        return Spectra.of(*self._tuning)

    @cached_property
    def _predictions(self) -> dict[str, np.ndarray]:
        asked = (*self._judged, *self.further)
        return {each.name: predict_exactly(each, *self._data) for each in asked}

    def measure_once(
        self, place: Place, name: str, learner: InContextLearner, about: dict[str, Any]
    ) -> Spent:
        """Write the distances of a learner to the file `name`, unless it is cached."""
        identity = {"learner": learner.digest, **self._identity(about)}

        def measure() -> None:
            short = name.removesuffix(".json")
            place.note(f"measuring {short}")
            self.distances(learner, short, about).save(place.directory / name)

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
            "references": [each.name for each in (*self._judged, *self.further)],
            "sizes": [self.num_examples, self.num_datasets, self.seed],
            "spans": self.spans,
            "versions": provenance(),
        }

    def distances(
        self, learner: InContextLearner, name: str, about: dict[str, Any]
    ) -> Distances:
        """Measure one learner."""
        x, y = self._data
        own = predict_all(learner, x, y)
        fitted = self._spectra.fit(predict_all(learner, *self._tuning))
        predictions = {
            **{each.name: self._predictions[each.name] for each in self._judged},
            **{key: predict_exactly(each, x, y) for key, each in fitted.items()},
            LABELS: y,
            **{each.name: self._predictions[each.name] for each in self.further},
        }
        dim = self.task.dim
        spd = [squared_prediction_difference(own, p, dim) for p in predictions.values()]
        risks = [
            squared_prediction_difference(self._predictions[each.name], y, dim)
            for each in (zero, self._bayes)
        ]
        judged = len(predictions) - len(self.further)
        means, trimmed, resampled = {}, {}, []
        for region, span in self.spans.items():
            samples = np.stack([mean_over_region(e, *span) for e in spd], axis=1)
            pairs = [(name, reference) for reference in predictions]
            means[region] = estimates_of(pairs, summarize(samples, seed=self.seed))
            kept = np.sort(samples, axis=0)[: max(1, int((1 - LARGEST) * len(samples)))]
            trimmed[region] = dict(
                zip(predictions, kept.mean(axis=0).tolist(), strict=True)
            )
            more = np.stack([mean_over_region(e, *span) for e in risks], axis=1)
            columns = np.concatenate([samples[:, :judged], more], axis=1)
            with np.errstate(invalid="ignore"):  # NaN if the learner diverged
                resampled.append(replicates(columns, seed=self.seed))
        return Distances(
            learner=name,
            about=about,
            num_datasets=self.num_datasets,
            spans={region: list(span) for region, span in self.spans.items()},
            means=means,
            trimmed=trimmed,
            fitted={key: each.name for key, each in fitted.items()},
            columns=[*list(predictions)[:judged], *RISKS],
            replicates=np.stack(resampled, axis=1),
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
        seconds = of_run.cached_seconds(place, name_of(run), about_run(run))
        if seconds is not None:
            cached[run] = seconds
    trained, spent = train_runs(place, runs, cached)
    gone = [run for run in cached if spent.runs[run.run_id] == MEASURED]
    spent = sum((Spent(cached[run]) for run in gone), spent)
    for each in trained:
        run = each.config
        spent += references[run.dim].measure_once(
            place, name_of(run), each.learner, about_run(run)
        )
    return [name_of(run) for run in [*gone, *(t.config for t in trained)]], spent


def about_run(run: TrainingConfig) -> dict[str, Any]:
    """Return what distinguishes one run of a grid from the others."""
    axes = ("dim", "num_layers", "hidden_size", "num_heads", "learning_rate", "seed")
    axes += ("steps", "loss_weights", "decay")
    return {axis: getattr(run, axis) for axis in axes} | {"run": run.run_id}
