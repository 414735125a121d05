"""The primitives mov, aff, dot, mul and div (paper §3.1, app. C.3 and C.6).

    mov(s, t, r, w)       h′_t[w] = h_s[r], other columns as they were
    aff(r, r′, w)         h′[w] = W₁ h[r] + W₂ h[r′] + b
    dot(r, r′, w)         h′[w] = h[r]ᵀ h[r′]
    mul(a, b, c, r, r′, w)  h′[w] = A₁A₂, for A₁ ∈ ℝᵃˣᵇ in h[r] and A₂ ∈ ℝᵇˣᶜ in h[r′]
    div(r, c, w)          h′[w] = h[r] / |h[c]|

All but mov run in every column; matrices are stored by rows. aff, dot and mul are each
one RAW. mov is not: as RAW it would overwrite w in the other columns as well
(erratum 9), so its heads read in column t alone. Nor is div: it is LayerNorm,
which divides a column by its deviation. With the pads at ±N·c that is N|c|√(2/H), so
the feed-forward part reads everything divided by |c|: by the absolute value
(erratum 51), and without the paper's M, of which LayerNorm is free (erratum 53). It can
therefore remove neither the old contents of what it writes nor the scaled pads
(erratum 54): a head does the first, and a head of the next layer the second.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.construction.layers import Plan
from algoscope.construction.layout import Layout
from algoscope.construction.numerics import Numerics
from algoscope.construction.raw import Raw
from algoscope.construction.steps import Entry, Operand, Primitive, State
from algoscope.construction.timesteps import SELF, Average, Quadratic, Timesteps
from algoscope.validation import InvalidValueError, require_at_least

Matrix = Float[np.ndarray, "out inputs"]


@dataclass(frozen=True)
class Only:
    """K(target) = {source}, and empty for all others."""

    source: int
    target: int

    def __str__(self) -> str:
        return f"{{{self.source}}} if i={self.target}"

    def average(self, time: int) -> Average:
        """Return the matrix with a single one."""
        matrix = np.zeros((time, time))
        matrix[self.target, self.source] = 1
        return matrix

    def quadratic(self, time: int) -> Quadratic:
        """Return S of ½ − (i − target)² − (j − source)²."""
        i, j = float(self.target), float(self.source)
        matrix = np.zeros((4, 4))
        matrix[0, :3] = 0.5 - i * i - j * j, 2 * i, -1
        matrix[1:3, 0] = 2 * j, -1
        return matrix


@dataclass(frozen=True)
class Mov(Primitive):
    """Copies `read` of one column to `write` of another (errata 6-9).

    Printed with the two columns in the other order in appendices A and B (erratum 8),
    and with r and w in the other order as RAW (erratum 7).
    """

    source: int  # s
    target: int  # t ≥ s
    read: str
    write: str

    def __post_init__(self):
        require_at_least("source", self.source, 0)
        remedy = "Attention is causal: nothing later can be read."
        require_at_least("target", self.target, self.source, remedy)

    def __str__(self) -> str:
        return f"mov({self.source}, {self.target}, {self.read}, {self.write})"

    @property
    def reads(self) -> tuple[str, ...]:
        """What is copied."""
        return (self.read,)

    @property
    def maps(self) -> tuple[Timesteps, ...]:
        """K(t) = {s} to read what comes, and K(t) = {t} to remove what was there."""
        return Only(self.source, self.target), Only(self.target, self.target)

    def check(self, layout: Layout) -> None:
        """Refuse registers of different sizes."""
        layout.require_size(self.read, layout.size(self.write), self)

    def exact(self, state: State, layout: Layout) -> State:
        """Return the registers after it."""
        self.check(layout)
        time = state.shape[-2]
        if self.target >= time:
            rule = f"be one of the {time} columns"
            raise InvalidValueError("target", rule, self.target)
        after = np.array(state, np.float64)
        moved = state[..., self.source, layout.rows(self.read)]
        after[..., self.target, layout.rows(self.write)] = moved
        return after

    def sources(self, name: str, column: int, time: int) -> set[Entry]:
        """Return what is copied, in column t; what was there, in others."""
        if column == self.target:
            return {(self.read, self.source)}
        return {(self.write, column)}

    def scratch_size(self, layout: Layout, numerics: Numerics) -> int:
        """Return the size of what goes through the feed-forward part, if any does."""
        return 0 if numerics.bypass is None else layout.size(self.write)

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Add h_s[r] − h_t[w] to w, in column t: at once, or through the scratch."""
        frame, identity = layout.frame, np.eye(layout.size(self.write))
        r, w = layout.rows(self.read), layout.rows(self.write)
        into = w if numerics.bypass is None else scratch
        comes, was = (plan.head(each, frame).value for each in self.maps)
        comes[into, r] += identity
        was[into, w] -= identity
        if numerics.bypass is not None:
            plan.head(SELF, frame).value[scratch, scratch] -= identity
            plan.linear[w, scratch] += identity
            plan.linear[scratch, scratch] -= identity


