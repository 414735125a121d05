"""From a program to a transformer that runs it.

A program is arranged (`arrange`: which layer does what, in which rows) and calibrated
(`calibrate`: how large operands get); each layer is planned here, and `weights` turns
plans into weights.
"""

from dataclasses import dataclass

import numpy as np

from algoscope.construction.compiler.arrange import Arrangement, arrange
from algoscope.construction.compiler.calibrate import Calibration, calibrate
from algoscope.construction.compiler.codes import Code
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.numerics import numerics as default_numerics
from algoscope.construction.compiler.products import precise_bound
from algoscope.construction.compiler.weights import (
    Form,
    HeadPlan,
    Plan,
    assemble_transformer,
    code_and_pads,
    require_supported,
    stack,
    write_layer,
)
from algoscope.construction.language.interpreter import Tokens
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import SELF, Timesteps
from algoscope.construction.language.values import (
    Attend,
    Event,
    Multiply,
    Read,
    Value,
    constant,
)
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner, OperandRange
from algoscope.model.tokens import example_tokens
from algoscope.model.transformer import Transformer


@dataclass(frozen=True)
class Compiled(Arrangement):
    """The transformer that runs a program, with how it was made."""

    calibration: Calibration
    transformer: Transformer
    operands: OperandRange

    def learner(self, name: str) -> InContextLearner:
        """Return the transformer as a predictor."""
        return InContextLearner(self.transformer, name, self.operands)


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
        operand_range(plans, numerics),
    )


def operand_range(plans: list[Plan], numerics: Numerics) -> OperandRange:
    """Return how large inner units may get before products lose half their digits."""
    unit = numerics.product
    bound = precise_bound(unit, numerics.dtype)
    reach = bound * (np.abs(unit.p) + np.abs(unit.q)) + np.abs(unit.shift)
    products = tuple(len(plan.p) * unit.num_units for plan in plans)
    return OperandRange(float(np.max(reach)), products)


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
