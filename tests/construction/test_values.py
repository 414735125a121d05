"""Linear forms obey the algebra of the matrices and vectors that they stand for."""

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope.construction.language.interpreter import evaluate
from algoscope.construction.language.values import Register, Value, constant, join
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError

REGISTERS = (Register("a", 2), Register("b", 3), Register("c", 1))
sizes = st.integers(1, 4)
seeds = st.integers(0, 2**32 - 1)
numbers = st.one_of(st.integers(-5, 5), st.floats(-5, 5))


def random_state(seed: int) -> dict[Register, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {each: rng.normal(size=(2, 3, each.size)) for each in REGISTERS}


def random_value(seed: int, size: int) -> Value:
    rng = np.random.default_rng(seed)
    total = constant(rng.normal(size=size) * rng.integers(2))
    for each in REGISTERS:
        if rng.random() < 0.5:
            total = total + rng.normal(size=(size, each.size)) @ Value.of(each)
    return total


STATE = random_state(0)


def at(value: Value) -> np.ndarray:
    """Return what a value is in every column."""
    columns = evaluate(value, STATE)
    assert columns.shape == (2, 3, value.size) == (2, 3, len(value))
    return columns


def same(found: np.ndarray, expected: np.ndarray) -> None:
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_a_register_is_its_rows_and_a_constant_is_the_same_in_every_column():
    for each in REGISTERS:
        np.testing.assert_array_equal(at(Value.of(each)), STATE[each])
    assert np.all(at(constant(2.5)) == 2.5)
    assert np.all(at(constant([1.0, -2.0])) == [1.0, -2.0])


def test_evaluation_is_the_sum_over_registers():
    a, b, _ = REGISTERS
    m, n = np.arange(4.0).reshape(2, 2), np.ones((2, 3))
    value = Value({a: m, b: n}, np.array([5.0, 6.0]))
    same(at(value), STATE[a] @ m.T + STATE[b] @ n.T + [5.0, 6.0])


@given(seeds, seeds, sizes, numbers)
def test_sums_and_multiples(seed, other, size, number):
    v, u = random_value(seed, size), random_value(other, size)
    same(at(v + u), at(v) + at(u))
    same(at(v - u), at(v) - at(u))
    same(at(-v), -at(v))
    same(at(number * v), number * at(v))
    same(at(v * np.float64(number)), at(v) * number)
    same(at(v + number), at(v) + number)
    same(at(number + v), at(v) + number)
    same(at(v - number), at(v) - number)
    same(at(number - v), number - at(v))
    if abs(number) > 1e-3:
        same(at(v / number), at(v) / number)


@given(seeds, sizes, sizes)
def test_matrices(seed, size, rows):
    v = random_value(seed, size)
    matrix = np.random.default_rng(seed).normal(size=(rows, size))
    same(at(matrix @ v), at(v) @ matrix.T)


@given(seeds, sizes, st.data())
def test_indices(seed, size, data):
    v = random_value(seed, size)
    index = data.draw(st.integers(-size, size - 1))
    same(at(v[index]), at(v)[..., [index]])
    part = data.draw(st.slices(size))
    same(at(v[part]), at(v)[..., part])
    mask = np.array(data.draw(st.lists(st.booleans(), min_size=size, max_size=size)))
    same(at(v[mask]), at(v)[..., mask])


@given(seeds, sizes, st.integers(1, 3))
def test_repetitions(seed, size, times):
    v = random_value(seed, size)
    same(at(v.repeat(times)), np.tile(at(v), times))
    same(at(v.stretch(times)), np.repeat(at(v), times, axis=-1))


@given(st.lists(st.tuples(seeds, sizes), min_size=1, max_size=4))
def test_joining(drawn):
    values = [random_value(seed, size) for seed, size in drawn]
    same(at(join(values)), np.concatenate([at(v) for v in values], axis=-1))
    same(at(join(iter(values))), at(join(values)))


@given(seeds, sizes)
def test_components_that_depend_on_no_register_are_constant(seed, size):
    v = random_value(seed, size)
    mixed = join([v, constant([3.0, 0.0])])
    fixed = mixed.is_constant
    assert fixed[-2:].all()
    assert not fixed[:-2].any() or not v.terms
    spread = np.ptp(at(mixed).reshape(6, -1), axis=0)
    assert np.array_equal(spread == 0, fixed)


def test_terms_that_vanish_are_dropped():
    a, b, _ = (Value.of(each) for each in REGISTERS)
    assert not (a - a).terms
    assert not (0 * a).terms
    assert list((a + b[:2] - b[:2]).terms) == [REGISTERS[0]]


def test_registers_of_one_name_are_two():
    one, other = Register("w", 1), Register("w", 1)
    assert one != other
    assert len((Value.of(one) + Value.of(other)).terms) == 2
    assert repr(one) == "w"


def test_values_are_shown_by_their_registers():
    a, b, _ = (Value.of(each) for each in REGISTERS)
    assert repr(a + b[:2] + 1.0) == "a+b+1"
    assert repr(b - 2) == "b+1"
    assert repr(0 * a) == "0"


def test_operations_are_refused():
    a, b, _ = (Value.of(each) for each in REGISTERS)
    with refuses(
        InvalidValueError,
        "`matrix` must have 2 columns, as many as a has components, got shape (2, 3).",
    ):
        _ = np.ones((2, 3)) @ a
    with refuses(
        InvalidValueError, "`value` must have 2 components, as a has, got b with 3."
    ):
        _ = a + b
    with refuses(
        InvalidTypeError,
        "`factor` must be a value, a number, or 2 of them, got shape (9,). "
        "Constant factors are free, products of values take a layer.",
    ):
        _ = a * np.ones(9)
    with refuses(
        InvalidTypeError,
        "`right side of @` must be a value or an array of 2 rows, got str. "
        "Constant matrices are free, products of values take a layer.",
    ):
        _ = a @ "b"  # pyright: ignore[reportOperatorIssue]


def test_what_takes_a_layer_needs_a_program_to_write_it():
    x = Value.of(Register("x", 2))
    for what, act in (
        ("a product", lambda: x * x),
        ("a product", lambda: x @ x),
        ("a product", lambda: x**2),
        ("a quotient", lambda: x / x),
        ("a quotient", lambda: 1.0 / x),
    ):
        with refuses(
            InvalidValueError,
            f"`value` must belong to a program, which writes {what}, got x and x.",
        ):
            act()
    with refuses(
        InvalidValueError,
        "`exponent` must be 2, got 3. "
        "A square takes a layer, and so does each further product.",
    ):
        _ = x**3
    with refuses(
        InvalidTypeError,
        "`argument of abs` must be a number, got Value. "
        "It takes a layer: use `algoscope.construction.absolute`.",
    ):
        abs(x)
    for compare in (lambda: x > 0, lambda: x < x, lambda: x >= 0):
        with refuses(
            InvalidTypeError,
            "`sides of a comparison` must be numbers, got Value. "
            "It takes a layer: use `algoscope.construction.above`.",
        ):
            compare()
    numbers: Any = [1.0, 2.0]
    for add in (lambda: x + numbers, lambda: numbers + x):
        with refuses(
            InvalidTypeError,
            "`term of a sum` must be a value, a number, or an array of 2 of them, "
            "got list. Sums take no layer.",
        ):
            add()
    with refuses(InvalidValueError, "`divisor` must not be zero, got 0."):
        _ = x / 0


def test_an_array_scales_every_component_for_free():
    r = Register("x", 2)
    for scaled in (
        np.array([2.0, 3.0]) * Value.of(r),
        Value.of(r) / np.array([0.5, 1 / 3]),
    ):
        np.testing.assert_allclose(scaled.terms[r], np.diag([2.0, 3.0]))
