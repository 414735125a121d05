"""A JAX function, computed with expressions in the place of arrays.

`jax.make_jaxpr` turns a function into a list of primitive operations, with `jax.grad`,
`jax.jit` and `jax.vmap` already worked out. `run_jaxpr` goes through the list. What
depends on constants only is computed at once; moves and sums become matrices; products,
quotients and the rest are written with `nonlinear`. Loops of a fixed length are
unrolled, calls are entered, and results that nothing needs are never computed.

A primitive that no layer computes is refused with the line of the user's own source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal

from algoscope.construction.language.arithmetic import (
    Arithmetic,
    Operand,
    is_known,
)
from algoscope.construction.language.expressions import Expression
from algoscope.construction.language.nonlinear import Refused
from algoscope.construction.language.operations import OPERATIONS
from algoscope.construction.language.recorder import Recorder
from algoscope.construction.language.rules import is_key, place_of
from algoscope.foundation.validation import InvalidValueError

CALLS = ("jaxpr", "call_jaxpr", "fun_jaxpr")
LONGEST_LOOP = 10_000  # iterations that are unrolled; more are a mistake

NEAREST = "Compare with the extremum: jnp.where(a == a.max(), 1.0, 0.0) is 1 there."
REMEDIES = {
    "log": "For a logistic loss, differentiate jax.nn.softplus or write the gradient "
    "with jax.nn.sigmoid.",
    "log1p": "Differentiate jax.nn.softplus, or write the gradient with "
    "jax.nn.sigmoid.",
    "while": "Use jax.lax.fori_loop or jax.lax.scan with a fixed number of steps.",
    "sort": "Use jnp.maximum and jnp.minimum of pairs.",
    "argmax": NEAREST,
    "argmin": NEAREST,
    "triangular_solve": "Update an inverse (recursive least squares), or iterate.",
    "lu": "Update an inverse (recursive least squares), or iterate.",
    "cholesky": "Update an inverse (recursive least squares), or iterate.",
    "eigh": "Iterate: power iterations, or Oja's rule.",
    "svd": "Iterate: power iterations, or Oja's rule.",
    "floor": "Use comparisons with constants and jnp.where.",
    "round": "Use comparisons with constants and jnp.where.",
}
GENERAL_REMEDY = (
    "Layers compute sums, products, quotients, roots of sums of squares, exp, "
    "logistic, tanh, comparisons, where, max, min, abs and sign."
)


LABELS = {"dot_general": "dot", "mul": "product", "reduce_sum": "sum"}


class JaxprRunner:
    """Runs jaxprs of one function, `step` or `predict`, with one recorder."""

    def __init__(self, recorder: Recorder, name: str, known: dict | None = None):
        """Keep what was computed in `known`, so that nothing is computed twice."""
        self.arithmetic = Arithmetic(recorder)
        self.name = name
        self.known = {} if known is None else known

    def run(
        self,
        closed: ClosedJaxpr,
        args: Sequence[Operand],
        needed: Sequence[bool] | None = None,
    ) -> list[Operand]:
        """Return the results of a jaxpr; those not needed may be zero."""
        try:
            return self._run(closed, args, needed)
        except Refused as refused:
            raise InvalidValueError(
                self.name,
                "consist of what layers can compute",
                refused.what,
                refused.remedy,
            ) from None

    def _run(
        self,
        closed: ClosedJaxpr,
        args: Sequence[Operand],
        needed: Sequence[bool] | None = None,
    ) -> list[Operand]:
        jaxpr = closed.jaxpr
        held: dict[Any, Operand] = {}
        held.update(zip(jaxpr.constvars, map(_known, closed.consts), strict=True))
        held.update(zip(jaxpr.invars, args, strict=True))

        def read(variable: Any) -> Operand:
            if isinstance(variable, Literal):
                return np.asarray(variable.val)
            return held[variable]

        wanted = _alive(jaxpr, needed)
        for equation, used in zip(jaxpr.eqns, wanted, strict=True):
            if not any(used):
                continue
            operands = [read(variable) for variable in equation.invars]
            results = self._explained(equation, operands, used)
            held.update(zip(equation.outvars, results, strict=True))
        return [
            read(variable)
            if isinstance(variable, Literal) or variable in held
            else np.zeros(variable.aval.shape)
            for variable in jaxpr.outvars
        ]

    def _explained(
        self, equation: Any, operands: list[Operand], used: list[bool]
    ) -> list[Operand]:
        """Return the results of one equation, or say where it was written."""
        try:
            return self._results(equation, operands, used)
        except Refused as refused:
            place = _place(equation)
            if place is None:  # inside of a function of JAX: say who calls it
                raise
            raise InvalidValueError(
                self.name,
                "consist of what layers can compute",
                f"{refused.what} in {place}",
                refused.remedy,
            ) from None

    def _results(
        self, equation: Any, operands: list[Operand], used: list[bool]
    ) -> list[Operand]:
        kind, params = equation.primitive.name, equation.params
        if kind == "custom_jvp_call" and _name(params["call_jaxpr"]) == "logaddexp":
            return [self.arithmetic.softplus(*operands)]
        enter = {"scan": self._scan, "while": self._while, "cond": self._cond}
        if kind in enter:
            return enter[kind](params, operands)
        inner = next((params[key] for key in CALLS if key in params), None)
        if inner is not None:
            closed = inner if isinstance(inner, ClosedJaxpr) else ClosedJaxpr(inner, ())
            return self._run(closed, operands, used)
        if all(map(is_known, operands)):
            found = equation.primitive.bind(*map(_unpacked, operands), **params)
            several = equation.primitive.multiple_results
            return [_known(each) for each in (found if several else [found])]
        if kind == "convert_element_type":
            _require_kept(equation.invars[0].aval.dtype, params["new_dtype"])
            return list(operands)
        if not any(variable.aval.size for variable in equation.outvars):
            return [np.zeros(variable.aval.shape) for variable in equation.outvars]
        if kind not in OPERATIONS:
            raise Refused(f"`{kind}`", REMEDIES.get(kind, GENERAL_REMEDY))
        key = (kind, *map(_identity, operands), repr(params))
        if key not in self.known:
            bind = _binding(equation)
            self.known[key] = OPERATIONS[kind](self.arithmetic, operands, params, bind)
        found = self.known[key]
        results = list(found) if isinstance(found, list) else [found]
        for each in results:
            if isinstance(each, Expression) and not any(each is o for o in operands):
                each.label = LABELS.get(kind, each.label)
        return results

    def _scan(self, params: dict[str, Any], operands: list[Operand]) -> list[Operand]:
        num_consts, num_carry = params["num_consts"], params["num_carry"]
        consts = operands[:num_consts]
        carry = operands[num_consts : num_consts + num_carry]
        inputs = operands[num_consts + num_carry :]
        body, length = params["jaxpr"], params["length"]
        _require_short(length)
        stacks: list[list[Operand]] = []
        order = range(length)
        for index in reversed(order) if params["reverse"] else order:
            slices = [self.arithmetic.entry(each, index) for each in inputs]
            results = self._run(body, [*consts, *carry, *slices])
            carry = results[:num_carry]
            stacks.append(results[num_carry:])
        if params["reverse"]:
            stacks.reverse()
        columns = zip(*stacks, strict=True)
        return [*carry, *(self.arithmetic.stacked(list(each)) for each in columns)]

    def _while(self, params: dict[str, Any], operands: list[Operand]) -> list[Operand]:
        num_test, num_body = params["cond_nconsts"], params["body_nconsts"]
        test_consts = operands[:num_test]
        body_consts = operands[num_test : num_test + num_body]
        carry = operands[num_test + num_body :]
        for _ in range(LONGEST_LOOP):
            (goes_on,) = self._run(params["cond_jaxpr"], [*test_consts, *carry])
            if not is_known(goes_on):
                raise Refused("a loop whose length depends on data", REMEDIES["while"])
            if not goes_on:
                return list(carry)
            carry = self._run(params["body_jaxpr"], [*body_consts, *carry])
        raise Refused(f"a loop of more than {LONGEST_LOOP:,} steps", "Use fewer steps.")

    def _cond(self, params: dict[str, Any], operands: list[Operand]) -> list[Operand]:
        index, *rest = operands
        branches = params["branches"]
        if is_known(index):
            chosen = min(max(int(index), 0), len(branches) - 1)
            return self._run(branches[chosen], rest)
        if len(branches) > 2:
            raise Refused("`lax.switch` by data", "Nest two-way `lax.cond`.")
        both = [self._run(branch, rest) for branch in branches]
        return [
            self.arithmetic.select(index, *pair) for pair in zip(*both, strict=True)
        ]


@dataclass(frozen=True)
class _Key:
    """A key of random numbers, which NumPy takes for no array."""

    key: jax.Array


def _known(found: Any) -> np.ndarray:
    """Return a constant as a NumPy array, also one of keys of random numbers."""
    if not is_key(found):
        return np.asarray(found)
    keys = np.empty(found.shape, object)
    for place in np.ndindex(found.shape):
        keys[place] = _Key(found[place])
    return keys


def _unpacked(array: Operand) -> Any:
    """Return a constant as JAX takes it."""
    if not is_known(array) or array.dtype != object:
        return array
    return jax.numpy.stack([each.key for each in array.flat]).reshape(array.shape)


def _name(closed: ClosedJaxpr) -> str:
    """Return the name of the function that a jaxpr was made of."""
    return closed.jaxpr.debug_info.func_src_info.partition(" ")[0]


def _require_kept(before: Any, after: Any) -> None:
    """Reject a conversion that rounds; truth is 1 and 0 in any type."""
    if np.issubdtype(before, np.floating) and not np.issubdtype(after, np.floating):
        remedy = "Use floats and comparisons."
        raise Refused(f"a float that becomes {np.dtype(after).name}", remedy)


def _require_short(length: int) -> None:
    if length > LONGEST_LOOP:
        raise Refused(f"a loop of {length:,} steps", "Use fewer steps.")


def _binding(equation: Any) -> Callable[..., np.ndarray]:
    """Return the primitive as a function of arrays."""

    def bind(*arrays: np.ndarray) -> np.ndarray:
        found = equation.primitive.bind(
            *map(jax.numpy.asarray, arrays), **equation.params
        )
        if equation.primitive.multiple_results:
            return [np.asarray(each) for each in found]  # pyright: ignore
        return np.asarray(found)

    return bind


def _identity(operand: Operand) -> object:
    """Return what tells operands apart: an expression itself, the bytes of an array."""
    if isinstance(operand, Expression):
        return operand
    return operand.shape, operand.dtype.str, operand.tobytes()


def _alive(jaxpr: Jaxpr, needed: Sequence[bool] | None) -> list[list[bool]]:
    """Return for every equation which of its results something depends on."""
    flags = [True] * len(jaxpr.outvars) if needed is None else needed
    live = {
        variable
        for variable, flag in zip(jaxpr.outvars, flags, strict=True)
        if flag and not isinstance(variable, Literal)
    }
    used = []
    for equation in reversed(jaxpr.eqns):
        mine = [variable in live for variable in equation.outvars]
        used.append(mine)
        if any(mine):
            live |= {v for v in equation.invars if not isinstance(v, Literal)}
    return used[::-1]


def _place(equation: Any) -> str | None:
    """Return where an equation was written, if the user wrote it."""
    from jax._src import source_info_util  # the only way to the user's line

    frame = source_info_util.user_frame(equation.source_info.traceback)
    if frame is None:
        return None
    return place_of(frame.file_name, frame.start_line)
