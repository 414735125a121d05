"""The probability that a statement of `identify` is right, as calibrated.

`benchmarks/calibration.py` asks about black boxes that are on no family's grid: with
parameters anywhere, variants, mixtures, switches, noisy and rounded ones, ones that
differ on one kind of data, and outsiders. The numbers here were set on the boxes with
even numbers (`calibration.py --fit`); those with odd numbers only measure them
(docs/identification.md).

"is" and "none" have one probability each. That of "behaves like" is logistic,

    p = 1 / (1 + exp(−b₀ − bᵀz)),

in z: the logarithm of the distance, and whether the statement is about the task alone,
fails on some kind of data, and rests on a parameter at the end of its range.
"""

import numpy as np
from jaxtyping import Float

IS, NONE = 0.965, 0.968
OFFSET = -0.113
SLOPES = (-0.308, 0.159, -0.293, -0.761)
SMALLEST, LARGEST = 1e-8, 0.02  # distances beyond count as these
HIGHEST = 0.95  # for what is not equal


def features(
    distance: float, domain: str, num_fails: int, num_bounds: int
) -> Float[np.ndarray, " features"]:
    """Return z.

    Example:
        >>> features(1e-3, "task", 2, 0).tolist()
        [-3.0, 1.0, 1.0, 0.0]
    """
    size = np.log10(np.clip(distance, SMALLEST, LARGEST))
    return np.array([size, domain == "task", num_fails > 0, num_bounds > 0], float)


def confidence(
    relation: str, distance: float, domain: str, num_fails: int, num_bounds: int
) -> float:
    """Return the probability that a statement is right.

    Example:
        >>> confidence("is", 0.0, "everywhere", 0, 0) > 0.95
        True
    """
    if relation != "behaves like":
        return IS if relation == "is" else NONE
    z = features(distance, domain, num_fails, num_bounds)
    p = 1 / (1 + np.exp(-OFFSET - z @ np.array(SLOPES)))
    return float(min(p, HIGHEST))
