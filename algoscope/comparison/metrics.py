"""Metrics as functions of arrays: distances, cosines and R² per dataset (§4.1).

Means over datasets, with intervals, are taken later (`intervals.py`). NaN stands for
what was not measured and infinity for what diverged, so a distance that comes out as
NaN although both sides were measured (∞ − ∞) is infinite.
"""

import numpy as np
from jaxtyping import Float

from algoscope.foundation.validation import InvalidValueError, require_at_least

Predictions = Float[np.ndarray, "datasets prefixes"]


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
