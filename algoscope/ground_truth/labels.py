"""Labels: what a compiled learner holds and does, as its program and compiler say.

A quantity is a register of the program: some rows of the residual stream, from the
layer that writes it to the last before its rows are written again, which may be later
than the last that reads it. A head is labelled with the timesteps that it attends to, a
group of inner units with what it reads and writes.

Layers are counted as in H⁽⁰⁾, …, H⁽ᴸ⁾: 0 is the input, l the state after layer l.
Tokens and heads are counted from 0.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from algoscope.construction.compiler.compile import Compiled, Planner
from algoscope.construction.compiler.weights import HeadPlan
from algoscope.construction.language.interpreter import State
from algoscope.construction.language.values import (
    AttentionEvent,
    Event,
    FeedForwardEvent,
    Register,
)
from algoscope.model.stack import layer_of

INPUT, CODE, PADS, ZERO = "token", "position code", "pads", "zero"


@dataclass(frozen=True)
class Quantity:
    """Something that an algorithm computes, and where the residual stream holds it."""

    name: str  # unique in its learner
    rows: tuple[int, ...]  # one per component, before any rotation
    first_layer: int  # the first l whose H⁽ˡ⁾ holds it
    last_layer: int  # the last; below `first_layer` if only a part of a layer sees it
    last_read: int  # the last layer that reads it; L + 1: the output does
    written_by: str  # token, positions, attention or MLP
    operation: str  # how it is computed, from which others
    tokens: tuple[int, ...]  # where it depends on the data

    def is_held(self, layer: int) -> bool:
        """Return whether H⁽ˡ⁾ holds it."""
        return self.first_layer <= layer <= self.last_layer


@dataclass(frozen=True)
class HeadLabel:
    """What a head does. One that does nothing reads and writes nothing."""

    layer: int  # from 1
    head: int  # from 0, as in the weights
    attends: str  # to which timesteps K(i), or by content
    reads: tuple[str, ...]
    writes: tuple[str, ...]
    clears: tuple[int, ...]  # rows whose old contents it subtracts


@dataclass(frozen=True)
class UnitLabel:
    """What a group of inner units of an MLP does together."""

    layer: int  # from 1
    units: tuple[int, ...]  # from 0, as in the weights
    reads: tuple[str, ...]
    writes: tuple[str, ...]


@dataclass(frozen=True)
class Truths:
    """Everything that is known about the inside of one learner."""

    quantities: tuple[Quantity, ...]
    heads: tuple[HeadLabel, ...]
    units: tuple[UnitLabel, ...]
    frame: dict[str, tuple[int, ...]]  # rows of the position code, the pads, the zero
    norms: dict[str, str]  # layer: what the pads hold after it, in units of N

    def held(self, layer: int) -> list[Quantity]:
        """Return what H⁽ˡ⁾ holds."""
        return [each for each in self.quantities if each.is_held(layer)]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, as JSON holds them."""
        return asdict(self)

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "Truths":
        """Return the labels that `as_dict` described."""
        return cls(
            tuple(Quantity(**_tuples(each)) for each in saved["quantities"]),
            tuple(HeadLabel(**_tuples(each)) for each in saved["heads"]),
            tuple(UnitLabel(**_tuples(each)) for each in saved["units"]),
            _tuples(saved["frame"]),
            dict(saved["norms"]),
        )


def _tuples(values: dict[str, Any]) -> dict[str, Any]:
    return {k: tuple(v) if isinstance(v, list) else v for k, v in values.items()}


