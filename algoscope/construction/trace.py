"""A trace: what every register should hold and what it holds, step by step.

Appendix A of the paper verifies its chain by writing out H after each line. A trace has
the same matrices from running an algorithm twice: by its exact meaning, and through the
transformer. `trace_program` traces a compiled program, `trace_chain` one of the paper's
chains; `as_text` and `as_records` show either, and `reporting.trace` draws it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple, get_args

import jax.numpy as jnp
import numpy as np
from jaxtyping import Bool, Float

from algoscope.construction.compiler.compile import Arrangement
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.language.formulas import (
    QUERY,
    distinct_names,
    formula,
    token_name,
)
from algoscope.construction.language.interpreter import Tokens, interpret
from algoscope.construction.language.notation import Notation, as_lines, legend
from algoscope.construction.language.values import FeedForwardEvent
from algoscope.construction.paper.as_program import program_of_chain
from algoscope.construction.paper.chain import Chain
from algoscope.construction.paper.steps import Layout
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.tokens import encode_context
from algoscope.model.transformer import Transformer, run_compiled

Shown = Literal["computed", "exact", "difference"]
Columns = Float[np.ndarray, "time size"]
SAYS: dict[Shown, str] = {
    "computed": "Shown is what the weights compute.",
    "exact": "Shown is what the formulas say, computed in NumPy.",
    "difference": "Shown is what the weights compute minus what the formulas say.",
}


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


class WrittenLine(NamedTuple):
    """What one part of a layer writes."""

    part: str  # attention or MLP
    register: str
    formula: str

    def __str__(self) -> str:
        return f"{self.register} = {self.formula}"


class ShownRow(NamedTuple):
    """One component of a register, at every token."""

    name: str
    is_written: bool  # by this step
    register: TracedRegister
    component: int


@dataclass(frozen=True)
class TracedStep:
    """All registers after one step. Step 0 is the input."""

    label: str
    operation: str
    writes: tuple[str, ...]
    registers: dict[str, TracedRegister]
    lines: tuple[WrittenLine, ...] = ()
    rounding: float = float(np.finfo(np.float64).eps)  # of the transformer's numbers
    token: str = ""  # the prefix of x and y, where registers have these names

    @property
    def largest_difference(self) -> float:
        """The largest difference among the numbers that the prediction depends on."""
        return max(
            float(np.max(np.abs(each.difference[each.counts]), initial=0))
            for each in self.registers.values()
        )

    def title(self, number: int) -> str:
        """Return the heading of the step; those of the paper have a name of their own.

        Example: `1. move x: mov(0, 1, x, x)`.
        """
        named = self.operation not in ("", "; ".join(map(str, self.lines)))
        return f"{number}. {self.label}" + (f": {self.operation}" if named else "")

    @property
    def tokens(self) -> list[str]:
        """The names of the tokens: x₁, y₁, x₂, …, query."""
        time = len(next(iter(self.registers.values())).exact)
        return [*map(token_name, range(time - 1)), QUERY]

    def text(self, row: "ShownRow", column: int, show: Shown = "computed") -> str:
        """Return a number with four digits, and the rounding error of a zero as 0."""
        place = column, row.component
        value = float(getattr(row.register, show)[place])
        is_zero = show == "computed" and row.register.exact[place] == 0
        least = np.sqrt(self.rounding) if is_zero else self.rounding
        return significant(value, least * self._largest[show])

    @cached_property
    def _largest(self) -> dict[Shown, float]:
        """The largest number that is shown, whatever is shown."""
        every = {
            show: [getattr(each, show) for each in self.registers.values()]
            for show in get_args(Shown)
        }
        return {
            show: max(float(np.max(np.abs(a[np.isfinite(a)]), initial=0)) for a in each)
            for show, each in every.items()
        }

    def rows(self) -> Iterator[ShownRow]:
        """Return what there is to show: components of registers that are not zero."""
        least = self.rounding * self._largest["computed"]
        for name, register in self.registers.items():
            is_written = name in self.writes
            if not is_written and np.all(np.abs(register.computed) <= least):
                continue
            size = register.exact.shape[1]
            for component in range(size):
                place = name if size == 1 else f"{name}[{component + 1}]"
                if name == "token":  # holds y, then x
                    index = "" if size == 2 else f"[{component}]"
                    place = self.token + (f"x{index}" if component else "y")
                yield ShownRow(place, is_written, register, component)


def trace_program(
    arrangement: Arrangement, transformer: Transformer, tokens: Tokens
) -> list[TracedStep]:
    """Return the registers of one dataset before the first layer and after every one.

    A register is shown from the layer that writes it to the last that reads it.
    """
    wanted = arrangement.num_layers, arrangement.hidden_size
    found = transformer.num_layers, len(transformer.w_e)
    if found != wanted:
        rule = "have {} layers of width {}, as its program says".format(*wanted)
        size = "{} of width {}".format(*found)
        remedy = "Build it again: another version wrote it, or it is damaged."
        raise InvalidValueError("transformer", rule, size, remedy)
    tokens = tokens.astype(arrangement.numerics.dtype)
    state = interpret(arrangement.program, tokens.astype(np.float64))
    run = run_compiled(transformer, jnp.asarray(tokens))
    hidden = np.asarray(run.hidden, np.float64)[0]
    names = arrangement.notation.names
    token = arrangement.program.token
    steps = []
    for layer in range(-1, arrangement.num_layers):
        written = [event.out for event in arrangement.schedule.events(layer)]
        held = arrangement.allocation.live(layer)
        shown = {*held, *written} if layer + 1 < arrangement.num_layers else written
        lines = tuple(
            WrittenLine(line.part, line.register, line.operation)
            for line in arrangement.listing
            if line.layer == layer + 1
        )
        steps.append(
            TracedStep(
                label=f"layer {layer + 1}" if layer >= 0 else "input",
                operation="; ".join(map(str, lines)),
                writes=tuple(names.get(each, each.name) for each in written),
                registers={
                    "token" if each is token else names.get(each, each.name): (
                        TracedRegister(
                            state[each][0],
                            hidden[layer + 1][:, arrangement.allocation.rows[each]],
                            np.ones(tokens.shape[1], bool),
                        )
                    )
                    for each in arrangement.allocation.rows
                    if each in shown
                },
                lines=lines,
                rounding=_rounding(arrangement.numerics),
                token=names.get(token, ""),
            )
        )
    return steps


def _rounding(numerics: Numerics) -> float:
    return float(np.finfo(numerics.dtype).eps)


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
    written = program_of_chain(chain)
    notation = Notation(names=distinct_names(written.program.events))

    def register(name: str, depth: int) -> TracedRegister:
        rows = layout.rows(name)
        counts = [(name, i) in chain.live[depth] for i in range(chain.time)]
        return TracedRegister(
            states[depth][:, rows], hidden[depth][:, rows], np.array(counts)
        )

    def lines(depth: int) -> tuple[WrittenLine, ...]:
        return tuple(
            WrittenLine(
                "MLP" if isinstance(event, FeedForwardEvent) else "attention",
                event.out.name,
                formula(event, notation),
            )
            for event in ([] if depth == 0 else written.lines[depth - 1])
        )

    return [
        TracedStep(
            labels[depth],
            operations[depth],
            writes[depth],
            {name: register(name, depth) for name in chain.registers},
            lines(depth),
            _rounding(numerics),
        )
        for depth in range(len(states))
    ]


def as_text(
    steps: Sequence[TracedStep], show: Shown = "computed", first: int = 0
) -> str:
    """Return the matrices as text, without the registers that are zero.

    Under the number and the name of a step are its formulas and a table of registers
    by tokens. An arrow marks what a step wrote. Numbers that the prediction does not
    depend on are in brackets. Steps are numbered from `first`.
    """
    return "\n\n".join(
        _step_as_text(number, step, show) for number, step in enumerate(steps, first)
    )


def meanings(steps: Sequence[TracedStep]) -> dict[str, str]:
    """Return what there is in a trace and in its formulas, each with its meaning."""
    says = {
        "columns": "the tokens of the prompt: inputs x, labels y, at last the query",
        "rows": "the registers: numbers that every token keeps in its hidden state",
        "→": "written by this layer; the others were there before",
    }
    if not all(r.counts.all() for step in steps for r in step.registers.values()):
        says["( )"] = "computed as well, but the prediction does not depend on it"
    says["difference"] = (
        "what the weights compute minus what the formulas say; the largest is below "
        "each table"
    )
    return says | legend(line.formula for step in steps for line in step.lines)


def explanation(steps: Sequence[TracedStep], show: Shown = "computed") -> str:
    """Return how to read a trace that is shown as text."""
    return f"How to read it. {SAYS[show]}\n{as_lines(meanings(steps))}"


def _step_as_text(number: int, step: TracedStep, show: Shown) -> str:
    table = [["", *(f" {name} " for name in step.tokens)]]
    for row in step.rows():
        mark = "→" if row.is_written else " "
        numbers = [
            f" {shown} " if counts else f"({shown})"
            for column, counts in enumerate(row.register.counts)
            for shown in [step.text(row, column, show)]
        ]
        table.append([f"{mark} {row.name}", *numbers])
    first, *others = (max(map(len, column)) for column in zip(*table, strict=True))
    lines = [
        row[0].ljust(first)
        + "".join(
            "  " + cell.rjust(width)
            for cell, width in zip(row[1:], others, strict=True)
        ).rstrip()
        for row in table
    ]
    width = max((len(line.part) for line in step.lines), default=0)
    formulas = [f"   {line.part:<{width}}  {line}" for line in step.lines]
    last = f"largest difference {step.largest_difference:.1e}"
    return "\n".join([step.title(number), *formulas, *lines, last])


def significant(value: float, least: float = 0.0) -> str:
    """Return a number with four digits; a plain 0 if it is not above `least`.

    Example:
        >>> significant(0.123456), significant(-3.4e-35, 2e-16)
        ('0.1235', '0')
    """
    if abs(value) <= least:
        return "0"
    return f"{'−' if value < 0 else ''}{abs(value):.4g}"


def as_records(steps: Sequence[TracedStep]) -> list[dict[str, Any]]:
    """Return the trace as JSON stores it; a register is a list of columns."""
    return [
        {
            "label": step.label,
            "operation": step.operation,
            "lines": [line._asdict() for line in step.lines],
            "tokens": step.tokens,
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
