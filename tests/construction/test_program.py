"""Programs: what they compute by the interpreter, and what they reject."""

from collections.abc import Callable

import numpy as np
import pytest
from support.programs import ONE, check_program, make_tokens
from support.refusals import refuses

from algoscope.construction.compiler.compile import compile_program
from algoscope.construction.language.interpreter import interpret, predictions
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, SELF, Sets
from algoscope.construction.language.values import Head, Value, constant
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

pytestmark = pytest.mark.optimized  # Rounding is the matter.


def test_apply_multiplies_a_matrix_by_a_vector():
    program = Program(2, 1)
    matrix = program.position("M", np.arange(18.0).reshape(3, 6) / 18)
    program.predict(program.apply(matrix, program.x)[2:])
    tokens = make_tokens(2, 1)
    expected = np.einsum(
        "te,bte->bt", np.arange(18.0).reshape(3, 3, 2)[:, 2] / 18, tokens[..., 1:]
    )
    np.testing.assert_allclose(
        predictions(program, tokens), expected[:, ::2], rtol=1e-14
    )
    check_program(program)


def test_products_with_a_constant_take_no_layer():
    program = Program(2, 1)
    three = constant([3.0, 3.0])
    scaled = program.multiply(three, program.x, np.ones((1, 2)), plus=program.y)
    assert program.events == []
    assert scaled.terms[program.token].tolist() == [[1.0, 3.0, 3.0]]
    assert program.multiply(program.x, three, into=three).constant.tolist() == [3, 3]
    assert program.read(constant(0.0), PREVIOUS).constant.tolist() == [0]


def test_there_is_no_quotient_by_zero():
    program = Program(1, 1)
    program.divide(program.x + 1, program.y)
    program.multiply(program.x, program.x, norm=program.y)
    tokens = np.array([[[0.0, 2.0], [4.0, 0.0], [0.0, 3.0]]])
    found = interpret(program, tokens)
    for event, at_label in zip(program.events[1:], (0.25, 0.0), strict=True):
        np.testing.assert_array_equal(
            found[event.out].ravel(), [np.nan, at_label, np.nan]
        )


def empty(num_examples: int = 1) -> Program:
    return Program(2, num_examples)


REFUSED_PROGRAMS: dict[str, tuple[Callable[[], object], str]] = {
    "dim": (lambda: Program(0, 1), "`dim` must be at least 1, got 0."),
    "examples": (
        lambda: Program(1, 0),
        "`num_examples` must be at least 1, got 0.",
    ),
    "positions": (
        lambda: empty().position("p", np.zeros((2, 1))),
        "`values` must have one row for each of the 3 timesteps, got shape (2, 1).",
    ),
    "factors": (
        lambda: empty().multiply(empty().x, empty().y),
        "`q` must have 2 components, as the other factor of `product` has, "
        "got token with 1.",
    ),
    "mix": (
        lambda: empty().multiply(empty().x, empty().x, np.ones((1, 3))),
        "`result` must have 1 components, as `product` has, from 2 products, "
        "got 1 in `plus`, a mix of shape (1, 3).",
    ),
    "plus": (
        lambda: empty().multiply(empty().x, empty().x, plus=empty().y, name="w"),
        "`result` must have 2 components, as `w` has, from 2 products, "
        "got 1 in `plus`, a mix of shape (2, 2).",
    ),
    "prediction": (
        lambda: empty().predict(empty().x),
        "`prediction` must be one number, got 2.",
    ),
    "heads": (
        lambda: empty().attend([], SELF),
        "`heads` must hold at least one head for `attended`, got none.",
    ),
    "key": (
        lambda: empty().attend([Head(ONE, empty().x, ONE)], SELF, name="w"),
        "`key` must have 1 components, as the query of `w`, got 2.",
    ),
    "value": (
        lambda: empty().attend([Head(ONE, ONE, ONE), Head(ONE, ONE, empty().x)], SELF),
        "`value` must have 1 components, as the first head of `attended` has, got 2.",
    ),
    "read": (
        lambda: empty().read(ONE, Sets(((), ()))),
        "`sets` must say what each of the 3 timesteps reads, got 2 sets.",
    ),
    "attend": (
        lambda: empty().attend([Head(ONE, ONE, ONE)], Sets(((), ()))),
        "`sets` must say what each of the 3 timesteps reads, got 2 sets.",
    ),
}


@pytest.mark.parametrize("case", REFUSED_PROGRAMS)
def test_programs_refuse(case):
    act, message = REFUSED_PROGRAMS[case]
    with refuses(InvalidValueError, message):
        act()


def test_programs_refuse_a_variable_beside_a_norm():
    program = empty()
    with refuses(
        InvalidValueError,
        "`plus` must be constant beside a norm, got token. LayerNorm would divide it "
        "as well; add it in another layer.",
    ):
        program.multiply(program.y, program.y, plus=program.y, norm=ONE)


def test_programs_refuse_registers_of_others():
    program, other = empty(), empty()
    message = "`value` must be made of registers of this program, got register `token`."
    for act in (
        lambda: program.predict(other.y),
        lambda: program.store(other.y),
        lambda: program.divide(program.y, other.y),
        lambda: program.multiply(program.y, program.y, norm=other.y),
        lambda: program.attend([Head(ONE, ONE, other.y)], SELF),
    ):
        with refuses(InvalidValueError, message):
            act()


def test_programs_refuse_what_is_overwritten():
    program = empty()
    w = program.store(program.y, "w")
    program.multiply(w, w, into=w, name="w2")
    message = (
        "`value` must be read before it is overwritten, got register `w`, now `w2`. "
        "Store it under another name first."
    )
    for act in (
        lambda: program.predict(w),
        lambda: program.store(2 * w),
        lambda: program.divide(program.y, w),
        lambda: program.multiply(program.y, program.y, into=w),
        lambda: program.attend([Head(ONE, ONE, ONE)], SELF, into=w),
    ):
        with refuses(InvalidValueError, message):
            act()


def test_programs_add_in_place_to_whole_registers_only():
    program = empty()
    w = program.store(program.x, "w")
    cases = {"w": w[:1], "w+1": (w + 1.0)[:1], "w+token": (w + program.x)[:1]}
    for shown, into in cases.items():
        with refuses(
            InvalidValueError,
            "`into` must be a whole register of 1 rows for `w1` to add to, "
            f"got {shown}. Store it first.",
        ):
            program.multiply(program.y, program.y, into=into, name="w1")
    token = Value.of(program.token)
    with refuses(
        InvalidValueError,
        "`into` must be a register of the program, got the token.",
    ):
        program.multiply(token, token, into=token)


def test_a_program_has_to_predict():
    message = "`program` must say what it predicts, got none. Call `program.predict`."
    with refuses(InvalidValueError, message):
        compile_program(empty())
    with refuses(InvalidValueError, message):
        predictions(empty(), make_tokens(2, 1))


@pytest.mark.parametrize("shape", [(1, 4, 3), (1, 3, 2)])
def test_the_interpreter_refuses_tokens_that_do_not_fit(shape):
    with refuses(
        InvalidValueError,
        f"`tokens` must hold up to 3 tokens of size 3, got shape {shape}.",
    ):
        interpret(empty(), np.zeros(shape))


def test_a_number_is_no_timestep_map():
    program = Program(2, 2)
    with refuses(
        InvalidTypeError,
        "`at` must be a timestep map, got 3. Use `Single(t)` for one of them.",
    ):
        program.read(program.x, 3)  # pyright: ignore[reportArgumentType]
