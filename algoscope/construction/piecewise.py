"""Squares from ReLU, in pieces, and the products that they give (paper figure 7c).

A sum of ReLU units is a broken line. The best one for x² has equally long pieces, each
the chord of x² lowered until its error is the same in the middle as at the ends. Over
a piece of length h it is off by at most h²/8, and no line is off by less.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.construction.activations import relu
from algoscope.construction.products import Product
from algoscope.validation import InvalidValueError, require_at_least, require_positive

GRID_POINTS = 20_001  # where the error of a square is measured


@dataclass(frozen=True)
class PiecewiseSquare:
    """x² ≈ constant + Σᵢ weightᵢ (relu(x − knotᵢ) + relu(−x − knotᵢ)), for |x| ≤ end.

    Example:
        >>> f"{PAPER_SQUARE.error(np.float64):.2e}, {PAPER_SQUARE.num_units} units"
        '1.88e-03, 6 units'
    """

    name: str
    knots: tuple[float, ...]
    weights: tuple[float, ...]
    end: float
    constant: float = 0.0

    @property
    def num_units(self) -> int:
        """How many ReLU units the square takes; a product takes twice as many."""
        return 2 * len(self.knots)

    def __call__(self, x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
        """Return the approximation, in the precision of x."""
        rows = (self.knots, self.weights, self.constant)
        knots, weights, constant = (np.asarray(row, x.dtype) for row in rows)
        units = relu(x[..., None] - knots) + relu(-x[..., None] - knots)
        return np.asarray(units @ weights + constant)

    def error(self, dtype: Any) -> float:
        """Return the largest |x² − square| on a grid of |x| ≤ end."""
        x = np.linspace(-self.end, self.end, GRID_POINTS).astype(dtype)
        return float(np.max(np.abs(x.astype(np.longdouble) ** 2 - self(x))))

    def product(self, scale: float | None = None) -> Product:
        """Return S²/4 (Q((p + q)/S) − Q((p − q)/S)), for this square Q.

        Without a scale, S = 2/end: then |p ± q| ≤ 2 is within the range of Q.
        """
        scale = 2 / self.end if scale is None else scale
        require_positive("scale", scale)
        signs = ((1, 1, 1), (-1, -1, 1), (1, -1, -1), (-1, 1, -1))  # of p, q and weight
        units = [
            (p / scale, q / scale, -knot, sign * weight * scale**2 / 4)
            for knot, weight in zip(self.knots, self.weights, strict=True)
            for p, q, sign in signs
        ]
        p, q, shift, weight = zip(*units, strict=True)
        return Product(f"{self.name}, S={scale:g}", "relu", p, q, shift, weight)


# 0.0375 relu(±x) + relu(0.025 (±x − 0.025)) + relu(0.05 (±x − 0.05)): the paper's.
PAPER_SQUARE = PiecewiseSquare(
    "paper(relu)", knots=(0.0, 0.025, 0.05), weights=(0.0375, 0.025, 0.05), end=0.1
)


def piecewise_square(knots: tuple[float, ...], end: float) -> PiecewiseSquare:
    """Return the best square with given knots k₁ < … < kₘ on |x| ≤ end.

    Between knots its slope is that of the chord, kᵢ + kᵢ₊₁. Where k₁ = 0 it breaks at
    0; where k₁ > 0 it is constant between −k₁ and k₁.
    """
    require_positive("end", end)
    require_at_least("number of knots", len(knots), 1)
    ends = (*knots, end)
    if knots[0] < 0 or any(a >= b for a, b in zip(ends, ends[1:], strict=False)):
        rule = f"increase from 0 or more to less than `end` {end}"
        raise InvalidValueError("knots", rule, knots)
    slopes = np.add(ends[1:], ends[:-1])
    lengths = np.diff(ends, prepend=-knots[0])
    return PiecewiseSquare(
        f"minimax(relu, {len(knots)} knots)",
        knots,
        weights=tuple(np.diff(slopes, prepend=0.0).tolist()),
        end=end,
        constant=knots[0] ** 2 - float(np.max(lengths)) ** 2 / 8,
    )


def uniform_square(num_knots: int, end: float = 1.0) -> PiecewiseSquare:
    """Return the best square with 2m ReLU units: off by end² / 2(2m + 1)² at most.

    The m knots on either side of 0 cut −end ≤ x ≤ end into 2m + 1 equal pieces.
    """
    require_at_least("num_knots", num_knots, 1)
    length = 2 * end / (2 * num_knots + 1)
    knots = tuple((index + 0.5) * length for index in range(num_knots))
    return piecewise_square(knots, end)
