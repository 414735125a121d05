"""The primitives aff, dot, mul and div (paper §3.1, app. C.3, C.5, C.6).

    aff(r, r′, w)         h′[w] = W₁ h[r] + W₂ h[r′] + b
    dot(r, r′, w)         h′[w] = h[r]ᵀ h[r′]
    mul(a, b, c, r, r′, w)  h′[w] = A₁A₂, for A₁ ∈ ℝᵃˣᵇ in h[r] and A₂ ∈ ℝᵇˣᶜ in h[r′]
    div(r, r′, w)         h′[w] = h[r] / |h[r′]|

They run in every column; matrices are stored by rows. The first three are one RAW each.
div is not: it scales the pads of LayerNorm, which then divides. The fifth primitive is
in `mov`.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.weights import Plan
from algoscope.construction.language.timesteps import SELF
from algoscope.construction.paper.raw import Raw
from algoscope.construction.paper.steps import Layout, Operand, Primitive, State
from algoscope.foundation.validation import InvalidValueError, require_at_least

Matrix = Float[np.ndarray, "out inputs"]


class _AsRaw(Primitive):
    """A primitive that is one RAW."""

    def raw(self, layout: Layout) -> Raw:
        """Return the RAW that it is."""
        raise NotImplementedError

    def check(self, layout: Layout) -> None:
        """Reject registers of the wrong size."""
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
    """A primitive that multiplies two registers."""

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
    """W₁ h[read] + W₂ h[other] + b; a number c stands for the matrix cI.

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
        """The registers that are given, at most two."""
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


def write_pads(
    plan: Plan, layout: Layout, numerics: Numerics, divisor: str | None = None
) -> None:
    """Set the pads to ±N·c, or back to ±N after a division (erratum 40)."""
    form = layout.frame.form(1)
    form[0, -1 if divisor is None else layout.rows(divisor)] = 1
    plan.write_pads(layout.frame, numerics.pad, [(SELF, form)])


@dataclass(frozen=True)
class Div(Primitive):
    """h′[write] = h[read] / |h[divisor]|, in every column."""

    read: str
    divisor: str
    write: str

    scales_pads = True

    def __post_init__(self):
        if self.write == self.read:
            rule = "differ from `read`, which is divided only after attention"
            raise InvalidValueError("write", rule, repr(self.write))

    def __str__(self) -> str:
        return f"div({self.read}, {self.divisor}, {self.write})"

    @property
    def reads(self) -> tuple[str, ...]:
        """What is divided, and the divisor."""
        return (self.read, self.divisor)

    @property
    def fed(self) -> tuple[str, ...]:
        """What is divided."""
        return (self.read,)

    def check(self, layout: Layout) -> None:
        """Reject registers of the wrong size."""
        layout.require_size(self.divisor, 1, self)
        layout.require_size(self.read, layout.size(self.write), self)

    def exact(self, state: State, layout: Layout) -> State:
        """Return the registers after it; 0 where the divisor is 0."""
        self.check(layout)
        after = np.array(state, np.float64)
        size = np.abs(state[..., layout.rows(self.divisor)])
        above = state[..., layout.rows(self.read)]
        quotient = np.where(size == 0, 0, above / np.where(size == 0, 1, size))
        after[..., layout.rows(self.write)] = quotient
        return after

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Set the pads to ±N·c, and pass h[read] through the feed-forward part."""
        r, w = layout.rows(self.read), layout.rows(self.write)
        identity = np.eye(layout.size(self.write))
        own = plan.head(SELF, layout.frame).value
        write_pads(plan, layout, numerics, self.divisor)
        own[w, w] -= identity
        plan.linear[w, r] += identity
