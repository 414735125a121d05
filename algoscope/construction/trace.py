"""A trace: what every register should hold and what it holds, step by step.

Appendix A of the paper verifies its chain by writing out H after each line. A trace has
the same matrices from running an algorithm twice: by its exact meaning, and through the
transformer. `trace_program` traces a compiled program, `trace_chain` one of the paper's
chains; `as_text` and `as_records` show either.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from algoscope.construction.compiler.compile import Arrangement
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.language.interpreter import Tokens, interpret
from algoscope.construction.paper.chain import Chain
from algoscope.construction.paper.steps import Layout
from algoscope.model.tokens import encode_context
from algoscope.model.transformer import Transformer, run_compiled

Shown = Literal["computed", "exact", "difference"]
Columns = Float[np.ndarray, "time size"]


@dataclass(frozen=True)
class TracedRegister:
    """What one register should hold and what it holds, in every column."""

    exact: Columns
    computed: Columns
    counts: Bool[np.ndarray, " time"]  # does the prediction depend on it?

    @property
    def difference(self) -> Columns:
        """The computed numbers minus the exact ones."""
        return self.computed - self.exact


@dataclass(frozen=True)
class TracedStep:
    """All registers after one step. Step 0 is the input."""

    label: str
    operation: str
    writes: tuple[str, ...]
    registers: dict[str, TracedRegister]

    @property
    def largest_difference(self) -> float:
        """The largest difference among the numbers that the prediction depends on."""
        return max(
            float(np.max(np.abs(each.difference[each.counts]), initial=0))
            for each in self.registers.values()
        )


def trace_program(
    arrangement: Arrangement, transformer: Transformer, tokens: Tokens
) -> list[TracedStep]:
    """Return the registers of one dataset before the first layer and after every one.

    A register is shown from the layer that writes it to the last that reads it.
    """
    tokens = tokens.astype(arrangement.numerics.dtype)
    state = interpret(arrangement.program, tokens.astype(np.float64))
    run = run_compiled(transformer, jnp.asarray(tokens))
    hidden = np.asarray(run.hidden, np.float64)[0]
    steps = []
    for layer in range(-1, arrangement.num_layers):
        written = [event.out for event in arrangement.schedule.events(layer)]
        held = arrangement.allocation.live(layer)
        shown = {*held, *written} if layer + 1 < arrangement.num_layers else written
        ordered = [
            register for register in arrangement.allocation.rows if register in shown
        ]
        steps.append(
            TracedStep(
                label=f"layer {layer + 1}" if layer >= 0 else "input",
                operation="; ".join(
                    f"{line.register} = {line.operation}"
                    for line in arrangement.listing
                    if line.layer == layer + 1
                ),
                writes=tuple(register.name for register in written),
                registers={
                    register.name: TracedRegister(
                        state[register][0],
                        hidden[layer + 1][:, arrangement.allocation.rows[register]],
                        np.ones(tokens.shape[1], bool),
                    )
                    for register in ordered
                },
            )
        )
    return steps


def trace_chain(
    chain: Chain,
    numerics: Numerics,
    x: Float[np.ndarray, "longer dim"],
    y: Float[np.ndarray, " examples"],
) -> list[TracedStep]:
    """Return the registers of one dataset before the first step and after every one.

    The last row of `x` is the query. All registers are shown at every step.
    """
    tokens = encode_context(x, np.append(y, 0.0)).astype(numerics.dtype)
    states = chain.exact(tokens.astype(np.float64))
    transformer = chain.compile(numerics)
    run = run_compiled(transformer, jnp.asarray(tokens))
    hidden = np.asarray(run.hidden, np.float64)
    layout = Layout(chain.registers)
    labels = ("input", *chain.labels)
    operations = ("", *map(str, chain.steps))
    writes = (("y", "x"), *(step.writes for step in chain.steps))

    def register(name: str, depth: int) -> TracedRegister:
        rows = layout.rows(name)
        counts = [(name, i) in chain.live[depth] for i in range(chain.time)]
        return TracedRegister(
            states[depth][:, rows], hidden[depth][:, rows], np.array(counts)
        )

    return [
        TracedStep(
            labels[depth],
            operations[depth],
            writes[depth],
            {name: register(name, depth) for name in chain.registers},
        )
        for depth in range(len(states))
    ]


def as_text(
    steps: Sequence[TracedStep], show: Shown = "computed", first: int = 0
) -> str:
    """Return the matrices as text, without the registers that are zero.

    An arrow marks what a step wrote. Numbers that the prediction does not depend on are
    in brackets. Steps are numbered from `first`.
    """
    return "\n\n".join(
        _step_as_text(number, step, show) for number, step in enumerate(steps, first)
    )


def _step_as_text(number: int, step: TracedStep, show: Shown) -> str:
    rows: list[list[str]] = []
    for name, register in step.registers.items():
        if not register.computed.any():
            continue
        columns = getattr(register, show)
        size = columns.shape[1]
        for row in range(size):
            mark = "→" if name in step.writes else " "
            numbers = [
                f" {value:.4g} " if counts else f"({value:.4g})"
                for value, counts in zip(columns[:, row], register.counts, strict=True)
            ]
            place = name if size == 1 else f"{name}[{row}]"
            rows.append([f"{mark} {place}", *numbers])
    first, *others = (max(map(len, column)) for column in zip(*rows, strict=True))
    lines = [
        row[0].ljust(first)
        + "".join(
            "  " + number.rjust(width)
            for number, width in zip(row[1:], others, strict=True)
        )
        for row in rows
    ]
    operation = f": {step.operation}" if step.operation else ""
    title = f"{number}. {step.label}{operation}"
    last = f"largest difference {step.largest_difference:.1e}"
    return "\n".join([title, *lines, last])


def as_records(steps: Sequence[TracedStep]) -> list[dict[str, Any]]:
    """Return the trace as JSON stores it; a register is a list of columns."""
    return [
        {
            "label": step.label,
            "operation": step.operation,
            "writes": list(step.writes),
            "largest_difference": step.largest_difference,
            "registers": {
                name: {
                    "exact": register.exact.tolist(),
                    "computed": register.computed.tolist(),
                    "difference": register.difference.tolist(),
                    "counts": register.counts.tolist(),
                }
                for name, register in step.registers.items()
            },
        }
        for step in steps
    ]
