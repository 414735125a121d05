"""Matrices: values with two axes, and the moments of the examples seen so far.

A matrix is a value, its entries by rows, with a shape. Sums, constant factors,
transposes and products with constant matrices are free; products of two values take a
layer. What is written twice is computed once: the register of a symmetric matrix is its
triangle.
"""

from dataclasses import dataclass
from typing import Any, overload

import numpy as np
from jaxtyping import Float

from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, Labels
from algoscope.construction.language.values import (
    Number,
    Value,
    Writer,
    join,
    writer_of,
)
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError


@dataclass(frozen=True, eq=False)
class Matrix:
    """A value with a shape; `entries` come by rows.

    Example, A = xxᵀ as a triangle of three products, and Ax in another layer:
        >>> program = Program(dim=2, num_examples=1)
        >>> square = outer(program.x, program.x)
        >>> square.shape, program.events[-1].out.size
        ((2, 2), 3)
        >>> (square @ program.x).size, len(program.events)
        (2, 2)
        >>> (square + np.eye(2)).T.shape, len(program.events)
        ((2, 2), 2)
    """

    entries: Value
    shape: tuple[int, int]

    __array_ufunc__ = None  # so that `matrix @ value` calls `__rmatmul__`

    def __post_init__(self):
        rows, columns = self.shape
        if rows * columns != self.entries.size:
            rule = f"have the {self.entries.size} entries of {self.entries!r}"
            raise InvalidValueError("shape", rule, self.shape)

    @property
    def T(self) -> "Matrix":
        """The transpose."""
        rows, columns = self.shape
        places = np.arange(rows * columns).reshape(rows, columns).T
        return Matrix(self.entries.take(places.ravel()), (columns, rows))

    def __getitem__(self, index: tuple[int, int]) -> Value:
        return self.entries[int(np.ravel_multi_index(index, self.shape))]

    def __add__(self, other: "Matrix | Float[np.ndarray, 'rows columns']") -> "Matrix":
        if isinstance(other, np.ndarray):
            self._require_shape(other.shape)
            return Matrix(self.entries + other.ravel().astype(np.float64), self.shape)
        if not isinstance(other, Matrix):
            rule = "be a matrix"
            raise InvalidTypeError("summand", rule, type(other).__name__)
        self._require_shape(other.shape)
        return Matrix(self.entries + other.entries, self.shape)

    __radd__ = __add__

    def __neg__(self) -> "Matrix":
        return -1.0 * self

    def __sub__(self, other: "Matrix | Float[np.ndarray, 'rows columns']") -> "Matrix":
        return self + -1.0 * other

    def __rsub__(self, other: Float[np.ndarray, "rows columns"]) -> "Matrix":
        return -self + other

    def __mul__(self, factor: "Number | Value") -> "Matrix":
        return Matrix(self.entries * factor, self.shape)

    __rmul__ = __mul__

    def __truediv__(self, divisor: "Number | Value") -> "Matrix":
        return Matrix(self.entries / divisor, self.shape)

    def __rmatmul__(self, left: Float[np.ndarray, "out rows"]) -> "Matrix":
        rows, columns = self.shape
        if not isinstance(left, np.ndarray) or left.shape[-1] != rows:
            rule, got = f"be an array of {rows} columns", f"shape {np.shape(left)}"
            raise InvalidValueError("left side of @", rule, got)
        whole = np.kron(left.astype(np.float64), np.eye(columns))
        return Matrix(whole @ self.entries, (len(left), columns))

    @overload
    def __matmul__(self, other: Value) -> Value: ...

    @overload
    def __matmul__(self, other: "Matrix") -> "Matrix": ...

    def __matmul__(self, other: "Value | Matrix") -> "Value | Matrix":
        """Return the product with a vector or a matrix, in one layer."""
        if isinstance(other, Value):
            return (self @ Matrix(other, (other.size, 1))).entries
        if not isinstance(other, Matrix):
            rule = "be a value or a matrix"
            raise InvalidTypeError("right side of @", rule, type(other).__name__)
        (rows, inner), (also, columns) = self.shape, other.shape
        if inner != also:
            rule = f"have {inner} rows, as many as the left side has columns"
            raise InvalidValueError("right side of @", rule, f"shape {other.shape}")
        i, j, k = np.indices((rows, columns, inner)).reshape(3, -1)
        sums = np.kron(np.eye(rows * columns), np.ones((1, inner)))
        program = writer_of(self.entries, other.entries, "a product")
        p, q = self.entries.take(i * inner + k), other.entries.take(k * columns + j)
        entries = _written(program, p, q, sums)
        return Matrix(entries, (rows, columns))

    def _require_shape(self, shape: tuple[int, ...]) -> None:
        if shape != self.shape:
            rule = f"have the shape {self.shape}"
            raise InvalidValueError("summand", rule, shape)


