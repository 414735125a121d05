"""Linear maps and quotients through GeLU and LayerNorm (paper app. C.4.2, C.6).

A layer passes every number through a non-linearity σ and a normalization λ. The paper
bypasses both with a large N, and divides by N times the divisor; each costs an error of
first order in 1/N and a rounding of eps·N. Two identities cost neither; the compiler
uses them:

    σ(x) − σ(−x) = x                                          a pair of units
    λ(h)ᵢ − λ(h)ₖ = (hᵢ − hₖ) / √Var(h), with hₖ = 0          a reference slot

With constant pads ±N and a slot that is always zero, the mean cancels whatever it is,
and the variance is 2N²/H up to a share ‖x‖²/2N².

Each approximation is computed in the precision of its input; its `…_budget` bounds the
error for any input of at most `largest`.
"""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.activations import ACTIVATIONS
from algoscope.construction.compiler.numerics import DType, numerics
from algoscope.model import Activation

Columns = Float[np.ndarray, "*batch size"]

# Where σ(x) − σ(−x) = x: all of the form x/2 + an even function.
LINEAR_IN_PAIRS = ("gelu", "gelu_tanh", "relu", "silu", "softplus")


def default_pad(dtype: Any) -> float:
    """Return the N that the compiler uses in this precision.

    It is far from overflow of N², and ‖x‖²/4N² is below rounding up to ‖x‖ = 2N√eps: 64
    in float64, 724 in float32.
    """
    precision: DType = "float64" if np.dtype(dtype) == np.float64 else "float32"
    return numerics(precision).pad


def layer_norm(h: Columns) -> Columns:
    """Return λ(h) = (h − E[h]) / √Var[h] over the last axis (eq. 7)."""
    centered = h - np.mean(h, axis=-1, keepdims=True)
    variance = np.mean(centered * centered, axis=-1, keepdims=True)
    return centered * (1 / np.sqrt(variance))


# Bypasses of σ.


def shift_bypass(x: Columns, shift: float, activation: Activation = "gelu") -> Columns:
    """Return σ(N + x) − N, the paper's bypass of GeLU.

    The error is the tail |σ(u) − u| at u = N − |x|, for GeLU u Φ(−u), and eps·(N + |x|)
    of rounding: N must exceed |x| by about 9 (float64) or 6 (float32), and no more.
    """
    return ACTIVATIONS[activation](shift + x) - shift


def shift_bypass_budget(
    largest: float, shift: float, dtype: Any, activation: Activation = "gelu"
) -> float:
    """Return max |σ(u) − u| for |u − N| ≤ |x|, and 2 eps (N + |x|)."""
    u = np.linspace(shift - largest, shift + largest, 1001)
    tail = float(np.max(np.abs(ACTIVATIONS[activation](u) - u)))
    # 1 % more, since the maximum may lie between two points.
    return 1.01 * tail + 2 * _eps(dtype) * (shift + largest)


def pair_bypass(x: Columns, activation: Activation = "gelu") -> Columns:
    """Return σ(x) − σ(−x), which is x for any x, to rounding.

    Example:
        >>> pair_bypass(np.array([-700.0, 0.0, 0.5]), "silu")
        array([-7.e+02,  0.e+00,  5.e-01])
    """
    return ACTIVATIONS[activation](x) - ACTIVATIONS[activation](-x)


def pair_bypass_budget(
    largest: float, dtype: Any, activation: Activation = "gelu"
) -> float:
    """Return 2 eps (|x| + σ(0)): nothing but rounding."""
    at_zero = float(ACTIVATIONS[activation](np.zeros(1))[0])
    return 2 * _eps(dtype) * (largest + at_zero)


# Bypasses of λ.


def paper_norm_bypass(x: Columns, pad: float) -> Columns:
    """Return √(2/L) N λ([x, N, −N − Σx, 0]), the paper's bypass of LayerNorm.

    The variance is 2N² (1 + Σx/N + …)/L, so the error is |x| |Σx| / 2N, and eps·N of
    rounding in the mean.
    """
    return paper_division(x, np.ones(x.shape[:-1], x.dtype), pad, 1.0)


def paper_norm_bypass_budget(
    largest: float, size: int, pad: float, dtype: Any
) -> float:
    """Return |x| (1/√(1 − t) − 1) + eps·N, with t = |Σx|/N + ((Σx)² + ‖x‖²)/2N²."""
    return paper_division_budget(largest, 1.0, size, pad, 1.0, dtype)


def symmetric_norm_bypass(x: Columns, pad: float) -> Columns:
    """Return √(2/L) N λ([x, N − Σx/2, −N − Σx/2, 0]).

    The cross term with N is gone from the variance: the error is
    |x| (‖x‖² + (Σx)²/2) / 4N², but the rounding of the mean, eps·N, stays.
    """
    half = np.sum(x, axis=-1, keepdims=True) / 2
    h = np.concatenate([x, pad - half, -pad - half, np.zeros_like(half)], axis=-1)
    return _unscaled(h, pad)[..., : x.shape[-1]]


def symmetric_norm_bypass_budget(
    largest: float, size: int, pad: float, dtype: Any
) -> float:
    """Return |x| (1 − 1/√(1 + t)) + eps·N, with t = (‖x‖² + (Σx)²/2) / 2N²."""
    spread = (largest**2 * size + (largest * size) ** 2 / 2) / (2 * pad**2)
    return largest * _shrinkage(spread) + _eps(dtype) * (pad + 8 * largest)


