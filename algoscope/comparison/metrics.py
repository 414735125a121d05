"""Metrics: how near predictions are, as distances, cosines and R² (§4.1).

First metrics as functions of arrays, one number per dataset and prefix; then `METRICS`,
the metrics by name, with the measurement that each needs. To add one, write its
function and a line in `METRICS`.

Means over datasets, with intervals, are taken later (`intervals.py`). NaN stands for
what was not measured and infinity for what diverged, so a distance that comes out as
NaN although both sides were measured (∞ − ∞) is infinite.
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
from algoscope.comparison.predict import (
    Inputs,
    Labels,
    diverged_is_infinite,
    predict_all,
)
from algoscope.comparison.result import LABELS
from algoscope.comparison.symmetries import symmetries
from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.predictors import BlackBox, Predictor

LINEAR_FIT = "linear fit"  # what R² compares a predictor with
MEAN = "mspd"  # the mean of SPD over a region: one number, not a curve

Predictions = Float[np.ndarray, "datasets prefixes"]
Samples = dict[tuple[str, str], Predictions]  # by pair
Measured = dict[str, Any]  # measurements by predictor's name, the learner's first


def squared_prediction_difference(
    first: Predictions, second: Predictions, dim: int
) -> Predictions:
    """Return (A₁(D)(x′) − A₂(D)(x′))² / d for every dataset and prefix (eq. 15).

    The mean over datasets is SPD(A₁, A₂) / d.
    """
    _require_same_shape(first=first, second=second)
    return squared_distance(first[..., None], second[..., None], dim)


def mean_over_region(
    spd: Float[np.ndarray, "datasets *pairs prefixes"], start: int, stop: int
) -> Float[np.ndarray, "datasets *pairs"]:
    """Return the mean over n = start, …, stop for each dataset: MSPD (figure 2).

    It is NaN for a dataset in which one of these n was not measured.
    """
    last = spd.shape[-1] - 1
    if not 0 <= start <= stop <= last:
        rule = f"be a first and a last n with 0 ≤ first ≤ last ≤ {last}"
        raise InvalidValueError("region", rule, (start, stop))
    return np.mean(spd[..., start : stop + 1], axis=-1)


def squared_distance(
    first: Float[np.ndarray, "*rest size"],
    second: Float[np.ndarray, "*rest size"],
    dim: int,
) -> Float[np.ndarray, " *rest"]:
    """Return ‖a − b‖² / d; of implied weights, its mean is ILWD/d (eq. 17)."""
    require_at_least("dim", dim, 1)
    _require_same_shape(first=first, second=second)
    with np.errstate(invalid="ignore", over="ignore"):
        difference = first.astype(np.float64) - second.astype(np.float64)
        diverged = np.isnan(difference) & ~np.isnan(first) & ~np.isnan(second)
        squares = np.where(diverged, np.inf, difference**2)
        return np.sum(squares, axis=-1) / dim


def cosine_similarity(
    first: Float[np.ndarray, "*rest size"],
    second: Float[np.ndarray, "*rest size"],
) -> Float[np.ndarray, " *rest"]:
    """Return aᵀb / (‖a‖ ‖b‖), and NaN where one of them is zero or not finite."""
    _require_same_shape(first=first, second=second)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        units = [
            each / np.linalg.norm(each, axis=-1, keepdims=True)
            for each in (first.astype(np.float64), second.astype(np.float64))
        ]
    return np.sum(units[0] * units[1], axis=-1)


def error_similarity(
    first: Predictions, second: Predictions, y: Predictions
) -> Predictions:
    """Return SimE (Fu et al., 2023): the cosine of the errors in one sequence.

    After n examples, e(A) = (A(x₂) − y₂, …, A(xₙ₊₁) − yₙ₊₁): the errors of the
    predictions from 1, …, n examples, skipping those that were not measured. NaN
    where there is no error to compare, as at n = 0.
    """
    _require_same_shape(first=first, second=second, y=y)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        errors = [each.astype(np.float64)[:, 1:] - y[:, 1:] for each in (first, second)]
        missing = np.isnan(errors[0]) | np.isnan(errors[1])
        a, b = (np.where(missing, 0, error) for error in errors)
        aa, bb, ab = (np.cumsum(u * v, axis=1) for u, v in ((a, a), (b, b), (a, b)))
        cosine = ab / (np.sqrt(aa) * np.sqrt(bb))
    return np.concatenate([np.full((len(y), 1), np.nan), cosine], axis=1)


def label_scores(predictions: Predictions, y: Predictions) -> Predictions:
    """Return 1 − (y − ŷ)² / Var(y): its mean is the R² of the predictions.

    This is the R² that the authors' code reports: of the predictions as estimates of
    the labels. Appendix F describes that of a linear fit (`linearity`). Var(y) is taken
    over the datasets, separately for each prefix; intervals treat it as known.
    """
    _require_same_shape(predictions=predictions, y=y)
    labels = y.astype(np.float64)
    present = ~np.isnan(predictions)
    count = np.maximum(np.sum(present, axis=0), 1)
    mean = np.sum(np.where(present, labels, 0), axis=0) / count
    variance = np.sum(np.where(present, (labels - mean) ** 2, 0), axis=0) / count
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return 1 - (labels - predictions) ** 2 / variance


def _require_same_shape(**arrays: np.ndarray) -> None:
    """Reject arrays that do not have the shape of the first of them."""
    (name, first), *others = arrays.items()
    for other, array in others:
        if array.shape != first.shape:
            rule = f"have the shape {first.shape} of `{name}`"
            raise InvalidValueError(other, rule, array.shape)


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
