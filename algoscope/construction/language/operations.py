"""Which primitives of JAX can depend on data, and how each is computed.

Every entry of `OPERATIONS` takes the arithmetic, the operands, the parameters of the
primitive, and the primitive itself as a function of arrays.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from algoscope.construction.language import nonlinear
from algoscope.construction.language.arithmetic import (
    Arithmetic,
    Bind,
    Operand,
    is_known,
)
from algoscope.construction.language.expressions import Expression, Softplus
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


def _moving(*data: int) -> Operation:
    """Return a primitive that moves the entries of these operands; none means all."""

    def run(
        arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
    ):
        if len(operands) == 1 and isinstance(operands[0], Softplus):
            return operands[0]
        moved = list(data) or list(range(len(operands)))
        for k, operand in enumerate(operands):
            if k not in moved and not is_known(operand):
                raise Refused("an index that depends on data", "Use fixed indices.")
        return arithmetic.moved(operands, moved, bind)

    return run


def _linear(
    arithmetic: Arithmetic, operands: list[Operand], params: Params, bind: Bind
) -> Expression:
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
    "mul": _binary(lambda m, a, b: m.multiply(a, b)),
    "dot_general": lambda m, operands, params, bind: m.contract(
        *operands, params["dimension_numbers"]
    ),
    "square": _unary(lambda m, a: m.power(a, 2)),
    "integer_pow": lambda m, operands, params, bind: m.power(operands[0], params["y"]),
    "pow": _binary(lambda m, a, b: m.raised(a, b)),
    # LayerNorm
    "div": _binary(lambda m, a, b: m.divide(a, b)),
    "sqrt": _written(nonlinear.root),
    "rsqrt": _unary(_reciprocal_root),
    # attention
    "logistic": _written(nonlinear.logistic),
    "tanh": _unary(_tanh),
    "exp": _unary(_exponential),
    "expm1": _unary(lambda m, a: m.add(_exponential(m, a), np.ones(()), -1.0)),
    "sign": _written(lambda r, a: nonlinear.threshold(r, a, "between")),
    "abs": _unary(lambda m, a: m.magnitude(m.varying(a))),
    "max": _binary(lambda m, a, b: m.larger(a, b)),
    "min": _binary(lambda m, a, b: m.larger(a, b, -1.0)),
    "clamp": _clamped,
    "reduce_max": lambda m, operands, params, bind: m.largest(
        m.varying(operands[0]), params["axes"], 1.0
    ),
    "reduce_min": lambda m, operands, params, bind: m.largest(
        m.varying(operands[0]), params["axes"], -1.0
    ),
    # truth
    "select_n": _selected,
    "not": _unary(lambda m, a: m.opposite(m.varying(a))),
    "and": _binary(lambda m, a, b: m.multiply(a, b)),
    "or": _binary(_either),
    "xor": _binary(_exclusive),
    "is_finite": _unary(lambda m, a: np.ones(a.shape, bool)),
} | {
    kind: _binary(lambda m, a, b, kind=kind: m.compare(a, b, kind))
    for kind in ("gt", "ge", "lt", "le", "eq", "ne")
}
