"""A compiled transformer does what the interpreter says, layer by layer.

Random programs are compiled and run; after every layer, all registers that are still
needed hold what the interpreter has for them, and what a layer does not write is the
same to the last bit.
"""

from dataclasses import replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.forward import outputs
from support.programs import (
    BY_CONTENT,
    DIVISIONS,
    NARROW,
    ONE,
    PLAIN,
    TOLERANCE,
    WIDE,
    Builder,
    brief,
    check,
    check_program,
    compile_for,
    law,
    make_tokens,
    recipes,
)
from support.refusals import refuses

from algoscope.construction.compiler.compile import code_of, compile_program
from algoscope.construction.compiler.numerics import (
    Numerics,
    calibrate,
    numerics,
    paper_numerics,
)
from algoscope.construction.compiler.weights import stack
from algoscope.construction.language.interpreter import predictions
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import (
    PREVIOUS,
    SELF,
    Code,
    Compact,
    Earlier,
    OneHot,
    Sets,
    Single,
    Timesteps,
)
from algoscope.construction.language.values import Head, constant, join
from algoscope.foundation.validation import InvalidValueError


@law
@given(recipes())
def test_every_layer_of_a_random_program_holds_what_the_interpreter_says(recipe):
    check_program(recipe.program())


@brief
@given(recipes())
def test_random_programs_run_in_float32(recipe):
    check_program(recipe.program(), NARROW)


@brief
@given(recipes())
def test_random_programs_run_with_the_other_gelu(recipe):
    check_program(recipe.program(), numerics("float64", "gelu_tanh"))


@brief
@given(recipes(), st.sampled_from([WIDE, NARROW]))
def test_random_programs_run_with_a_layer_norm_that_adds_an_epsilon(recipe, options):
    check_program(recipe.program(), replace(options, layer_norm_epsilon=1e-5))


@brief
@given(recipes(PLAIN + BY_CONTENT))
def test_random_programs_run_where_attention_reads_through_layer_norm(recipe):
    check_program(
        recipe.program(), replace(WIDE, pre_norm=True, layer_norm_epsilon=1e-5)
    )


@brief
@given(recipes(PLAIN + DIVISIONS, any_map=False))
def test_both_position_codes_lead_to_the_same_output(recipe):
    program = recipe.program()
    tokens = make_tokens(program.dim, program.num_examples)
    found = []
    for code in (Compact(program.time), OneHot(program.time)):
        compiled = check_program(program, code=code)
        assert compiled.allocation.frame.code.stop == program.dim + 1 + (
            3 if isinstance(code, Compact) else program.time
        )
        found.append(outputs(compiled.transformer, tokens))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10, atol=1e-10)


@brief
@given(recipes())
def test_the_output_is_the_prediction_at_every_prefix(recipe):
    program = recipe.program()
    tokens = make_tokens(program.dim, program.num_examples)
    model = compile_for(program, tokens).transformer
    expected = predictions(program, tokens)
    largest = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(
        outputs(model, tokens)[:, ::2], expected, rtol=0, atol=1e-9 * largest
    )
    for time in (1, 2):
        prefix = predictions(program, tokens[:, :time])
        np.testing.assert_allclose(
            prefix, expected[:, :1], rtol=1e-12, atol=1e-12 * largest
        )


@pytest.mark.parametrize("options", [WIDE, NARROW], ids=lambda each: each.dtype)
def test_the_transformer_itself_computes_what_these_tests_do(options):
    builder = Builder.start(2, 2, seed=5)
    for add in (Builder.multiply, Builder.divide_by_norm, Builder.attend):
        add(builder)
    program, tokens = builder.predict(), make_tokens(2, 2)
    tokens = tokens.astype(options.dtype).astype(np.float64)
    compiled = compile_for(program, tokens, options)
    run = jax.jit(lambda model, tokens: model(tokens))
    found = run(compiled.transformer, jnp.asarray(tokens, options.dtype))
    assert found.hidden.dtype == options.dtype
    error = check(compiled, tokens, np.asarray(found.hidden))
    assert error < TOLERANCE[options.dtype]
    expected = outputs(compiled.transformer, tokens)
    rounding = 1000 * np.finfo(options.dtype).eps
    np.testing.assert_allclose(found.output, expected, atol=rounding, rtol=0)


