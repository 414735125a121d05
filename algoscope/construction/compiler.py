"""From a program to a transformer that runs it (paper §3, made general).

    fold (values)  →  drop the dead, schedule  →  allocate  →  calibrate  →  emit

The result is an ordinary transformer: it predicts at every prefix in one causal pass,
and is saved, loaded, compared, identified and probed like a trained one.
"""

from dataclasses import dataclass

import numpy as np

from algoscope.construction.allocation import Allocation, allocate
from algoscope.construction.calibration import Calibration, calibrate
from algoscope.construction.codes import Code, OneHot, choose_code
from algoscope.construction.emitter import Emitter
from algoscope.construction.events import Attend, AttentionEvent
from algoscope.construction.interpreter import Tokens
from algoscope.construction.layers import Plan, stack, write_layer
from algoscope.construction.numerics import Numerics
from algoscope.construction.numerics import numerics as default_numerics
from algoscope.construction.products import precise_bound
from algoscope.construction.program import Program
from algoscope.construction.schedule import Schedule, schedule
from algoscope.construction.tokens import example_tokens
from algoscope.construction.transformers import (
    assemble_transformer,
    code_and_pads,
    require_supported,
)
from algoscope.learner import InContextLearner
from algoscope.operands import OperandRange
from algoscope.transformer import Transformer


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


@dataclass(frozen=True)
class Compiled(Arrangement):
    """The transformer that runs a program, with how it was made."""

    calibration: Calibration
    transformer: Transformer
    operands: OperandRange

    def learner(self, name: str) -> InContextLearner:
        """Return the transformer as a predictor."""
        return InContextLearner(self.transformer, name, self.operands)


def code_of(program: Program, numerics: Numerics) -> Code:
    """Return the smallest code that the program's heads can follow exactly."""
    if any(isinstance(event, Attend) for event in program.events):
        return OneHot(program.time)  # scores of the content are added to those of it
    maps = [each.at for each in program.events if isinstance(each, AttentionEvent)]
    return choose_code(maps, program.time, numerics.digits)


def arrange(
    program: Program, numerics: Numerics, code: Code | None = None
) -> Arrangement:
    """Return where and when a program computes what, without any weights."""
    code = code or code_of(program, numerics)
    order = schedule(program)
    return Arrangement(
        program, numerics, code, order, allocate(program, order, code, numerics)
    )


def compile_program(
    program: Program,
    numerics: Numerics | None = None,
    *,
    tokens: Tokens | None = None,
    code: Code | None = None,
) -> Compiled:
    """Return the transformer that runs a program, with how it was made.

    `tokens` are the datasets that operands are calibrated on: by default the paper's.
    """
    numerics = numerics or default_numerics()
    divides = any(getattr(event, "norm", None) is not None for event in program.events)
    require_supported(numerics, divides=divides)
    if tokens is None:
        tokens = example_tokens(program.dim, program.num_examples)
    arrangement = arrange(program, numerics, code)
    calibration = calibrate(program, tokens, numerics)
    emitter = Emitter(
        arrangement.schedule, arrangement.allocation, calibration, numerics
    )
    frame = arrangement.allocation.frame
    plans = [emitter.plan(layer) for layer in range(arrangement.num_layers)]
    layers = [write_layer(plan, frame, arrangement.code, numerics) for plan in plans]
    positions = code_and_pads(frame, arrangement.code, numerics)
    for register, values in program.positions.items():
        if register in arrangement.allocation.rows:
            positions[:, arrangement.allocation.rows[register]] = values
    assert program.output is not None, "a schedule has been made of it"
    transformer = assemble_transformer(
        stack(layers, numerics),
        numerics,
        frame,
        token_rows=arrangement.allocation.rows[program.token],
        positions=positions,
        output=emitter.form(program.output),
    )
    return Compiled(
        **vars(arrangement),
        calibration=calibration,
        transformer=transformer,
        operands=operand_range(plans, numerics),
    )


def operand_range(plans: list[Plan], numerics: Numerics) -> OperandRange:
    """Return the most that inner units may see for products to keep their digits."""
    unit = numerics.product
    bound = precise_bound(unit, numerics.dtype)
    reach = bound * (np.abs(unit.p) + np.abs(unit.q)) + np.abs(unit.shift)
    products = tuple(len(plan.p) * unit.num_units for plan in plans)
    return OperandRange(float(np.max(reach)), products)
