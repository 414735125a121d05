"""The primitive mov: one column's register copied to another column (paper §3.1).

    mov(s, t, r, w)       h′_t[w] = h_s[r], other columns as they were

It is not a RAW: a RAW would overwrite w in the other columns as well (erratum 9), so
the heads of mov read in column t alone.
"""

from dataclasses import dataclass

import numpy as np

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.weights import Plan
from algoscope.construction.language.timesteps import (
    SELF,
    Average,
    Quadratic,
    Timesteps,
)
from algoscope.construction.paper.steps import Entry, Layout, Primitive, State
from algoscope.foundation.validation import InvalidValueError, require_at_least


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