def test_a_program_without_events_predicts_from_the_token():
    program = Program(2, 1)
    program.predict(program.x[1:] - 2.0)
    compiled = check_program(program)
    tokens = make_tokens(2, 1)
    found = outputs(compiled.transformer, tokens)
    np.testing.assert_array_equal(found, tokens[..., 2] - 2)


# Ranges.


def test_ranges_are_the_largest_operands_with_safety():
    program = Program(1, 1)
    over = program.multiply(program.x, 2 * program.x, norm=program.y + 4.0)
    program.predict(program.multiply(program.x, over))
    tokens = np.array([[[0.0, -3.0], [1.0, 0.0], [0.0, 2.0]]])
    found = calibrate(program, tokens, replace(WIDE, safety=2.0))
    first, second = program.events
    assert found.p[first].tolist() == [2 * 3 / 4]
    assert found.q[first].tolist() == [2 * 6 / 4]
    assert found.q[second].tolist() == [2 * 18 / 16]
    assert found.registers[program.token] == 3
    # An operand that is always zero has any range.
    zero = calibrate(program, 0 * tokens, WIDE)
    assert zero.p[second].tolist() == [WIDE.safety]


def test_operands_up_to_the_safety_factor_are_as_precise():
    program = Program(2, 2)
    program.predict(program.dot(program.x, program.x))
    tokens = make_tokens(2, 2)
    model = compile_for(program, tokens).transformer
    larger = WIDE.safety * tokens
    np.testing.assert_allclose(
        outputs(model, larger)[:, ::2], predictions(program, larger), rtol=1e-11
    )


def test_the_code_has_three_units_where_they_are_exact():
    def code(at: Timesteps, num_examples: int = 2, options: Numerics = NARROW) -> Code:
        program = Program(1, num_examples)
        program.predict(program.read(program.x, at)[:1])
        return code_of(program, options)

    assert isinstance(code(Single(0, later=True)), Compact)
    assert isinstance(code(Sets(((),) * 5)), OneHot)
    assert isinstance(code(SELF, 63), Compact)
    assert isinstance(code(SELF, 64), OneHot)
    assert isinstance(code(SELF, 64, WIDE), Compact)
    program = Program(1, 2)
    program.predict(program.attend([Head(program.x, program.x, program.x)], SELF))
    assert isinstance(code_of(program, NARROW), OneHot)
    program.predict(program.y)
    assert isinstance(code_of(program, NARROW), OneHot)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_formulas_of_the_paper_run_programs_too(dtype):
    program = Program(2, 2)
    x, y = program.read(program.x, Earlier(2)), program.read(program.y, PREVIOUS)
    w = program.multiply(x, y.repeat(2), plus=0.5 * x + 1.0)
    unit = program.divide(w, program.dot(w, w) + 1)
    program.predict(program.dot(unit, program.x))
    tokens = make_tokens(2, 2)
    compiled = compile_for(program, tokens, paper_numerics(dtype))
    error = np.abs(
        outputs(compiled.transformer, tokens)[:, ::2] - predictions(program, tokens)
    ).max()
    # Measured: 8e-8 and 3e-3.
    assert error < {"float64": 4e-7, "float32": 2e-2}[dtype]
    assert compiled.allocation.frame.reference is None


# Rejected values.


def test_float64_needs_a_jax_that_holds_it():
    program = Program(2, 1)
    program.predict(program.y)
    with (
        jax.enable_x64(False),
        refuses(
            InvalidValueError,
            "`dtype` must be what JAX can hold, got float64. Call "
            "jax.config.update('jax_enable_x64', True) first, or use float32.",
        ),
    ):
        compile_program(program)


