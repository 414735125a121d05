"""Bilinear maps Σ T[k, i, j] uᵢ vⱼ, and which products of matrices they are.

A layer computes C (p ⊙ q). Whatever that is for a reader, a dot product, a matrix times
a vector, xxᵀ, is seen in the coefficients T of the products uᵢ vⱼ in component k.
`products_like` finds all ways to write them with the operations of textbooks:

    u ⊙ v    component by component
    A × B    matrices, stored by rows; vectors are matrices with one row or column
    sym(u)   the symmetric matrix whose upper triangle is u
    upper(A) the upper triangle of A, by rows
"""

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

MOST_COEFFICIENTS = 100_000  # of a map that is looked at; larger ones are not


class Coefficients(NamedTuple):
    """The coefficients of a bilinear map that are not zero, each place once."""

    places: Int[np.ndarray, "count 3"]  # k, i, j, in order
    numbers: Float[np.ndarray, " count"]


def coefficients(
    places: Int[np.ndarray, "count 3"],
    numbers: Float[np.ndarray, " count"],
    *,
    same: bool = False,
) -> Coefficients:
    """Return coefficients with those of one place added up.

    If u and v are the `same`, uᵢ uⱼ and uⱼ uᵢ are one product.
    """
    if same:
        places = np.column_stack([places[:, 0], np.sort(places[:, 1:], axis=1)])
    found, where = np.unique(places, axis=0, return_inverse=True)
    totals = np.zeros(len(found))
    np.add.at(totals, where.ravel(), numbers)
    kept = totals != 0
    return Coefficients(found[kept], totals[kept])


@dataclass(frozen=True)
class Like:
    """One way to write a bilinear map, up to factors.

    `factors` has one number if `along` is "all", else one for each component of the
    result ("out"), of u ("left") or of v ("right").
    """

    elementwise: bool
    shape: tuple[int, int, int]  # A is a × b, B is b × c
    left_symmetric: bool
    right_symmetric: bool
    triangle: bool  # whether the result is the upper triangle of A × B
    along: str
    factors: Float[np.ndarray, " factors"]


def products_like(
    found: Coefficients, size: int, left: int, right: int, *, same: bool = False
) -> Iterator[Like]:
    """Return all ways to write a map of `left` and `right` numbers to `size`.

    Example, the dot product of two vectors, times 3:
        >>> places = np.array([[0, 0, 0], [0, 1, 1]])
        >>> [like] = products_like(coefficients(places, np.full(2, 3.0)), 1, 2, 2)
        >>> like.shape, like.along, like.factors.tolist()
        ((1, 2, 1), 'all', [3.0])
    """
    if size == left == right:
        k = np.arange(size)
        pattern = coefficients(np.column_stack([k, k, k]), np.ones(size))
        for along, factors in _factors(found, pattern, (size, left, right), same):
            yield Like(True, (0, 0, 0), False, False, False, along, factors)
    for product in _products(size, left, right):
        pattern = product.coefficients(same=same)
        for along, factors in _factors(found, pattern, (size, left, right), same):
            yield Like(
                False,
                (product.a, product.b, product.c),
                product.left_side is not None,
                product.right_side is not None,
                product.triangle,
                along,
                factors,
            )


def _root(triangle: int) -> int | None:
    """Return t > 1 with t(t + 1)/2 = triangle, or None."""
    side = (int(np.sqrt(8 * triangle + 1)) - 1) // 2
    return side if side > 1 and side * (side + 1) // 2 == triangle else None


def triangle_places(side: int) -> Int[np.ndarray, "side side"]:
    """Return where the entries of a symmetric matrix are in its upper triangle.

    Example:
        >>> triangle_places(2).tolist()
        [[0, 1], [1, 2]]
    """
    places = np.zeros((side, side), int)
    upper = np.triu_indices(side)
    places[upper] = np.arange(len(upper[0]))
    return np.maximum(places, places.T)


@dataclass(frozen=True)
class _Product:
    """A × B for A of a × b and B of b × c numbers, triangles standing for the whole."""

    a: int
    b: int
    c: int
    left_side: int | None  # of A if it is symmetric, and given by its triangle
    right_side: int | None  # of B
    triangle: bool  # whether the result is the upper triangle of A × B

    @property
    def size(self) -> int:
        """The number of components of the result."""
        return self.a * (self.a + 1) // 2 if self.triangle else self.a * self.c

    def coefficients(self, *, same: bool) -> Coefficients:
        """Return its coefficients, those of triangles in their places."""
        if self.a * self.b * self.c > MOST_COEFFICIENTS:
            return Coefficients(np.zeros((0, 3), int), np.zeros(0))
        row, inner, column = np.indices((self.a, self.b, self.c)).reshape(3, -1)
        out = row * self.c + column
        if self.triangle:
            kept = row <= column
            row, inner, column = row[kept], inner[kept], column[kept]
            out = triangle_places(self.a)[row, column]
        i, j = row * self.b + inner, inner * self.c + column
        if self.left_side is not None:
            i = triangle_places(self.left_side).ravel()[i]
        if self.right_side is not None:
            j = triangle_places(self.right_side).ravel()[j]
        return coefficients(np.column_stack([out, i, j]), np.ones(len(out)), same=same)


def _products(size: int, left: int, right: int) -> Iterator[_Product]:
    """Return the products of matrices that fit these numbers of components."""
    lefts, rights = (dict.fromkeys((None, _root(each))) for each in (left, right))
    for left_side, right_side in itertools.product(lefts, rights):
        rows = left if left_side is None else left_side**2
        columns = right if right_side is None else right_side**2
        for b in range(1, min(rows, columns) + 1):
            fits = rows % b == columns % b == 0
            if not fits or {left_side, right_side} - {None, b}:
                continue
            a, c = rows // b, columns // b
            for triangle in (False, True) if a == c > 1 else (False,):
                product = _Product(a, b, c, left_side, right_side, triangle)
                if product.size == size:
                    yield product


def _factors(
    found: Coefficients, pattern: Coefficients, sizes: tuple[int, int, int], same: bool
) -> Iterator[tuple[str, Float[np.ndarray, " factors"]]]:
    """Return by which factors a map differs from a pattern, if it is like it."""
    if not np.array_equal(found.places, pattern.places):
        return
    ratios = found.numbers / pattern.numbers
    if _equal(ratios, ratios[:1]):
        yield "all", ratios[:1]
        return
    for axis, along in enumerate(("out",) if same else ("out", "left", "right")):
        factors = np.ones(sizes[axis])
        factors[found.places[:, axis]] = ratios
        if _equal(factors[found.places[:, axis]], ratios):
            yield along, factors


def _equal(a: Float[np.ndarray, " _"], b: Float[np.ndarray, " _"]) -> bool:
    return np.allclose(a, b, rtol=1e-12, atol=0)
