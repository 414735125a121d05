"""Bypasses and divisions are as exact as they say, and their budgets hold.

The tables are measurements of an independent prototype with dense layers.
"""

from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.approximations import (
    LINEAR_IN_PAIRS,
    default_pad,
    division,
    division_budget,
    layer_norm,
    norm_bypass,
    norm_bypass_budget,
    norm_division,
    norm_division_budget,
    pair_bypass,
    pair_bypass_budget,
    paper_division,
    paper_division_budget,
    paper_norm_bypass,
    paper_norm_bypass_budget,
    shift_bypass,
    shift_bypass_budget,
    symmetric_norm_bypass,
    symmetric_norm_bypass_budget,
)

from algoscope.model.layer import layer_norm as transformer_layer_norm

pytestmark = pytest.mark.optimized  # Rounding is the matter.

law = settings(max_examples=60)
dtypes = st.sampled_from([np.float64, np.float32])
seeds = st.integers(0, 2**32 - 1)
sizes = st.integers(2, 48)
magnitudes = st.floats(1e-2, 1e3)


def difference(found: np.ndarray, exact: np.ndarray) -> float:
    """Return the largest error, and see that nothing was computed in another type."""
    return float(np.max(np.abs(exact - found.astype(np.longdouble))))


def wide(x: np.ndarray) -> np.ndarray:
    return x.astype(np.longdouble)


def uneven(seed: int, size: int, largest: float, dtype) -> np.ndarray:
    """Draw 64 columns of one sign, up to `largest`: sums as large as they get."""
    draws = np.random.default_rng(seed).uniform(0.5, 1, (64, size))
    return (largest * draws).astype(dtype)


def mixed(seed: int, size: int, largest: float, dtype) -> np.ndarray:
    """Draw 64 columns of both signs, with all their binary digits."""
    draws = np.cbrt(np.random.default_rng(seed).uniform(-1, 1, (64, size)))
    return (largest * draws).astype(dtype)


def registers(dtype) -> np.ndarray:
    """Draw columns like those of the tables: normal, the largest 13."""
    x = np.random.default_rng(0).standard_normal((144, 16))
    return (13 * x / np.abs(x).max()).astype(dtype)


def test_layer_norm_is_that_of_the_transformer(rng):
    h = rng.standard_normal((5, 7))
    np.testing.assert_allclose(
        layer_norm(h), transformer_layer_norm(jnp.asarray(h), 0.0), rtol=1e-12
    )
    assert layer_norm(h.astype(np.float32)).dtype == np.float32


# Bypasses of σ.


@law
@given(seeds, magnitudes, dtypes, st.sampled_from(LINEAR_IN_PAIRS))
def test_a_pair_of_units_is_linear_to_rounding(seed, largest, dtype, name):
    x = mixed(seed, 16, largest, dtype)
    found = pair_bypass(x, name)
    assert found.dtype == dtype
    budget = pair_bypass_budget(largest, dtype, name)
    assert difference(found, wide(x)) <= budget
    assert budget <= 2 * np.finfo(dtype).eps * (largest + 1)


def test_a_pair_of_units_has_no_range():
    x = np.array([-1e30, -1e-30, 0, 1e-30, 1e30], np.float32)
    for name in ("gelu", "gelu_tanh", "relu", "silu"):
        with np.errstate(over="ignore"):  # the cube of the tanh form; tanh(∞) is 1
            np.testing.assert_allclose(pair_bypass(x, name), x, rtol=1e-6)


@law
@given(
    seeds, st.floats(1, 20), st.floats(0.5, 3), dtypes, st.sampled_from(LINEAR_IN_PAIRS)
)
def test_the_budget_of_a_shift_holds_and_is_not_lavish(
    seed, largest, ratio, dtype, name
):
    x = mixed(seed, 200, largest, dtype)
    x[0, 0] = -largest  # where the tail is
    shift = ratio * largest
    error = difference(shift_bypass(x, shift, name), wide(x))
    budget = shift_bypass_budget(largest, shift, dtype, name)
    assert error <= budget <= 100 * error


@pytest.mark.parametrize(
    ("shift", "double", "single"),
    [
        (8.0, 5e0, 5e0),
        (16.0, 9e-3, 9e-3),
        (32.0, 2e-14, 1e-5),
        (1e3, 3e-13, 2e-4),
        (1e6, 3e-10, 2e-1),
    ],
)
def test_a_shift_costs_rounding_and_a_tail_as_tabulated(shift, double, single):
    # The prototype sums eight of these numbers: its rounding is a few times as large.
    for dtype, error in ((np.float64, double), (np.float32, single)):
        x = registers(dtype)
        found = difference(shift_bypass(x, shift), wide(x))
        assert error / 10 < found < 1.5 * error


def test_a_shift_smaller_than_the_input_fails_outright():
    assert shift_bypass(np.array([-50.0]), 8.0)[0] == pytest.approx(-8)


# Bypasses of λ.