class _AsRaw(Primitive):
    """A primitive that is one RAW."""

    def raw(self, layout: Layout) -> Raw:
        """Return the RAW that it is."""
        raise NotImplementedError

    def check(self, layout: Layout) -> None:
        """Refuse registers of the wrong size."""
        self.raw(layout).check(layout)

    def factors(self, state: State, layout: Layout) -> tuple[Operand, Operand]:
        """Return the factors of the RAW."""
        return self.raw(layout).factors(state, layout)

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Add what the RAW does."""
        self.raw(layout).add_to(plan, layout, numerics, scratch)


class _Product(_AsRaw):
    """A primitive that multiplies what is in two registers."""

    read: str
    other: str

    @property
    def reads(self) -> tuple[str, ...]:
        """Both registers."""
        return (self.read, self.other)

    @property
    def fed(self) -> tuple[str, ...]:
        """Both registers."""
        return self.reads


@dataclass(frozen=True, eq=False)
class Aff(_AsRaw):
    """W₁ h[read] + W₂ h[other] + b; a number stands for so many times I.

    Erratum 12: all of `write` is written, not its first row.
    """

    read: str | None
    other: str | None
    write: str
    w_1: Float[np.ndarray, "write read"] | float = 1.0
    w_2: Float[np.ndarray, "write other"] | float = 1.0
    b: Float[np.ndarray, " write"] | None = None

    def __str__(self) -> str:
        return f"aff({self.read or '()'}, {self.other or '()'}, {self.write})"

    @property
    def reads(self) -> tuple[str, ...]:
        """One register, or two, or none."""
        return tuple(each for each in (self.read, self.other) if each is not None)

    def _matrix(self, name: str, register: str | None, layout: Layout) -> Matrix:
        matrix = getattr(self, name)
        size = layout.size(self.write)
        if not isinstance(matrix, np.ndarray):
            if register is not None:
                layout.require_size(register, size, self)
            return matrix * np.eye(size)
        if matrix.shape != (shape := (size, layout.size(register))):
            rule = f"have shape {shape} for `{register}` in {self}"
            raise InvalidValueError(name, rule, matrix.shape)
        return matrix

    def raw(self, layout: Layout) -> Raw:
        """Return RAW(+) with W = W₁ and W_a = W₂."""
        w_s = self._matrix("w_1", self.read, layout)
        w_a = self._matrix("w_2", self.other, layout)
        return Raw(
            "+",
            self.other,
            self.read,
            self.write,
            w_a=w_a,
            w_s=w_s,
            b=self.b,
            name=str(self),
        )

    def exact(self, state: State, layout: Layout) -> State:
        """Return the registers after it."""
        self.check(layout)
        after = np.array(state, np.float64)
        total = np.zeros(layout.size(self.write)) if self.b is None else self.b
        for name, register in (("w_1", self.read), ("w_2", self.other)):
            if register is not None:
                matrix = self._matrix(name, register, layout)
                total = total + state[..., layout.rows(register)] @ matrix.T
        after[..., layout.rows(self.write)] = total
        return after


@dataclass(frozen=True)
class Mul(_Product):
    """The product of the a×b matrix in `read` and the b×c matrix in `other`.

    One RAW whose W_a and W spread the entries over the abc products and whose W_o adds
    them up: the parallel dot products of app. C.5. Erratum 11: sizes ab, bc and ac.
    """

    a: int
    b: int
    c: int
    read: str
    other: str
    write: str

    def __post_init__(self):
        for name in "abc":
            require_at_least(name, getattr(self, name), 1)

    def __str__(self) -> str:
        sizes = f"{self.a}, {self.b}, {self.c}"
        return f"mul({sizes}, {self.read}, {self.other}, {self.write})"

    def _check_sizes(self, layout: Layout) -> None:
        layout.require_size(self.read, self.a * self.b, self)
        layout.require_size(self.other, self.b * self.c, self)
        layout.require_size(self.write, self.a * self.c, self)

    def raw(self, layout: Layout) -> Raw:
        """Return RAW(⊙) with one product for each i, j, k of Σ_j A₁[i, j] A₂[j, k]."""
        self._check_sizes(layout)
        a, b, c = np.eye(self.a), np.eye(self.b), np.eye(self.c)

        def ones(size: int) -> Matrix:
            return np.ones((size, 1))

        return Raw(
            "⊙",
            self.other,
            self.read,
            self.write,
            w_a=np.kron(np.kron(ones(self.a), b), c),
            w_s=np.kron(np.kron(a, b), ones(self.c)),
            w_o=np.kron(np.kron(a, ones(self.b).T), c),
            name=str(self),
        )

    def exact(self, state: State, layout: Layout) -> State:
        """Return the registers after it."""
        self._check_sizes(layout)
        after, batch = np.array(state, np.float64), state.shape[:-1]
        left = state[..., layout.rows(self.read)].reshape(*batch, self.a, self.b)
        right = state[..., layout.rows(self.other)].reshape(*batch, self.b, self.c)
        after[..., layout.rows(self.write)] = (left @ right).reshape(*batch, -1)
        return after


@dataclass(frozen=True)
class Dot(_Product):
    """The dot product of two registers: mul(1, size, 1)."""

    read: str
    other: str
    write: str

    def __str__(self) -> str:
        return f"dot({self.read}, {self.other}, {self.write})"

    def raw(self, layout: Layout) -> Raw:
        """Return RAW(⊙) with W_o = 1ᵀ."""
        layout.require_size(self.other, layout.size(self.read), self)
        layout.require_size(self.write, 1, self)
        w_o = np.ones((1, layout.size(self.read)))
        return Raw("⊙", self.other, self.read, self.write, w_o=w_o, name=str(self))

    def exact(self, state: State, layout: Layout) -> State:
        """Return the registers after it."""
        self.check(layout)
        after = np.array(state, np.float64)
        products = (
            state[..., layout.rows(self.read)] * state[..., layout.rows(self.other)]
        )
        after[..., layout.rows(self.write)] = products.sum(axis=-1, keepdims=True)
        return after
