"""Products are as precise as their formulas say, in both precisions.

The tables are measurements of an independent prototype with dense layers.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope.construction.compiler.activations import (
    SMOOTH,
    shift_without,
    taylor,
)
from algoscope.construction.compiler.products import (
    GRID_POINTS,
    PAPER_SQUARE,
    Product,
    paper_difference,
    paper_product,
    piecewise_square,
    quarter_square,
    richardson,
    shifted,
    uniform_square,
)
from algoscope.model.layer import ACTIVATIONS as LAYER_ACTIVATIONS

pytestmark = pytest.mark.optimized  # Rounding is the matter.

law = settings(max_examples=50)
operands = st.floats(-1, 1)
DTYPES = (np.float64, np.float32)


def at(product: Product, p: float, q: float, dtype: Any = np.float64) -> float:
    return float(product(np.array([p], dtype), np.array([q], dtype))[0])


# Products where no scale is applied: the table of |p|, |q| ≤ 0.1.

UNSCALED = {
    "GeLU, paper": (paper_product(1.0), 3, 1.16e-4),
    "GeLU tanh, paper": (paper_product(1.0, "gelu_tanh"), 3, 1.16e-4),
    "tanh, paper, δ=0.1": (paper_difference(1e-1), 6, 2.6e-3),
    "tanh, paper, δ=0.01": (paper_difference(1e-2), 6, 5.1e-4),
    "tanh, paper, δ=0.001": (paper_difference(1e-3), 6, 4.59e-4),
    "tanh, paper, δ=1e-5": (paper_difference(1e-5), 6, 4.55e-4),
    "ReLU, paper": (PAPER_SQUARE.product(1.0), 12, 5.2e-3),
    "GeLU": (quarter_square("gelu", 1.0), 4, 6.6e-5),
    "GeLU, 2 scales": (richardson("gelu", 2, 1.0), 8, 9.9e-8),
    "GeLU, 3 scales": (richardson("gelu", 3, 1.0), 12, 3.0e-11),
    "GeLU, shifted": (shifted("gelu", 1.0), 4, 2.6e-7),
    "tanh, shifted": (shifted("tanh", 1.0), 4, 1.1e-6),
    "sigmoid, shifted": (shifted("sigmoid", 1.0), 4, 6.7e-8),
    "sigmoid, b=1.3": (quarter_square("sigmoid", 1.0, 1.3), 4, 3.4e-5),
    "softplus": (quarter_square("softplus", 1.0), 4, 1.7e-5),
    "softplus, shifted": (shifted("softplus", 1.0), 4, 3.0e-8),
    "SiLU": (quarter_square("silu", 1.0), 4, 3.3e-5),
    "SiLU, shifted": (shifted("silu", 1.0), 4, 9.6e-8),
}


@pytest.mark.parametrize("name", UNSCALED)
def test_unscaled_products_have_the_tabulated_error(name):
    product, num_units, error = UNSCALED[name]
    assert product.num_units == num_units
    assert product.error(np.float64, 0.1) == pytest.approx(error, rel=0.05, abs=1e-18)
    # The paper's figure shows x = y, where nearly all of these are worst.
    x = np.linspace(-0.1, 0.1, 201)
    diagonal = np.max(np.abs(product(x, x) - x * x))
    assert diagonal <= product.error(np.float64, 0.1) * 1.001


def test_a_small_step_costs_rounding_in_single_precision():
    errors = [paper_difference(d).error(np.float32, 0.1) for d in (1e-3, 1e-5)]
    assert errors[0] == pytest.approx(4.6e-4, rel=0.1)
    assert 1e-3 < errors[1] < 4e-3  # rounding alone, which differs between processors


def test_the_shifted_tanh_beats_the_papers_400_times_with_fewer_units():
    paper, ours = paper_difference(1e-3), shifted("tanh", 1.0)
    ratio = paper.error(np.float64, 0.1) / ours.error(np.float64, 0.1)
    assert ratio == pytest.approx(430, rel=0.05)
    assert ours.num_units < paper.num_units


# Products at the best scale: the table of |p|, |q| ≤ 1.

SCALED = {
    "GeLU, paper": (paper_product, 8.8e-11, 6.0e-5),
    "GeLU, 1": (partial(richardson, "gelu", 1), 3.6e-11, 2.1e-5),
    "GeLU, 2": (partial(richardson, "gelu", 2), 3.1e-13, 3.6e-6),
    "GeLU, 3": (partial(richardson, "gelu", 3), 6.0e-14, 1.7e-6),
    "GeLU, 4": (partial(richardson, "gelu", 4), 2.1e-14, 1.3e-6),
    "GeLU tanh, 3": (partial(richardson, "gelu_tanh", 3), 5.7e-14, 1.3e-6),
    "GeLU shifted": (partial(shifted, "gelu"), 1.2e-10, 3.3e-5),
    "SiLU, 1": (partial(richardson, "silu", 1), 3.0e-11, 2.4e-5),
    "SiLU, 3": (partial(richardson, "silu", 3), 6.4e-14, 2.5e-6),
    "softplus, 1": (partial(richardson, "softplus", 1), 1.2e-8, 3.0e-4),
    "softplus, 3": (partial(richardson, "softplus", 3), 9.8e-12, 2.8e-5),
    "tanh, 1": (partial(richardson, "tanh", 1), 1.9e-8, 5.1e-4),
    "tanh, 3": (partial(richardson, "tanh", 3), 1.3e-11, 3.1e-5),
    "sigmoid, 2": (partial(richardson, "sigmoid", 2), 1.4e-10, 7.4e-5),
}


def best_scale(
    constructor: Callable[[float], Product], dtype: Any, largest: int
) -> float:
    """Return the S = 2ᵏ, 1 ≤ k ≤ `largest`, whose product has the smallest error."""
    scales = [2.0**k for k in range(1, largest + 1)]
    return min(scales, key=lambda scale: constructor(scale).error(dtype))


@pytest.mark.parametrize("name", SCALED)
def test_products_at_the_best_scale_have_the_tabulated_error(name):
    constructor, *errors = SCALED[name]
    for dtype, largest, error in zip(DTYPES, (20, 11), errors, strict=True):
        scale = best_scale(constructor, dtype, largest)
        found = constructor(scale).error(dtype)
        assert error / 3 < found < 3 * error
        assert constructor(2 * scale).error(dtype) >= found


@pytest.mark.parametrize(
    ("num_scales", "scales"), [(1, (4, 64)), (2, (4, 16)), (3, (2, 8)), (4, (2, 4))]
)
def test_truncation_falls_with_the_scale_to_the_power_of_the_units(num_scales, scales):
    low, high = (
        richardson("gelu", num_scales, float(scale)).error(np.float64)
        for scale in scales
    )
    order = math.log2(low / high) / math.log2(scales[1] / scales[0])
    assert order == pytest.approx(2 * num_scales, rel=0.15)


@pytest.mark.parametrize(
    ("name", "order"), [("gelu", 1), ("silu", 1), ("softplus", 2), ("tanh", 2)]
)
def test_rounding_grows_as_the_scale_or_where_a_unit_is_not_zero_as_its_square(
    name, order
):
    scales = (2.0**10, 2.0**16)
    low, high = (richardson(name, 3, scale).error(np.float64) for scale in scales)
    assert math.log2(high / low) / 6 == pytest.approx(order, abs=0.25)


# Errors by their formula.


@law
@given(operands, operands)
def test_the_papers_error_is_of_fourth_order_and_known(p, q):
    scale = 32.0
    excess = -p * q * (2 * p * p + 3 * p * q + 2 * q * q) / (6 * scale**2)
    found = at(paper_product(scale), p, q) - p * q
    assert found == pytest.approx(excess, abs=2 / scale**4)


@law
@given(operands, operands)
def test_the_error_of_differences_has_the_parts_that_it_says(p, q):
    scale, delta = 64.0, 1e-3
    excess = -p * q * (4 * p * p + 6 * p * q + 4 * q * q) / (3 * scale**2)
    excess += -2 * p * q * (p + q) * delta / scale - (delta * scale) ** 2 / 6
    found = at(paper_difference(delta, scale), p, q) - p * q
    assert found == pytest.approx(excess, abs=2e-5)
    assert abs(excess) > 2e-4  # the constant


@law
@given(operands, operands, st.sampled_from(SMOOTH))
def test_the_error_of_a_quarter_square_is_of_fourth_order_and_known(p, q, name):
    scale = 32.0
    a = taylor(name, shift_without(3, name))
    excess = p * q * (p * p + q * q) * (24 * a[4]) / (12 * a[2] * scale**2)
    found = at(quarter_square(name, scale), p, q) - p * q
    assert found == pytest.approx(excess, abs=20 / scale**4)


@law
@given(operands, operands)
def test_products_change_their_sign_with_an_operand(p, q):
    product = richardson("gelu", 2, 8.0)
    assert at(product, -p, q) == pytest.approx(-at(product, p, q), abs=1e-13)
    assert at(product, q, p) == pytest.approx(at(product, p, q), abs=1e-13)


# ReLU.


def test_the_papers_broken_line_has_the_tabulated_error():
    x = np.linspace(-0.1, 0.1, 41)
    up, down = (np.maximum(sign * x, 0) for sign in (1, -1))
    printed = 0.0375 * (up + down)
    for knot in (0.05, 0.025):
        printed += np.maximum(knot * (x - knot), 0) + np.maximum(-knot * (x + knot), 0)
    np.testing.assert_allclose(PAPER_SQUARE(x), printed, rtol=1e-13)
    assert PAPER_SQUARE.num_units == 6
    assert PAPER_SQUARE.error(np.float64) == pytest.approx(1.88e-3, rel=0.01)


@pytest.mark.parametrize("dtype", DTYPES)
def test_better_weights_on_the_papers_knots(dtype):
    square = piecewise_square(PAPER_SQUARE.knots, PAPER_SQUARE.end)
    assert square.error(dtype) == pytest.approx(3.1e-4, rel=0.02)
    assert square.num_units == 6


@pytest.mark.parametrize(
    ("num_units", "tabulated"), [(6, 1.2e-4), (12, 3.5e-5), (24, 8.7e-6), (100, 5.0e-7)]
)
def test_equal_pieces_are_at_least_as_good_as_tabulated(num_units, tabulated):
    square = uniform_square(num_units // 2, 0.1)
    length = 0.2 / (num_units + 1)
    assert square.num_units == num_units
    assert square.error(np.float64) == pytest.approx(length**2 / 8, rel=1e-3)
    assert tabulated / 3 < square.error(np.float64) < tabulated
    assert square(np.zeros(1))[0] == pytest.approx(length**2 / 8)


@law
@given(st.lists(st.floats(0, 0.99), min_size=1, max_size=5, unique=True))
def test_no_weights_are_better_than_chords(knots):
    knots = tuple(sorted(knots))
    square = piecewise_square(knots, 1.0)
    longest = np.max(np.diff([-knots[0], *knots, 1.0]))
    # Over one piece of this length any line is off by at least its square over eight.
    assert square.error(np.float64) == pytest.approx(longest**2 / 8, rel=1e-2, abs=1e-7)


def test_a_square_gives_products_on_the_whole_box():
    square = uniform_square(50, 0.1)
    product = square.product()
    assert product.num_units == 2 * square.num_units
    # Squares of up to 2, each off by as much as it is at 0.1, at the scale of 20.
    assert product.error(np.float64) <= 20**2 / 4 * 2 * square.error(np.float64)


# A product is a layer.


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "product",
    [paper_product(256.0), richardson("gelu", 3, 4.0), shifted("tanh", 4.0)],
    ids=lambda product: product.name,
)
def test_a_product_is_what_a_feed_forward_layer_computes(product, dtype, rng):
    p, q = rng.uniform(-1, 1, (2, 5, 4)).astype(dtype)
    found = product(p, q)
    assert (found.dtype, found.shape) == (dtype, (5, 4))
    w_2 = np.stack([product.p, product.q], axis=1).astype(dtype)
    b_2, w_1 = np.array(product.shift, dtype), np.array(product.weight, dtype)
    for index in np.ndindex(p.shape):
        inner = w_2 @ np.array([p[index], q[index]]) + b_2
        units = LAYER_ACTIVATIONS[product.activation](jnp.asarray(inner))
        layer = float(w_1 @ np.asarray(units)) + product.constant
        rounding = 8 * np.finfo(dtype).eps * np.sum(np.abs(w_1 * np.asarray(units)))
        assert abs(layer - float(found[index])) <= rounding


def test_the_error_of_single_precision_is_measured_against_exact_products():
    product = richardson("gelu", 3, 4.0)
    line = np.linspace(-0.3, 0.3, GRID_POINTS).astype(np.float32)
    p, q = np.meshgrid(line, line)
    exact = p.astype(np.float64) * q.astype(np.float64)  # 48 bits fit in a double
    expected = np.max(np.abs(exact - product(p, q)))
    assert product.error(np.float32, 0.3) == pytest.approx(expected, rel=1e-12)


# Refusals.


def test_a_product_whose_rows_differ_in_length_is_refused():
    message = "`weight` must have one number for each of the 2 of `p`, got 1."
    with refuses(ValueError, message):
        Product("odd", "gelu", (1.0, 1.0), (1.0, 1.0), (0.0, 0.0), (1.0,))


def test_an_unknown_activation_is_refused():
    known = ", ".join(LAYER_ACTIVATIONS)
    message = f"`activation` must be one of {known}, got 'glu'. Did you mean 'gelu'?"
    with refuses(ValueError, message):
        Product("odd", "glu", (), (), (), ())  # pyright: ignore[reportArgumentType]


def test_the_papers_product_of_an_odd_function_is_refused():
    message = (
        "`activation` must have a second-order term at 0, got 'tanh'. "
        "Use `paper_difference`, or a shift: `quarter_square`."
    )
    with refuses(ValueError, message):
        paper_product(1.0, "tanh")
    message = (
        "`activation` must have a third-order term at 0, got 'gelu'. "
        "Use `paper_product`."
    )
    with refuses(ValueError, message):
        paper_difference(1e-3, 1.0, "gelu")


def test_a_shift_without_curvature_is_refused():
    message = (
        "`shift` must be where tanh is curved, got 0.0. "
        "Leave it out for the best place."
    )
    with refuses(ValueError, message):
        quarter_square("tanh", 1.0, 0.0)


@pytest.mark.parametrize("scale", [0.0, -1.0, math.nan])
def test_scales_and_bounds_that_are_not_positive_are_refused(scale):
    message = f"must be positive, got {scale}."
    for make in (
        paper_product,
        partial(paper_difference, 1e-3),
        partial(richardson, "gelu", 2),
        PAPER_SQUARE.product,
    ):
        with refuses(ValueError, f"`scale` {message}"):
            make(scale)
    with refuses(ValueError, f"`delta` {message}"):
        paper_difference(scale)
    with refuses(ValueError, f"`bound` {message}"):
        paper_product(1.0).error(np.float64, scale)
    with refuses(ValueError, f"`end` {message}"):
        uniform_square(2, scale)


def test_numbers_of_scales_and_knots_below_one_are_refused():
    with refuses(ValueError, "`num_scales` must be at least 1, got 0."):
        richardson("gelu", 0, 8.0)
    with refuses(ValueError, "`num_knots` must be at least 1, got 0."):
        uniform_square(0)
    with refuses(ValueError, "`number of knots` must be at least 1, got 0."):
        piecewise_square((), 1.0)


@pytest.mark.parametrize("knots", [(-0.1, 0.5), (0.5, 0.5), (0.5, 0.2), (0.5, 1.0)])
def test_knots_out_of_order_are_refused(knots):
    message = "`knots` must increase from 0 or more to less than `end` 1.0, got"
    with refuses(ValueError, f"{message} {knots}."):
        piecewise_square(knots, 1.0)