@pytest.mark.parametrize(
    ("bypass", "order"),
    [(paper_norm_bypass, 1), (symmetric_norm_bypass, 2), (norm_bypass, 2)],
)
def test_the_error_falls_with_the_pad_in_its_order(bypass, order):
    x = registers(np.float64)
    low, high = (difference(bypass(x, pad), wide(x)) for pad in (1e6, 1e4))
    assert np.log10(high / low) / 2 == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize(
    ("bypass", "dtype", "errors"),
    [
        (paper_norm_bypass, np.float64, {1e3: 1e-1, 1e6: 1e-4, 1e9: 1e-7, 1e12: 1e-5}),
        (symmetric_norm_bypass, np.float64, {1e3: 1e-3, 1e5: 1e-7, 1e7: 3e-10}),
        (norm_bypass, np.float64, {1e3: 5e-4, 1e6: 5e-10, 1e9: 4e-15, 1e12: 4e-15}),
        (paper_norm_bypass, np.float32, {1e3: 1e-1, 1e5: 2e-3, 1e6: 6e-3}),
        (symmetric_norm_bypass, np.float32, {1e3: 1e-3, 1e4: 2e-4}),
        (norm_bypass, np.float32, {1e3: 5e-4, 1e4: 6e-6, 1e6: 2e-6, 1e12: 2e-6}),
    ],
)
def test_bypasses_of_layer_norm_err_as_tabulated(bypass, dtype, errors):
    x = registers(dtype)
    for pad, error in errors.items():
        assert error / 4 < difference(bypass(x, pad), wide(x)) < 4 * error


def test_the_papers_error_is_the_sum_over_twice_the_pad(rng):
    x, pad = rng.standard_normal((20, 10)), 1e5
    excess = -x * np.sum(x, axis=-1, keepdims=True) / (2 * pad)
    found = paper_norm_bypass(x, pad) - x
    np.testing.assert_allclose(found, excess, atol=1e-8)
    assert np.max(np.abs(found)) > 1e-5


def test_a_reference_slot_is_seven_orders_better_than_the_papers_pads():
    x = registers(np.float64)
    paper = min(difference(paper_norm_bypass(x, 10.0**k), wide(x)) for k in range(13))
    assert paper / difference(norm_bypass(x), wide(x)) > 1e7


BYPASSES = {
    "paper": (paper_norm_bypass, paper_norm_bypass_budget),
    "symmetric": (symmetric_norm_bypass, symmetric_norm_bypass_budget),
    "reference": (
        norm_bypass,
        lambda largest, size, pad, dtype: norm_bypass_budget(largest, size, dtype, pad),
    ),
}


@pytest.mark.parametrize("name", BYPASSES)
@law
@given(seeds, sizes, magnitudes, st.floats(-1, 8), dtypes)
def test_the_budget_of_a_norm_bypass_holds_and_is_not_lavish(
    name, seed, size, largest, exponent, dtype
):
    bypass, budget_of = BYPASSES[name]
    eps = float(np.finfo(dtype).eps)
    pad = largest * min(10**exponent, 0.1 / eps)  # a larger one absorbs Σx by accident
    budget = budget_of(largest, size, pad, dtype)
    for draw in (uneven, mixed):
        x = draw(seed, size, largest, dtype)
        error = difference(bypass(x, pad), wide(x))
        assert error <= budget
        # Numbers beside a pad may happen to be rounded without error.
        rounding = eps * (largest if name == "reference" else pad)
        assert draw is mixed or budget <= 100 * max(error, rounding)


@law
@given(seeds, sizes, st.floats(1e-2, 1), dtypes)
def test_the_default_pad_leaves_nothing_but_rounding(seed, size, share, dtype):
    # The length up to which the variance is that of the pads, to rounding.
    eps = float(np.finfo(dtype).eps)
    longest = 2 * default_pad(dtype) * eps**0.5
    largest = share * longest / size**0.5
    x = mixed(seed, size, largest, dtype)
    assert difference(norm_bypass(x), wide(x)) <= 9 * eps * largest
    assert norm_bypass_budget(largest, size, dtype) <= 9.01 * eps * largest


# Division.