class Labeller:
    """Reads the labels off a compiled program."""

    def __init__(self, compiled: Compiled):
        self.compiled = compiled
        self.schedule = compiled.schedule
        self.rows = compiled.allocation.rows
        self.spans = compiled.allocation.spans
        self.names = unique_names(self.rows)
        self.writers = {event.out: event for event in self.schedule.layers}

    def labels(self, state: State) -> Truths:
        """Return all labels; `state` is what the program computes on some datasets."""
        frame = self.compiled.allocation.frame
        code = tuple(range(frame.hidden)[frame.code])
        pads = tuple(row for pair in frame.pads for row in pair)
        zero = () if frame.reference is None else (frame.reference,)
        planner = Planner(self.compiled, self.compiled.calibration)
        plans = [planner.plan(layer) for layer in range(self.compiled.num_layers)]
        return Truths(
            tuple(self._quantity(register, state) for register in self.rows),
            tuple(
                self._head(layer, number, head)
                for layer, plan in enumerate(plans)
                for number, head in enumerate(plan.heads)
            ),
            tuple(group for layer in range(len(plans)) for group in self._units(layer)),
            {CODE: code, PADS: pads, ZERO: zero},
            {
                str(layer + 1): repr(event.norm)
                for event, layer in self.schedule.layers.items()
                if event.norm is not None
            },
        )

    def registers(self) -> dict[str, Register]:
        """Return the registers by the names of their quantities."""
        return {name: register for register, name in self.names.items()}

    def occupants(self, phase: int) -> dict[int, Register]:
        """Return which register each row holds after a phase of the schedule."""
        found: dict[int, tuple[int, Register]] = {}
        for register, rows in self.rows.items():
            start = self.spans[register][0]
            for row in rows.tolist() if start <= phase else ():
                if row not in found or found[row][0] <= start:
                    found[row] = (start, register)
        return {row: register for row, (_, register) in found.items()}

    def _quantity(self, register: Register, state: State) -> Quantity:
        rows = tuple(self.rows[register].tolist())
        first = (self.spans[register][0] + 2) // 2
        last = first - 1
        for layer in range(first, self.compiled.num_layers + 1):
            occupants = self.occupants(2 * layer - 1)
            if any(occupants[row] is not register for row in rows):
                break
            last = layer
        writer = self.writers.get(register)
        varies = state[register].std(axis=0).max(axis=-1) > 0
        return Quantity(
            name=self.names[register],
            rows=rows,
            first_layer=first,
            last_layer=last,
            last_read=self.spans[register][1] // 2 + 1,
            written_by=self._part(writer, register),
            operation=self._operation(writer),
            tokens=tuple(np.flatnonzero(varies).tolist()),
        )

    def _part(self, writer: Event | None, register: Register) -> str:
        if writer is None:
            return INPUT if register is self.compiled.program.token else "positions"
        return "MLP" if isinstance(writer, FeedForwardEvent) else "attention"

    def _operation(self, writer: Event | None) -> str:
        if writer is None:
            return ""
        ordered = sorted(self.schedule.layers, key=self.schedule.phase)
        return self.compiled.listing[ordered.index(writer)].operation

    def _head(self, layer: int, number: int, head: HeadPlan) -> HeadLabel:
        value = head.value[:, :-1]
        diagonal = np.diag(value)
        clears = np.flatnonzero(diagonal == -1)
        rest = value.copy()
        rest[clears, clears] = 0
        events = [
            event
            for event in self.schedule.events(layer)
            if isinstance(event, AttentionEvent) and event.at == head.timesteps
        ]
        written = set(np.flatnonzero(head.value.any(axis=1)).tolist())
        writes = [e.out for e in events if written & set(self.rows[e.out].tolist())]
        content = "" if head.query is None else ", by content"
        return HeadLabel(
            layer + 1,
            number,
            f"{head.timesteps}{content}",
            self._named(np.flatnonzero(rest.any(axis=0)), 2 * layer - 1),
            tuple(self.names[each] for each in writes) + self._frame_names(written),
            tuple(clears.tolist()),
        )

    def _units(self, layer: int) -> list[UnitLabel]:
        """Return the units of an MLP, those that read and write the same together."""
        weights = layer_of(self.compiled.transformer.layers, layer)
        w_2, w_1 = np.asarray(weights.w_2), np.asarray(weights.w_1)
        zero = self.compiled.allocation.frame.reference
        groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[int]] = {}
        for unit in np.flatnonzero(w_1.any(axis=0)):
            read = [row for row in np.flatnonzero(w_2[unit]) if row != zero]
            reads = self._named(np.array(read, int), 2 * layer)
            writes = self._named(np.flatnonzero(w_1[:, unit]), 2 * layer + 1)
            groups.setdefault((reads, writes), []).append(int(unit))
        return [
            UnitLabel(layer + 1, tuple(units), *key) for key, units in groups.items()
        ]

    def _named(self, rows: Int[np.ndarray, " some"], phase: int) -> tuple[str, ...]:
        """Return the names of what some rows hold after a phase, each once."""
        occupants = self.occupants(phase)
        found = {
            self.names[occupants[row]]: None
            for row in rows.tolist()
            if row in occupants
        }
        return tuple(found) + self._frame_names(rows.tolist())

    def _frame_names(self, rows: Iterable[int]) -> tuple[str, ...]:
        frame, chosen = self.compiled.allocation.frame, set(rows)
        pads = {row for pair in frame.pads for row in pair}
        code = set(range(frame.hidden)[frame.code])
        named = ((CODE, code), (PADS, pads))
        return tuple(name for name, group in named if chosen & group)


def unique_names(registers: Iterable[Register]) -> dict[Register, str]:
    """Return names that differ: a repeated one gets a number, as in `w`, `w (2)`."""
    counts: dict[str, int] = {}
    names = {}
    for register in registers:
        count = counts[register.name] = counts.get(register.name, 0) + 1
        names[register] = register.name if count == 1 else f"{register.name} ({count})"
    return names


def read_rows(
    hidden: Float[np.ndarray, "*batch hidden"],
    quantity: Quantity,
    rotation: Float[np.ndarray, "hidden hidden"] | None = None,
) -> Float[np.ndarray, "*batch size"]:
    """Return what the stream holds of a quantity, turned back if it was rotated."""
    if rotation is None:
        return hidden[..., list(quantity.rows)]
    return hidden @ rotation[:, list(quantity.rows)]
