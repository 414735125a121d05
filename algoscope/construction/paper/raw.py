"""RAW and mov: the operators behind the primitives (paper §3.1, app. C.1-C.5).

RAW, read-arithmetic-write:

    h′ᵢ[w] = W_o ((W_a/|K(i)| Σ_{k ∈ K(i)} h_k[r]) ⊛ W hᵢ[s]) + b,   ⊛ either + or ⊙

A head that follows K reads h[r], the feed-forward part does the arithmetic and writes.
This differs from the paper's text in three points. K(i) may hold i itself (erratum 10:
dot and aff read their own column). Where K(i) is empty the imaginary timestep takes the
weight and the head reads zero (erratum 29: without it, the head would read an average
of everything). And a number of t enters the units of its own product only, together
with W h[s] (errata 43, 44).

Without a `bypass` in its numerics, attention alone does what is linear, since
W_o W_a h[r] and −h[w] are linear in h; this is exact, and old contents leave no trace.
With a `bypass` N, the paper's way, the feed-forward part does it through σ(N + u) − N.
What a head reads for the feed-forward part goes to scratch rows, the paper's t, whose
old contents a second head removes (erratum 42: with +1 on the diagonal of W^V and −1 in
W^F).

    mov(s, t, r, w)       h′_t[w] = h_s[r], other columns as they were

mov is not a RAW: a RAW would overwrite w in the other columns as well (erratum 9), so
the heads of mov read in column t alone.

A step has two meanings, written independently of each other: what it does to the
registers, exactly (`exact`), and the plan of a layer that does it (`plan`).
"""

from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.weights import Plan
from algoscope.construction.language.timesteps import (
    SELF,
    Average,
    Quadratic,
    Timesteps,
)
from algoscope.construction.paper.steps import (
    Entry,
    Layout,
    Operand,
    Primitive,
    State,
    Step,
)
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)

Kind = Literal["+", "⊙"]


