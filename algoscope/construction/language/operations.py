"""Which primitives of JAX can depend on data, and how each is computed.

Every entry of `OPERATIONS` takes the arithmetic, the operands, the parameters of the
primitive, and the primitive itself as a function of arrays.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np

from algoscope.construction.language import nonlinear
from algoscope.construction.language.arithmetic import (
    Arithmetic,
    Bind,
    Operand,
    is_known,
)
from algoscope.construction.language.expressions import (
    Expression,
    Softplus,
    joined,
)
from algoscope.construction.language.nonlinear import Refused

Params = dict[str, Any]
Operation = Callable[[Arithmetic, list[Operand], Params, Bind], Any]


def _unary(method: Callable[[Arithmetic, Any], Any]) -> Operation:
    def run(
        arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
    ):
        return method(arithmetic, operands[0])

    return run


def _binary(method: Callable[[Arithmetic, Any, Any], Any]) -> Operation:
    def run(
        arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
    ):
        return method(arithmetic, operands[0], operands[1])

    return run


def _written(
    write: Callable[[Any, Expression], Expression],
) -> Operation:
    """Return an operation of `nonlinear` on one expression."""
    return _unary(
        lambda arithmetic, a: write(arithmetic.recorder, arithmetic.varying(a))
    )


def _require_fixed(indices: Iterable[Operand]) -> None:
    if not all(map(is_known, indices)):
        raise Refused("an index that depends on data", "Use fixed indices.")


def _moving(*data: int) -> Operation:
    """Return a primitive that moves the entries of these operands; none means all."""

    def run(
        arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
    ):
        if len(operands) == 1 and isinstance(operands[0], Softplus):
            return operands[0]
        moved = list(data) or list(range(len(operands)))
        _require_fixed(o for k, o in enumerate(operands) if k not in moved)
        return arithmetic.moved(operands, moved, bind)

    return run


def _linear(
    arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
) -> Expression:
    _require_fixed(operands[1:2])  # the indices of a scatter
    return arithmetic.linear(operands, bind)


def _reduced_sum(
    arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
) -> Expression:
    a = arithmetic.varying(operands[0])
    units = np.eye(a.size).reshape(a.size, *a.shape)
    sums = units.sum(axis=tuple(axis + 1 for axis in params["axes"]))
    return a.mapped(sums.reshape(a.size, -1).T, sums.shape[1:])


def _selected(
    arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
) -> Operand:
    which, *cases = operands
    if len(cases) != 2:
        raise Refused("`select_n` of several cases", "Nest jnp.where.")
    return arithmetic.select(which, *cases)


def _clamped(
    arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
) -> Operand:
    low, a, high = operands
    return arithmetic.larger(high, arithmetic.larger(low, a), -1.0)


def _folded(combine: Callable[[Arithmetic, Any, Any], Any]) -> Operation:
    """Return a reduction over some axes by what combines two arrays."""

    def run(
        arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
    ):
        both = partial(combine, arithmetic)
        return arithmetic.folded(arithmetic.varying(operands[0]), params["axes"], both)

    return run


def _scattered(
    combine: Callable[[Arithmetic, Any, Any], Any], rest: float, sign: float
) -> Operation:
    """Return a scatter that combines entries at fixed places with updates.

    An update that differs from `rest` shows its place in an array full of `rest`.
    Updates of one place are combined one after another, others at the same time.
    """

    def run(
        arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
    ):
        _require_fixed(operands[1:2])
        whole, updates = arithmetic.together(operands[0], operands[2])
        empty = np.full(whole.shape, rest)
        waiting: dict[int, list[int]] = {}
        for number, unit in enumerate(np.eye(updates.size)):
            pulse = (rest + sign * unit).reshape(updates.shape)
            hit = np.flatnonzero(bind(empty, operands[1], pulse) != empty)
            for place in hit.tolist():  # none if it is out of bounds
                waiting.setdefault(place, []).append(number)
        while waiting:
            places = np.array(list(waiting))
            numbers = np.array([queue.pop(0) for queue in waiting.values()])
            waiting = {place: queue for place, queue in waiting.items() if queue}
            shape, order = places.shape, np.arange(whole.size)
            before = whole.taken(places, shape)
            after = combine(arithmetic, before, updates.taken(numbers, shape))
            order[places] = whole.size + np.arange(len(places))
            parts = joined(arithmetic.together(whole, after))
            whole = parts.taken(order, whole.shape)
        return whole

    return run


def _product(arithmetic: Arithmetic, a: Operand, b: Operand) -> Operand:
    return arithmetic.multiply(a, b)


def _larger(arithmetic: Arithmetic, a: Operand, b: Operand) -> Operand:
    return arithmetic.larger(a, b)


def _smaller(arithmetic: Arithmetic, a: Operand, b: Operand) -> Operand:
    return arithmetic.larger(a, b, -1.0)


def _either(arithmetic: Arithmetic, a: Operand, b: Operand) -> Operand:
    both = arithmetic.multiply(a, b)
    return arithmetic.add(arithmetic.add(a, b), both, -1.0)


def _exclusive(arithmetic: Arithmetic, a: Operand, b: Operand) -> Operand:
    both = arithmetic.scaled(arithmetic.multiply(a, b), 2.0)
    return arithmetic.add(arithmetic.add(a, b), both, -1.0)


def _reciprocal_root(arithmetic: Arithmetic, a: Operand) -> Operand:
    root = nonlinear.root(arithmetic.recorder, arithmetic.varying(a))
    return arithmetic.divide(np.ones(a.shape), root)


def _exponential(arithmetic: Arithmetic, a: Operand) -> Operand:
    """Return exp(a); of a − log(1 + exp(a)), σ(a)."""
    recorder = arithmetic.recorder
    if not isinstance(a, Softplus):
        return nonlinear.exponential(recorder, arithmetic.varying(a))
    if a.sign < 0:
        rest = np.zeros(()) if a.rest is None else a.rest
        if is_known(rest):
            found = nonlinear.logistic(recorder, arithmetic.scaled(a.a, -1.0))
            return arithmetic.scaled(found, np.exp(rest))
        recorder.settle(a.a)
        recorder.settle(rest)
        gap = rest.minus(a.a).constants()
        if gap is not None:
            found = nonlinear.logistic(recorder, a.a)
            return arithmetic.scaled(found, np.exp(gap))
    raise Refused("exp of a softplus", "Use jax.nn.sigmoid.")


def _power(arithmetic: Arithmetic, a: Operand, b: Operand) -> Operand:
    """Return a to the power of b; of a constant a > 0, exp(b log a)."""
    if is_known(a) and np.all(a > 0):
        return _exponential(arithmetic, arithmetic.scaled(b, np.log(a)))
    return arithmetic.raised(a, b)


def _tanh(arithmetic: Arithmetic, a: Operand) -> Operand:
    """Return 2σ(2a) − 1."""
    twice = arithmetic.varying(arithmetic.scaled(a, 2.0))
    found = nonlinear.logistic(arithmetic.recorder, twice)
    return arithmetic.add(arithmetic.scaled(found, 2.0), np.ones(()), -1.0)


OPERATIONS: dict[str, Operation] = {
    # moves
    "broadcast_in_dim": _moving(0),
    "reshape": _moving(0),
    "squeeze": _moving(0),
    "expand_dims": _moving(0),
    "transpose": _moving(0),
    "slice": _moving(0),
    "rev": _moving(0),
    "split": _moving(0),
    "dynamic_slice": _moving(0),
    "dynamic_update_slice": _moving(0, 1),
    "gather": _moving(0),
    "scatter": _moving(0, 2),
    "pad": _moving(0, 1),
    "concatenate": _moving(),
    "stack": _moving(),
    # identities
    "copy": _unary(lambda m, a: a),
    "copy_p": _unary(lambda m, a: a),
    "stop_gradient": _unary(lambda m, a: a),
    "optimization_barrier": lambda m, operands, params, bind: list(operands),
    "reduce_precision": _unary(lambda m, a: a),
    # sums
    "add": _binary(lambda m, a, b: m.add(a, b)),
    "add_any": _binary(lambda m, a, b: m.add(a, b)),
    "sub": _binary(lambda m, a, b: m.add(a, b, -1.0)),
    "neg": _unary(lambda m, a: m.scaled(a, -1.0)),
    "reduce_sum": _reduced_sum,
    "cumsum": _linear,
    "scatter-add": _linear,
    # products
    "mul": _binary(_product),
    "reduce_prod": _folded(_product),
    "scatter-mul": _scattered(_product, rest=1.0, sign=1.0),
    "dot_general": lambda m, operands, params, bind: m.contract(
        *operands, params["dimension_numbers"]
    ),
    "square": _unary(lambda m, a: m.power(a, 2)),
    "integer_pow": lambda m, operands, params, bind: m.power(operands[0], params["y"]),
    "pow": _binary(_power),
    # LayerNorm
    "div": _binary(lambda m, a, b: m.divide(a, b)),
    "sqrt": _written(nonlinear.root),
    "rsqrt": _unary(_reciprocal_root),
    # attention
    "logistic": _written(nonlinear.logistic),
    "tanh": _unary(_tanh),
    "exp": _unary(_exponential),
    "exp2": _unary(lambda m, a: _power(m, np.asarray(2.0), a)),
    "expm1": _unary(lambda m, a: m.add(_exponential(m, a), np.ones(()), -1.0)),
    "sign": _written(lambda r, a: nonlinear.threshold(r, a, "between")),
    "abs": _unary(lambda m, a: m.magnitude(m.varying(a))),
    "max": _binary(_larger),
    "min": _binary(_smaller),
    "clamp": _clamped,
    "reduce_max": _folded(_larger),
    "reduce_min": _folded(_smaller),
    "scatter-max": _scattered(_larger, rest=0.0, sign=1.0),
    "scatter-min": _scattered(_smaller, rest=0.0, sign=-1.0),
    # truth
    "select_n": _selected,
    "not": _unary(lambda m, a: m.opposite(m.varying(a))),
    "and": _binary(_product),
    "or": _binary(_either),
    "reduce_and": _folded(_product),
    "reduce_or": _folded(_either),
    "xor": _binary(_exclusive),
    "is_finite": _unary(lambda m, a: np.ones(a.shape, bool)),
} | {
    kind: _binary(lambda m, a, b, kind=kind: m.compare(a, b, kind))
    for kind in ("gt", "ge", "lt", "le", "eq", "ne")
}
