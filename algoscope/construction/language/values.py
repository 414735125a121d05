"""Registers, values and events: what a program is made of.

A register is a named group of rows of the hidden state. A value is Σ_r M_r h[r] + c, a
linear form of one column's registers. Sums, scaling, slicing and constant matrices make
new linear forms and cost nothing: they end up in the weights of whatever reads them.

An event is what the attention or the feed-forward part of one layer can do: it computes
values and writes a register. Its exact meaning is in `program`, its translation
into weights in `compile`. `inputs` are the values that an event depends on; `into` is
the register that it adds to in place, through the residual connection.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from jaxtyping import Bool, Float, Int

from algoscope.construction.language.timesteps import Timesteps
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

Number = int | float | np.number


@runtime_checkable
class Writer(Protocol):
    """A program, which writes what operators ask for."""

    def multiply(
        self,
        p: "Value",
        q: "Value",
        mix: Float[np.ndarray, "out products"] | None = None,
        /,
    ) -> "Value": ...

    def dot(self, p: "Value", q: "Value", /) -> "Value": ...

    def quotient(self, value: "Value", by: "Value", /) -> "Value": ...


@dataclass(frozen=True, eq=False)
class Register:
    """Named rows. Registers are told apart by identity, not by name."""

    name: str
    size: int
    program: Writer | None = None  # that they belong to

    def __repr__(self) -> str:
        return self.name


class Value:
    """A vector that is linear in the registers of its own column.

    Example:
        >>> w = Register("w", 2)
        >>> doubled = 2 * Value.of(w)[1:] + 1.0
        >>> doubled.terms[w].tolist(), doubled.constant.tolist()
        ([[0.0, 2.0]], [1.0])
    """

    __array_ufunc__ = None  # so that `matrix @ value` calls `__rmatmul__`

    def __init__(
        self,
        terms: Mapping[Register, Float[np.ndarray, "size rows"]],
        constant: Float[np.ndarray, " size"],
    ):
        self.terms = {r: m for r, m in terms.items() if np.any(m)}
        self.constant = constant

    @classmethod
    def of(cls, register: Register) -> "Value":
        """Return what a register holds."""
        return cls({register: np.eye(register.size)}, np.zeros(register.size))

    @property
    def size(self) -> int:
        """The number of components."""
        return len(self.constant)

    def __len__(self) -> int:
        return self.size

    def __repr__(self) -> str:
        names = [register.name for register in self.terms]
        return "+".join([*names, *(["1"] if np.any(self.constant) else [])]) or "0"

    def __rmatmul__(self, matrix: Float[np.ndarray, "out size"]) -> "Value":
        if matrix.shape[-1] != self.size:
            rule = f"have {self.size} columns, as many as {self!r} has components"
            raise InvalidValueError("matrix", rule, f"shape {matrix.shape}")
        terms = {register: matrix @ m for register, m in self.terms.items()}
        return Value(terms, matrix @ self.constant)

    # Constant factors are free. What follows takes a layer each.

    def __mul__(self, factor: "Value | Number | Float[np.ndarray, ' size']") -> "Value":
        if isinstance(factor, Value):
            p, q = _of_one_size(self, factor)
            return writer_of(self, factor, "a product").multiply(p, q)
        if isinstance(factor, np.ndarray) and factor.shape == (self.size,):
            return np.diag(factor.astype(np.float64)) @ self
        if not isinstance(factor, Number):
            rule = f"be a value, a number, or {self.size} of them"
            got = type(factor).__name__
            if isinstance(factor, np.ndarray):
                got = f"shape {factor.shape}"
            remedy = "Constant factors are free, products of values take a layer."
            raise InvalidTypeError("factor", rule, got, remedy)
        return (float(factor) * np.eye(self.size)) @ self

    __rmul__ = __mul__

    def __truediv__(
        self, divisor: "Value | Number | Float[np.ndarray, ' size']"
    ) -> "Value":
        if isinstance(divisor, Value):
            return writer_of(self, divisor, "a quotient").quotient(self, divisor)
        if not np.all(divisor):
            raise InvalidValueError("divisor", "not be zero", divisor)
        return self * (1 / divisor)

    def __rtruediv__(self, value: "Number | Float[np.ndarray, ' size']") -> "Value":
        above = constant(np.atleast_1d(np.asarray(value, np.float64)))
        return writer_of(self, self, "a quotient").quotient(above, self)

    def __matmul__(self, other: "Value | Float[np.ndarray, 'size *out']") -> "Value":
        if isinstance(other, np.ndarray):
            matrix = np.atleast_2d(other.astype(np.float64).T)
            return matrix @ self
        if not isinstance(other, Value):
            rule = f"be a value or an array of {self.size} rows"
            remedy = "Constant matrices are free, products of values take a layer."
            got = type(other).__name__
            raise InvalidTypeError("right side of @", rule, got, remedy)
        return writer_of(self, other, "a product").dot(self, other)

    def __pow__(self, exponent: int) -> "Value":
        if exponent != 2:
            remedy = "A square takes a layer, and so does each further product."
            raise InvalidValueError("exponent", "be 2", exponent, remedy)
        return self * self

    def __abs__(self) -> "Value":
        remedy = "It takes a layer: use `algoscope.construction.absolute`."
        raise InvalidTypeError("argument of abs", "be a number", "Value", remedy)

    def __lt__(self, other: object) -> "Value":
        remedy = "It takes a layer: use `algoscope.construction.above`."
        raise InvalidTypeError("sides of a comparison", "be numbers", "Value", remedy)

    __gt__ = __le__ = __ge__ = __lt__

    def __neg__(self) -> "Value":
        return self * -1.0

    def __add__(self, other: "Value | Number | Float[np.ndarray, ' size']") -> "Value":
        if isinstance(other, Number):
            other = constant(np.full(self.size, float(other)))
        elif isinstance(other, np.ndarray):
            other = constant(other)
        elif not isinstance(other, Value):
            rule = f"be a value, a number, or an array of {self.size} of them"
            got, remedy = type(other).__name__, "Sums take no layer."
            raise InvalidTypeError("term of a sum", rule, got, remedy)
        if self.size != other.size:
            rule = f"have {self.size} components, as {self!r} has"
            raise InvalidValueError("value", rule, f"{other!r} with {other.size}")
        terms = dict(self.terms)
        for register, matrix in other.terms.items():
            terms[register] = terms[register] + matrix if register in terms else matrix
        return Value(terms, self.constant + other.constant)

    __radd__ = __add__

    def __sub__(self, other: "Value | Number | Float[np.ndarray, ' size']") -> "Value":
        return self + -1.0 * other

    def __rsub__(self, other: "Number | Float[np.ndarray, ' size']") -> "Value":
        return -self + other

    def __getitem__(self, index: int | slice | Bool[np.ndarray, " size"]) -> "Value":
        rows = np.eye(self.size)[index]
        return np.atleast_2d(rows) @ self

    @property
    def is_constant(self) -> Bool[np.ndarray, " size"]:
        """Which components depend on no register."""
        varies = np.zeros(self.size, bool)
        for matrix in self.terms.values():
            varies |= matrix.any(axis=1)
        return ~varies

    def take(self, rows: Int[np.ndarray, " taken"]) -> "Value":
        """Return the components with these numbers."""
        terms = {register: m[rows] for register, m in self.terms.items()}
        return Value(terms, self.constant[rows])

    def repeat(self, times: int) -> "Value":
        """Return (v, v, …): the whole vector, repeated."""
        return np.tile(np.eye(self.size), (times, 1)) @ self

    def stretch(self, times: int) -> "Value":
        """Return (v₁, v₁, …, v₂, v₂, …): each component, repeated."""
        return np.repeat(np.eye(self.size), times, axis=0) @ self


def _of_one_size(a: Value, b: Value) -> tuple[Value, Value]:
    """Return two values, a number among them repeated."""
    if 1 in (a.size, b.size):
        return a.repeat(b.size if a.size == 1 else 1), b.repeat(
            a.size if b.size == 1 else 1
        )
    return a, b


def writer_of(a: Value, b: Value, what: str) -> Writer:
    """Return the program that two values belong to."""
    programs = [r.program for r in (*a.terms, *b.terms) if r.program is not None]
    if not programs:
        rule = f"belong to a program, which writes {what}"
        raise InvalidValueError("value", rule, f"{a!r} and {b!r}")
    return programs[0]


def constant(vector: "float | list | Float[np.ndarray, ' size']") -> Value:
    """Return a vector that is the same in every column."""
    return Value({}, np.atleast_1d(np.asarray(vector, np.float64)))


def join(values: Iterable[Value]) -> Value:
    """Return the components of all values, one after the other."""
    values = list(values)
    offsets = np.cumsum([0, *(value.size for value in values)])
    places = np.eye(offsets[-1])
    parts = [
        places[:, start : start + value.size] @ value
        for start, value in zip(offsets, values, strict=False)
    ]
    return sum(parts[1:], parts[0])


@dataclass(frozen=True, eq=False)
class Read:
    """out = average of `source` over K(i)."""

    out: Register
    source: Value
    at: Timesteps
    into: None = None
    norm: None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on."""
        return (self.source,)


@dataclass(frozen=True, eq=False)
class Head:
    """One head that scores by content: value averaged by softmax(query·key)."""

    query: Value
    key: Value
    value: Value


@dataclass(frozen=True, eq=False)
class Attend:
    """out = into + Σ over heads of Σ_j α_ij value_j; α includes the imaginary zero."""

    out: Register
    heads: tuple[Head, ...]
    at: Timesteps
    into: Register | None = None
    norm: None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on."""
        return tuple(v for h in self.heads for v in (h.query, h.key, h.value))


@dataclass(frozen=True, eq=False)
class Multiply:
    """out = into + C (p ⊙ q) / ‖norm‖² + plus."""

    out: Register
    p: Value
    q: Value
    mix: Float[np.ndarray, "out products"]
    plus: Value
    into: Register | None = None
    norm: Value | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on, the norm aside."""
        return (self.p, self.q, self.plus)


@dataclass(frozen=True, eq=False)
class Divide:
    """out = value / ‖norm‖; the norm of one number is its absolute value."""

    out: Register
    value: Value
    norm: Value
    into: None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on, the norm aside."""
        return (self.value,)


AttentionEvent = Read | Attend
FeedForwardEvent = Multiply | Divide
Event = AttentionEvent | FeedForwardEvent
