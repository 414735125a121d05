"""Steps of the paper's chains, and the layout of the registers that they work on.

A `Step` is what one layer does to the registers. It has an exact meaning and a plan of
weights; `raw`, `primitives` and `mov` define the steps of the paper, and `Parallel`
puts several into one layer.

A `Layout` places named registers in the rows of the hidden state. The paper gives
registers by their first and last row (§3: "the entries between rows i and j"); here
they have names, and the rows follow from the order in which they are declared. Below
them come rows that belong to no register: scratch (the paper's t), the position code,
the pads of LayerNorm and the reference row.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.weights import Frame, Plan
from algoscope.construction.language.timesteps import Timesteps
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)

State = Float[np.ndarray, "*batch time rows"]  # the registers' rows of H, transposed
Operand = Float[np.ndarray, "*batch time inner"]
Entry = tuple[str, int]  # a register in a column


@dataclass(frozen=True)
class Layout:
    """Which rows hold which register.

    Example:
        >>> layout = Layout({"y": 1, "x": 3}, code_size=3)
        >>> layout.rows("x"), layout.frame.hidden
        (slice(1, 4, None), 10)
    """

    registers: dict[str, int]  # name to size, from the top row down
    scratch_size: int = 0
    code_size: int = 0
    has_reference: bool = True

    def __post_init__(self):
        for name, size in self.registers.items():
            require_at_least(f"size of {name}", size, 1)

    @property
    def num_rows(self) -> int:
        """How many rows the registers take."""
        return sum(self.registers.values())

    @property
    def scratch(self) -> slice:
        """The rows that attention leaves something in for the feed-forward part."""
        return slice(self.num_rows, self.num_rows + self.scratch_size)

    @property
    def frame(self) -> Frame:
        """The rows that every layer needs."""
        code = slice(self.scratch.stop, self.scratch.stop + self.code_size)
        pads, top = (code.stop, code.stop + 1), code.stop + 2
        if self.has_reference:
            return Frame(top + 1, code, (pads,), top)
        return Frame(top, code, (pads,), None)

    def size(self, name: str | None) -> int:
        """Return the size of a register, 0 for None."""
        if name is None:
            return 0
        require_choice("register", name, self.registers)
        return self.registers[name]

    def start(self, name: str) -> int:
        """Return the first row of a register."""
        self.size(name)
        names = list(self.registers)
        return sum(self.registers[each] for each in names[: names.index(name)])

    def rows(self, name: str | None) -> slice:
        """Return the rows of a register, no rows for None."""
        if name is None:
            return slice(0, 0)
        return slice(self.start(name), self.start(name) + self.size(name))

    def require_size(self, name: str, size: int, operation: object) -> None:
        """Reject a register that does not have the size that an operation needs."""
        if self.size(name) != size:
            rule = f"have size {size} for {operation}"
            raise InvalidValueError(name, rule, self.size(name))


class Step:
    """What one layer does to the registers: an exact meaning, and a plan of a layer."""

    scales_pads = False  # whether it leaves the pads of LayerNorm at ±N·c

    @property
    def writes(self) -> tuple[str, ...]:
        """The registers it overwrites."""
        raise NotImplementedError

    @property
    def fed(self) -> tuple[str, ...]:
        """The registers that its feed-forward part reads, after attention has run."""
        return ()

    @property
    def maps(self) -> tuple[Timesteps, ...]:
        """The timestep maps that its heads follow, besides K(i) = {i}."""
        return ()

    def check(self, layout: Layout) -> None:
        """Reject registers that do not exist or have the wrong size."""
        raise NotImplementedError

    def exact(self, state: State, layout: Layout) -> State:
        """Return what it means: the registers after it, in float64."""
        raise NotImplementedError

    def factors(self, state: State, layout: Layout) -> tuple[Operand, Operand]:
        """Return what it multiplies, in the order of the products of its plan."""
        return state[..., :0], state[..., :0]

    def sources(self, name: str, column: int, time: int) -> set[Entry]:
        """Return what a register that it writes depends on, in one column."""
        raise NotImplementedError

    def scratch_size(self, layout: Layout, numerics: Numerics) -> int:
        """Return how many rows of scratch its plan takes."""
        return 0

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Add what it does to the plan of a layer."""
        raise NotImplementedError

    def plan(
        self,
        layout: Layout,
        numerics: Numerics,
        like: State | float = 1.0,
        columns: Sequence[int] | None = None,
    ) -> Plan:
        """Return the layer that does it.

        Products are precise for factors up to the number `like`; or, if it is a state,
        up to the factors that arise from it in these columns, times the safety factor.
        """
        self.check(layout)
        plan = Plan.empty(layout.frame)
        start, size = layout.scratch.start, self.scratch_size(layout, numerics)
        self.add_to(plan, layout, numerics, slice(start, start + size))
        if isinstance(like, np.ndarray):
            at = range(like.shape[-2]) if columns is None else list(columns)
            p, q = (_largest(each[..., at, :]) for each in self.factors(like, layout))
            plan.p_range, plan.q_range = p * numerics.safety, q * numerics.safety
        else:
            plan.p_range = plan.q_range = np.full(len(plan.p), like)
        return plan


