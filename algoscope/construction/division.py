"""The primitive div: division by LayerNorm, one layer ("division", app. C.6).

    div(r, c, w)          h′[w] = h[r] / |h[c]|

LayerNorm divides a column by its deviation. With the pads at ±N·c that is N|c|√(2/H),
so the feed-forward part reads everything divided by |c|: by the absolute value (erratum
51), and without the paper's M, of which LayerNorm is free (erratum 53). It can
therefore remove neither the old contents of what it writes nor the scaled pads (erratum
54): a head does the first, and a head of the next layer the second.
"""

from dataclasses import dataclass

import numpy as np

from algoscope.construction.layers import Plan
from algoscope.construction.layout import Layout
from algoscope.construction.numerics import Numerics
from algoscope.construction.steps import Primitive, State
from algoscope.construction.timesteps import SELF
from algoscope.validation import InvalidValueError


def write_pads(
    plan: Plan, layout: Layout, numerics: Numerics, divisor: str | None = None
) -> None:
    """Make the pads ±N·c; without a divisor ±N, after a division (erratum 40)."""
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
        """What is divided, and what by."""
        return (self.read, self.divisor)

    @property
    def fed(self) -> tuple[str, ...]:
        """What is divided."""
        return (self.read,)

    def check(self, layout: Layout) -> None:
        """Refuse registers of the wrong size."""
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
        """Write N·c − (what was there) to the pads, and let h[read] through."""
        r, w = layout.rows(self.read), layout.rows(self.write)
        identity = np.eye(layout.size(self.write))
        own = plan.head(SELF, layout.frame).value
        write_pads(plan, layout, numerics, self.divisor)
        own[w, w] -= identity
        plan.linear[w, r] += identity
