"""The notation of formulas: numbers, names and linear forms as text.

`GRAMMAR` explains it to a reader. `factors` writes products in it, and `formulas` whole
events.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from algoscope.construction.language.bilinear import triangle_places
from algoscope.construction.language.values import Register, Value

Matrix = Float[np.ndarray, "out inputs"]
Vector = Float[np.ndarray, " size"]
Rows = Int[np.ndarray, " rows"]
PLAIN_NAME = re.compile(r"[^\s,;+\-−()\[\]⟨⟩/⊙×‖|=]+")

# What may stand in a formula, how to find it there, and what it means.
GRAMMAR = (
    (
        "x, y",
        r"(?<![\w⟨·])[xy](?![\w₀-₉·])",
        "the input and the label of this token; 0 where there is none",
    ),
    (
        "v at x₂",
        r" at [xy][₀-₉]",
        "attention reads v at the token x₂; what comes before that token holds 0",
    ),
    (
        "… for later tokens",
        r" for later tokens",
        "the token x₂ itself holds 0 as well",
    ),
    (
        "v one token before",
        r" tokens? before",
        "attention reads v at the token before this one",
    ),
    (
        "v over the labels",
        r" over the labels",
        "attention averages v over all labels so far",
    ),
    (
        "y₁ takes it from x₁",
        r" takes it from ",
        "attention moves v; other tokens keep theirs",
    ),
    ("u · v", r" · ", "a product with a number"),
    ("u ⊙ v", r" ⊙ ", "a product component by component"),
    ("uᵀ v", r"ᵀ [^×]", "a dot product"),
    ("u vᵀ", r"[^·⊙×+−/] [^ ]+ᵀ(?! )", "the matrix of all products uᵢvⱼ"),
    (
        "A[2×3] × v",
        r" × ",
        "a matrix product; A is stored by rows, here two rows of three",
    ),
    ("sym(u)", r"sym\(", "the symmetric matrix whose upper triangle is u"),
    ("upper(A)", r"upper\(", "the upper triangle of A, by rows"),
    ("v[2–3]", r"\[\d+[–,\]]", "components of v, counted from 1"),
    ("(u, v)", r"\([^)]*, ", "u and v, one after the other"),
    ("sum(v)", r"sum\(", "the sum of the components"),
    ("/ ‖v‖", r"/ [‖|]", "LayerNorm divides by a length, or by the size of a number"),
    ("σ(a)", r"σ\(", "1/(1 + exp(−a)): the weight of a score a beside a score of 0"),
    (
        "softmax(uᵀ k) v",
        r"softmax\(",
        "attention averages v, weighted by the scores uᵀk and a score of 0 for nothing",
    ),
    ("⟨u, v⟩", r"⟨", "one register whose name is `u, v`"),
)


def legend(formulas: Iterable[str]) -> dict[str, str]:
    """Return what the notation in some formulas means, each with its meaning.

    Example:
        >>> legend(["w1ᵀ x2", "2 · w1"])
        {'u · v': 'a product with a number', 'uᵀ v': 'a dot product'}
    """
    whole = "\n".join(formulas)
    return {shown: says for shown, at, says in GRAMMAR if re.search(at, whole)}


def as_lines(says: Mapping[str, str]) -> str:
    """Return a legend as text, a line for each meaning."""
    width = max(map(len, says), default=0)
    return "\n".join(f"  {name:<{width}}  {meaning}" for name, meaning in says.items())


@dataclass(frozen=True)
class Notation:
    """How formulas are written: digits, how much of constants, names of registers."""

    digits: int = 6
    longest: float = 16  # numbers in a constant vector or matrix that is written out
    names: Mapping[Register, str] = field(default_factory=dict)

    # Numbers and names.

    def number(self, value: float) -> str:
        """Return a number, with a proper minus sign."""
        return f"{'−' if value < 0 else ''}{abs(value):.{self.digits}g}"

    def vector(self, values: Vector) -> str:
        """Return constants in brackets."""
        if len(values) > self.longest:
            return f"({len(values)} constants)"
        return f"({', '.join(map(self.number, values))})"

    def matrix(self, values: Matrix) -> str:
        """Return the rows of a constant matrix, separated by semicolons."""
        if values.size > self.longest:
            return "[{}×{} constants]".format(*values.shape)
        return f"[{'; '.join(' '.join(map(self.number, row)) for row in values)}]"

    def name(self, register: Register) -> str:
        """Return a name, in ⟨ ⟩ if it would be read as a formula."""
        name = self.names.get(register, register.name)
        return name if PLAIN_NAME.fullmatch(name) else f"⟨{name}⟩"

    # Linear forms.

    def text(self, value: Value, *, whole: bool = False) -> str:
        """Return a linear form, such as `w·x2 − y2`.

        A vector of equal components is written as one number unless its size has to
        be seen (`whole`).
        """
        ways = [self._sum_of_parts(value, whole)]
        parts = equal_runs(kinds(value))
        if 1 < len(parts) <= max(8, value.size // 2):
            each = [self.text(value.take(part), whole=True) for part in parts]
            ways.insert(0, joined(each))
        return min(ways, key=len)

    def _sum_of_parts(self, value: Value, whole: bool) -> str:
        terms, all_numbers = [], True
        for name, matrix in self._parts(value):
            scale, shown, is_number = self.mapped(name, matrix)
            terms.append(self.scaled(scale, shown))
            all_numbers &= is_number
        same = np.all(value.constant == value.constant[:1])
        if np.any(value.constant) or not terms:
            shown = self.vector(value.constant)
            terms.append(self.number(value.constant[0]) if same else shown)
            all_numbers &= bool(same)
        if whole and all_numbers and value.size > 1:
            return joined([summed(terms)] * value.size)
        return summed(terms)

    def _parts(self, value: Value) -> list[tuple[str, Matrix]]:
        """Return the registers of a form by name; the token holds y and x."""
        parts = []
        for register, matrix in value.terms.items():
            if is_token(register):
                prefix = self.names.get(register, "")
                parts += [(f"{prefix}y", matrix[:, :1]), (f"{prefix}x", matrix[:, 1:])]
            else:
                parts.append((self.name(register), matrix))
        return [(name, matrix) for name, matrix in parts if matrix.any()]

    def mapped(self, name: str, matrix: Matrix) -> tuple[float, str, bool]:
        """Return scale and text of a constant matrix times a vector of that name.

        The third is whether it is one number, the same in every component.
        """
        size, width = matrix.shape
        used = np.flatnonzero(matrix.any(axis=0))
        if size > 1 and np.all(matrix == matrix[:1]):
            scale, shown, _ = self.mapped(name, matrix[:1])
            return scale, shown, True
        numbers = matrix[matrix != 0]
        scale = float(numbers[0]) if np.all(numbers == numbers[0]) else 1.0
        unit = matrix / scale
        if np.all(np.count_nonzero(matrix, axis=1) == 1):
            taken = np.argmax(matrix != 0, axis=1)
            factors = unit[np.arange(size), taken]
            shown = _taken(name, taken, width)
            if np.all(factors == 1):
                return scale, shown, size == 1
            if len(used) > 1:
                return scale, f"{self.vector(factors)} ⊙ {shown}", False
        base = _taken(name, used, width)
        if len(used) == 1:
            return scale, f"{self.vector(unit[:, used[0]])} · {base}", False
        if size == 1:
            if np.all(unit[0, used] == 1):
                return scale, f"sum({base})", True
            return scale, f"{self.vector(unit[0, used])}ᵀ {base}", True
        if np.array_equal(unit, np.diag(np.diag(unit))):
            return scale, f"{self.vector(np.diag(unit))} ⊙ {name}", False
        return scale, f"{self.matrix(unit[:, used])} × {base}", False

    def grouped(self, value: Value, *, whole: bool = False) -> str:
        """Return a form as a factor: in brackets if it is a sum or a product."""
        return _bracketed(self.text(value, whole=whole))

    def scaled(self, scale: float, shown: str) -> str:
        """Return a number times a factor; ±1 is only a sign."""
        if abs(scale) == 1:
            return shown if scale > 0 else f"−{shown}"
        return f"{self.number(scale)} · {shown}"


def is_token(register: Register) -> bool:
    """Return whether a register is the token of its program, which holds y and x."""
    return getattr(register.program, "token", None) is register


def kinds(value: Value) -> list[bytes]:
    """Return for every component which registers it depends on."""
    columns = [
        block.any(axis=1)
        for register, matrix in value.terms.items()
        for block in (
            (matrix[:, :1], matrix[:, 1:]) if is_token(register) else (matrix,)
        )
    ]
    table = np.stack([*columns, np.ones(value.size, bool)], axis=1)
    return [row.tobytes() for row in table]


def equal_runs(kinds: Sequence[object]) -> list[Rows]:
    """Return the rows of each run of equal kinds."""
    runs: list[list[int]] = []
    for row, kind in enumerate(kinds):
        if runs and kinds[runs[-1][-1]] == kind:
            runs[-1].append(row)
        else:
            runs.append([row])
    return [np.array(run) for run in runs]


def _taken(name: str, taken: Rows, width: int) -> str:
    """Return components of a vector, as all of it, a triangle, or ranges."""
    if np.array_equal(taken, np.arange(width)):
        return name
    base = np.unique(taken)
    side = int(np.sqrt(len(taken)))
    whole = side > 1 and side**2 == len(taken)
    symmetric = whole and len(base) == side * (side + 1) // 2
    if symmetric and np.array_equal(base[triangle_places(side)].ravel(), taken):
        return f"sym({_taken(name, base, width)})"
    runs: list[list[int]] = []
    for place in taken + 1:
        if runs and place == runs[-1][-1] + 1:
            runs[-1].append(place)
        else:
            runs.append([place])
    shown = [f"{r[0]}–{r[-1]}" if len(r) > 1 else f"{r[0]}" for r in runs]
    return f"{name}[{', '.join(shown)}]"


def joined(parts: Iterable[str]) -> str:
    """Return vectors one after the other, in one pair of brackets."""
    return f"({', '.join(p[1:-1] if _is_joined(p) else p for p in parts)})"


def summed(terms: Iterable[str]) -> str:
    """Return a sum; terms that begin with a minus are subtracted from the others."""
    terms = [term for term in terms if term]
    positive = [term for term in terms if not term.startswith("−")]
    if positive:  # begin with one, if there is one
        terms.remove(positive[0])
        terms.insert(0, positive[0])
    total = "".join(terms[:1])
    for term in terms[1:]:
        total += f" − {term[1:]}" if term.startswith("−") else f" + {term}"
    return total


def _depths(shown: str) -> list[int]:
    """Return how many brackets are open at every character."""
    depth, depths = 0, []
    for letter in shown:
        depth -= letter in ")]⟩"
        depths.append(depth)
        depth += letter in "([⟨"
    return depths


def _outside(shown: str) -> str:
    """Return the characters that are in no brackets."""
    return "".join(c for c, d in zip(shown, _depths(shown), strict=True) if not d)


def is_bracketed(shown: str) -> bool:
    """Return whether one pair of brackets is around everything."""
    return shown.startswith("(") and _outside(shown) == "()"


def _is_joined(shown: str) -> bool:
    return is_bracketed(shown) and "," in _outside(shown[1:-1])


def is_sum(shown: str) -> bool:
    """Return whether terms are added or subtracted."""
    return any(sign in _outside(shown)[1:] for sign in "+−")


def _bracketed(shown: str) -> str:
    """Return a factor: sums, products and negative numbers are put in brackets."""
    open_ended = " " in _outside(shown) or shown.startswith("−")
    return f"({shown})" if open_ended else shown
