"""Metrics that look at predictions alone: whatever algorithm made them (eq. 15)."""

import numpy as np
from jaxtyping import Float

from algoscope.metrics.vectors import require_same_shape, squared_distance
from algoscope.validation import InvalidValueError, require_at_least

Predictions = Float[np.ndarray, "datasets prefixes"]


def squared_prediction_difference(
    first: Predictions, second: Predictions, dim: int
) -> Predictions:
    """Return (A₁(D)(x′) − A₂(D)(x′))² / d for every dataset and prefix (eq. 15).

    The mean over datasets is SPD(A₁, A₂) / d.
    """
    require_at_least("dim", dim, 1)
    require_same_shape(first=first, second=second)
    return squared_distance(first[..., None], second[..., None], dim)


def mean_over_region(
    spd: Float[np.ndarray, "datasets *pairs prefixes"], start: int, stop: int
) -> Float[np.ndarray, "datasets *pairs"]:
    """Return the mean over n = start, …, stop of each dataset: MSPD (figure 2).

    A dataset with an n that was not measured is not measured.
    """
    last = spd.shape[-1] - 1
    if not 0 <= start <= stop <= last:
        rule = f"be a first and a last n with 0 ≤ first ≤ last ≤ {last}"
        raise InvalidValueError("region", rule, (start, stop))
    return np.mean(spd[..., start : stop + 1], axis=-1)


def error_similarity(
    first: Predictions, second: Predictions, y: Predictions
) -> Predictions:
    """Return SimE (Fu et al., 2023): the cosine of the errors in one sequence.

    After n examples, e(A) = (A(x₂) − y₂, …, A(xₙ₊₁) − yₙ₊₁): the errors of the
    predictions from 1, …, n examples, without those that were not measured. NaN
    where there is no error to compare, as at n = 0.
    """
    require_same_shape(first=first, second=second, y=y)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        errors = [each.astype(np.float64)[:, 1:] - y[:, 1:] for each in (first, second)]
        missing = np.isnan(errors[0]) | np.isnan(errors[1])
        a, b = (np.where(missing, 0, error) for error in errors)
        aa, bb, ab = (np.cumsum(u * v, axis=1) for u, v in ((a, a), (b, b), (a, b)))
        cosine = ab / (np.sqrt(aa) * np.sqrt(bb))
    return np.concatenate([np.full((len(y), 1), np.nan), cosine], axis=1)


def label_scores(predictions: Predictions, y: Predictions) -> Predictions:
    """Return 1 − (y − ŷ)² / Var(y): its mean is the R² of the predictions.

    The authors' code reports this R², of the predictions as estimates of the labels,
    where appendix F describes that of a linear fit (`linearity`). Var(y) is over the
    datasets, one for each prefix, and is taken as known in intervals of the mean.
    """
    require_same_shape(predictions=predictions, y=y)
    labels = y.astype(np.float64)
    present = ~np.isnan(predictions)
    count = np.maximum(np.sum(present, axis=0), 1)
    mean = np.sum(np.where(present, labels, 0), axis=0) / count
    variance = np.sum(np.where(present, (labels - mean) ** 2, 0), axis=0) / count
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        return 1 - (labels - predictions) ** 2 / variance