def outer(p: Value, q: Value) -> Matrix:
    """Return pqᵀ, in one layer."""
    program, shape = writer_of(p, q, "a product"), (p.size, q.size)
    products = p.stretch(q.size), q.repeat(p.size)
    return Matrix(_written(program, *products, np.eye(p.size * q.size)), shape)


def _written(
    program: Writer, p: Value, q: Value, mix: Float[np.ndarray, "out products"]
) -> Value:
    """Return C (p ⊙ q), each product and each row once."""
    registers = list({**p.terms, **q.terms})

    def forms(value: Value) -> Float[np.ndarray, "products forms"]:
        blocks = [value.terms.get(r, np.zeros((value.size, r.size))) for r in registers]
        return np.hstack([*blocks, value.constant[:, None]])

    first, second = forms(p), forms(q)
    _, order = np.unique(np.vstack([first, second]), axis=0, return_inverse=True)
    pairs = np.sort(order.reshape(2, -1).T, axis=1)
    _, kept, place = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    merged = np.zeros((len(mix), len(kept)))
    np.add.at(merged.T, place.ravel(), mix.T)
    _, rows, back = np.unique(merged, axis=0, return_index=True, return_inverse=True)
    out = program.multiply(p.take(kept), q.take(kept), merged[rows])
    return out.take(back.ravel())


def symmetric(size: int) -> Float[np.ndarray, "entries triangle"]:
    """Return the matrix that writes out a symmetric matrix, by rows, from its triangle.

    Example:
        >>> symmetric(2).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    above = np.triu_indices(size)
    place = np.zeros((size, size), int)
    place[above] = np.arange(len(above[0]))
    place.T[above] = place[above]
    return np.eye(len(above[0]))[place.ravel()]


def upper(size: int) -> Float[np.ndarray, "triangle entries"]:
    """Return the matrix that takes the triangle, by rows, from a matrix."""
    rows, columns = np.triu_indices(size)
    return np.eye(size * size)[rows * size + columns]


def times_symmetric(
    program: Program, triangle: Value, x: Value, scale: float = 1.0, **options: Any
) -> Value:
    """Return scale · Px from d(d + 1)/2 products, for P given by its triangle.

    Row i of Px is Σ Pᵢⱼ (xᵢ + xⱼ) + (Pᵢᵢ − Σ Pᵢⱼ) xᵢ, sums over j ≠ i: the products in
    the first are those of row j as well. Options are those of `Program.multiply`.
    """
    p, q, mix = symmetric_products(triangle, x)
    return program.multiply(p, q, scale * mix, **options)


def symmetric_products(
    triangle: Value, x: Value
) -> tuple[Value, Value, Float[np.ndarray, "size products"]]:
    """Return p, q and C with Px = C (p ⊙ q)."""
    d = x.size
    rows, columns = np.triu_indices(d)
    off = np.flatnonzero(rows != columns)
    ends = np.eye(d)[rows[off]] + np.eye(d)[columns[off]]  # the rows of an entry
    diagonal = np.eye(len(rows))[rows == columns]
    diagonal[:, off] -= ends.T
    p, q = join([triangle.take(off), diagonal @ triangle]), join([ends @ x, x])
    return p, q, np.hstack([ends.T, np.eye(d)])


def moments(program: Program, *, mean: bool = False) -> tuple[Matrix, Value]:
    """Return XᵀX and XᵀY of the examples that a column sees, or these over n.

    Means take one layer and the next one's attention, sums another layer.

    Example, one step of gradient descent on all examples:
        >>> program = Program(dim=2, num_examples=4)
        >>> gram, moment = moments(program)
        >>> program.predict(0.1 * moment @ program.x)
        >>> gram.shape, moment.size
        ((2, 2), 2)
    """
    triangle, moment = triangle_moments(program, mean=mean)
    d = program.dim
    return Matrix(symmetric(d) @ triangle, (d, d)), moment


def triangle_moments(program: Program, *, mean: bool) -> tuple[Value, Value]:
    """Return the triangle of XᵀX, and XᵀY, or their means."""
    d = program.dim
    x = program.read(program.x, PREVIOUS, "x")
    each = program.multiply(
        join([upper(d) @ x.stretch(d), x]),
        join([upper(d) @ x.repeat(d), program.y.repeat(d)]),
        name="xxᵀ,xy",
    )
    found = program.read(each, Labels(), "mean")
    if not mean:
        counts = (np.arange(program.time) + 1) // 2
        others = program.position("n-1", counts[:, None] - 1.0)
        found = program.multiply(
            found, others.repeat(found.size), into=found, name="XᵀX,XᵀY"
        )
    return found[:-d], found[-d:]