def test_a_stack_has_a_layer():
    with refuses(InvalidValueError, "`layers` must hold at least one layer, got none."):
        stack([], WIDE)


def test_registers_that_compete_with_the_pads_are_refused():
    program = Program(2, 1)
    program.predict(program.store(1e6 * program.y, "huge"))
    tokens = np.ones((1, 3, 3))
    compile_program(program, WIDE, tokens=tokens)
    with refuses(
        InvalidValueError,
        "`register huge` must stay below 2e+05 in float32, got 1e+06 on the "
        "calibration's datasets. The algorithm may diverge: use a smaller learning "
        "rate or a larger penalty, `tokens` of smaller numbers, or float64.",
    ):
        compile_program(program, NARROW, tokens=tokens)
    with refuses(
        InvalidValueError,
        "`register token` must stay below 4e+08 in float64, got inf on the "
        "calibration's datasets. The algorithm may diverge: use a smaller learning "
        "rate or a larger penalty, `tokens` of smaller numbers.",
    ):
        compile_program(program, WIDE, tokens=np.inf * tokens)


def test_scores_that_exceed_the_gap_are_refused():
    program = Program(1, 1)
    head = Head(query=ONE, key=program.y, value=program.y)
    program.predict(program.attend([head], Single(0), name="found"))
    tokens = np.array([[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]])
    check_scores = partial(compile_program, program, NARROW)
    check_scores(tokens=239 * tokens)
    with refuses(
        InvalidValueError,
        "`scores of found` must exceed those inside by at most 239 in float32, got "
        "240 on the calibration's datasets. Use smaller queries or keys, or float64.",
    ):
        check_scores(tokens=240 * tokens)
    # What a timestep cannot see has no score.
    own = Program(1, 1)
    own.predict(own.attend([Head(own.y, own.y, own.y)], SELF))
    compile_program(own, NARROW, tokens=1e3 * tokens)


def divided(size: int) -> Program:
    program = Program(2, 1)
    v = constant(np.ones(size))
    program.predict(program.divide(program.y, join([program.y + 9.0, v])[:size]))
    return program


def test_norms_need_a_layer_norm_of_their_own():
    with refuses(
        InvalidValueError,
        "`pre_norm` must be off for an algorithm that divides, got True. "
        "The attention after a division would read everything divided.",
    ):
        compile_program(divided(1), replace(WIDE, pre_norm=True))
    compile_program(divided(1), paper_numerics())
    with refuses(
        InvalidValueError,
        "`norm` must be a number with the paper's pads, got 2 of them. "
        "Use pads='reference'.",
    ):
        compile_program(divided(2), paper_numerics())


REFUSED_NUMERICS = {
    "dtype": (
        dict(dtype="float16"),
        "`dtype` must be one of float64, float32, got 'float16'. "
        "Did you mean 'float64'?",
    ),
    "pads": (
        dict(pads="none"),
        "`pads` must be one of reference, paper, got 'none'.",
    ),
    "pad": (dict(pad=0.0), "`pad` must be positive, got 0.0."),
    "gap": (dict(gap=-1.0), "`gap` must be positive, got -1.0."),
    "safety": (dict(safety=0.5), "`safety` must be at least 1, got 0.5."),
    "epsilon": (
        dict(layer_norm_epsilon=-1e-5),
        "`layer_norm_epsilon` must not be negative, got -1e-05.",
    ),
    "pre_norm": (
        dict(pre_norm=True, pads="paper"),
        "`pads` must be 'reference' where attention reads through LayerNorm, "
        "got paper.",
    ),
}


@pytest.mark.parametrize("case", REFUSED_NUMERICS)
def test_numerics_refuse(case):
    options, message = REFUSED_NUMERICS[case]
    with refuses(InvalidValueError, message):
        replace(WIDE, **options)


def test_numerics_know_their_digits():
    assert (WIDE.digits, NARROW.digits) == (53, 24)
    assert numerics("float32", "silu").activation == "silu"
