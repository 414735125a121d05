"""The probability that a statement of `identify` is right, as calibrated.

`benchmarks/calibration.py` asks about black boxes that are on no family's grid: with
parameters anywhere, variants, mixtures, switches, noisy and rounded ones, ones that
differ on one kind of data, and outsiders. The numbers here were set on two draws of
boxes (`calibration.py --fit`); a third draw only measures them
(docs/identification.md).

"is" and "none" have one probability each. That of "behaves like" is logistic,

    p = 1 / (1 + exp(−b₀ − bᵀz)),

in z: the logarithm of the share of the answers that the algorithm leaves unexplained,
whether the statement is about the task alone, and whether it fails on some kind of
data. What is near and not equal is never as sure as what is equal.
"""

import numpy as np
from jaxtyping import Float

IS, NONE = 0.986, 0.989
OFFSET = 0.836
SLOPES = (-0.645, -0.761, -0.788)
SMALLEST, LARGEST = 1e-8, 1.0  # shares beyond count as these
HIGHEST = 0.97  # for what is not equal


def features(
    unexplained: float, domain: str, num_fails: int
) -> Float[np.ndarray, " features"]:
    """Return z.

    Example:
        >>> features(1e-3, "task", 2).tolist()
        [-3.0, 1.0, 1.0]
    """
    size = np.log10(np.clip(unexplained, SMALLEST, LARGEST))
    return np.array([size, domain == "task", num_fails > 0], float)


def confidence(relation: str, unexplained: float, domain: str, num_fails: int) -> float:
    """Return the probability that a statement is right.

    Example:
        >>> confidence("is", 0.0, "everywhere", 0) > 0.95
        True
    """
    if relation != "behaves like":
        return IS if relation == "is" else NONE
    z = features(unexplained, domain, num_fails)
    p = 1 / (1 + np.exp(-OFFSET - z @ np.array(SLOPES)))
    return float(min(p, HIGHEST))
