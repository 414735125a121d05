"""Registers and linear forms over them: the values that programs compute with.

A register is a named group of rows of the hidden state. A value is Σ_r M_r h[r] + c, a
linear form of one column's registers. Sums, scaling, slicing and constant matrices make
new linear forms and cost nothing: they end up in the weights of whatever reads them.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float

from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

Number = int | float | np.number


@dataclass(frozen=True, eq=False)
class Register:
    """Named rows. Two registers of one name are still two registers."""

    name: str
    size: int

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

    __array_ufunc__ = None  # so that matrix @ value asks the value

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

    @classmethod
    def constantly(cls, vector: "float | Float[np.ndarray, ' size'] | list") -> "Value":
        """Return a vector that is the same in every column."""
        return cls({}, np.atleast_1d(np.asarray(vector, np.float64)))

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

    def __mul__(self, factor: Number) -> "Value":
        if not isinstance(factor, Number):
            raise InvalidTypeError(
                "factor",
                "be a number",
                type(factor).__name__,
                "Products of two values take a layer: use `program.multiply`.",
            )
        return (float(factor) * np.eye(self.size)) @ self

    __rmul__ = __mul__

    def __truediv__(self, divisor: Number) -> "Value":
        return self * (1 / divisor)

    def __neg__(self) -> "Value":
        return self * -1.0

    def __add__(self, other: "Value | Number | Float[np.ndarray, ' size']") -> "Value":
        if isinstance(other, Number):
            other = Value.constantly(np.full(self.size, float(other)))
        elif isinstance(other, np.ndarray):
            other = Value.constantly(other)
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

    def repeat(self, times: int) -> "Value":
        """Return (v, v, …): the whole vector, so many times."""
        return np.tile(np.eye(self.size), (times, 1)) @ self

    def stretch(self, times: int) -> "Value":
        """Return (v₁, v₁, …, v₂, v₂, …): each component, so many times."""
        return np.repeat(np.eye(self.size), times, axis=0) @ self


def constant(vector: "float | list | Float[np.ndarray, ' size']") -> Value:
    """Return a vector that is the same in every column."""
    return Value.constantly(vector)


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
