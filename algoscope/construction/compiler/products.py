"""Products through a non-linearity, as data (paper app. C.4.2 and figure 7).

A feed-forward layer multiplies two numbers that it reads, because σ is not linear:

    p·q ≈ constant + Σᵢ weightᵢ σ(pᵢ p + qᵢ q + shiftᵢ)

The paper takes σ(p + q) − σ(p) − σ(q), whose error begins with the cubes. Better is
the even part E(s) = σ(b + s) + σ(b − s), which has no odd powers at all: s² from E, and
pq = ((p + q)² − (p − q)²) / 4. Combining E at several scales removes s⁴, s⁶, … too.

Operands are divided by a scale S first and the result multiplied by S². Truncation
falls with S; rounding grows, as eps·S where σ(b) = 0 and as eps·S² elsewhere. So every
precision has a best S.

ReLU has no curvature, so its products come from a piecewise linear square of x
(`PiecewiseSquare`): pq = ((p + q)² − (p − q)²) / 4 again.
"""

from dataclasses import dataclass
from functools import cache
from typing import Any, get_args

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.activations import (
    ACTIVATIONS,
    relu,
    shift_without,
    taylor,
)
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
    require_positive,
)
from algoscope.model import Activation

GRID_POINTS = 151  # per operand, where the error of a product is measured
SQUARE_POINTS = 20_001  # where the error of a square is measured


@dataclass(frozen=True)
class Product:
    """p·q ≈ constant + Σᵢ weightᵢ σ(pᵢ p + qᵢ q + shiftᵢ), for |p|, |q| ≤ 1.

    Example:
        >>> product = richardson("gelu", 3, 64.0)
        >>> product.num_units
        12
        >>> bool(abs(product(np.array(0.3), np.array(-0.7)) + 0.21) < 1e-12)
        True
    """

    name: str
    activation: Activation
    p: tuple[float, ...]
    q: tuple[float, ...]
    shift: tuple[float, ...]
    weight: tuple[float, ...]
    constant: float = 0.0
    order: int | None = None  # the first power of a unit that does not cancel

    def __post_init__(self):
        require_choice("activation", self.activation, get_args(Activation))
        for name in ("q", "shift", "weight"):
            if len(getattr(self, name)) != self.num_units:
                rule = f"have one number for each of the {self.num_units} of `p`"
                raise InvalidValueError(name, rule, len(getattr(self, name)))

    @property
    def num_units(self) -> int:
        """How many units of the feed-forward layer one product takes."""
        return len(self.p)

    @property
    def truncation(self) -> float:
        """The coefficient of σ at that power, 0 if it is not known."""
        if self.order is None:
            return 0.0
        return abs(taylor(self.activation, self.shift[0])[self.order])

    def __call__(
        self, p: Float[np.ndarray, "*shape"], q: Float[np.ndarray, "*shape"]
    ) -> Float[np.ndarray, "*shape"]:
        """Return the product as a layer computes it, in the precision of p and q."""
        dtype = np.result_type(p, q)
        rows = (self.p, self.q, self.shift, self.weight, self.constant)
        to_p, to_q, shift, weight, constant = (np.asarray(row, dtype) for row in rows)
        inner = to_p * p[..., None] + to_q * q[..., None] + shift
        return np.asarray(ACTIVATIONS[self.activation](inner) @ weight + constant)

    def error(self, dtype: Any, bound: float = 1.0) -> float:
        """Return the largest |p·q − product| on a grid of |p|, |q| ≤ `bound`.

        The product is computed in `dtype`; the difference in a wider one, where there
        is one (the exact product of two doubles needs 106 bits).
        """
        require_positive("bound", bound)
        line = np.linspace(-bound, bound, GRID_POINTS).astype(dtype)
        p, q = (np.ascontiguousarray(each) for each in np.meshgrid(line, line))
        exact = p.astype(np.longdouble) * q.astype(np.longdouble)
        return float(np.max(np.abs(exact - self(p, q))))


@cache
def precise_bound(product: Product, dtype: Any) -> float:
    """Return up to which operands a product keeps half of the digits.

    The largest of 1, √2, 2, … where the error, relative to the largest product, is
    below √eps. Beyond what it was made for precision fades; it does not break.

    Example:
        >>> precise_bound(richardson("gelu", 3, 64.0), np.float64)
        8.0
    """
    tolerance, bound = float(np.finfo(dtype).eps) ** 0.5, 1.0
    while bound < 2**20:
        wider = bound * 2**0.5
        if product.error(dtype, wider) > tolerance * wider**2:
            break
        bound = wider
    return round(bound, 6)


def paper_product(scale: float, activation: Activation = "gelu") -> Product:
    """Return S²/2a₂ (σ((p+q)/S) − σ(p/S) − σ(q/S) + a₀), where σ(x) = a₀ + a₁x + ….

    For GeLU, 1/2a₂ = √(π/2) and a₀ = 0 (the lemma of app. C); the result exceeds pq
    by −pq (2p² + 3pq + 2q²) / 6S² + O(S⁻⁴), not the O(p³ + q³) of the paper, and by
    eps·S of rounding.
    """
    require_positive("scale", scale)
    a = taylor(activation)
    if abs(a[2]) < 1e-12:
        remedy = "Use `paper_difference`, or a shift: `quarter_square`."
        rule = "have a second-order term at 0"
        raise InvalidValueError("activation", rule, repr(activation), remedy)
    factor = scale**2 / (2 * a[2])
    return Product(
        f"paper({activation}, S={scale:g})",
        activation,
        p=(1 / scale, 1 / scale, 0.0),
        q=(1 / scale, 0.0, 1 / scale),
        shift=(0.0,) * 3,
        weight=(factor, -factor, -factor),
        constant=factor * a[0],
    )