def norm_bypass(x: Columns, pad: float | None = None) -> Columns:
    """Return √(2/H) N (λ(h)ᵢ − λ(h)ₖ) for h = [x, N, −N, 0], k the place of the zero.

    The error is |x| (‖x‖² − H μ²) / 4N², and eps·|x| of rounding.
    """
    return norm_division(x, np.ones((*x.shape[:-1], 1), x.dtype), pad)


def norm_bypass_budget(
    largest: float, size: int, dtype: Any, pad: float | None = None
) -> float:
    """Return |x| (1 − 1/√(1 + ‖x‖²/2N²)) + 8 eps·|x|."""
    return norm_division_budget(largest, 1.0, size, dtype, pad)


# Division by λ.


def paper_division(
    y: Columns, c: Float[np.ndarray, "*batch"], pad: float, multiplier: float
) -> Columns:
    """Return √(2/L) MN λ([Nc, y/M, −Nc − Σy/M, 0]), the paper's y/|c| (not y/c).

    The error is |y/c| |Σy| / 2MN|c|, and eps·MN of rounding: λ is free of scale, so a
    larger M is a larger N for y, and worse for everything else in the column.
    """
    pads, parts = pad * c[..., None], y / multiplier
    total = np.sum(parts, axis=-1, keepdims=True)
    h = np.concatenate([pads, parts, -pads - total, np.zeros_like(pads)], axis=-1)
    return _unscaled(h, multiplier * pad)[..., 1:-2]


def paper_division_budget(
    largest: float,
    smallest: float,
    size: int,
    pad: float,
    multiplier: float,
    dtype: Any,
) -> float:
    """Return |y/c| (1/√(1 − t) − 1) + eps·MN, for |y| ≤ `largest`, |c| ≥ `smallest`.

    t = |Σy|/MN|c| + ((Σy)² + ‖y‖²) / 2(MNc)²
    """
    part = largest / (multiplier * pad * smallest)
    change = size * part + (size**2 + size) * part**2 / 2
    # The variance never falls below half of 2N²c²/L, nor λ(h) above twice its aim.
    growth = 1 / math.sqrt(1 - min(change, 0.75)) - 1
    rounding = _eps(dtype) * (multiplier * pad + 8 * largest / smallest)
    return largest / smallest * growth + rounding


def division(
    y: Columns, c: Float[np.ndarray, "*batch"], pad: float | None = None
) -> Columns:
    """Return y/|c| from the pads ±Nc and a reference slot; no M.

    It is y / √(c² + ρ²) with ρ² = (‖y‖² − H μ²) / 2N²: the error is |y/c| ρ²/2c², and
    eps·|y/c| of rounding; where c vanishes it stays finite.

    Example:
        >>> division(np.array([1.0, -3.0]), np.array(-2.0)).round(12)
        array([ 0.5, -1.5])
    """
    return norm_division(y, c[..., None], pad)


def division_budget(
    largest: float, smallest: float, size: int, dtype: Any, pad: float | None = None
) -> float:
    """Return |y/c| (1 − 1/√(1 + ρ²/c²)) + 8 eps·|y/c|."""
    return norm_division_budget(largest, smallest, size, dtype, pad)


def norm_division(
    y: Columns, v: Float[np.ndarray, "*batch other"], pad: float | None = None
) -> Columns:
    """Return y/‖v‖ from the pads ±Nv and a reference slot.

    h = [y, Nv, −Nv, 0] has variance 2N² (‖v‖² + ρ²)/H, with the ρ² of `division`.

    Example:
        >>> norm_division(np.array([10.0]), np.array([3.0, 4.0])).round(12)
        array([2.])
    """
    pad = default_pad(y.dtype) if pad is None else pad
    reference = np.zeros((*y.shape[:-1], 1), y.dtype)
    h = np.concatenate([y, pad * v, -pad * v, reference], axis=-1)
    normal = _unscaled(h, pad)
    return normal[..., : y.shape[-1]] - normal[..., -1:]


def norm_division_budget(
    largest: float,
    smallest: float,
    size: int,
    dtype: Any,
    pad: float | None = None,
    num_divisors: int = 1,
) -> float:
    """Return a bound for |yᵢ| ≤ `largest`, ‖v‖ ≥ `smallest` and v of `num_divisors`.

    |y|/‖v‖ (1 − 1/√(1 + ρ²/‖v‖²)) + 8 eps·|y|/‖v‖ + eps²·N(n − 1): the last since n
    pads and their opposites add up to zero only to eps·N, unless n = 1; that sum
    cancels against the reference slot, but not what it makes y round off.
    """
    pad = default_pad(dtype) if pad is None else pad
    spread = size * (largest / (pad * smallest)) ** 2 / 2
    eps = _eps(dtype)
    rounding = 8 * eps * largest / smallest + eps**2 * pad * (num_divisors - 1)
    return largest / smallest * _shrinkage(spread) + rounding


def _unscaled(h: Columns, scale: float) -> Columns:
    """Return √(2/H) N λ(h): what a column with the pads ±N was before λ."""
    return math.sqrt(2 / h.shape[-1]) * scale * layer_norm(h)


def _shrinkage(spread: float) -> float:
    """Return 1 − 1/√(1 + t), without cancellation where t is small."""
    return -math.expm1(-0.5 * math.log1p(spread))


def _eps(dtype: Any) -> float:
    return float(np.finfo(dtype).eps)
