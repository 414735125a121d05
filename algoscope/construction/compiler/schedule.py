"""When and where a program computes: the layer of every event, the rows of registers.

Layer l has two phases: attention at 2l, feed-forward at 2l + 1. What attention writes
can be read by the feed-forward part of the same layer; what that part writes, by the
next layer. Events that the output does not depend on are dropped, the others happen as
early as they can. Reads then move to just before their first use, so that their rows
are occupied for fewer layers.

A norm owns the feed-forward part of its layer, since LayerNorm divides all that is read
there. Its pads are written by that layer's attention, so a norm of something that the
same attention reads is computed from the source of that read.

Rows are allocated by a linear scan over the schedule. A register occupies its rows from
the attention of the layer that writes it, which erases the old contents, to the phase
that reads it last. `into` hands the rows on to the updated register.
"""

from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.weights import Frame
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import Code
from algoscope.construction.language.values import (
    Attend,
    AttentionEvent,
    Event,
    FeedForwardEvent,
    Read,
    Register,
    Value,
)

Rows = Int[np.ndarray, " size"]


@dataclass(frozen=True)
class Schedule:
    """The layer of every event that the output depends on, in program order."""

    layers: dict[Event, int]

    @property
    def num_layers(self) -> int:
        """The depth L."""
        return 1 + max(self.layers.values(), default=0)

    def events(self, layer: int) -> list[Event]:
        """Return what one layer does."""
        return [event for event, at in self.layers.items() if at == layer]

    def phase(self, event: Event) -> int:
        """Return when an event happens: attention at 2l, feed-forward at 2l + 1."""
        return 2 * self.layers[event] + isinstance(event, FeedForwardEvent)

    def last_uses(self, program: Program) -> dict[Register, int]:
        """Return the last phase at which each register is read."""
        last: dict[Register, int] = {}
        for event in self.layers:
            for register in _registers(event.inputs):
                last[register] = max(last.get(register, -1), self.phase(event))
            for register in _norm_sources(event, self.layers):
                # the pads are written in the attention phase
                at = 2 * self.layers[event]
                last[register] = max(last.get(register, -1), at)
            if event.into is not None:
                last[event.into] = max(last.get(event.into, -1), self.phase(event))
        for register in program.outputs.terms:
            last[register] = 2 * self.num_layers
        return last


def schedule(program: Program) -> Schedule:
    """Return a schedule of a program."""
    events = _alive(program)
    layers = _earliest(events)
    _delay_reads(events, layers)
    return Schedule(layers)


def _registers(values: tuple[Value, ...]) -> set[Register]:
    return {register for value in values for register in value.terms}


def _norm(event: Event) -> tuple[Value, ...]:
    return () if event.norm is None else (event.norm,)


def _norm_sources(event: Event, layers: dict[Event, int]) -> set[Register]:
    """Return what the pads of a norm are made from, in its layer's attention."""
    sources = set()
    reads = {each.out: each for each in layers if isinstance(each, Read)}
    for register in _registers(_norm(event)):
        read = reads.get(register)
        same = read is not None and layers[read] == layers[event]
        sources |= _registers(read.inputs) if same and read else {register}
    return sources


def _alive(program: Program) -> list[Event]:
    """Return the events that the output depends on."""
    needed = set(program.outputs.terms)
    alive = []
    for event in reversed(program.events):
        if event.out in needed:
            alive.append(event)
            needed |= _registers((*event.inputs, *_norm(event)))
            needed |= set() if event.into is None else {event.into}
    return alive[::-1]


def _earliest(events: list[Event]) -> dict[Event, int]:
    """Return the first layer at which each event can happen."""
    layers: dict[Event, int] = {}
    ready: dict[Register, int] = {}  # the first phase at which a register can be read
    read_in: dict[Register, int] = {}  # the layer of plain reads
    used: dict[Register, int] = {}  # the last phase that reads a register so far
    norms: dict[int, Value | None] = {}  # of each layer's feed-forward part
    for event in events:
        feed_forward = isinstance(event, FeedForwardEvent)
        sources = _registers(event.inputs)
        if event.into is not None:
            sources.add(event.into)
        start = max((ready.get(register, 0) for register in sources), default=0)
        layer = max((start if feed_forward else start + 1) // 2, 0)
        for register in _registers(_norm(event)):
            layer = max(layer, read_in.get(register, (ready.get(register, 0) + 1) // 2))
        if event.into is not None:
            # all that reads the old value does so before it is overwritten
            while 2 * layer + feed_forward < used.get(event.into, -1):
                layer += 1
        if feed_forward:
            while layer in norms and norms[layer] is not event.norm:
                layer += 1
            norms[layer] = event.norm
        layers[event] = layer
        phase = 2 * layer + feed_forward
        ready[event.out] = phase + 1
        if isinstance(event, Read):
            read_in[event.out] = layer
        for register in sources | _registers(_norm(event)):
            used[register] = max(used.get(register, -1), phase)
    return layers


def _delay_reads(events: list[Event], layers: dict[Event, int]) -> None:
    """Move every read to the last layer that still serves all who use it."""
    overwritten = {event.into: event for event in events if event.into is not None}
    depth = 1 + max(layers.values(), default=0)
    for event in reversed(events):
        if not isinstance(event, Read):
            continue
        limit = depth - 1
        for user in events:
            if event.out in _registers((*user.inputs, *_norm(user))):
                # attention reads what an earlier layer wrote
                early = isinstance(user, AttentionEvent)
                limit = min(limit, layers[user] - early)
            if user.into is event.out:
                limit = min(limit, layers[user] - isinstance(user, Attend))
        for register in _registers(event.inputs):
            if register in overwritten:
                limit = min(limit, layers[overwritten[register]])
        layers[event] = max(layers[event], limit)


@dataclass(frozen=True)
class Allocation:
    """The rows of every register, and which registers need theirs erased first."""

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
    program: Program, order: Schedule, code: Code, numerics: Numerics
) -> Allocation:
    """Return rows for every register, reusing those of registers no longer needed."""
    last = order.last_uses(program)
    rows: dict[Register, Rows] = {}
    spans: dict[Register, tuple[int, int]] = {}
    free: list[int] = []  # rows of registers that are no longer needed
    erased: set[Register] = set()
    rows[program.token] = np.arange(program.token.size)
    spans[program.token] = (-1, last.get(program.token, -1))
    code_start = program.token.size
    code_size = code.units.shape[1]
    top = code_start + code_size
    num_pads = max([1, *(norm.size for event in order.layers for norm in _norm(event))])
    pads = tuple((top + 2 * k, top + 2 * k + 1) for k in range(num_pads))
    top += 2 * num_pads
    reference = None
    if numerics.pads == "reference":
        reference = top
        top += 1
    overwritten = {event.into for event in order.layers} - {None}
    for register in program.positions:
        if register in last or register in overwritten:
            rows[register] = np.arange(top, top + register.size)
            spans[register] = (-1, last.get(register, -1))
            top += register.size
    held = dict(rows)
    for layer in range(order.num_layers):
        events = sorted(order.events(layer), key=order.phase)
        handed_on = {event.into for event in events}
        # What is read for the last time in this attention, or earlier, makes room.
        for register in [r for r in held if spans[r][1] <= 2 * layer]:
            if register not in handed_on:
                free += held.pop(register).tolist()
        free.sort()
        for event in events:
            out = event.out
            spans[out] = (order.phase(event), last.get(out, order.phase(event)))
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
