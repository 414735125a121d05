"""Which layer does what: dead events dropped, the rest as early as they can be.

Layer l has two phases: attention at 2l, feed-forward at 2l + 1. What attention writes
is there for the feed-forward part of its own layer; what that writes, for the next
layer. Reads move to just before their first use, so that rows are held for less long.

A norm owns the feed-forward part of its layer: LayerNorm divides all that is read
there. Its pads are written by that layer's attention, so a norm of something that the
same attention reads is made from what it reads.
"""

from dataclasses import dataclass

from algoscope.construction.language.events import (
    Attend,
    AttentionEvent,
    Event,
    FeedForwardEvent,
    Read,
)
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import Register, Value
from algoscope.foundation.validation import InvalidValueError


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
        for register in _output(program).terms:
            last[register] = 2 * self.num_layers
        return last


def schedule(program: Program) -> Schedule:
    """Return a schedule of a program."""
    events = _alive(program)
    layers = _earliest(events)
    _delay_reads(events, layers)
    return Schedule(layers)


def _output(program: Program) -> Value:
    if program.output is None:
        rule = "say what it predicts"
        raise InvalidValueError("program", rule, "none", "Call `program.predict`.")
    return program.output


def _registers(values: tuple[Value, ...]) -> set[Register]:
    return {register for value in values for register in value.terms}


def _norm(event: Event) -> tuple[Value, ...]:
    norm = event.norm if isinstance(event, FeedForwardEvent) else None
    return () if norm is None else (norm,)


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
    needed = set(_output(program).terms)
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
