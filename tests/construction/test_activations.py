"""The non-linearities in NumPy equal those of the transformer, and have its series."""

import math
from functools import partial

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.reference_transformer import SIGMA
from support.refusals import refuses

from algoscope.construction.compiler.activations import (
    ACTIVATIONS,
    SMOOTH,
    shift_without,
    taylor,
)
from algoscope.construction.compiler.products import paper_product, shifted
from algoscope.model.layer import ACTIVATIONS as LAYER_ACTIVATIONS

pytestmark = pytest.mark.optimized  # Rounding is the matter.


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_are_those_of_the_transformer_in_both_precisions(name, rng):
    assert set(ACTIVATIONS) == set(LAYER_ACTIVATIONS)
    x = 3 * rng.standard_normal(200)
    expected = [SIGMA[name](each) for each in x]
    np.testing.assert_allclose(ACTIVATIONS[name](x), expected, rtol=1e-12, atol=1e-15)
    single = ACTIVATIONS[name](x.astype(np.float32))
    assert single.dtype == np.float32
    layer = LAYER_ACTIVATIONS[name](jnp.asarray(x, jnp.float32))
    np.testing.assert_allclose(single, layer, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activations_neither_overflow_nor_warn_far_from_zero(name):
    x = np.array([-1000.0, 1000.0], np.float32)
    low, high = ACTIVATIONS[name](x)
    limits = {"tanh": (-1, 1), "sigmoid": (0, 1), "squared_relu": (0, 1e6)}
    assert (low, high) == limits.get(name, (0, 1000))


ROOT = 1 / math.sqrt(2 * math.pi)


@pytest.mark.parametrize(
    ("name", "coefficients"),
    [
        ("gelu", [0, 1 / 2, ROOT, 0, -ROOT / 6, 0, ROOT / 40]),
        ("gelu_tanh", [0, 1 / 2, ROOT, 0, ROOT * (0.044715 - 2 / math.pi / 3)]),
        ("tanh", [0, 1, 0, -1 / 3, 0, 2 / 15, 0, -17 / 315]),
        ("sigmoid", [1 / 2, 1 / 4, 0, -1 / 48, 0, 1 / 480]),
        ("silu", [0, 1 / 2, 1 / 4, 0, -1 / 48, 0, 1 / 480]),
        ("softplus", [math.log(2), 1 / 2, 1 / 8, 0, -1 / 192, 0, 1 / 2880]),
    ],
)
def test_taylor_coefficients_are_those_of_the_textbook(name, coefficients):
    found = taylor(name)[: len(coefficients)]
    np.testing.assert_allclose(found, coefficients, rtol=1e-14, atol=1e-16)


@settings(max_examples=50)
@given(st.sampled_from(SMOOTH), st.floats(-2, 2), st.floats(-0.9, 0.9))
def test_the_taylor_series_is_the_function(name, center, x):
    value = np.polynomial.polynomial.polyval(x, taylor(name, center))
    assert value == pytest.approx(SIGMA[name](center + x), abs=1e-14)


@pytest.mark.parametrize(
    ("name", "most_curved", "no_fourth"),
    [
        ("gelu", 0, 0.7923),
        ("gelu_tanh", 0, 0.7876),
        ("tanh", 0.6585, 1.1462),
        ("sigmoid", 1.3170, 2.2924),
        ("softplus", 0, 1.3170),
        ("silu", 0, 1.0320),
    ],
)
def test_shifts_are_where_a_derivative_vanishes(name, most_curved, no_fourth):
    for order, expected in ((3, most_curved), (4, no_fourth)):
        shift = shift_without(order, name)
        assert shift == pytest.approx(expected, abs=5e-5)
        assert abs(taylor(name, shift)[order]) < 1e-14
        assert abs(taylor(name, shift)[2]) > 0.01


@pytest.mark.parametrize("name", ["relu", "squared_relu"])
def test_a_series_of_what_is_not_smooth_is_refused(name):
    message = (
        "`activation` must be smooth (gelu, gelu_tanh, tanh, silu, softplus, sigmoid), "
        f"got '{name}'. For ReLU, use `piecewise_square`."
    )
    for make in (taylor, partial(paper_product, 1.0), partial(shifted, scale=1.0)):
        with refuses(ValueError, message):
            make(name)
