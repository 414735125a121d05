"""The non-linearities in NumPy, and their Taylor series (paper app. G).

They repeat the formulas of `model.layer`, because the compiler's constants need float64
even where JAX has it off, and complex arguments: a mean over a circle in the complex
plane gives the Taylor coefficients that products are made of. Each function computes
in the precision of its input, so an error measured here is the error of a layer.
"""

import math
from collections.abc import Callable
from functools import cache

import numpy as np
from jaxtyping import Float, Inexact
from scipy.special import erf

from algoscope.foundation.validation import InvalidValueError
from algoscope.model import Activation

Numbers = Inexact[np.ndarray, "*shape"]

NUM_COEFFICIENTS = 128  # tanh, the worst, has coefficients below (2/π)ⁿ: 1e-25


def gelu(x: Numbers) -> Numbers:
    """Return x/2 (1 + erf(x/√2)) (eq. 6)."""
    return x * (0.5 + 0.5 * erf(x * math.sqrt(0.5)))


def gelu_tanh(x: Numbers) -> Numbers:
    """Return x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), the form of app. C."""
    cube = x * x * x
    return x * (0.5 + 0.5 * np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * cube)))


def sigmoid(x: Numbers) -> Numbers:
    """Return 1 / (1 + exp(−x))."""
    with np.errstate(over="ignore"):  # 1/∞ is the right answer far below zero
        return 1 / (1 + np.exp(-x))


def silu(x: Numbers) -> Numbers:
    """Return x / (1 + exp(−x))."""
    return x * sigmoid(x)


def softplus(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return log(1 + exp(x))."""
    return np.logaddexp(x, 0)


def relu(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return max(x, 0)."""
    return np.maximum(x, 0)


def squared_relu(x: Float[np.ndarray, "*shape"]) -> Float[np.ndarray, "*shape"]:
    """Return max(x, 0)²."""
    return np.square(np.maximum(x, 0))


ACTIVATIONS: dict[Activation, Callable[[np.ndarray], np.ndarray]] = {
    "gelu": gelu,
    "gelu_tanh": gelu_tanh,
    "relu": relu,
    "tanh": np.tanh,
    "silu": silu,
    "softplus": softplus,
    "sigmoid": sigmoid,
    "squared_relu": squared_relu,
}
SMOOTH = ("gelu", "gelu_tanh", "tanh", "silu", "softplus", "sigmoid")


@cache
def taylor(activation: Activation, at: float = 0.0) -> tuple[float, ...]:
    """Return the coefficients aₙ of σ(at + x) = Σₙ aₙ xⁿ.

    Cauchy: aₙ is the mean of σ(at + z) z⁻ⁿ over the circle |z| = 1, within which all of
    these functions are analytic; on 2·128 points the mean is exact to rounding.

    Example:
        >>> [round(coefficient, 12) for coefficient in taylor("tanh")[:4]]
        [0.0, 1.0, 0.0, -0.333333333333]
    """
    if activation not in SMOOTH:
        rule = f"be smooth ({', '.join(SMOOTH)})"
        remedy = "For ReLU, use `piecewise_square`."
        raise InvalidValueError("activation", rule, repr(activation), remedy)
    if activation == "softplus":  # its derivative is the sigmoid
        slopes = taylor("sigmoid", at)[:-1]
        rest = (slope / (n + 1) for n, slope in enumerate(slopes))
        return (float(softplus(np.array([at]))[0]), *rest)
    function = ACTIVATIONS[activation]
    circle = np.exp(1j * math.pi / NUM_COEFFICIENTS * np.arange(2 * NUM_COEFFICIENTS))
    means = np.fft.fft(function(at + circle), norm="forward").real
    # a₀ without the rounding of a mean: a product multiplies it by S².
    return (float(function(np.array([at]))[0]), *means[1:NUM_COEFFICIENTS].tolist())


@cache
def shift_without(order: int, activation: Activation) -> float:
    """Return the smallest b ≥ 0 with σ⁽ⁿ⁾(b) = 0 for n = `order`, and σ″(b) ≠ 0.

    For order 3 the curvature is largest there; b is 0 unless σ is odd up to a constant.
    For order 4 the even part of σ(b + x) has no term x⁴.

    Example:
        >>> round(shift_without(4, "tanh"), 4)
        1.1462
    """
    start = taylor(activation)
    if abs(start[order]) < 1e-12 < abs(start[2]):
        return 0.0
    low, high = 0.1, 0.2
    while taylor(activation, low)[order] * taylor(activation, high)[order] > 0:
        low, high = high, high + 0.1
    for _ in range(60):  # halving 0.1 down to rounding
        middle = (low + high) / 2
        if taylor(activation, low)[order] * taylor(activation, middle)[order] > 0:
            low = middle
        else:
            high = middle
    return (low + high) / 2
