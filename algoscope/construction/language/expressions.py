"""Expressions: arrays that are computed lazily, L + Σ C (p ⊙ q).

An expression has the shape of a JAX array. Its entries are linear in registers and in
products that are not written yet. Sums, constant factors and moves of entries change
matrices only and cost nothing. Products are written to a register, in one layer, when
something multiplies them again: then they are *settled*.

An expression belongs to a scene, the columns in which its registers mean something:

    home    the column of a label, where an example (xⱼ, yⱼ) is at hand; what depends on
            nothing else is computed there once, for all examples at the same time
    replay  every column, which replays the steps of all examples that it has seen
    query   the column of an input, where a prediction is made

`recorder` writes expressions into a program; `jaxpr` computes with them what a JAX
function computes with arrays.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from jaxtyping import Float, Int, Shaped

from algoscope.construction.language.values import Value, constant, join

Scene = Literal["home", "replay", "query"]
Shape = tuple[int, ...]


@dataclass(frozen=True, eq=False)
class Products:
    """C (p ⊙ q): products that are not written yet."""

    p: Value
    q: Value
    mix: Float[np.ndarray, "size products"]


@dataclass(eq=False)
class Expression:
    """An array of linear forms and products, told apart by identity.

    Example:
        >>> from algoscope.construction.language.program import Program
        >>> program = Program(dim=2, num_examples=1)
        >>> x = Expression((2,), program.x, "query")
        >>> total = x.mapped(np.ones((1, 2)), ())
        >>> total.shape, total.linear.terms[program.token].tolist()
        ((), [[0.0, 1.0, 1.0]])
    """

    shape: Shape
    linear: Value
    scene: Scene
    products: list[Products] = field(default_factory=list)
    origin: "Expression | None" = None  # what it was before its products were written
    label: str = "product"  # the name of its register, if it gets one

    @property
    def size(self) -> int:
        """The number of entries."""
        return self.linear.size

    @property
    def values(self) -> list[Value]:
        """All linear forms in it."""
        factors = [value for each in self.products for value in (each.p, each.q)]
        return [self.linear, *factors]

    def mapped(
        self, matrix: Float[np.ndarray, "out size"], shape: Shape
    ) -> "Expression":
        """Return a constant matrix times the entries."""
        products = [Products(e.p, e.q, matrix @ e.mix) for e in self.products]
        return Expression(shape, matrix @ self.linear, self.scene, products)

    def taken(self, rows: Int[np.ndarray, " out"], shape: Shape) -> "Expression":
        """Return the entries with these numbers, in an array of another shape."""
        products = [Products(e.p, e.q, e.mix[rows]) for e in self.products]
        origin = None if self.origin is None else self.origin.taken(rows, shape)
        linear = self.linear.take(rows)
        return Expression(shape, linear, self.scene, products, origin)

    def scaled(self, factors: Float[np.ndarray, " size"]) -> "Expression":
        """Return every entry times a constant of its own."""
        terms = {r: factors[:, None] * m for r, m in self.linear.terms.items()}
        linear = Value(terms, factors * self.linear.constant)
        products = [Products(e.p, e.q, factors[:, None] * e.mix) for e in self.products]
        return Expression(self.shape, linear, self.scene, products)

    def plus(self, other: "Expression") -> "Expression":
        """Return the sum of two expressions of one scene and shape."""
        products = [*self.products, *other.products]
        return Expression(self.shape, self.linear + other.linear, self.scene, products)

    def shifted(self, constants: Float[np.ndarray, " size"]) -> "Expression":
        """Return the sum with constants."""
        linear = Value(self.linear.terms, self.linear.constant + constants)
        return Expression(self.shape, linear, self.scene, list(self.products))

    def minus(self, other: "Expression") -> "Expression":
        """Return the difference of two expressions of one scene and shape."""
        return self.plus(other.scaled(np.full(other.size, -1.0)))

    def constants(self) -> Float[np.ndarray, "..."] | None:
        """Return the entries as an array if none of them varies, else None."""
        if self.products or self.linear.terms:
            return None
        return self.linear.constant.reshape(self.shape)


@dataclass(eq=False)
class Softplus(Expression):
    """rest ± log(1 + exp(a)), which no layer computes: only exp makes sense of it.

    The derivative of a softplus is exp(a − softplus(a)) in JAX, and that is σ(a).
    """

    a: Expression = field(kw_only=True)
    sign: float = field(kw_only=True)
    rest: "np.ndarray | Expression | None" = field(kw_only=True)

    @classmethod
    def of(
        cls,
        a: Expression,
        sign: float = 1.0,
        rest: "np.ndarray | Expression | None" = None,
    ) -> "Softplus":
        """Return rest + sign·log(1 + exp(a))."""
        return cls(a.shape, a.linear, a.scene, a=a, sign=sign, rest=rest)


def joined(parts: Sequence[Expression]) -> Expression:
    """Return the entries of several expressions of one scene as one vector."""
    sizes = [part.size for part in parts]
    products, start = [], 0
    for part in parts:
        for each in part.products:
            mix = np.zeros((sum(sizes), each.mix.shape[1]))
            mix[start : start + part.size] = each.mix
            products.append(Products(each.p, each.q, mix))
        start += part.size
    linear = join([part.linear for part in parts])
    return Expression((sum(sizes),), linear, parts[0].scene, products)


def fixed(array: Shaped[np.ndarray, "..."], scene: Scene) -> Expression:
    """Return constants as an expression."""
    array = np.asarray(array, np.float64)
    return Expression(array.shape, constant(array.ravel()), scene)


def size_of(shape: Shape) -> int:
    """Return the number of entries of an array."""
    return math.prod(shape)


@dataclass(frozen=True)
class Sum:
    """All products of an expression as one: Σ C (p ⊙ q), each product only once."""

    p: Value
    q: Value
    mix: Float[np.ndarray, "size products"]


def collected(expression: Expression) -> Sum:
    """Return the products of an expression without repetitions and without zeros.

    p ⊙ q and q ⊙ p are one product: xxᵀ takes d(d + 1)/2 of them.
    """
    products = expression.products
    if not products:
        none = constant(np.zeros(0))
        return Sum(none, none, np.zeros((expression.size, 0)))
    p, q = join([e.p for e in products]), join([e.q for e in products])
    mix = np.hstack([e.mix for e in products])
    registers = list({**p.terms, **q.terms})

    def rows(value: Value) -> list[bytes]:
        blocks = [value.terms.get(r, np.zeros((value.size, r.size))) for r in registers]
        whole = np.hstack([*blocks, value.constant[:, None]]) + 0.0  # without −0
        return [row.tobytes() for row in whole]

    places: dict[tuple[bytes, bytes], int] = {}
    first: list[int] = []
    owner = np.zeros(p.size, int)
    for index, (one, other) in enumerate(zip(rows(p), rows(q), strict=True)):
        key = (one, other) if one <= other else (other, one)
        if key not in places:
            places[key] = len(first)
            first.append(index)
        owner[index] = places[key]
    merged = np.zeros((len(mix), len(first)))
    np.add.at(merged.T, owner, mix.T)
    used = np.flatnonzero(merged.any(axis=0))
    kept = np.array(first, int)[used]
    return Sum(p.take(kept), q.take(kept), merged[:, used])


def squares(expression: Expression) -> Value | None:
    """Return v with ‖v‖² = the expression, one number, if it is a sum of squares."""
    whole = expression if expression.origin is None else expression.origin
    if whole.size != 1 or whole.linear.terms or not whole.products:
        return None
    parts, rest = collected(whole), float(whole.linear.constant[0])
    if form_of(parts.p) != form_of(parts.q) or (parts.mix < 0).any() or rest < 0:
        return None
    norm = np.diag(np.sqrt(parts.mix[0])) @ parts.p
    return join([norm, constant(np.sqrt(rest))]) if rest else norm


def form_of(value: Value) -> tuple[object, ...]:
    """Return what is equal for values that are written in the same way."""
    terms = frozenset((r, (m + 0.0).tobytes()) for r, m in value.terms.items())
    return value.size, terms, (value.constant + 0.0).tobytes()
