"""The angle and the distance between what two predictors compute.

NaN stands for what was not measured, infinity for what diverged; so a distance that
comes out as NaN although both sides were measured is infinite.
"""

import numpy as np
from jaxtyping import Float

from algoscope.validation import InvalidValueError, require_at_least


def require_same_shape(**arrays: np.ndarray) -> None:
    """Refuse arrays that cannot be compared entry by entry with the first of them."""
    (name, first), *others = arrays.items()
    for other, array in others:
        if array.shape != first.shape:
            rule = f"have the shape {first.shape} of `{name}`"
            raise InvalidValueError(other, rule, array.shape)


def squared_distance(
    first: Float[np.ndarray, "*rest size"],
    second: Float[np.ndarray, "*rest size"],
    dim: int,
) -> Float[np.ndarray, " *rest"]:
    """Return ‖a − b‖² / d; of implied weights, its mean is ILWD/d (eq. 17)."""
    require_at_least("dim", dim, 1)
    require_same_shape(first=first, second=second)
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
    require_same_shape(first=first, second=second)
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        units = [
            each / np.linalg.norm(each, axis=-1, keepdims=True)
            for each in (first.astype(np.float64), second.astype(np.float64))
        ]
    return np.sum(units[0] * units[1], axis=-1)