@dataclass(frozen=True, eq=False)
class Raw(Step):
    """h′ᵢ[w] = W_o ((W_a/|K(i)| Σ h_k[r]) ⊛ W hᵢ[s]) + b; a matrix left out is I."""

    kind: Kind
    r: str | None  # read at `timesteps`; None: zero
    s: str | None  # read in its own column; None: zero
    w: str  # written
    timesteps: Timesteps = SELF
    w_a: Float[np.ndarray, "inner read"] | None = None
    w_s: Float[np.ndarray, "inner own"] | None = None  # W
    w_o: Float[np.ndarray, "write inner"] | None = None
    b: Float[np.ndarray, " write"] | None = None
    name: str = ""  # for messages, if it stands for something else

    def __post_init__(self):
        require_choice("kind", self.kind, get_args(Kind))
        for name in "rs":
            if self.kind == "⊙" and getattr(self, name) is None:
                raise InvalidValueError(name, "name a register to multiply", None)

    def __str__(self) -> str:
        parts = f"{self.kind}; s={self.s}, r={self.r}, w={self.w}, K={self.timesteps}"
        return self.name or f"raw({parts})"

    @property
    def writes(self) -> tuple[str, ...]:
        """The register w."""
        return (self.w,)

    @property
    def fed(self) -> tuple[str, ...]:
        """The factors that no head reads."""
        if self.kind == "+":
            return ()
        own = (self.r, self.s) if self.timesteps == SELF else (self.s,)
        return tuple(name for name in own if name is not None)

    @property
    def maps(self) -> tuple[Timesteps, ...]:
        """K, if anything is read through it."""
        return () if self.r is None else (self.timesteps,)

    @property
    def num_inner(self) -> int | None:
        """The size of what W_a and W make and W_o takes, where a matrix says it."""
        if self.w_o is not None:
            return self.w_o.shape[1]
        return next((len(m) for m in (self.w_a, self.w_s) if m is not None), None)

    def matrices(
        self, layout: Layout
    ) -> tuple[
        Float[np.ndarray, "inner read"],
        Float[np.ndarray, "inner own"],
        Float[np.ndarray, "write inner"],
        Float[np.ndarray, " write"],
    ]:
        """Return W_a, W, W_o and b, written out."""
        write = layout.size(self.w)
        inner = write if self.num_inner is None else self.num_inner
        found = []
        for name, matrix, register, shape in (
            ("w_a", self.w_a, self.r, (inner, layout.size(self.r))),
            ("w_s", self.w_s, self.s, (inner, layout.size(self.s))),
            ("w_o", self.w_o, self.w, (write, inner)),
        ):
            if register is None:
                matrix = np.zeros(shape)
            elif matrix is None:
                layout.require_size(register, inner, self)
                matrix = np.eye(inner)
            if matrix.shape != shape:
                rule = f"have shape {shape} for `{register}` in {self}"
                raise InvalidValueError(name, rule, matrix.shape)
            found.append(matrix)
        b = np.zeros(write) if self.b is None else self.b
        if b.shape != (write,):
            rule = f"have shape {(write,)} for `{self.w}` in {self}"
            raise InvalidValueError("b", rule, b.shape)
        return found[0], found[1], found[2], b

    def check(self, layout: Layout) -> None:
        """Reject registers that do not exist or have the wrong size."""
        self.matrices(layout)

    def exact(self, state: State, layout: Layout) -> State:
        """Return the registers after it, by its equation."""
        _, _, w_o, b = self.matrices(layout)
        read, own = self._operands(state, layout)
        after = np.array(state, np.float64)
        combined = read + own if self.kind == "+" else read * own
        after[..., layout.rows(self.w)] = combined @ w_o.T + b
        return after

    def _operands(self, state: State, layout: Layout) -> tuple[Operand, Operand]:
        w_a, w_s, _, _ = self.matrices(layout)
        average = self.timesteps.average(state.shape[-2])
        read = average @ (state[..., layout.rows(self.r)] @ w_a.T)
        return read, state[..., layout.rows(self.s)] @ w_s.T

    def factors(self, state: State, layout: Layout) -> tuple[Operand, Operand]:
        """Return both sides of ⊙."""
        if self.kind == "+":
            return super().factors(state, layout)
        return self._operands(state, layout)

    def sources(self, name: str, column: int, time: int) -> set[Entry]:
        """Return r in the columns K(i), and s."""
        found = set() if self.s is None else {(self.s, column)}
        if self.r is not None:
            read = np.flatnonzero(self.timesteps.average(time)[column])
            found |= {(self.r, int(k)) for k in read}
        return found

    def scratch_size(self, layout: Layout, numerics: Numerics) -> int:
        """Return the size of t, what a head reads for the feed-forward part."""
        if self.timesteps == SELF or self.r is None or self._by_attention(numerics):
            return 0
        return len(self.matrices(layout)[0])

    def _by_attention(self, numerics: Numerics) -> bool:
        return self.kind == "+" and numerics.bypass is None

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Add the heads and the arithmetic."""
        frame = layout.frame
        w_a, w_s, w_o, b = self.matrices(layout)
        r, s, w = (layout.rows(name) for name in (self.r, self.s, self.w))
        own = plan.head(SELF, frame).value
        if self._by_attention(numerics):
            at = SELF if self.r is None else self.timesteps
            plan.head(at, frame).value[w, r] += w_o @ w_a
            own[w, s] += w_o @ w_s
            own[w, -1] += b
            own[w, w] -= np.eye(len(b))
            return
        p, q = frame.form(len(w_a)), frame.form(len(w_s))
        q[:, s] = w_s
        if self.scratch_size(layout, numerics):
            identity = np.eye(len(w_a))
            own[scratch, scratch] -= identity
            plan.head(self.timesteps, frame).value[scratch, r] += w_a
            plan.linear[scratch, scratch] -= identity
            p[:, scratch] = identity
        else:
            p[:, r] = w_a
        if self.kind == "+":
            plan.linear[w] += w_o @ (p + q)
        else:
            ranges = np.ones(len(w_a)), np.ones(len(w_a))  # `Step.plan` sets them
            plan.add_products(w, w_o, (p, q), ranges)
        plan.linear[w, -1] += b
        # The feed-forward part can only multiply what attention has not removed.
        in_place = self.w in self.fed or numerics.bypass is not None
        (plan.linear if in_place else own)[w, w] -= np.eye(len(b))


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

    Appendices A and B of the paper swap the two columns (erratum 8), its RAW form swaps
    r and w (erratum 7).
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
        """Reject registers of different sizes."""
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
        """Return the source in column t, and the old contents in other columns."""
        if column == self.target:
            return {(self.read, self.source)}
        return {(self.write, column)}

    def scratch_size(self, layout: Layout, numerics: Numerics) -> int:
        """Return the size of what goes through the feed-forward part, if any does."""
        return 0 if numerics.bypass is None else layout.size(self.write)

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Add h_s[r] − h_t[w] to w in column t, directly or through scratch rows."""
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
