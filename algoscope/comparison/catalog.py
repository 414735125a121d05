"""The metrics by name: what must be measured for each, and how it is computed (§4.1).

To add a metric, write its function of arrays in `metrics.py` and a line in `METRICS`.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.comparison.linearization import (
    STEP,
    implied,
    influences,
    linearity,
    sensitivities,
)
from algoscope.comparison.metrics import (
    cosine_similarity,
    error_similarity,
    label_scores,
    squared_distance,
    squared_prediction_difference,
)
from algoscope.comparison.predict import (
    Inputs,
    Labels,
    diverged_is_infinite,
    predict_all,
)
from algoscope.comparison.result import LABELS
from algoscope.comparison.symmetries import symmetries
from algoscope.predictors import BlackBox, Predictor

LINEAR_FIT = "linear fit"  # what R² compares a predictor with
MEAN = "mspd"  # the mean of SPD over a region: one number, not a curve

Samples = dict[tuple[str, str], Float[np.ndarray, "datasets prefixes"]]  # by pair
Measured = dict[str, Any]  # measurements by predictor's name, the learner's first


@dataclass(frozen=True)
class EvaluationData:
    """The datasets and further queries on which every predictor is measured."""

    x: Inputs
    y: Labels
    queries: Float[np.ndarray, "datasets queries dim"]
    seed: int = 0
    step: float = STEP

    def exact(self) -> "EvaluationData":
        """Return the same data in double precision, for references."""
        parts = {
            name: getattr(self, name).astype(np.float64)
            for name in ("x", "y", "queries")
        }
        return replace(self, **parts)


def _predictions(predictor: Predictor | BlackBox, data: EvaluationData) -> Labels:
    return diverged_is_infinite(predictor, predict_all(predictor, data.x, data.y))


# What can be measured of one predictor, by the name that a `Metric` needs.
MEASUREMENTS: dict[str, Callable[[Any, EvaluationData], Any]] = {
    "predictions": _predictions,
    "implied": lambda p, data: implied(p, data.x, data.y, data.queries),
    "sensitivities": lambda p, data: sensitivities(p, data.x, data.y, step=data.step),
    "influences": lambda p, data: influences(p, data.x, data.y, step=data.step),
    "symmetries": lambda p, data: symmetries(p, data.x, data.y, seed=data.seed),
}


@dataclass(frozen=True)
class Metric:
    """The measurement that a metric needs, and the function that computes it.

    `needs` is a key of `MEASUREMENTS`. `compute` returns, for each curve by name, one
    sample per pair of predictors, dataset and prefix.
    """

    needs: str
    compute: Callable[[Measured, EvaluationData], dict[str, Samples]]


def _to_references(
    found: Measured, function: Callable[..., Any], *more: Any
) -> Samples:
    """Apply a function to the learner's measurement and each reference's."""
    (learner, own), *others = found.items()
    return {(learner, name): function(own, other, *more) for name, other in others}


def _to_labels(
    found: Measured, data: EvaluationData, function: Callable[..., Any], *more: Any
) -> Samples:
    """Apply a function to each predictor's predictions and the labels."""
    return {(name, LABELS): function(own, data.y, *more) for name, own in found.items()}


def _spd(found: Measured, data: EvaluationData) -> dict[str, Samples]:
    function, dim = squared_prediction_difference, data.x.shape[2]
    risks = _to_labels(found, data, function, dim)
    return {"spd": _to_references(found, function, dim) | risks}


def _weights(found: Measured) -> Measured:
    return {name: each.weights for name, each in found.items()}


def _r2(found: Measured, data: EvaluationData) -> dict[str, Samples]:
    scores = {
        (name, LINEAR_FIT): linearity(data.queries, each.answers, each.weights)
        for name, each in found.items()
    }
    return {"r2": scores}


def _vectors(name: str) -> Callable[[Measured, EvaluationData], dict[str, Samples]]:
    """Return a metric: cosine and squared distance over d of measured vectors."""
    return lambda found, data: {
        f"{name}_cosine": _to_references(found, cosine_similarity),
        f"{name}_distance": _to_references(found, squared_distance, data.x.shape[2]),
    }


def _symmetry(found: Measured, data: EvaluationData) -> dict[str, Samples]:
    changes = {
        (name, symmetry): change
        for name, each in found.items()
        for symmetry, change in each.items()
    }
    return {"symmetry": changes}


METRICS: dict[str, Metric] = {
    "spd": Metric("predictions", _spd),
    "sim_e": Metric(
        "predictions",
        lambda found, data: {"sim_e": _to_references(found, error_similarity, data.y)},
    ),
    "r2_gold": Metric(
        "predictions",
        lambda found, data: {"r2_gold": _to_labels(found, data, label_scores)},
    ),
    "ilwd": Metric(
        "implied",
        lambda found, data: {
            "ilwd": _to_references(_weights(found), squared_distance, data.x.shape[2])
        },
    ),
    "sim_w": Metric(
        "implied",
        lambda found, data: {
            "sim_w": _to_references(_weights(found), cosine_similarity)
        },
    ),
    "r2": Metric("implied", _r2),
    "sensitivity": Metric("sensitivities", _vectors("sensitivity")),
    "influence": Metric("influences", _vectors("influence")),
    "symmetry": Metric("symmetries", _symmetry),
}
ALL_METRICS = ("spd", MEAN, *(name for name in METRICS if name != "spd"))
