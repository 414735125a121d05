"""From a program to a transformer that runs it.

A program is arranged (`arrange`: which layer does what, in which rows) and calibrated
(`calibrate`: how large operands get); each layer is planned, and `weights` turns plans
into weights. An arrangement can be listed, one line per event, before it has weights.
"""

from dataclasses import dataclass
from functools import cached_property

import equinox as eqx
import numpy as np

from algoscope.construction.compiler.numerics import Calibration, Numerics, calibrate
from algoscope.construction.compiler.numerics import numerics as default_numerics
from algoscope.construction.compiler.products import precise_bound
from algoscope.construction.compiler.schedule import (
    Allocation,
    Schedule,
    allocate,
    schedule,
)
from algoscope.construction.compiler.weights import (
    Form,
    Frame,
    HeadPlan,
    Plan,
    assemble_transformer,
    code_and_pads,
    read_out,
    require_supported,
    stack,
    write_layer,
)
from algoscope.construction.language.expressions import form_of
from algoscope.construction.language.formulas import distinct_names, formula
from algoscope.construction.language.interpreter import Tokens
from algoscope.construction.language.notation import Notation
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import (
    SELF,
    Code,
    OneHot,
    Timesteps,
    choose_code,
)
from algoscope.construction.language.values import (
    Attend,
    AttentionEvent,
    Event,
    FeedForwardEvent,
    Multiply,
    Read,
    Value,
    constant,
)
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.model.operands import OperandRange
from algoscope.model.tokens import example_tokens
from algoscope.model.transformer import Transformer


@dataclass(frozen=True)
class Line:
    """One line of a listing: `L3 MLP w2 rows 9..12 = w1 − 0.1 · x2 · (w·x2 − y2)`."""

    layer: int  # from 1
    part: str  # attention, MLP, or the read-out after the last layer
    register: str
    rows: str  # of the hidden state
    operation: str  # a formula, see `language.notation.GRAMMAR`

    def __str__(self) -> str:
        where = f"L{self.layer} {self.part:<9}"
        rows = f"rows {self.rows}" if self.rows else ""
        return f"{where} {self.register:<12} {rows:<14} = {self.operation}"


@dataclass(frozen=True, eq=False)
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
    def ordered(self) -> list[Event]:
        """The events in the order in which they happen."""
        return sorted(self.schedule.layers, key=self.schedule.phase)

    @cached_property
    def notation(self) -> Notation:
        """How its formulas are written: every name means one register."""
        return Notation(names=distinct_names(self.ordered))

    @cached_property
    def listing(self) -> list[Line]:
        """What each layer does, in the order in which it happens.

        The read-out has a line if it does more than read one register.
        """
        lines = [
            Line(
                layer=self.schedule.layers[event] + 1,
                part="MLP" if isinstance(event, FeedForwardEvent) else "attention",
                register=self.notation.names.get(event.out, event.out.name),
                rows=_ranges(self.allocation.rows[event.out].tolist()),
                operation=formula(event, self.notation),
            )
            for event in self.ordered
        ]
        outputs = self.program.outputs
        if not any(form_of(Value.of(r)) == form_of(outputs) for r in outputs.terms):
            shown = self.notation.text(outputs, whole=True)
            lines.append(Line(self.num_layers, "read-out", "output", "", shown))
        return lines


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


@dataclass(frozen=True, eq=False)
class Compiled(Arrangement):
    """The transformer that runs a program, with how it was made."""

    calibration: Calibration
    transformer: Transformer
    operands: OperandRange | None

    @property
    def num_outputs(self) -> int:
        """How many numbers the program predicts."""
        return self.program.outputs.size

    def learner(self, name: str, output: int = 0) -> InContextLearner:
        """Return the transformer as a predictor of one of the outputs."""
        transformer = self.transformer
        if output:
            planner = Planner(self, self.calibration)
            form = planner.form(self.program.outputs[output : output + 1])
            w_o, b_o = read_out(form, planner.frame, self.numerics)
            transformer = eqx.tree_at(lambda t: (t.w_o, t.b_o), transformer, (w_o, b_o))
        return InContextLearner(transformer, name, self.operands)


def compile_program(
    program: Program,
    numerics: Numerics | None = None,
    *,
    tokens: Tokens | None = None,
    code: Code | None = None,
) -> Compiled:
    """Return the transformer that runs a program, with how it was made.

    `tokens` are the datasets that operands are calibrated on, by default draws of the
    paper's task. `numerics` are the constants of a precision, by default of float64,
    which has to be switched on in JAX: `jax.config.update("jax_enable_x64", True)`.

    Example, one step of gradient descent from w = 0, with 2α = 1:
        >>> import jax.numpy as jnp
        >>> import algoscope as asc
        >>> from algoscope.construction import numerics
        >>> program = asc.Program(dim=1, num_examples=1)
        >>> x, y = program.example(0)
        >>> w = program.multiply(x, y, name="w")
        >>> program.predict(program.dot(w, program.x, name="prediction"))
        >>> compiled = asc.compile_program(program, numerics("float32"))
        >>> compiled.num_layers
        2
        >>> learner = compiled.learner("one step")
        >>> x, y, query = jnp.array([[2.0]]), jnp.array([1.5]), jnp.array([-1.0])
        >>> round(float(learner(x, y, query)), 3)
        -3.0
    """
    numerics = numerics or default_numerics()
    divides = any(event.norm is not None for event in program.events)
    require_supported(numerics, divides=divides)
    if tokens is None:
        tokens = example_tokens(program.dim, program.num_examples)
    arrangement = arrange(program, numerics, code)
    code, rows = arrangement.code, arrangement.allocation.rows
    calibration = calibrate(program, tokens, numerics)
    planner = Planner(arrangement, calibration)
    plans = [planner.plan(layer) for layer in range(arrangement.num_layers)]
    layers = [write_layer(plan, planner.frame, code, numerics) for plan in plans]
    positions = code_and_pads(planner.frame, code, numerics)
    for register, values in program.positions.items():
        if register in rows:
            positions[:, rows[register]] = values
    transformer = assemble_transformer(
        stack(layers, numerics),
        numerics,
        planner.frame,
        token_rows=rows[program.token],
        positions=positions,
        output=planner.form(program.prediction),
    )
    return Compiled(
        program,
        numerics,
        code,
        arrangement.schedule,
        arrangement.allocation,
        calibration,
        transformer,
        operand_range(plans, numerics, planner.frame),
    )


