"""An arrangement: a program with its layers and rows, before any weights are written.

Its listing says in one line per event what each layer does.
"""

from dataclasses import dataclass
from functools import cached_property

from algoscope.construction.compiler.codes import Code, OneHot, choose_code
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.schedule import (
    Allocation,
    Schedule,
    allocate,
    schedule,
)
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import (
    Attend,
    AttentionEvent,
    Divide,
    Event,
    FeedForwardEvent,
    Read,
)


@dataclass(frozen=True)
class Line:
    """One line of a listing: `L3 MLP w2 rows 9..12 = (x2+w1)·(w·x2+y2) into w1`."""

    layer: int  # from 1
    part: str  # attention or MLP
    register: str
    rows: str
    operation: str

    def __str__(self) -> str:
        where = f"L{self.layer} {self.part:<9}"
        return f"{where} {self.register:<12} rows {self.rows:<9} = {self.operation}"


@dataclass(frozen=True)
class Arrangement:
    """A program with the layer of every event and the rows of every register."""

    program: Program
    numerics: Numerics
    code: Code
    schedule: Schedule
    allocation: Allocation

    @property
    def num_layers(self) -> int:
        """The depth L."""
        return self.schedule.num_layers

    @property
    def hidden_size(self) -> int:
        """H, everything included."""
        return self.allocation.frame.hidden

    @cached_property
    def listing(self) -> list[Line]:
        """What each layer does, in the order in which it happens."""
        return [
            Line(
                layer=self.schedule.layers[event] + 1,
                part="MLP" if isinstance(event, FeedForwardEvent) else "attention",
                register=event.out.name,
                rows=_ranges(self.allocation.rows[event.out].tolist()),
                operation=_operation(event),
            )
            for event in sorted(self.schedule.layers, key=self.schedule.phase)
        ]


def arrange(
    program: Program, numerics: Numerics, code: Code | None = None
) -> Arrangement:
    """Return when and where a program computes what, without any weights."""
    code = code or code_of(program, numerics)
    order = schedule(program)
    return Arrangement(
        program, numerics, code, order, allocate(program, order, code, numerics)
    )


def code_of(program: Program, numerics: Numerics) -> Code:
    """Return the smallest code that the program's heads can follow exactly."""
    if any(isinstance(event, Attend) for event in program.events):
        return OneHot(program.time)  # its scores leave room for those of the content
    maps = [each.at for each in program.events if isinstance(each, AttentionEvent)]
    return choose_code(maps, program.time, numerics.digits)


def _operation(event: Event) -> str:
    if isinstance(event, Read):
        return f"{event.source!r} over K(i)={event.at}"
    if isinstance(event, Attend):
        heads = ", ".join(f"{h.value!r} by {h.query!r}·{h.key!r}" for h in event.heads)
        text = f"softmax over K(i)={event.at}: {heads}"
    elif isinstance(event, Divide):
        return f"{event.value!r} / ‖{event.norm!r}‖"
    else:
        text = f"({event.p!r})·({event.q!r})"
        text += f" / ‖{event.norm!r}‖²" if event.norm is not None else ""
        text += f" + {event.plus!r}" if repr(event.plus) != "0" else ""
    return text + (f" into {event.into.name}" if event.into is not None else "")


def _ranges(rows: list[int]) -> str:
    """Return row numbers as ranges.

    Example:
        >>> _ranges([3, 4, 5, 9])
        '3..5,9'
    """
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return ",".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs
    )
