"""The paper's chains as programs: the same lines in the language of the compiler.

A line of a chain overwrites a register; a program writes each register once. So every
line becomes an event whose register has the name of the one that it overwrites. What
the line does decides the event, and so the part of a layer that computes it:

    mov(s, t, r, r)   Read over K(t) = {s}, K(i) = {i} elsewhere
    aff               Read over K(i) = {i}: attention adds up
    mul               Multiply
    div               Divide

Whoever can interpret, list or draw a program can then do the same with a chain.
"""

from typing import NamedTuple

import numpy as np

from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import SELF, Sets
from algoscope.construction.language.values import (
    Divide,
    Event,
    Multiply,
    Read,
    Register,
    Value,
    constant,
)
from algoscope.construction.paper.chain import Chain
from algoscope.construction.paper.primitives import Aff, Div, Mul
from algoscope.construction.paper.raw import Mov
from algoscope.construction.paper.steps import Layout, Parallel, Step
from algoscope.foundation.validation import InvalidTypeError


class ChainProgram(NamedTuple):
    """A chain as a program, and what each of its registers is after every line."""

    program: Program
    lines: list[list[Event]]  # of each line; several if it runs steps in parallel
    holds: list[dict[str, Value]]  # before the first line and after every one


def program_of_chain(chain: Chain) -> ChainProgram:
    """Return the program that does what a chain does, line by line.

    Example:
        >>> from algoscope.construction.paper.chain import theorem_1
        >>> written = program_of_chain(theorem_1(2, np.zeros(2), 0.05))
        >>> [event.out.name for event in written.program.events]
        ['x', 'wx', 'e', 'xe', 'w', 'g', 'w', 'w', 'prediction']
    """
    program, layout = Program(chain.dim, chain.num_examples), Layout(chain.registers)
    held = {name: constant(np.zeros(n)) for name, n in chain.registers.items()}
    held |= {"x": program.x, "y": program.y}
    lines: list[list[Event]] = []
    holds = [held]
    for step in chain.steps:
        events = [
            _event(each, holds[-1], layout, program.time)
            for each in (step.steps if isinstance(step, Parallel) else (step,))
        ]
        written = {event.out.name: program.append(event) for event in events}
        lines.append(events)
        holds.append(holds[-1] | written)
    program.predict(holds[-1]["prediction"])
    return ChainProgram(program, lines, holds)


def _event(step: Step, held: dict[str, Value], layout: Layout, time: int) -> Event:
    if isinstance(step, Mov) and step.read == step.write:
        sets = [(i,) for i in range(time)]
        sets[step.target] = (step.source,)
        out = Register(step.write, layout.size(step.write))
        return Read(out, held[step.read], Sets(tuple(sets)))
    if isinstance(step, Aff):
        raw = step.raw(layout)
        w_a, w_s, w_o, b = raw.matrices(layout)
        total = constant(b)
        for name, matrix in ((step.read, w_s), (step.other, w_a)):
            if name is not None:
                total = total + (w_o @ matrix) @ held[name]
        return Read(Register(step.write, total.size), total, SELF)
    if isinstance(step, Mul):
        w_a, w_s, w_o, b = step.raw(layout).matrices(layout)
        p, q = w_s @ held[step.read], w_a @ held[step.other]
        return Multiply(Register(step.write, len(b)), p, q, w_o, constant(b))
    if isinstance(step, Div):
        out = Register(step.write, layout.size(step.write))
        return Divide(out, held[step.read], held[step.divisor])
    raise InvalidTypeError("step", "be a mov, aff, mul or div", type(step).__name__)
