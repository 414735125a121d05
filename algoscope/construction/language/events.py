"""Events: what one layer's attention or feed-forward part can do for a program.

Each has an exact meaning (`interpreter`) and a translation into weights (`emitter`).
`inputs` are the values an event depends on; `into` the register it adds to in place,
by the residual connection.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.construction.language.timesteps import Timesteps
from algoscope.construction.language.values import Register, Value


@dataclass(frozen=True, eq=False)
class Read:
    """out = average of `source` over K(i)."""

    out: Register
    source: Value
    at: Timesteps
    into: None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on."""
        return (self.source,)


@dataclass(frozen=True, eq=False)
class Head:
    """One head that scores by content: value averaged by softmax(query·key)."""

    query: Value
    key: Value
    value: Value


@dataclass(frozen=True, eq=False)
class Attend:
    """out = into + Σ over heads of Σ_j α_ij value_j, j in K(i) or the imaginary one."""

    out: Register
    heads: tuple[Head, ...]
    at: Timesteps
    into: Register | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on."""
        return tuple(v for h in self.heads for v in (h.query, h.key, h.value))


@dataclass(frozen=True, eq=False)
class Multiply:
    """out = into + C (p ⊙ q) / ‖norm‖² + plus."""

    out: Register
    p: Value
    q: Value
    mix: Float[np.ndarray, "out products"]
    plus: Value
    into: Register | None = None
    norm: Value | None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on, the norm aside."""
        return (self.p, self.q, self.plus)


@dataclass(frozen=True, eq=False)
class Divide:
    """out = value / ‖norm‖; the norm of one number is its absolute value."""

    out: Register
    value: Value
    norm: Value
    into: None = None

    @property
    def inputs(self) -> tuple[Value, ...]:
        """The values it depends on, the norm aside."""
        return (self.value,)


AttentionEvent = Read | Attend
FeedForwardEvent = Multiply | Divide
Event = AttentionEvent | FeedForwardEvent
