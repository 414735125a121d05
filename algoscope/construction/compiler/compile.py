"""From layers to a transformer: what is around them (paper app. C.4).

The token embedding puts every token into its rows, the position embedding holds the
code, the pads and what else an algorithm starts from, the output reads one number.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from algoscope.construction.compiler.allocate import Allocation, allocate
from algoscope.construction.compiler.calibrate import Calibration, calibrate
from algoscope.construction.compiler.codes import Code, OneHot, choose_code
from algoscope.construction.compiler.emit import Emitter
from algoscope.construction.compiler.layer_weights import (
    Form,
    Frame,
    Plan,
    require_precision,
    stack,
    through_norm,
    write_layer,
)
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.numerics import numerics as default_numerics
from algoscope.construction.compiler.products import precise_bound
from algoscope.construction.compiler.schedule import Schedule, schedule
from algoscope.construction.language.events import Attend, AttentionEvent
from algoscope.construction.language.interpreter import Tokens
from algoscope.construction.language.program import Program
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.layer import TransformerLayer
from algoscope.model.learner import InContextLearner
from algoscope.model.operand_range import OperandRange
from algoscope.model.tokens import example_tokens
from algoscope.model.transformer import Transformer


def require_supported(numerics: Numerics, *, divides: bool) -> None:
    """Refuse a precision that JAX has off, and divisions in a pre-norm block."""
    require_precision(numerics)
    if numerics.pre_norm and divides:
        rule = "be off for an algorithm that divides"
        remedy = "The attention after a division would read everything divided."
        raise InvalidValueError("pre_norm", rule, True, remedy)


def code_and_pads(
    frame: Frame, code: Code, numerics: Numerics
) -> Float[np.ndarray, "time hidden"]:
    """Return positions with the code and the first pair of pads, all else zero."""
    positions = np.zeros((len(code.units), frame.hidden))
    positions[:, frame.code] = code.units
    positions[:, frame.pads[0]] = numerics.pad, -numerics.pad
    return positions


def assemble_transformer(
    layers: TransformerLayer,
    numerics: Numerics,
    frame: Frame,
    *,
    token_rows: Int[np.ndarray, " token"],
    positions: Float[np.ndarray, "time hidden"],
    output: Form,
) -> Transformer:
    """Return a transformer of layers; `output` is the form that it predicts."""
    embedding = np.zeros((frame.hidden, len(token_rows)))
    embedding[token_rows, np.arange(len(token_rows))] = 1
    w_o, b_o = output[:, :-1], output[:, -1]
    if numerics.pre_norm:
        w_o, b_o = through_norm(output, frame, numerics)
    return Transformer(
        w_e=jnp.asarray(embedding, numerics.dtype),
        positions=jnp.asarray(positions, numerics.dtype),
        layers=layers,
        w_o=jnp.asarray(w_o[0], numerics.dtype),
        b_o=jnp.asarray(b_o[0], numerics.dtype),
        block=numerics.block,
    )


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
