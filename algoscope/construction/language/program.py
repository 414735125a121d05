"""A learning algorithm as a program over registers (paper §3, app. C).

A program is data: a list of events, each of which a transformer can do in one layer's
attention or in one layer's feed-forward part. Every column runs the same program on its
own registers; only `read` and `attend` look at other columns. A program has two
meanings that tests hold equal: the weights that the compiler makes of it, and the exact
one of `interpret`, in NumPy and float64, event by event, for many datasets at once.

    read, store    attention: the average of a linear form over K(i)
    attend         attention by content: softmax(query·key), the imaginary zero included
    multiply       feed-forward: C (p ⊙ q), or C (p ⊙ q) / ‖v‖² through LayerNorm
    divide         feed-forward: v / |c| through LayerNorm

`into=w` adds to a register in place, through the residual connection. The old value is
then overwritten, and using it afterwards is an error.
"""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.construction.language.timesteps import SELF, Single, Timesteps
from algoscope.construction.language.values import (
    Attend,
    Divide,
    Event,
    Head,
    Multiply,
    Read,
    Register,
    Value,
    constant,
    join,
)
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
)


@dataclass
class Program:
    """The events that predict y at a query x from the examples before it.

    Example, averaging Σ xᵢyᵢ / n in three layers:
        >>> from algoscope.construction.language.timesteps import Labels, PREVIOUS
        >>> program = Program(dim=2, num_examples=4)
        >>> x = program.read(program.x, PREVIOUS)
        >>> xy = program.multiply(x, program.y.repeat(2))
        >>> program.predict(program.dot(program.read(xy, Labels()), program.x))
        >>> [event.out.name for event in program.events]
        ['read', 'product', 'read', 'dot']
    """

    dim: int
    num_examples: int
    token: Register = field(init=False)
    events: list[Event] = field(init=False, default_factory=list)
    positions: dict[Register, Float[np.ndarray, "time size"]] = field(
        init=False, default_factory=dict
    )
    output: Value | None = field(init=False, default=None)
    alike: list[list[Register]] = field(init=False, default_factory=list)  # in range
    digits: int = field(default=53, kw_only=True)  # that thresholds are written for
    _overwritten: dict[Register, str] = field(init=False, default_factory=dict)

    def __post_init__(self):
        require_at_least("dim", self.dim, 1)
        require_at_least("num_examples", self.num_examples, 1)
        self.token = Register("token", self.dim + 1, self)

    @property
    def time(self) -> int:
        """T: two tokens per example, and the query."""
        return 2 * self.num_examples + 1

    @property
    def x(self) -> Value:
        """The input in this column; zero where there is a label."""
        return Value.of(self.token)[1:]

    @property
    def y(self) -> Value:
        """The label in this column; zero where there is an input."""
        return Value.of(self.token)[:1]

    def position(self, name: str, values: Float[np.ndarray, "time size"]) -> Value:
        """Return a register that starts with given values, from the positions."""
        if len(values) != self.time:
            rule = f"have one row for each of the {self.time} timesteps"
            raise InvalidValueError("values", rule, f"shape {values.shape}")
        register = Register(name, values.shape[1], self)
        self.positions[register] = values
        return Value.of(register)

    def zeros(self, name: str, size: int) -> Value:
        """Return a register that starts at zero."""
        return self.position(name, np.zeros((self.time, size)))

    def read(self, source: Value, at: Timesteps, name: str = "read") -> Value:
        """Return the average of `source` over the timesteps K(i)."""
        if not isinstance(at, Timesteps):
            remedy = "Use `Single(t)` for one of them."
            raise InvalidTypeError("at", "be a timestep map", repr(at), remedy)
        at.average(self.time)  # rejects a map that does not fit
        if not source.terms and not np.any(source.constant):
            return source
        return self.append(Read(Register(name, source.size, self), source, at))

    def example(self, k: int) -> tuple[Value, Value]:
        """Return the k-th example, from 0, in every column after it; zeros before.

        A column that does not see the label does not see the input either: its own x
        is what it has to predict for.
        """
        self._require_example(k)
        x = self.read(self.x, Single(2 * k, later=True), f"x{k + 1}")
        return x, self.read(self.y, Single(2 * k + 1), f"y{k + 1}")

    def seen(self, k: int) -> Value:
        """Return 1 in columns that see the k-th example, 0 in others."""
        self._require_example(k)
        return self.read(constant(1.0), Single(2 * k + 1), f"seen{k + 1}")

    def store(self, value: Value, name: str = "stored") -> Value:
        """Return the value in a register of its own."""
        return self.read(value, SELF, name)

    def attend(
        self,
        heads: list[Head],
        at: Timesteps,
        *,
        into: Value | None = None,
        name: str = "attended",
    ) -> Value:
        """Return what heads read that score by content, summed."""
        at.average(self.time)  # rejects a map that does not fit
        if not heads:
            rule = f"hold at least one head for `{name}`"
            raise InvalidValueError("heads", rule, "none")
        size = heads[0].value.size
        for head in heads:
            if head.query.size != head.key.size:
                rule = f"have {head.query.size} components, as the query of `{name}`"
                raise InvalidValueError("key", rule, head.key.size)
            if head.value.size != size:
                rule = f"have {size} components, as the first head of `{name}` has"
                raise InvalidValueError("value", rule, head.value.size)
        target = self._target(into, size, name)
        return self.append(Attend(Register(name, size, self), tuple(heads), at, target))

    def multiply(
        self,
        p: Value,
        q: Value,
        mix: Float[np.ndarray, "out products"] | None = None,
        *,
        into: Value | None = None,
        plus: Value | None = None,
        norm: Value | None = None,
        name: str = "product",
    ) -> Value:
        """Return C (p ⊙ q) + plus, added to `into` if given, over ‖norm‖² if given.

        Products with a constant are linear forms, which cost nothing.
        """
        if p.size != q.size:
            rule = f"have {p.size} components, as the other factor of `{name}` has"
            raise InvalidValueError("q", rule, f"{q!r} with {q.size}")
        mix = np.eye(p.size) if mix is None else mix
        size = len(mix)
        plus = constant(np.zeros(size)) if plus is None else plus
        if plus.size != size or mix.shape[1] != p.size:
            rule = f"have {size} components, as `{name}` has, from {p.size} products"
            got = f"{plus.size} in `plus`, a mix of shape {mix.shape}"
            raise InvalidValueError("result", rule, got)
        if norm is not None:
            self._require_not_zero(norm, name)
        if norm is None:
            p, q, mix, plus = _fold(p, q, mix, plus)
        elif plus.terms:
            remedy = "LayerNorm would divide it as well; add it in another layer."
            raise InvalidValueError("plus", "be constant beside a norm", plus, remedy)
        else:
            p, q = self._in_rows(p), self._in_rows(q)
        if into is not None and not into.terms:
            plus, into = plus + into, None
        if not p.size and into is None:
            return plus
        target = self._target(into, size, name)
        return self.append(
            Multiply(Register(name, size, self), p, q, mix, plus, target, norm)
        )

    def quotient(self, value: Value, by: Value, name: str = "quotient") -> Value:
        """Return value / by, for a number `by`, with its sign."""
        if by.size != 1:
            rule = "be one number: a layer divides by one"
            raise InvalidValueError("by", rule, f"{by!r} with {by.size}")
        if by.is_constant.all():
            self._require_not_zero(by, name)
            return value / float(by.constant[0])
        return self.multiply(value, by.repeat(value.size), norm=by, name=name)

    def share_ranges(self, products: list[Value]) -> None:
        """Calibrate products as one: layers that repeat then have the same weights."""
        self.alike.append([register for value in products for register in value.terms])

    def dot(self, p: Value, q: Value, name: str = "dot") -> Value:
        """Return pᵀq."""
        return self.multiply(p, q, np.ones((1, p.size)), name=name)

    def apply(
        self, matrix: Value, vector: Value, scale: float = 1.0, **options: Any
    ) -> Value:
        """Return scale · Mv, for M by rows; options are those of `multiply`."""
        if matrix.size % vector.size:
            rule = f"have rows as long as {vector!r}, which has {vector.size}"
            raise InvalidValueError("matrix", rule, f"{matrix.size} components")
        rows = matrix.size // vector.size
        sums = scale * np.kron(np.eye(rows), np.ones((1, vector.size)))
        return self.multiply(matrix, vector.repeat(rows), sums, **options)

    def divide(self, value: Value, by: Value, name: str = "quotient") -> Value:
        """Return value / |by|, for a number `by`, or value / ‖by‖.

        A division by a constant is linear and costs nothing. There is no quotient by
        zero: the interpreter writes NaN, a program that divides by zero on the datasets
        of its calibration is not compiled, and a learner that meets a zero warns.
        """
        if by.is_constant.all():
            self._require_not_zero(by, name)
            return value / float(np.linalg.norm(by.constant))
        out = Register(name, value.size, self)
        return self.append(Divide(out, self._in_rows(value), by))

    def predict(self, value: Value, *more: Value) -> None:
        """Make a number the prediction of every column; more numbers may follow it."""
        for each in (value, *more):
            if each.size != 1:
                raise InvalidValueError("prediction", "be one number", f"{each.size}")
            self._require_readable(each)
        self.output = join([value, *more])

    @property
    def outputs(self) -> Value:
        """All numbers that `predict` was called with."""
        if self.output is None:
            rule = "say what it predicts"
            raise InvalidValueError("program", rule, "none", "Call `program.predict`.")
        return self.output

    @property
    def prediction(self) -> Value:
        """The first of the outputs."""
        return self.outputs[:1]

    def _require_not_zero(self, norm: Value, name: str) -> None:
        if norm.is_constant.all() and not norm.constant.any():
            raise InvalidValueError("norm", f"not be zero for `{name}`", "constant 0")

    def _require_example(self, k: int) -> None:
        require_at_least("k", k, 0)
        if k >= self.num_examples:
            rule = f"be below {self.num_examples}, the number of examples"
            raise InvalidValueError("k", rule, k)

    def _in_rows(self, value: Value) -> Value:
        """Return a value without a constant: LayerNorm divides rows, not biases."""
        return self.store(value, "constant") if np.any(value.constant) else value

    def _target(self, into: Value | None, size: int, name: str) -> Register | None:
        """Return the register that a value is, to be updated in place."""
        if into is None:
            return None
        self._require_readable(into)
        registers = list(into.terms)
        if (
            len(registers) != 1
            or into.size != size
            or np.any(into.constant)
            or not np.array_equal(into.terms[registers[0]], np.eye(size))
        ):
            rule = f"be a whole register of {size} rows for `{name}` to add to"
            raise InvalidValueError("into", rule, repr(into), "Store it first.")
        if registers[0] is self.token:
            raise InvalidValueError("into", "be a register of the program", "the token")
        return registers[0]

    def _require_readable(self, value: Value) -> None:
        known = {self.token, *self.positions, *(event.out for event in self.events)}
        for register in value.terms:
            if register not in known:
                rule = "be made of registers of this program"
                raise InvalidValueError("value", rule, f"register `{register.name}`")
            if register in self._overwritten:
                raise InvalidValueError(
                    "value",
                    "be read before it is overwritten",
                    f"register `{register.name}`, now `{self._overwritten[register]}`",
                    "Store it under another name first.",
                )

    def append(self, event: Event) -> Value:
        """Add an event, all of whose inputs are there, and return what it writes."""
        norm = () if event.norm is None else (event.norm,)
        for value in (*event.inputs, *norm):
            self._require_readable(value)
        self.events.append(event)
        if event.into is not None:
            self._overwritten[event.into] = event.out.name
        return Value.of(event.out)


def _fold(
    p: Value, q: Value, mix: Float[np.ndarray, "out products"], plus: Value
) -> tuple[Value, Value, Float[np.ndarray, "out variable"], Value]:
    """Return the products of two variables, and those with a constant in `plus`."""
    fixed_p, fixed_q = p.is_constant, q.is_constant
    fixed = fixed_p | fixed_q
    for rows, one, other in ((fixed_p, p, q), (~fixed_p & fixed_q, q, p)):
        if rows.any():
            plus = plus + (mix[:, rows] * one.constant[rows]) @ other[rows]
    return p[~fixed], q[~fixed], mix[:, ~fixed], plus
