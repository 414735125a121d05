"""Arithmetic of arrays and expressions, as JAX's primitives need it.

Operands are arrays, which are constants, or expressions. Of two expressions, one in the
home column and one in the columns that replay it, the first is read into the others.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from typing_extensions import TypeIs

from algoscope.construction.language import nonlinear
from algoscope.construction.language.expressions import (
    Expression,
    Products,
    Scene,
    Shape,
    Softplus,
    fixed,
    joined,
    size_of,
)
from algoscope.construction.language.nonlinear import Refused, Tie
from algoscope.construction.language.recorder import Recorder
from algoscope.construction.language.values import constant

Bind = Callable[..., Any]


Operand = np.ndarray | Expression


def is_known(operand: Operand) -> TypeIs[np.ndarray]:
    """Return whether an operand is a constant."""
    return isinstance(operand, np.ndarray)


class Arithmetic:
    """Operations on expressions, written with one recorder."""

    def __init__(self, recorder: Recorder):
        """Write with this recorder."""
        self.recorder = recorder

    # Operands of one scene and one shape.

    def together(
        self, *operands: Operand, shape: Shape | None = None
    ) -> list[Expression]:
        """Return operands as expressions of one scene, of one shape if given."""
        for operand in operands:
            if isinstance(operand, Softplus):
                raise Refused("the logarithm in a softplus", "Use its derivative only.")
            _require_finite(operand)
        varying = [o for o in operands if not is_known(o) and o.constants() is None]
        scene: Scene = varying[0].scene if varying else "replay"
        if any(o.scene != scene for o in varying):
            scene = "replay"
        found = [
            self.recorder.brought(o, scene)
            if isinstance(o, Expression)
            else fixed(o, scene)
            for o in operands
        ]
        if shape is None:
            return found
        return [_stretched(each, shape) for each in found]

    def varying(self, operand: Operand) -> Expression:
        """Return an operand as an expression."""
        return self.together(operand)[0]

    def entry(self, operand: Operand, index: int) -> Operand:
        """Return one entry along the first axis."""
        if is_known(operand):
            return operand[index, ...]
        places = np.arange(size_of(operand.shape)).reshape(operand.shape)[index]
        return operand.taken(places.ravel(), operand.shape[1:])

    def stacked(self, operands: list[Operand]) -> Operand:
        """Return operands of one shape along a new first axis."""
        arrays = [each for each in operands if is_known(each)]
        if len(arrays) == len(operands):
            return np.stack(arrays)
        parts = self.together(*operands)
        whole = joined(parts)
        whole.shape = (len(parts), *parts[0].shape)
        return whole

    # Linear operations.

    def moved(self, operands: list[Operand], data: list[int], bind: Bind) -> Any:
        """Return what a primitive makes of its data that only moves entries.

        It is run on the numbers of the entries; 0 is left for what it fills in.
        """
        parts = self.together(*(operands[k] for k in data))
        whole, numbers, start = joined(parts), list(operands), 1
        for k, part in zip(data, parts, strict=True):
            count = np.arange(start, start + part.size, dtype=np.float64)
            numbers[k] = count.reshape(part.shape)
            start += part.size
        found = bind(*numbers)
        padded = joined([fixed(np.zeros(1), whole.scene), whole])
        several = isinstance(found, list)
        results = [
            padded.taken(np.nan_to_num(each).astype(int).ravel(), each.shape)
            for each in (found if several else [found])
        ]
        return results if several else results[0]

    def linear(self, operands: list[Operand], bind: Bind) -> Expression:
        """Return what a primitive that is linear in its varying operands makes."""
        places = [k for k, o in enumerate(operands) if not is_known(o)]
        parts = self.together(*(operands[k] for k in places))
        at_zero = list(operands)
        for k, part in zip(places, parts, strict=True):
            at_zero[k] = np.zeros(part.shape)
        base = bind(*at_zero)
        columns = []
        for k, part in zip(places, parts, strict=True):
            for unit in np.eye(part.size):
                moved = list(at_zero)
                moved[k] = unit.reshape(part.shape)
                columns.append((bind(*moved) - base).ravel())
        whole = joined(parts).mapped(np.stack(columns, axis=1), base.shape)
        return whole.shifted(base.ravel())

    def add(self, a: Operand, b: Operand, sign: float = 1.0) -> Any:
        """Return a + b, or a − b."""
        if is_known(a) and is_known(b):
            return np.asarray(a + sign * b)
        if isinstance(b, Softplus) and b.rest is None:
            return Softplus.of(b.a, sign * b.sign, a)
        if isinstance(a, Softplus) and a.rest is None:
            return Softplus.of(a.a, a.sign, self.scaled(b, sign))
        shape = np.broadcast_shapes(a.shape, b.shape)
        first, second = self.together(a, b, shape=shape)
        return first.plus(second) if sign > 0 else first.minus(second)

    def scaled(self, a: Operand, factor: np.ndarray | float) -> Any:
        """Return a times a constant, of its shape or a number."""
        if is_known(a):
            return np.asarray(a * factor)
        if isinstance(a, Softplus):
            if np.ndim(factor) == 0 and abs(float(factor)) == 1:
                rest = None if a.rest is None else self.scaled(a.rest, factor)
                return Softplus.of(a.a, float(factor) * a.sign, rest)
            raise Refused("the logarithm in a softplus", "Use its derivative only.")
        factor = np.asarray(factor, np.float64)
        _require_finite(factor)
        shape = np.broadcast_shapes(a.shape, factor.shape)
        factors = np.broadcast_to(factor, shape).ravel()
        return _stretched(a, shape).scaled(factors)

    # Products and the rest.

    def multiply(self, a: Operand, b: Operand) -> Any:
        """Return a ⊙ b."""
        if is_known(a):
            return self.scaled(b, a)
        if is_known(b):
            return self.scaled(a, b)
        shape = np.broadcast_shapes(a.shape, b.shape)
        if 1 in (a.size, b.size) and a.size != b.size:
            for each in (a, b):  # before one is stretched
                self.recorder.settle(each)
        return nonlinear.product(self.recorder, *self.together(a, b, shape=shape))

    def contract(self, a: Operand, b: Operand, dimensions: Any) -> Any:
        """Return the sums of products of `dot_general`."""
        (over_a, over_b), (batch_a, batch_b) = dimensions
        left, right = self.together(a, b)
        places = []
        for part, over, batch in ((left, over_a, batch_a), (right, over_b, batch_b)):
            free = [k for k in range(len(part.shape)) if k not in (*over, *batch)]
            numbers = np.arange(part.size).reshape(part.shape)
            numbers = numbers.transpose(*batch, *free, *over)
            nb, nf = len(batch), len(free)
            head = numbers.shape[:nb]
            rows = size_of(numbers.shape[nb : nb + nf])
            places.append(numbers.reshape(size_of(head), rows, -1))
        i = np.broadcast_to(places[0][:, :, None], _outer(places)).reshape(-1)
        j = np.broadcast_to(places[1][:, None], _outer(places)).reshape(-1)
        batches, rows, columns, terms = _outer(places)
        count = batches * rows * columns
        batch_shape = [left.shape[k] for k in batch_a]
        free_a = [n for k, n in enumerate(left.shape) if k not in (*over_a, *batch_a)]
        free_b = [n for k, n in enumerate(right.shape) if k not in (*over_b, *batch_b)]
        shape = (*batch_shape, *free_a, *free_b)
        for known, part, mine, its in ((a, right, i, j), (b, left, j, i)):
            if is_known(known):
                matrix = np.zeros((count, part.size))
                outs = np.repeat(np.arange(count), terms)
                np.add.at(matrix, (outs, its), known.ravel()[mine])
                return part.mapped(matrix, shape)
        p, q = self.recorder.settle(left).take(i), self.recorder.settle(right).take(j)
        mix = np.kron(np.eye(count), np.ones((1, terms)))
        zero = constant(np.zeros(count))
        return Expression(shape, zero, left.scene, [Products(p, q, mix)])

    def divide(self, a: Operand, b: Operand) -> Any:
        """Return a / b."""
        if is_known(b):
            if not np.all(b):
                raise Refused("a division by zero", "Divide by something else.")
            return self.scaled(a, 1 / b)
        shape = np.broadcast_shapes(a.shape, b.shape)
        return nonlinear.quotient(self.recorder, *self.together(a, b, shape=shape))

    def power(self, a: Operand, exponent: int) -> Any:
        """Return aⁿ, by squaring; negative powers divide."""
        if exponent < 0:
            return self.divide(np.ones(a.shape), self.power(a, -exponent))
        result: Any = None
        square = a
        while exponent:
            if exponent & 1:
                result = square if result is None else self.multiply(result, square)
            exponent >>= 1
            if exponent:
                square = self.multiply(square, square)
        return np.ones(a.shape) if result is None else result

    def raised(self, a: Operand, b: Operand) -> Any:
        """Return a to the power of a constant: an integer, ½ or −½."""
        exponents = set(np.ravel(b).tolist()) if is_known(b) else set()
        if len(exponents) == 1:
            (exponent,) = exponents
            if float(exponent).is_integer():
                return self.power(a, int(exponent))
            if abs(exponent) == 0.5:
                found = nonlinear.root(self.recorder, self.varying(a))
                return found if exponent > 0 else self.power(found, -1)
        raise Refused("`pow`", "Use an integer exponent, or jnp.sqrt.")

    def compare(self, a: Operand, b: Operand, kind: str) -> Any:
        """Return a > b and its relatives, as 1 and 0."""
        shape = np.broadcast_shapes(a.shape, b.shape)
        for operand, other in ((a, b), (b, a)):
            if is_known(operand) and np.isinf(operand).all():
                above = (operand is a) == (kind in ("gt", "ge"))
                large = bool(np.all((operand > 0) == above))
                value = large if kind in ("gt", "ge", "lt", "le") else kind == "ne"
                return np.full(np.shape(other), value)
        if a is b:
            return np.full(shape, kind in ("ge", "le", "eq"))
        first, second = self.together(a, b, shape=shape)
        if kind in ("lt", "le"):
            first, second = second, first
        difference = first.minus(second)
        if difference.constants() is not None:
            zero = np.zeros(shape)
            test = {"gt": np.greater, "lt": np.greater, "ge": np.greater_equal}
            test |= {"le": np.greater_equal, "eq": np.equal, "ne": np.not_equal}
            return test[kind](difference.constants(), zero)
        if kind in ("eq", "ne"):
            sign = nonlinear.threshold(self.recorder, difference, "between")
            unequal = nonlinear.product(self.recorder, sign, sign)
            return unequal if kind == "ne" else self.opposite(unequal)
        tie: Tie = "below" if kind in ("gt", "lt") else "above"
        return nonlinear.threshold(self.recorder, difference, tie)

    def opposite(self, a: Expression) -> Expression:
        """Return 1 − a: not a."""
        return a.scaled(np.full(a.size, -1.0)).shifted(np.ones(a.size))

    def larger(self, a: Operand, b: Operand, sign: float = 1.0) -> Any:
        """Return max(a, b); with sign −1, min(a, b)."""
        for operand, other in ((a, b), (b, a)):
            if is_known(operand) and np.all(operand == -sign * np.inf):
                return other
        shape = np.broadcast_shapes(a.shape, b.shape)
        first, second = self.together(a, b, shape=shape)
        difference = first.minus(second).scaled(np.full(first.size, sign))
        known = difference.constants()
        if known is not None:
            return second.shifted(sign * np.maximum(known, 0).ravel())
        excess = nonlinear.rectified(self.recorder, difference)
        return second.plus(excess.scaled(np.full(first.size, sign)))

    def folded(
        self,
        a: Expression,
        axes: tuple[int, ...],
        combine: Callable[[Any, Any], Any],
    ) -> Any:
        """Return all entries over some axes combined, in rounds of pairs."""
        rest = [k for k in range(len(a.shape)) if k not in axes]
        places = np.arange(a.size).reshape(a.shape).transpose(*rest, *axes)
        shape = tuple(a.shape[k] for k in rest)
        places = places.reshape(size_of(shape), -1)
        whole: Any = a.taken(places.T.ravel(), places.T.shape)
        while whole.shape[0] > 1:
            count, width = whole.shape
            half = count // 2
            numbers = np.arange(whole.size).reshape(whole.shape)
            first = whole.taken(numbers[:half].ravel(), (half, width))
            second = whole.taken(numbers[half : 2 * half].ravel(), (half, width))
            both = combine(first, second)
            last = whole.taken(numbers[2 * half :].ravel(), (count - 2 * half, width))
            whole = joined(self.together(both, last)) if last.size else both
            whole.shape = (count - half, width)
        return whole.taken(np.arange(whole.size), shape)

    def magnitude(self, a: Expression) -> Expression:
        """Return |a| = 2 max(a, 0) − a."""
        twice = nonlinear.rectified(self.recorder, a).scaled(np.full(a.size, 2.0))
        return twice.minus(a)

    def select(self, which: Operand, low: Operand, high: Operand) -> Any:
        """Return `low` where which is 0, `high` where it is 1."""
        shape = np.broadcast_shapes(which.shape, low.shape)
        if is_known(which):
            if not which.any() or which.all():
                return high if which.any() else low
            chosen = np.broadcast_to(which, shape).astype(np.float64)
            first = self.scaled(low, 1 - chosen)
            return self.add(first, self.scaled(high, chosen))
        difference = self.add(high, low, -1.0)
        return self.add(low, self.multiply(which, difference))

    # Attention.

    def softplus(self, a: Operand, b: Operand) -> Any:
        """Return log(exp(a) + exp(b)), one of them zero."""
        for one, other in ((a, b), (b, a)):
            if is_known(one) and not np.any(one):
                if is_known(other):
                    return np.logaddexp(other, 0)
                return Softplus.of(self.varying(other))
        raise Refused("`logaddexp` of two numbers", "Use jax.nn.softplus.")


def _require_finite(operand: Operand) -> None:
    if is_known(operand) and not np.isfinite(operand).all():
        raise Refused(
            "a constant that is infinite or not a number", "Use a finite one."
        )


def _outer(places: list[np.ndarray]) -> tuple[int, int, int, int]:
    left, right = places
    return left.shape[0], left.shape[1], right.shape[1], left.shape[2]


def _stretched(expression: Expression, shape: Shape) -> Expression:
    """Return an expression, or one number everywhere, in this shape."""
    if expression.shape == shape:
        return expression
    numbers = np.arange(expression.size).reshape(expression.shape)
    return expression.taken(np.broadcast_to(numbers, shape).ravel(), shape)
