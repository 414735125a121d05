"""Fitting families to the answers of a predictor: a grid, then Gauss-Newton steps.

The distance between a hypothesis A and the predictor f is

    ρ = mean over datasets i and prefixes n ≥ 1 of (f − A)² / cᵢ,

where cᵢ is the mean square of the labels of dataset i plus that of the predictions, so
that a dataset does not count more because its numbers are large. ρ = 0 means that both
are the same function.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from itertools import product
from typing import Any

import jax
import numpy as np
from jaxtyping import Array, Float

from algoscope.comparison.predict import Inputs, Labels, run_in_batches
from algoscope.foundation.progress import Progress, Steps
from algoscope.identification.families import FAMILIES, Family
from algoscope.model.tokens import append_query

BLOCK = 48  # datasets in one compiled call
GRID_SIZE = {0: 1, 1: 36, 2: 9}  # points per parameter, by the number of parameters
ROUNDS = ((6, 4), (12, 1))  # Gauss-Newton steps, and how many choices remain after them
SMALLEST_GAIN = 1e-3  # a step that reduces ρ by a smaller share is the last
DIFFERENCE = 1e-6  # for numerical derivatives
FOUND = 1e-12  # at a smaller ρ the algorithm is found, and others need not be tried
ALWAYS_POLISHED = 6  # nearest families, polished even if the algorithm is found
LARGEST_RESIDUAL = 1e6  # larger residuals, and NaN, count as this
DAMPINGS = (0.0, 1e-3, 0.1, 10.0, 1e3)


@dataclass(frozen=True)
class Observations:
    """Datasets, and what the predictor answered at every position of each."""

    x: Inputs
    y: Labels
    predictions: Labels  # NaN where there is no answer

    @cached_property
    def weights(self) -> Labels:
        """Return 1/cᵢ at each position that counts, 0 where there is no answer."""
        counted = np.isfinite(self.predictions)
        counted[:, 0] = False  # before the first example nothing has been learned
        size = np.where(counted, self.predictions, 0) ** 2
        sums = np.sum(size, axis=1) / np.maximum(counted.sum(axis=1), 1)
        scale = sums + np.mean(self.y**2, axis=1)
        return counted / np.where(scale > 0, scale, 1)[:, None]

    def residuals(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets examples"]:
        """Return (A − f)/√cᵢ, 0 where there is no answer."""
        weights = self.weights
        with np.errstate(invalid="ignore", over="ignore"):
            differences = (hypotheses - self.predictions) * np.sqrt(weights)
        numbers = np.nan_to_num(differences, nan=LARGEST_RESIDUAL)
        bounded = np.clip(numbers, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        return np.where(weights > 0, bounded, 0.0)

    def distances(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets"]:
        """Return the mean over prefixes of (f − A)²/cᵢ for every dataset."""
        counted = np.maximum((self.weights > 0).sum(axis=1), 1)
        return np.sum(self.residuals(hypotheses) ** 2, axis=-1) / counted

    def take(self, index: slice | np.ndarray) -> "Observations":
        """Return the datasets at these indices."""
        return Observations(self.x[index], self.y[index], self.predictions[index])

    def join(self, other: "Observations") -> "Observations":
        """Return the datasets of both."""
        return Observations(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.predictions, other.predictions]),
        )


@partial(jax.jit, static_argnames="family")
def _predict(
    family: Family,
    point: Float[Array, " parameters"],
    x: Float[Array, "datasets examples dim"],
    y: Float[Array, "datasets examples"],
) -> Float[Array, "datasets choices examples"]:
    values = {p.name: p.value(point[i]) for i, p in enumerate(family.parameters)}
    return jax.vmap(partial(family.predict, **values))(x, y)


def predict_family(
    family: Family, point: Float[np.ndarray, " parameters"], x: Inputs, y: Labels
) -> Float[np.ndarray, "choices datasets examples"]:
    """Return the predictions of all choices at a point of the search, in float64.

    Datasets are processed in blocks of one size, so that each family compiles once.
    """
    with jax.enable_x64(True):
        predictions = run_in_batches(partial(_predict, family, point), x, y, BLOCK)
    return np.moveaxis(predictions, 1, 0)


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One member of a family: a choice, and coordinates of its parameters."""

    family: Family
    choice: int
    coordinates: Float[np.ndarray, " parameters"]

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of all parameters by name."""
        return {
            **self.family.choices[self.choice],
            **self._continuous,
            **dict(self.family.fixed),
        }

    @property
    def _continuous(self) -> dict[str, float]:
        return {
            p.name: float(p.value(float(c)))
            for p, c in zip(self.family.parameters, self.coordinates, strict=True)
        }

    @property
    def name(self) -> str:
        """For example `gd(steps=3, learning_rate=0.02)`."""
        inside = ", ".join(
            f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
            for key, value in self.parameters.items()
        )
        return f"{self.family.name}({inside})" if inside else self.family.name

    def __call__(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, ""]:
        """Return the prediction for a query, so that a hypothesis is a predictor."""
        return self.predict_prefixes(*append_query(x, y, query))[-1]

    def predict_prefixes(
        self, x: Float[Array, "examples dim"], y: Float[Array, " examples"], /
    ) -> Float[Array, " examples"]:
        """Return the prediction at each xᵢ from the examples before it."""
        return self.family.predict(x, y, **self._continuous)[self.choice]

    def predict(self, x: Inputs, y: Labels) -> Labels:
        """Return the predictions at every position of every dataset, in float64."""
        return predict_family(self.family, self.coordinates, x, y)[self.choice]


Starts = list[tuple[float, Hypothesis]]  # with ρ, the nearest first


def fit_families(observations: Observations, progress: Progress) -> list[Hypothesis]:
    """Return the nearest member of every family, in the order of `FAMILIES`.

    Families are polished in the order of their distance on the grid. Once the algorithm
    is found, only the nearest families are still polished.
    """
    scanned = []
    steps = Steps(progress, "trying families", len(FAMILIES))
    for family in FAMILIES:
        scanned.append(scan(family, observations))
        steps.add(note=family.name)
    found, hypotheses = False, {}
    steps = Steps(progress, "fitting families", len(FAMILIES))
    order = sorted(range(len(scanned)), key=lambda index: scanned[index][0][0])
    for place, index in enumerate(order):
        loss, hypothesis = scanned[index][0]
        if not found or place < ALWAYS_POLISHED:
            loss, hypothesis = polish(scanned[index], observations)
        steps.add(note=hypothesis.family.name)
        found = found or loss < FOUND
        hypotheses[index] = hypothesis
    return [hypotheses[index] for index in range(len(scanned))]


def scan(family: Family, observations: Observations) -> Starts:
    """Return each choice of a family at its best point of a grid."""
    size = GRID_SIZE[len(family.parameters)]
    grids = [p.grid(size) for p in family.parameters]
    points = np.array(list(product(*grids))).reshape(size ** len(grids), len(grids))
    losses = np.stack(
        [
            observations.distances(
                predict_family(family, point, observations.x, observations.y)
            ).mean(axis=-1)
            for point in points
        ]
    )  # points, choices
    best = losses.min(axis=0)
    return [
        (float(best[c]), Hypothesis(family, int(c), points[losses[:, c].argmin()]))
        for c in np.argsort(best, kind="stable")
    ]


def polish(starts: Starts, observations: Observations) -> tuple[float, Hypothesis]:
    """Return the nearest member of a family, and its ρ.

    All choices take a few steps from their best grid points; the nearest take more.
    """
    if not starts[0][1].family.parameters:
        return starts[0]
    for iterations, finalists in ROUNDS:
        refined: Starts = []
        for _, start in starts:
            refined.append(refine(start, observations, iterations))
            if refined[-1][0] < FOUND:
                return refined[-1]
        starts = sorted(refined, key=lambda pair: pair[0])[:finalists]
    return starts[0]


def refine(
    start: Hypothesis, observations: Observations, iterations: int = 12
) -> tuple[float, Hypothesis]:
    """Return the hypothesis after Gauss-Newton steps on its parameters, and its ρ.

    Each step uses the smallest damping that reduces ρ.
    """
    family, choice = start.family, start.choice
    lows, highs = np.transpose([p.grid(2) for p in family.parameters])

    def residuals(point: Float[np.ndarray, " parameters"]) -> np.ndarray:
        predictions = predict_family(family, point, observations.x, observations.y)
        return observations.residuals(predictions[choice]).ravel()

    best = start.coordinates
    center = residuals(best)
    for _ in range(iterations):
        moved = [residuals(best + step) for step in DIFFERENCE * np.eye(len(best))]
        jacobian = (np.array(moved) - center[None]).T / DIFFERENCE
        normal, slope = jacobian.T @ jacobian, jacobian.T @ center
        scale = np.diag(np.maximum(np.diag(normal), 1e-30))
        before = center @ center
        for damping in DAMPINGS:
            step = np.linalg.lstsq(normal + damping * scale, slope)[0]
            tried = np.clip(best - step, lows, highs)
            there = residuals(tried)
            if there @ there < before:
                best, center = tried, there
                break
        if not center @ center < before * (1 - SMALLEST_GAIN):
            break
    counted = max(int((observations.weights > 0).sum()), 1)
    return float(center @ center) / counted, Hypothesis(family, choice, best)