def quotients(dtype) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw y, c and y/|c| like those of the tables: 28 registers, c ∈ ±[0.5, 4]."""
    rng = np.random.default_rng(0)
    y = rng.standard_normal((144, 28)).astype(dtype)
    c = (rng.uniform(0.5, 4, 144) * rng.choice([-1, 1], 144)).astype(dtype)
    return y, c, wide(y) / np.abs(wide(c))[:, None]


@pytest.mark.parametrize(
    ("divide", "dtype", "errors"),
    [
        (
            partial(paper_division, multiplier=1.0),
            np.float64,
            {1e3: 2e-2, 1e6: 2e-5, 1e9: 2e-8, 1e10: 5e-8},
        ),
        (division, np.float64, {1e3: 8e-5, 1e6: 8e-11, 1e9: 9e-16, 1e10: 9e-16}),
        (partial(paper_division, multiplier=1.0), np.float32, {1e3: 2e-2, 1e5: 3e-4}),
        (division, np.float32, {1e3: 9e-5, 1e5: 7e-7, 1e6: 3e-7, 1e10: 5e-7}),
    ],
)
def test_divisions_err_as_tabulated(divide, dtype, errors):
    y, c, exact = quotients(dtype)
    for pad, error in errors.items():
        assert error / 4 < difference(divide(y, c, pad=pad), exact) < 4 * error


def test_a_multiplier_is_a_larger_pad_and_nothing_else():
    y, c, exact = quotients(np.float64)
    once, split = (
        difference(paper_division(y, c, pad, multiplier), exact)
        for pad, multiplier in ((1e6, 1.0), (1e3, 1e3))
    )
    assert once == pytest.approx(split, rel=1e-3)


@pytest.mark.parametrize("divide", [partial(paper_division, multiplier=1.0), division])
def test_the_divisor_is_the_absolute_value(divide):
    y = np.array([[1.0, -3.0, 0.5]])
    for c in (2.0, -2.0):
        found = divide(y, np.array([c]), pad=1e7)
        np.testing.assert_allclose(found, y / 2, rtol=1e-5)


def test_a_divisor_that_vanishes_leaves_a_finite_quotient():
    y = np.array([[3.0, -1.0, 2.0]])
    found = division(y, np.zeros(1), pad=1e3)
    h = np.concatenate([y, np.zeros((1, 3))], axis=-1)
    rest = np.sqrt(np.sum((h - h.mean()) ** 2) / 2) / 1e3  # ρ
    np.testing.assert_allclose(found, y / rest, rtol=1e-12)
    found = division(y, np.array([1e-3]), pad=1e3)
    np.testing.assert_allclose(found, y / np.hypot(1e-3, rest), rtol=1e-12)


@law
@given(seeds, sizes, magnitudes, st.floats(0.1, 10), st.floats(-1, 7), dtypes)
def test_the_budget_of_a_division_holds_and_is_not_lavish(
    seed, size, largest, smallest, exponent, dtype
):
    eps = float(np.finfo(dtype).eps)
    pad = largest / smallest * min(10**exponent, 0.1 / eps)
    c = np.full(64, -smallest, dtype)
    smallest = float(abs(c[0]))
    budgets = (
        division_budget(largest, smallest, size, dtype, pad),
        paper_division_budget(largest, smallest, size, pad, 1.0, dtype),
        paper_division_budget(largest, smallest, size, pad / 4, 4.0, dtype),
    )
    divisions = (
        division,
        partial(paper_division, multiplier=1.0),
        lambda y, c, pad: paper_division(y, c, pad / 4, 4.0),
    )
    for divide, budget in zip(divisions, budgets, strict=True):
        for draw in (uneven, mixed):
            y = draw(seed, size, largest, dtype)
            error = difference(divide(y, c, pad=pad), wide(y) / smallest)
            assert error <= budget
            assert draw is mixed or budget <= 100 * max(error, eps * largest / smallest)


@law
@given(seeds, sizes, st.floats(0.1, 1e2), st.integers(1, 8), dtypes)
def test_the_budget_of_a_division_by_a_norm_holds_and_is_not_lavish(
    seed, size, largest, num_divisors, dtype
):
    y = uneven(seed, size, largest, dtype)
    v = uneven(seed + 1, num_divisors, 3.0, dtype)
    norms = np.sqrt(np.sum(wide(v) ** 2, axis=-1, keepdims=True))
    found = norm_division(y, v)
    assert found.dtype == dtype
    error = difference(found, wide(y) / norms)
    smallest = float(norms.min())
    budget = norm_division_budget(
        largest, smallest, size, dtype, num_divisors=num_divisors
    )
    assert error <= budget <= 100 * error


def test_one_column_and_any_batch_are_divided_alike(rng):
    y, c = rng.standard_normal((3, 4, 6)), rng.uniform(1, 2, (3, 4))
    whole = division(y, c)
    assert whole.shape == y.shape
    np.testing.assert_array_equal(whole[1, 2], division(y[1, 2], np.asarray(c[1, 2])))
    np.testing.assert_array_equal(norm_bypass(y)[1, 2], norm_bypass(y[1, 2]))
    paper = partial(paper_norm_bypass, pad=1e6)
    np.testing.assert_array_equal(paper(y)[1, 2], paper(y[1, 2]))


# Constants.


def test_pads_square_to_less_than_rounding_and_do_not_overflow():
    assert [default_pad(each) for each in ("float64", np.float32)] == [2**31, 2**20]
    for dtype in (np.float64, np.float32):
        pad, limits = default_pad(dtype), np.finfo(dtype)
        assert 1 / pad**2 < limits.eps
        assert pad**2 < np.sqrt(float(limits.max))
        assert np.log2(pad) % 1 == 0
