"""Which rows hold which register: a linear scan over the schedule.

A register holds its rows from the attention of the layer that writes it, where old
contents are erased, to the phase that reads it last. `into` hands the rows on.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from algoscope.construction.compiler.codes import Code
from algoscope.construction.compiler.layer_weights import Frame
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.schedule import Schedule
from algoscope.construction.language.events import FeedForwardEvent
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import Register

Rows = Int[np.ndarray, " size"]


@dataclass(frozen=True)
class Allocation:
    """The frame, the rows of every register, and where rows have to be erased first."""

    frame: Frame
    rows: dict[Register, Rows]
    erased: frozenset[Register]  # their rows held something else before
    spans: dict[Register, tuple[int, int]]  # phases, from first written to last read

    def live(self, layer: int) -> dict[Register, Rows]:
        """Return the registers that hold something after a layer; −1: before all."""
        after = 2 * layer + 1
        return {
            register: self.rows[register]
            for register, (first, last) in self.spans.items()
            if first <= after and last > after
        }


def allocate(
    program: Program, plan: Schedule, code: Code, numerics: Numerics
) -> Allocation:
    """Return rows for every register, the rows of the dead given to the born."""
    last = plan.last_uses(program)
    rows: dict[Register, Rows] = {}
    spans: dict[Register, tuple[int, int]] = {}
    free: list[int] = []  # rows that held something and hold nothing of use
    erased: set[Register] = set()
    rows[program.token] = np.arange(program.token.size)
    spans[program.token] = (-1, last.get(program.token, -1))
    code_start = program.token.size
    code_size = code.units.shape[1]
    top = code_start + code_size
    num_pads = max(
        [1]
        + [
            event.norm.size
            for event in plan.layers
            if isinstance(event, FeedForwardEvent) and event.norm is not None
        ]
    )
    pads = tuple((top + 2 * k, top + 2 * k + 1) for k in range(num_pads))
    top += 2 * num_pads
    reference = None
    if numerics.pads == "reference":
        reference = top
        top += 1
    overwritten = {event.into for event in plan.layers} - {None}
    for register in program.positions:
        if register in last or register in overwritten:
            rows[register] = np.arange(top, top + register.size)
            spans[register] = (-1, last.get(register, -1))
            top += register.size
    held = dict(rows)
    for layer in range(plan.num_layers):
        events = sorted(plan.events(layer), key=plan.phase)
        handed_on = {event.into for event in events}
        # What is read for the last time in this attention, or earlier, makes room.
        for register in [r for r in held if spans[r][1] <= 2 * layer]:
            if register not in handed_on:
                free += held.pop(register).tolist()
        free.sort()
        for event in events:
            out = event.out
            spans[out] = (plan.phase(event), last.get(out, plan.phase(event)))
            if event.into is None:
                reused, free = free[: out.size], free[out.size :]
                fresh = range(top, top + out.size - len(reused))
                rows[out] = np.array([*reused, *fresh], dtype=int)
                top += len(fresh)
                if reused:
                    erased.add(out)
            else:
                rows[out] = rows[event.into]
                held.pop(event.into)
            held[out] = rows[out]
    frame = Frame(top, slice(code_start, code_start + code_size), pads, reference)
    return Allocation(frame, rows, frozenset(erased), spans)
