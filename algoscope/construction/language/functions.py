"""Functions of values that are not linear, component by component.

Attention to the own column against the imaginary zero gives σ(a) for all components of
a vector in one layer, and with a large factor thresholds. LayerNorm gives quotients and
norms, one of them per layer.

    sigmoid, tanh, exp         one layer's attention
    above, sign                the same: 1 for a > 0, 0 or −1 for a < 0
    relu, absolute, maximum,   the same, and a product in the same layer
    minimum, where
    norm                       two layers: v/‖v‖, then a product
    reciprocal                 one layer per component

Thresholds take what is nearer to zero than 2⁻³⁰, or 2⁻¹³ in programs of 24 digits, for
zero; see `Program.digits`.
"""

import numpy as np

from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import SELF
from algoscope.construction.language.values import Head, Value, constant, join
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

ONE = constant(1.0)


def sharpness(digits: int) -> float:
    """Return β of a threshold σ(βa)."""
    return 2.0**36 if digits > 24 else 2.0**18


def tie(digits: int) -> float:
    """Return what is taken for zero by a threshold."""
    return 2.0**-30 if digits > 24 else 2.0**-13


def lift(digits: int) -> float:
    """Return B of exp(a) = e^B σ(a − B)."""
    return 60.0 if digits > 24 else 20.0


def sigmoid(value: Value, name: str = "σ") -> Value:
    """Return 1/(1 + exp(−a)): the weight of a score a beside the imaginary zero.

    Example:
        >>> from algoscope.construction.language.interpreter import interpret
        >>> program = Program(dim=1, num_examples=1)
        >>> chance = sigmoid(program.x)
        >>> tokens = np.array([[[0.0, 2.0], [1.0, 0.0], [0.0, -2.0]]])
        >>> found = interpret(program, tokens)[program.events[-1].out]
        >>> found.ravel().round(3).tolist()
        [0.881, 0.5, 0.119]
    """
    return _attended(value, [(1.0, 0.0, 1.0)], name)


def tanh(value: Value, name: str = "tanh") -> Value:
    """Return tanh a = 2σ(2a) − 1."""
    return 2 * sigmoid(2 * value, name) - 1.0


def exp(value: Value, name: str = "exp") -> Value:
    """Return exp(a), off by a factor of 1 + exp(a − 60), or a − 20 for 24 digits."""
    far = lift(_program_of(value).digits)
    return _attended(value, [(1.0, -far, float(np.exp(far)))], name)


def above(value: Value, name: str = "above") -> Value:
    """Return 1 where a > 0, else 0."""
    beta, edge = _threshold(value)
    return _attended(value, [(beta, -edge, 1.0)], name)


def sign(value: Value, name: str = "sign") -> Value:
    """Return 1 where a > 0, −1 where a < 0, and 0 at zero."""
    beta, edge = _threshold(value)
    return _attended(value, [(beta, -edge, 1.0), (-beta, -edge, -1.0)], name)


def relu(value: Value, name: str = "relu") -> Value:
    """Return max(a, 0), as a times a threshold."""
    beta, _ = _threshold(value)
    over = _attended(value, [(beta, 0.0, 1.0)], f"{name}>0")
    return _program_of(value).multiply(value, over, name=name)


def absolute(value: Value, name: str = "abs") -> Value:
    """Return |a| = a·sign(a)."""
    beta, _ = _threshold(value)
    signs = _attended(value, [(beta, 0.0, 2.0)], f"sign of {name}") - 1.0
    return _program_of(value).multiply(value, signs, name=name)


def maximum(a: Value, b: Value, name: str = "max") -> Value:
    """Return the larger of two values, component by component."""
    return b + relu(a - b, name)


def minimum(a: Value, b: Value, name: str = "min") -> Value:
    """Return the smaller of two values, component by component."""
    return b - relu(b - a, name)


def where(condition: Value, a: Value, b: Value, name: str = "where") -> Value:
    """Return a where the condition is 1, and b where it is 0.

    A condition is a number, or has as many components as a and b.
    """
    if condition.size == 1:
        condition = condition.repeat(a.size)
    difference = a - b
    return _program_of(join([condition, difference])).multiply(
        condition, difference, plus=b, name=name
    )


def norm(value: Value, name: str = "norm") -> Value:
    """Return ‖a‖, the root of a sum of squares; there is no root of other numbers.

    Zero has no direction: add a component that is not zero where `value` may be.
    """
    program = _program_of(value)
    direction = program.divide(value, value, f"direction of {name}")
    return program.dot(value, direction, name)


def reciprocal(value: Value, name: str = "reciprocal") -> Value:
    """Return 1/a, one layer per component."""
    program = _program_of(value)
    parts = [
        program.quotient(ONE, value[k], name if value.size == 1 else f"{name}{k + 1}")
        for k in range(value.size)
    ]
    return join(parts)


def _program_of(value: Value) -> Program:
    if not isinstance(value, Value):
        rule = "be a value of a program"
        raise InvalidTypeError("value", rule, type(value).__name__)
    for register in value.terms:
        if isinstance(register.program, Program):
            return register.program
    remedy = "Functions of constants are free: compute them in NumPy."
    raise InvalidValueError("value", "belong to a program", repr(value), remedy)


def _threshold(value: Value) -> tuple[float, float]:
    """Return β, and the score of what is still zero."""
    digits = _program_of(value).digits
    return sharpness(digits), sharpness(digits) * tie(digits)


def _attended(
    value: Value, heads: list[tuple[float, float, float]], name: str
) -> Value:
    """Return Σ weight·σ(factor·a + shift) over heads, for every component."""
    units = np.eye(value.size)
    every = [
        Head(factor * value[k] + shift, ONE, constant(weight * units[k]))
        for k in range(value.size)
        for factor, shift, weight in heads
    ]
    return _program_of(value).attend(every, SELF, name=name)