def _largest(operand: Operand) -> Float[np.ndarray, " inner"]:
    largest = np.abs(operand).max(axis=tuple(range(operand.ndim - 1)), initial=0)
    return np.where(largest == 0, 1, largest)


class Primitive(Step):
    """A step with one result, computed from registers of the same column."""

    write: str

    @property
    def writes(self) -> tuple[str, ...]:
        """The register of the result."""
        return (self.write,)

    @property
    def reads(self) -> tuple[str, ...]:
        """The registers that the result comes from."""
        raise NotImplementedError

    def sources(self, name: str, column: int, time: int) -> set[Entry]:
        """Return the registers that are read, in the same column."""
        return {(read, column) for read in self.reads}


@dataclass(frozen=True)
class Parallel(Step):
    """Several steps in one layer (paper lemma "parallel"), each with its own K.

    The lemma forbids reading what another one writes. It is enough to forbid it to
    feed-forward parts: heads read before anything is written.
    """

    steps: tuple[Step, ...]

    def __post_init__(self):
        for i, step in enumerate(self.steps):
            if step.scales_pads:
                rule = "be steps that leave LayerNorm to the others"
                remedy = "Division needs a layer of its own."
                raise InvalidValueError("steps", rule, str(step), remedy)
            for j, other in enumerate(self.steps):
                if i == j:
                    continue
                for name in set(step.writes) & set(other.writes):
                    rule = f"write `{name}` at most once"
                    raise InvalidValueError("steps", rule, f"{step} and {other}")
                for name in set(step.fed) & set(other.writes):
                    rule = f"not write `{name}`, which {step} multiplies"
                    remedy = "Put them into layers of their own."
                    raise InvalidValueError("steps", rule, str(other), remedy)

    def __str__(self) -> str:
        return " ∥ ".join(map(str, self.steps))

    @property
    def writes(self) -> tuple[str, ...]:
        """All that any of them writes."""
        return tuple(name for step in self.steps for name in step.writes)

    @property
    def fed(self) -> tuple[str, ...]:
        """All that any of them multiplies."""
        return tuple(name for step in self.steps for name in step.fed)

    @property
    def maps(self) -> tuple[Timesteps, ...]:
        """All of their maps."""
        return tuple(each for step in self.steps for each in step.maps)

    def check(self, layout: Layout) -> None:
        """Check each."""
        for step in self.steps:
            step.check(layout)

    def exact(self, state: State, layout: Layout) -> State:
        """Return what each of them makes of the registers before all of them."""
        after = np.array(state, np.float64)
        for step in self.steps:
            changed = step.exact(state, layout)
            for name in step.writes:
                rows = layout.rows(name)
                after[..., rows] = changed[..., rows]
        return after

    def factors(self, state: State, layout: Layout) -> tuple[Operand, Operand]:
        """Return the factors of all, one after the other."""
        pairs = [step.factors(state, layout) for step in self.steps]
        p, q = (np.concatenate(side, axis=-1) for side in zip(*pairs, strict=True))
        return p, q

    def sources(self, name: str, column: int, time: int) -> set[Entry]:
        """Return what the one that writes the register depends on."""
        (writer,) = (step for step in self.steps if name in step.writes)
        return writer.sources(name, column, time)

    def scratch_size(self, layout: Layout, numerics: Numerics) -> int:
        """Return the scratch of all."""
        return sum(step.scratch_size(layout, numerics) for step in self.steps)

    def add_to(
        self, plan: Plan, layout: Layout, numerics: Numerics, scratch: slice
    ) -> None:
        """Add each, with scratch of its own."""
        start = scratch.start
        for step in self.steps:
            stop = start + step.scratch_size(layout, numerics)
            step.add_to(plan, layout, numerics, slice(start, stop))
            start = stop
