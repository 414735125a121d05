"""A compiled program line by line: which layer writes which register, and how."""

from dataclasses import dataclass

from algoscope.construction.compiler import Arrangement
from algoscope.construction.events import Attend, Divide, Event, FeedForwardEvent, Read


@dataclass(frozen=True)
class Line:
    """One event: `L3 MLP w2 rows 9..12 = (x2,w1)·(w·x2+y2,seen2) into w1`."""

    layer: int  # from 1
    part: str  # attention or MLP
    register: str
    rows: str
    operation: str

    def __str__(self) -> str:
        where = f"L{self.layer} {self.part:<9}"
        return f"{where} {self.register:<12} rows {self.rows:<9} = {self.operation}"


def listing(arrangement: Arrangement) -> list[Line]:
    """Return what each layer does, in the order in which it happens."""
    events = sorted(arrangement.schedule.layers, key=arrangement.schedule.phase)
    return [
        Line(
            layer=arrangement.schedule.layers[event] + 1,
            part="MLP" if isinstance(event, FeedForwardEvent) else "attention",
            register=event.out.name,
            rows=_ranges(arrangement.allocation.rows[event.out].tolist()),
            operation=_operation(event),
        )
        for event in events
    ]


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
    """Return rows in short.

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
