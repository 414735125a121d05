"""Shifts of growing size: each changes the data of a task in one way, more and more.

At its first size a shift changes nothing. A change maps x and w to new ones and to the
size of the label noise, relative to the labels.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import Inputs
from algoscope.identification.suites import skewed, stretched

Rng = np.random.Generator
Weights = Float[np.ndarray, "datasets dim"]
Change = Callable[[Rng, Inputs, Weights, float], tuple[Inputs, Weights, float]]


def _scaled(rng: Rng, x: Inputs, w: Weights, size: float):
    return size * x, w, 0.0


def _heavier(rng: Rng, x: Inputs, w: Weights, size: float):
    return x, size * w, 0.0


def _skewed(rng: Rng, x: Inputs, w: Weights, size: float):
    """Standard deviations sᵢ ∝ i⁻ᵖ along random axes."""
    return skewed(rng, x, size), w, 0.0


def _flat(rng: Rng, x: Inputs, w: Weights, size: float):
    """A share of the directions has no variance."""
    dim = x.shape[2]
    rank = max(1, round((1 - size) * dim))
    return stretched(rng, x, (np.arange(dim) < rank).astype(float)), w, 0.0


def _orthogonal(rng: Rng, x: Inputs, w: Weights, size: float):
    """From x to inputs of which each d in a row are orthogonal."""
    datasets, examples, dim = x.shape
    more = rng.standard_normal((datasets, -examples % dim, dim))
    frames = np.concatenate([x, more], axis=1).reshape(-1, dim, dim)
    left, _, right = np.linalg.svd(frames)
    rows = np.sqrt(dim) * (left @ right).reshape(datasets, -1, dim)[:, :examples]
    return (1 - size) * x + size * rows, w, 0.0


def _repeated(rng: Rng, x: Inputs, w: Weights, size: float):
    """A share of the examples repeats the one before."""
    x = x.copy()
    for i in range(1, x.shape[1]):
        again = rng.random(len(x)) < size
        x[again, i] = x[again, i - 1]
    return x, w, 0.0


def _moved(rng: Rng, x: Inputs, w: Weights, size: float):
    return x + size * rng.standard_normal((len(x), 1, x.shape[2])), w, 0.0


def _heavy_tailed(rng: Rng, x: Inputs, w: Weights, size: float):
    """Student's law with 1/size degrees of freedom, scaled to variance 1."""
    draws = rng.chisquare(1 / max(size, 1e-3), size=x.shape)
    if size == 0:
        return x, w, 0.0
    return x * np.sqrt((1 / size - 2) / draws), w, 0.0


def _outlying(rng: Rng, x: Inputs, w: Weights, size: float):
    """The first example is longer; its label follows."""
    return np.concatenate([size * x[:, :1], x[:, 1:]], axis=1), w, 0.0


def _noisy(rng: Rng, x: Inputs, w: Weights, size: float):
    return x, w, size


def _sorted(rng: Rng, x: Inputs, w: Weights, size: float):
    """A share of the examples, in the order of their length."""
    count = round(size * (x.shape[1] - 1))
    order = np.argsort(np.sum(x[:, :count] ** 2, axis=2), axis=1)
    first = np.take_along_axis(x[:, :count], order[..., None], axis=1)
    return np.concatenate([first, x[:, count:]], axis=1), w, 0.0


@dataclass(frozen=True)
class GrowingShift:
    """A change of the data, and its sizes; the first changes nothing."""

    name: str
    unit: str
    sizes: tuple[float, ...]
    change: Change


GROWING_SHIFTS = (
    GrowingShift("larger x", "times", (1.0, 1.5, 2.0, 3.0, 5.0), _scaled),
    GrowingShift("smaller x", "times", (1.0, 0.7, 0.5, 0.3, 0.1), _scaled),
    GrowingShift("larger w", "times", (1.0, 1.5, 2.0, 3.0, 5.0), _heavier),
    GrowingShift("skewed covariance", "power", (0.0, 0.5, 1.0, 1.5, 2.0), _skewed),
    GrowingShift("subspace", "share left out", (0.0, 0.25, 0.5, 0.75), _flat),
    GrowingShift("orthogonal inputs", "share", (0.0, 0.5, 1.0), _orthogonal),
    GrowingShift("repeated examples", "share", (0.0, 0.25, 0.5, 0.75), _repeated),
    GrowingShift("mean of x", "deviations", (0.0, 0.5, 1.0, 2.0), _moved),
    GrowingShift("heavy tails", "1/ν", (0.0, 0.1, 0.2, 0.33, 0.45), _heavy_tailed),
    GrowingShift("outlying first x", "times", (1.0, 2.0, 3.0, 5.0), _outlying),
    GrowingShift("label noise", "σ/√E y²", (0.0, 0.1, 0.3, 1.0), _noisy),
    GrowingShift("sorted examples", "share", (0.0, 0.5, 1.0), _sorted),
)