def paper_difference(
    delta: float, scale: float = 1.0, activation: Activation = "tanh"
) -> Product:
    """Return the paper's product from numerical derivatives, for σ without a₂:

        (D(p+q) − D(p) − D(q) + a₁) / 6a₃,  D(x) = (σ(x + δ) − σ(x)) / δ

    For tanh, 6a₃ = −2. The error has four parts: −pq (4p² + 6pq + 4q²) / 3S² from the
    series, −2pq (p + q) δ/S from the one-sided difference, −δ²S²/6 since a₁ is not
    D(0), and eps·S²/δ of rounding.
    """
    require_positive("delta", delta)
    require_positive("scale", scale)
    a = taylor(activation)
    if abs(a[3]) < 1e-12:
        rule, remedy = "have a third-order term at 0", "Use `paper_product`."
        raise InvalidValueError("activation", rule, repr(activation), remedy)
    factor = scale**2 / (6 * a[3])
    step = factor / delta
    return Product(
        f"paper({activation}, δ={delta:g}, S={scale:g})",
        activation,
        p=tuple(each / scale for each in (1.0, 1.0, 1.0, 1.0, 0.0, 0.0)),
        q=tuple(each / scale for each in (1.0, 1.0, 0.0, 0.0, 1.0, 1.0)),
        shift=(delta, 0.0) * 3,
        weight=(step, -step, -step, step, -step, step),
        constant=factor * a[1],
    )


def quarter_square(
    activation: Activation, scale: float, shift: float | None = None
) -> Product:
    """Return S²/4σ″(b) (E((p+q)/S) − E((p−q)/S)), E(s) = σ(b + s) + σ(b − s).

    The error is pq (p² + q²) σ⁗(b) / 6σ″(b)S² + O(S⁻⁴). Without a shift b, the one
    where |σ″| is largest: 0 for GeLU, SiLU and softplus.
    """
    return richardson(activation, 1, scale, shift)


def shifted(activation: Activation, scale: float) -> Product:
    """Return the quarter square at the b where σ⁗(b) = 0: no fourth powers are left.

    Best where the scale is given (S = 1: 250 times the precision for GeLU, with the
    same four units); where it is free, σ(b) ≠ 0 costs in rounding what this gains.
    """
    return quarter_square(activation, scale, shift_without(4, activation))


def richardson(
    activation: Activation, num_scales: int, scale: float, shift: float | None = None
) -> Product:
    """Return the quarter squares at S, 2S, 4S, …, combined so that powers cancel.

    With K scales, weights vₖ such that Σₖ vₖ = 1 and Σₖ vₖ 4⁻ᵏʲ = 0 for j = 1, …, K − 1
    remove s⁴, …, s²ᴷ: the error is O(S⁻²ᴷ).
    """
    require_at_least("num_scales", num_scales, 1)
    require_positive("scale", scale)
    nodes = 4.0 ** -np.arange(num_scales)
    shares = np.linalg.solve(np.vander(nodes, increasing=True).T, np.eye(num_scales)[0])
    name = f"richardson({activation}, K={num_scales}, S={scale:g})"
    if num_scales == 1:
        name = f"quarter square({activation}, S={scale:g})"
    scales = scale * 2.0 ** np.arange(num_scales)
    return _even_parts(name, activation, scales, shares, shift)


FITTED_SCALES = (8.0, 8.0 / 0.35)  # best for two of them in float32


@cache
def fitted(activation: Activation) -> Product:
    """Return quarter squares at two scales, with weights fitted to all |p|, |q| ≤ 1.

    Eight units, not twelve; in float32 rounding is all that is left of the error.
    """
    scales, b = np.array(FITTED_SCALES), shift_without(3, activation)
    # The square of s = p ± q, |s| ≤ 2, at Chebyshev's points, where errors are even.
    s = 2 * np.cos(np.pi * (np.arange(200) + 0.5) / 400)
    sigma, curvature = ACTIVATIONS[activation], 2 * taylor(activation, b)[2]
    at = s[:, None] / scales
    parts = sigma(b + at) + sigma(b - at) - 2 * sigma(np.array([b]))
    shares, *_ = np.linalg.lstsq(parts * scales**2 / curvature, s**2, rcond=None)
    return _even_parts(f"fitted({activation})", activation, scales, shares, None)


def _even_parts(
    name: str,
    activation: Activation,
    scales: Float[np.ndarray, " scales"],
    shares: Float[np.ndarray, " scales"],
    shift: float | None,
) -> Product:
    """Return Σₖ vₖ Sₖ²/4σ″(b) (E((p+q)/Sₖ) − E((p−q)/Sₖ))."""
    b = shift_without(3, activation) if shift is None else float(shift)
    curvature = 2 * taylor(activation, b)[2]
    if abs(curvature) < 1e-12:
        rule = f"be where {activation} is curved"
        raise InvalidValueError("shift", rule, b, "Leave it out for the best place.")
    factors = (shares * scales**2 / (4 * curvature)).tolist()
    inverses = (1 / scales).tolist()
    return Product(
        name,
        activation,
        p=tuple(sign * each for each in inverses for sign in (1, -1, 1, -1)),
        q=tuple(sign * each for each in inverses for sign in (1, -1, -1, 1)),
        shift=(b,) * (4 * len(inverses)),
        weight=tuple(sign * each for each in factors for sign in (1, 1, -1, -1)),
        order=2 * len(inverses) + 2,
    )


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
        x = np.linspace(-self.end, self.end, SQUARE_POINTS).astype(dtype)
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