def operand_range(plans: list[Plan], numerics: Numerics, frame: Frame) -> OperandRange:
    """Return how large inner units may get before products lose half their digits.

    LayerNorm loses as many where the rows that are not pads have that share in it.
    """
    unit = numerics.product
    bound = precise_bound(unit, numerics.dtype)
    reach = bound * (np.abs(unit.p) + np.abs(unit.q)) + np.abs(unit.shift)
    products = tuple(len(plan.p) * unit.num_units for plan in plans)
    pads = tuple(row for pair in frame.pads for row in pair)
    share = 2 * float(np.finfo(numerics.dtype).eps) ** 0.5
    if numerics.pads == "paper":  # whose error is of first order
        return OperandRange(float(np.max(reach)), products)
    return OperandRange(
        float(np.max(reach)),
        products,
        pads,
        share,
        numerics.tolerance,
        0 if unit.order is None else unit.num_units,
        unit.truncation,
        unit.order or 2,
    )


class Planner:
    """Turns the events of an arrangement into plans, layer by layer."""

    def __init__(self, arrangement: Arrangement, calibration: Calibration):
        self.schedule = arrangement.schedule
        self.allocation = arrangement.allocation
        self.numerics = arrangement.numerics
        self.frame = arrangement.allocation.frame
        self.calibration = calibration
        self.pads_in_place = True  # whether the pads still hold ±N

    def form(self, value: Value) -> Form:
        """Return a value as a form over the rows of the hidden state."""
        form = self.frame.form(value.size)
        for register, matrix in value.terms.items():
            form[:, self.allocation.rows[register]] += matrix
        form[:, -1] = value.constant
        return form

    def plan(self, layer: int) -> Plan:
        """Return what a layer does. Call it for layer 0, 1, …, in this order."""
        plan = Plan.empty(self.frame)
        events = self.schedule.events(layer)
        for event in events:
            rows = self.allocation.rows[event.out]
            if event.out in self.allocation.erased and event.into is None:
                plan.head(SELF, self.frame).value[rows, rows] -= 1
            if isinstance(event, Read):
                head = plan.head(event.at, self.frame)
                head.value[rows] += self.form(event.source)
            elif isinstance(event, Attend):
                self._attend(plan, event)
            elif isinstance(event, Multiply):
                self._multiply(plan, event)
            else:
                plan.linear[rows] += self.form(event.value)
        self._write_pads(plan, events)
        return plan

    def _attend(self, plan: Plan, event: Attend) -> None:
        for head in event.heads:
            value = self.frame.form(self.frame.hidden)
            value[self.allocation.rows[event.out]] = self.form(head.value)
            query, key = self.form(head.query), self.form(head.key)
            plan.heads.append(HeadPlan(event.at, value, query, key))

    def _multiply(self, plan: Plan, event: Multiply) -> None:
        rows = self.allocation.rows[event.out]
        operands = self.form(event.p), self.form(event.q)
        ranges = self.calibration.p[event], self.calibration.q[event]
        plan.add_products(rows, event.mix, operands, ranges)
        plan.linear[rows] += self.form(event.plus)

    def _write_pads(self, plan: Plan, events: list[Event]) -> None:
        """Set the pads to ±N·v for this layer's norm v, or back to ±N after one."""
        norms = [event.norm for event in events if event.norm is not None]
        if not norms and self.pads_in_place:
            return
        norm = norms[0] if norms else constant(1.0)
        if self.numerics.pads == "paper" and norm.size > 1:
            rule = "be a number with the paper's pads"
            remedy = "Use pads='reference'."
            raise InvalidValueError("norm", rule, f"{norm.size} of them", remedy)
        self.pads_in_place = not norms
        # What this attention reads is not in its rows yet: read it into the pads too.
        reads = {each.out: each for each in events if isinstance(each, Read)}
        there = {r: m for r, m in norm.terms.items() if r not in reads}
        parts: list[tuple[Timesteps, Form]] = []
        parts.append((SELF, self.form(Value(there, norm.constant))))
        for register, matrix in norm.terms.items():
            if register in reads:
                read = reads[register]
                parts.append((read.at, matrix @ self.form(read.source)))
        plan.write_pads(self.frame, self.numerics.pad, parts)
