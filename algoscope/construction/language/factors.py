"""Products as text: what C (p ⊙ q) is, in the shortest of all ways to write it.

The products of an event are taken all together, or apart by the registers that they
multiply, or with the sums in p and q multiplied out. In each way they are looked at as
a bilinear map (`bilinear`), which may be a dot product, a matrix times a vector, or
another operation of textbooks; otherwise C, p and q are written as they are.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from algoscope.construction.language.bilinear import (
    MOST_COEFFICIENTS,
    Coefficients,
    Like,
    coefficients,
    products_like,
)
from algoscope.construction.language.expressions import form_of
from algoscope.construction.language.notation import (
    Matrix,
    Notation,
    Rows,
    Vector,
    equal_runs,
    is_bracketed,
    is_token,
    joined,
    kinds,
    summed,
)
from algoscope.construction.language.values import Value, constant


class ShownProducts(NamedTuple):
    """C (p ⊙ q)."""

    p: Value
    q: Value
    mix: Matrix

    def of(self, rows: Rows) -> "ShownProducts":
        """Return some rows of the result, without the products that they do not use."""
        mix = self.mix[rows]
        used = np.flatnonzero(mix.any(axis=0))
        return ShownProducts(self.p.take(used), self.q.take(used), mix[:, used])


@dataclass(frozen=True)
class Factoring:
    """Writes products in a notation."""

    notation: Notation

    def shortest(self, products: ShownProducts) -> str:
        """Return C (p ⊙ q) in the shortest way.

        Example:
            >>> from algoscope.construction.language.values import Register
            >>> u, v = Value.of(Register("u", 2)), Value.of(Register("v", 2))
            >>> dot = ShownProducts(u, v, np.array([[-2.0, -2.0]]))
            >>> Factoring(Notation()).shortest(dot)
            '−2 · uᵀ v'
        """
        p, q, mix = products
        pairs = list(zip(kinds(p), kinds(q), strict=True))
        groups = [
            np.array([k for k, pair in enumerate(pairs) if pair == kind])
            for kind in dict.fromkeys(pairs)
        ]
        ways = [[products]]
        if len(groups) > 1:
            ways.append(
                [ShownProducts(p.take(g), q.take(g), mix[:, g]) for g in groups]
            )
        ways.append(list(_expanded(p, q, mix)))
        return min((self._total(way) for way in ways if way), key=_length)

    def _total(self, blocks: Sequence[ShownProducts]) -> str:
        """Return the sum of some products; where they differ by row, one by one."""
        size = len(blocks[0].mix)
        touched = [
            frozenset(np.flatnonzero([b.mix[k].any() for b in blocks]).tolist())
            for k in range(size)
        ]
        runs = equal_runs(touched)
        if len(runs) == 1:
            return summed([self._block(block, whole=False) for block in blocks])
        if len(runs) > max(4, size // 2):
            return summed([self._block(block, whole=True) for block in blocks])
        each = []
        for run in runs:
            parts = [
                self._block(blocks[k].of(run), whole=True)
                for k in sorted(touched[run[0]])
            ]
            each.append(summed(parts) if parts else ", ".join(["0"] * len(run)))
        return joined(each)

    def _block(self, block: ShownProducts, whole: bool) -> str:
        """Return products in the shortest of all ways to write them."""
        p, at_p = _distinct(block.p)
        q, at_q = _distinct(block.q)
        (scale_p, p), (scale_q, q) = _unscaled(p), _unscaled(q)
        same = form_of(p) == form_of(q)
        size, entries = len(block.mix), np.argwhere(block.mix)
        if not 0 < len(entries) <= MOST_COEFFICIENTS:
            return self._as_given(block)
        k, at = entries.T
        numbers = scale_p * scale_q * block.mix[k, at]
        places = np.column_stack([k, at_p[at], at_q[at]])
        found = coefficients(places, numbers, same=same)
        if p.size == 1 or q.size == 1:
            return self._times_number(p, q, found, size, whole)
        likes = products_like(found, size, p.size, q.size, same=same)
        ways = [self._like(like, p, q) for like in likes]
        if size == 1:
            ways.append(self._quadratic(p, q, found))
        return min(ways or [self._as_given(block)], key=_length)

    def _as_given(self, block: ShownProducts) -> str:
        """Return C × (p ⊙ q), which is always right."""
        p, q = (self.notation.grouped(v, whole=True) for v in (block.p, block.q))
        inner = f"({p} ⊙ {q})" if block.p.size > 1 else f"({p} · {q})"
        numbers = block.mix[block.mix != 0]
        even = len(numbers) > 0 and np.all(numbers == numbers[0])
        scale = float(numbers[0]) if even else 1.0
        mix = block.mix / scale
        if block.p.size == 1:
            return self.notation.scaled(
                scale, f"{self.notation.vector(mix[:, 0])} · {inner}"
            )
        return self.notation.scaled(scale, f"{self.notation.matrix(mix)} × {inner}")

    def _times_number(
        self, p: Value, q: Value, found: Coefficients, size: int, whole: bool
    ) -> str:
        """Return a vector times a number."""
        vector, number, axis = (p, q, 1) if q.size == 1 else (q, p, 2)
        matrix = np.zeros((size, vector.size))
        matrix[found.places[:, 0], found.places[:, axis]] = found.numbers
        even = len(found.numbers) > 0 and np.all(found.numbers == found.numbers[0])
        scale = float(found.numbers[0]) if even else 1.0
        rest = (matrix / scale) @ vector
        if number.is_constant.all():  # ±1, since its size is in the scale
            return self.notation.text(
                float(number.constant[0]) * scale * rest, whole=whole
            )
        shown = self.notation.grouped(rest, whole=whole and size > 1)
        scale, factor = self._signed(scale, number)
        return self.notation.scaled(scale, f"{shown} · {factor}")

    def _quadratic(self, p: Value, q: Value, found: Coefficients) -> str:
        """Return pᵀ (B q)."""
        matrix = np.zeros((p.size, q.size))
        matrix[found.places[:, 1], found.places[:, 2]] = found.numbers
        dot = "ᵀ " if p.size > 1 else " · "
        other = self.notation.grouped(matrix @ q, whole=True)
        return f"{self.notation.grouped(p, whole=True)}{dot}{other}"

    def _like(self, like: Like, p: Value, q: Value) -> str:
        scale = 1.0
        if like.along == "all":
            scale = float(like.factors[0])
        elif like.along == "left":
            p = np.diag(like.factors) @ p
        elif like.along == "right":
            q = np.diag(like.factors) @ q
        left = self.notation.grouped(p, whole=True)
        scale, right = self._signed(scale, q)
        a, b, c = like.shape
        if like.elementwise:
            shown = f"{left} ⊙ {right}"
        elif a == c == 1:
            shown = f"{left}ᵀ {right}"
        elif b == 1:
            shown = f"{left} {right}ᵀ"
        else:
            left = self._as_matrix(left, (a, b), like.left_symmetric)
            right = self._as_matrix(right, (b, c), like.right_symmetric)
            shown = f"{left} × {right}"
        if like.triangle:
            shown = f"upper({shown})"
        if like.along == "out":
            return f"{self.notation.vector(like.factors)} ⊙ ({shown})"
        return self.notation.scaled(scale, shown)

    def _as_matrix(self, shown: str, shape: tuple[int, int], symmetric: bool) -> str:
        if symmetric:
            inside = shown[1:-1] if is_bracketed(shown) else shown
            return f"sym({inside})"
        if shape[1] == 1:
            return shown
        return f"{shown}ᵀ" if shape[0] == 1 else f"{shown}[{shape[0]}×{shape[1]}]"

    def _signed(self, scale: float, value: Value) -> tuple[float, str]:
        """Return scale and factor; a minus is moved where that is shorter."""
        shown = self.notation.grouped(value, whole=True)
        turned = self.notation.grouped(-1.0 * value, whole=True)
        return (-scale, turned) if len(turned) < len(shown) else (scale, shown)


def _length(shown: str) -> int:
    """Return how long it takes to read; vectors that are put together take longer."""
    return len(shown) + 8 * shown.count(", ")


def _distinct(value: Value) -> tuple[Value, Rows]:
    """Return the different components of a form, in the order of their registers."""
    blocks = [*value.terms.values(), value.constant[:, None]]
    table = np.hstack(blocks) + 0.0
    _, first, where = np.unique(table, axis=0, return_index=True, return_inverse=True)
    leading = np.argmax(table[first] != 0, axis=1)
    order = np.lexsort([first, leading])
    place = np.argsort(order)[where.ravel()]
    return value.take(first[order]), place


def _unscaled(value: Value) -> tuple[float, Value]:
    """Return a factor and the rest, if all coefficients of a form are ± the factor."""
    blocks = [np.abs(b[b != 0]) for b in (*value.terms.values(), value.constant)]
    numbers = np.concatenate(blocks)
    if not len(numbers) or not np.all(numbers == numbers[0]):
        return 1.0, value
    scale = float(numbers[0])
    terms = {register: matrix / scale for register, matrix in value.terms.items()}
    return scale, Value(terms, value.constant / scale)


def _expanded(p: Value, q: Value, mix: Matrix) -> Iterable[ShownProducts]:
    """Return products of two registers each, the sums in p and q multiplied out."""
    pairs: dict[tuple[object, object], list[ShownProducts]] = {}
    for left, left_form in _summands(p):
        for right, right_form in _summands(q):
            block = ShownProducts(left_form, right_form, mix)
            turned = (right, left) in pairs
            key = (right, left) if turned else (left, right)
            if turned:
                block = ShownProducts(right_form, left_form, mix)
            pairs.setdefault(key, []).append(block)
    for key, blocks in pairs.items():
        found = _single(*key, blocks)
        if found.mix.any():
            yield found


def _summands(value: Value) -> list[tuple[object, Value]]:
    """Return the parts of a form that depend on one register each, or on none."""
    none = np.zeros(value.size)
    parts: list[tuple[object, Value]] = []
    for register, matrix in value.terms.items():
        if not is_token(register):
            parts.append((register, Value({register: matrix}, none)))
            continue
        for name, columns in (("y", slice(1)), ("x", slice(1, None))):
            kept = np.zeros_like(matrix)
            kept[:, columns] = matrix[:, columns]
            if kept.any():
                parts.append(((register, name), Value({register: kept}, none)))
    if value.constant.any():
        parts.append((None, constant(value.constant)))
    return parts


def _single(left: object, right: object, blocks: list[ShownProducts]) -> ShownProducts:
    """Return products of single components, each once."""
    totals: dict[tuple[int, int], Vector] = {}
    for p, q, mix in blocks:
        for product in range(p.size):
            for i, first in _components(p, product):
                for j, second in _components(q, product):
                    key = (j, i) if left == right and j < i else (i, j)
                    total = totals.setdefault(key, np.zeros(len(mix)))
                    total += first * second * mix[:, product]
    kept = {key: total for key, total in totals.items() if total.any()}
    p, q, _ = blocks[0]
    mix = (
        np.stack(list(kept.values()), axis=1)
        if kept
        else np.zeros((len(blocks[0].mix), 0))
    )
    return ShownProducts(
        _unit(p, [i for i, _ in kept]), _unit(q, [j for _, j in kept]), mix
    )


def _components(value: Value, row: int) -> list[tuple[int, float]]:
    """Return the components of the one register of a form in a row, with factors."""
    if not value.terms:
        return [(0, float(value.constant[row]))]
    (matrix,) = value.terms.values()
    return [(int(k), float(matrix[row, k])) for k in np.flatnonzero(matrix[row])]


def _unit(value: Value, places: list[int]) -> Value:
    """Return these components of the one register of a form."""
    if not value.terms:
        return constant(np.ones(len(places)))
    (register,) = value.terms
    return Value.of(register).take(np.array(places, int))
