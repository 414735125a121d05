"""Datasets outside the training distribution, each changed in one way.

All shifts change the same x ~ N(0, I) and w ~ N(0, I) (common random numbers), and
labels are y = wᵀx of what results, so that without noise minimum-norm least squares
stays the Bayes predictor. Apart from shifts of the scale, E|x|² remains d.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import HELD_OUT, draw_datasets
from algoscope.foundation.validation import InvalidValueError
from algoscope.identification.suites import duplicated, shifted, skewed, stretched
from algoscope.tasks.linear import LinearRegression

IN_DISTRIBUTION = "in distribution"
NOISE = 0.25  # σ² of the shift with label noise, as in figure 2
DEGREES = 3  # of freedom of Student's t

Inputs = Float[np.ndarray, "datasets examples dim"]
Labels = Float[np.ndarray, "datasets examples"]
Weights = Float[np.ndarray, "datasets dim"]
Change = Callable[[np.random.Generator, Inputs], Inputs]


def _unchanged(rng: np.random.Generator, x: Inputs) -> Inputs:
    return x


def _doubled(rng: np.random.Generator, x: Inputs) -> Inputs:
    return 2 * x


def _halved(rng: np.random.Generator, x: Inputs) -> Inputs:
    return x / 2


def _first_scaled(rng: np.random.Generator, x: Inputs) -> Inputs:
    """The first example of each dataset three times as long; its label follows."""
    return np.concatenate([3 * x[:, :1], x[:, 1:]], axis=1)


def _in_subspace(rng: np.random.Generator, x: Inputs) -> Inputs:
    """Inputs of rank d/2, in a random subspace."""
    dim = x.shape[2]
    rank = max(1, dim // 2)
    return stretched(rng, x, (np.arange(dim) < rank).astype(float))


def _orthogonal(rng: np.random.Generator, x: Inputs) -> Inputs:
    """Inputs of length √d, of which each d in a row are orthogonal."""
    datasets, examples, dim = x.shape
    missing = -examples % dim
    more = rng.standard_normal((datasets, missing, dim))
    frames = np.concatenate([x, more], axis=1).reshape(-1, dim, dim)
    columns, triangle = np.linalg.qr(np.swapaxes(frames, 1, 2))
    signs = np.sign(np.diagonal(triangle, axis1=1, axis2=2))  # as Gram and Schmidt do
    rows = np.swapaxes(columns * signs[:, None], 1, 2)
    return np.sqrt(dim) * rows.reshape(datasets, -1, dim)[:, :examples]


def _laplace(rng: np.random.Generator, x: Inputs) -> Inputs:
    """Coordinates with Laplace's law and variance 1: x √e, e ~ Exp(1)."""
    return x * np.sqrt(rng.exponential(size=x.shape))


def _student(rng: np.random.Generator, x: Inputs) -> Inputs:
    """Coordinates with Student's law, scaled to variance 1: x √((ν − 2)/χ²_ν)."""
    return x * np.sqrt((DEGREES - 2) / rng.chisquare(DEGREES, size=x.shape))


@dataclass(frozen=True)
class Shift:
    """One change of the training distribution."""

    name: str
    change: Change
    signal: float = 1.0  # E[(wᵀx)²] of a query, over d
    weight_scale: float = 1.0
    noise_variance: float = 0.0

    @property
    def ols_is_best(self) -> bool:
        """Whether least squares is the Bayes predictor under the shift."""
        return self.noise_variance == 0


SHIFTS = (
    Shift(IN_DISTRIBUTION, _unchanged),
    Shift("x × 2", _doubled, signal=4.0),
    Shift("x × 1/2", _halved, signal=0.25),
    Shift("w × 3", _unchanged, signal=9.0, weight_scale=3.0),
    Shift("first x × 3", _first_scaled),
    Shift("skewed", skewed),
    Shift("each x twice", duplicated),
    Shift("subspace", _in_subspace),
    Shift("orthogonal", _orthogonal),
    Shift("Laplace", _laplace),
    Shift("Student t", _student),
    Shift("mean not 0", shifted, signal=2.0),
    Shift("label noise", _unchanged, noise_variance=NOISE),
)


def find_shift(name: str) -> Shift:
    """Return the shift of this name.

    Example:
        >>> find_shift("x × 2").signal, find_shift("label noise").ols_is_best
        (4.0, False)
    """
    for shift in SHIFTS:
        if shift.name == name:
            return shift
    known = ", ".join(shift.name for shift in SHIFTS)
    raise InvalidValueError("shift", f"be one of {known}", f"'{name}'")


def draw_shifted(
    shift: Shift, dim: int, *, num_datasets: int, num_examples: int, seed: int
) -> tuple[Inputs, Labels, Weights]:
    """Return x, y and w of datasets under a shift, in float64.

    The x and w that are changed are those on which `compare` measures with this seed.
    """
    base = draw_datasets(
        LinearRegression(dim),
        num_datasets=num_datasets,
        num_examples=num_examples,
        seed=seed,
        fold=HELD_OUT,
    )
    rng = np.random.default_rng([seed, SHIFTS.index(shift)])
    x = shift.change(rng, np.asarray(base.x, np.float64))
    w = shift.weight_scale * np.asarray(base.w, np.float64)
    y = np.einsum("bnd,bd->bn", x, w)
    y = y + np.sqrt(shift.noise_variance) * rng.standard_normal(y.shape)
    return x, y, w
