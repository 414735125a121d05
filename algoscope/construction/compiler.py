"""From a program to a transformer that runs it (paper §3, made general).

    fold (values)  →  drop the dead, schedule  →  allocate  →  calibrate  →  emit

The result is an ordinary transformer: it predicts at every prefix in one causal pass,
and is saved, loaded, compared, identified and probed like a trained one.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from algoscope.construction.allocation import Allocation, allocate
from algoscope.construction.calibration import Calibration, calibrate, example_tokens
from algoscope.construction.codes import Code, Compact, OneHot
from algoscope.construction.emitter import Emitter
from algoscope.construction.events import Attend, AttentionEvent
from algoscope.construction.interpreter import Tokens
from algoscope.construction.layers import (
    Frame,
    Plan,
    Weights,
    require_precision,
    stack,
    through_norm,
    write_layer,
)
from algoscope.construction.numerics import Numerics
from algoscope.construction.numerics import numerics as default_numerics
from algoscope.construction.products import precise_bound
from algoscope.construction.program import Program
from algoscope.construction.schedule import Schedule, schedule
from algoscope.learner import InContextLearner
from algoscope.operands import OperandRange
from algoscope.transformer import Transformer
from algoscope.validation import InvalidValueError


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


def choose_code(program: Program, numerics: Numerics) -> Code:
    """Return the three-unit code where it is exact, the one-hot code elsewhere."""
    compact = Compact(program.time)
    maps = [each.at for each in program.events if isinstance(each, AttentionEvent)]
    by_content = any(isinstance(event, Attend) for event in program.events)
    simple = all(at.quadratic(program.time) is not None for at in maps)
    if simple and not by_content and compact.exact(numerics.digits):
        return compact
    return OneHot(program.time)


def arrange(
    program: Program, numerics: Numerics, code: Code | None = None
) -> Arrangement:
    """Return where and when a program computes what, without any weights."""
    code = code or choose_code(program, numerics)
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
    require_precision(numerics)
    divides = any(getattr(event, "norm", None) is not None for event in program.events)
    if numerics.pre_norm and divides:
        rule = "be off for a program that divides"
        remedy = "The attention after a division would read everything divided."
        raise InvalidValueError("pre_norm", rule, True, remedy)
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
    positions = np.zeros((program.time, frame.hidden))
    for register, values in program.positions.items():
        if register in arrangement.allocation.rows:
            positions[:, arrangement.allocation.rows[register]] = values
    assert program.output is not None, "a schedule has been made of it"
    transformer = assemble(
        layers,
        frame,
        arrangement.code,
        numerics,
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


def assemble(
    layers: list[Weights],
    frame: Frame,
    code: Code,
    numerics: Numerics,
    *,
    token_rows: np.ndarray,
    positions: np.ndarray,
    output: np.ndarray,
) -> Transformer:
    """Return a transformer of layers: the code and the pads join the positions."""
    positions = positions.copy()
    positions[:, frame.code] = code.units
    first, last = frame.pads[0]
    positions[:, first], positions[:, last] = numerics.pad, -numerics.pad
    embedding = np.zeros((frame.hidden, len(token_rows)))
    embedding[token_rows, np.arange(len(token_rows))] = 1
    w_o, b_o = output[:, :-1], output[:, -1]
    if numerics.pre_norm:
        w_o, b_o = through_norm(output, frame, numerics)
    return Transformer(
        w_e=jnp.asarray(embedding, numerics.dtype),
        positions=jnp.asarray(positions, numerics.dtype),
        layers=stack(layers, numerics),
        w_o=jnp.asarray(w_o[0], numerics.dtype),
        b_o=jnp.asarray(b_o[0], numerics.dtype),
        block=numerics.block,
    )
