"""Programs for the page: events, formulas, and where the weights keep every register.

The page interprets a program itself, so that `exact` follows the points that a user
drags; what is `computed` it reads from hidden states, in the rows given here. A saved
program (see `construction.language.storage`) is embedded as it is, with a layout:

    labels    of the input and of every layer
    entries   what is shown: register, name, components, and their rows in the hidden
              state; the token is shown as two of them, y and x
    shown     the entries to show at the input and after every layer
    counts    null, or for each of them the columns that the prediction depends on
    events    those that the prediction needs: place, layer, part and formula
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int

from algoscope.construction.compiler.compile import Arrangement
from algoscope.construction.language.formulas import formula
from algoscope.construction.language.program import Program
from algoscope.construction.language.storage import program_fields
from algoscope.construction.language.values import Event, FeedForwardEvent, Register
from algoscope.construction.paper.as_program import program_of_chain
from algoscope.construction.paper.chain import Chain
from algoscope.construction.paper.steps import Layout

Data = dict[str, Any]
Shown = tuple[Register, str]  # a register, and the name that it is shown under


def program_data(arrangement: Arrangement) -> Data:
    """Return a compiled program, shown as `trace_program` shows it.

    What a layer reads for the last time is shown after it too: it is still there.

    Example:
        >>> from algoscope.construction.algorithms import SGD
        >>> from algoscope.construction.build import Construction
        >>> data = program_data(Construction(SGD(0.05), 1, 2).arrange())
        >>> data["layout"]["labels"][-1], data["layout"]["events"][2]["formula"]
        ('layer 4', '0.1 · x1 · y1')
    """
    program, schedule = arrangement.program, arrangement.schedule
    rows, depth = arrangement.allocation.rows, arrangement.num_layers
    shown: list[list[Shown]] = []
    for layer in range(-1, depth):
        held = {event.out for event in schedule.events(layer)}
        if layer + 1 < depth:
            held |= set(arrangement.allocation.live(layer))
        taken = {row for register in held for row in rows[register].tolist()}
        held |= {
            register
            for event in schedule.events(layer)
            for register in _read(event)
            if taken.isdisjoint(rows[register].tolist())
        }
        shown.append(
            [
                (register, name)
                for register in rows
                if register in held
                for name in ("yx" if register is program.token else (register.name,))
            ]
        )
    return _data(
        program,
        labels=["input", *(f"layer {layer + 1}" for layer in range(depth))],
        rows=rows,
        shown=shown,
        layers={event: layer + 1 for event, layer in schedule.layers.items()},
    )


def chain_data(chain: Chain) -> Data:
    """Return one of the paper's chains, shown as `trace_chain` shows it.

    The token stands for the registers x and y until a line overwrites them.
    """
    written, layout = program_of_chain(chain), Layout(chain.registers)
    program, token = written.program, written.program.token
    places = np.arange(layout.num_rows)
    by_name = {name: places[layout.rows(name)] for name in chain.registers}
    rows = {token: np.concatenate([by_name["y"], by_name["x"]])}
    rows |= {event.out: by_name[event.out.name] for event in program.events}
    shown = [
        [(next(iter(value.terms)), name) for name, value in held.items() if value.terms]
        for held in written.holds
    ]
    counts = [
        [sorted(column for each, column in live if each == name) for _, name in names]
        for names, live in zip(shown, chain.live, strict=True)
    ]
    return _data(
        program,
        labels=["input", *chain.labels],
        rows=rows,
        shown=shown,
        layers={e: line + 1 for line, es in enumerate(written.lines) for e in es},
        counts=counts,
    )


def _data(
    program: Program,
    *,
    labels: list[str],
    rows: Mapping[Register, Int[np.ndarray, " _"]],
    shown: Sequence[Sequence[Shown]],
    layers: dict[Event, int],
    counts: list[list[list[int]]] | None = None,
) -> Data:
    about, arrays = program_fields(program)
    registers = [program.token, *program.positions, *(e.out for e in program.events)]
    numbers = {register: number for number, register in enumerate(registers)}
    places = {event: place for place, event in enumerate(program.events)}
    entries = list(dict.fromkeys(entry for held in shown for entry in held))
    return {
        "program": about,
        "arrays": {name: array.tolist() for name, array in arrays.items()},
        "layout": {
            "labels": labels,
            "entries": [
                {
                    "register": numbers[register],
                    "name": name,
                    "components": (components := _components(register, name, program)),
                    "rows": rows[register][components].tolist(),
                }
                for register, name in entries
            ],
            "shown": [[entries.index(each) for each in held] for held in shown],
            "counts": counts,
            "events": [
                {
                    "event": places[event],
                    "layer": layer,
                    "part": _part(event),
                    "formula": formula(event),
                }
                for event, layer in layers.items()
            ],
        },
    }


def _components(register: Register, name: str, program: Program) -> list[int]:
    every = list(range(register.size))
    if register is not program.token:
        return every
    return every[:1] if name == "y" else every[1:]


def _read(event: Event) -> set[Register]:
    values = (*event.inputs, *(() if event.norm is None else (event.norm,)))
    return {register for value in values for register in value.terms}


def _part(event: Event) -> str:
    return "MLP" if isinstance(event, FeedForwardEvent) else "attention"
