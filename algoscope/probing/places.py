"""The places where a probe reads: fixed ones, and those that it learns (paper §5).

A place is an attention α over the positions of x₁, y₁, …, xₙ, yₙ, x_{n+1}, the same for
all inputs; the probe reads αᵀH. Fixed places are

    last_label   yₙ
    query        the next query x_{n+1}
    labels       y₁, …, yₙ, equally
    all          every position up to the query, equally

A learned place is α = softmax(s) with scores s that are trained: `learned` over the
positions up to the query, as far as its target's examples go, and `unmasked` over all
positions of the sequence, as the paper's text reads. For n ≥ d and without noise
w_OLS = w, so an unmasked probe may also read labels that come after its examples.

Learned attention starts near each of the fixed places. Exactly there, softmax has no
gradient with respect to other positions, so a share of α is spread over them.
"""

from typing import Literal, get_args

import numpy as np
from jaxtyping import Bool, Float

from algoscope.foundation.validation import require_choice

FixedPlace = Literal["last_label", "query", "labels", "all"]
Place = Literal["last_label", "query", "labels", "all", "learned", "unmasked"]

FIXED: tuple[Place, ...] = get_args(FixedPlace)
PLACES: tuple[Place, ...] = ("learned", "unmasked", *FIXED)
SPREAD = 0.2  # of the attention at the start of learning

SYMBOLS = {
    "last_label": "yₙ",
    "query": "xₙ₊₁",
    "labels": "y₁…yₙ",
    "all": "all up to xₙ₊₁",
    "learned": "learned",
    "unmasked": "learned, all positions",
}


def place_symbol(place: str) -> str:
    """Return a place as figures and tables write it.

    Example:
        >>> place_symbol("last_label")
        'yₙ'
    """
    return SYMBOLS.get(place, place)


def fixed_attention(place: str, n: int, time: int) -> Float[np.ndarray, " time"]:
    """Return α of a fixed place after n examples.

    Example:
        >>> fixed_attention("labels", 2, 5).tolist()
        [0.0, 0.5, 0.0, 0.5, 0.0]
    """
    require_choice("place", place, FIXED)
    alpha = np.zeros(time)
    positions: dict[str, int | slice] = {
        "last_label": 2 * n - 1,
        "query": 2 * n,
        "labels": slice(1, 2 * n, 2),
        "all": slice(0, 2 * n + 1),
    }
    alpha[positions[place]] = 1
    return alpha / alpha.sum()


def seen(place: str, n: int, time: int) -> Bool[np.ndarray, " time"]:
    """Return the positions that a learned place may attend to after n examples."""
    require_choice("place", place, ("learned", "unmasked"))
    last = time - 1 if place == "unmasked" else 2 * n
    return np.arange(time) <= last


def start_scores(
    place: str, start: str, n: int, time: int
) -> Float[np.ndarray, " time"]:
    """Return scores s with softmax(s) near a fixed place; −∞ is never attended to.

    The start `all` is uniform over all positions that the place may attend to.
    """
    allowed = seen(place, n, time)
    alpha = allowed / allowed.sum()
    if start != "all":
        alpha = (1 - SPREAD) * fixed_attention(start, n, time) + SPREAD * alpha
    return np.where(allowed, np.log(np.where(allowed, alpha, 1)), -np.inf)
