"""Numbers, durations and lists as text."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from algoscope.foundation.text import duration, listed, number, short, with_interval


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (1.0, "1"),
        (-0.123456, "-0.123"),
        (1234.5, "1230"),
        (999.6, "1000"),
        (0.000012345, "1.23e-05"),
        (math.inf, "inf"),
        (math.nan, "–"),
    ],
)
def test_numbers_have_three_significant_digits(value, text):
    assert number(value) == text


@given(st.floats(-1e300, 1e300))
def test_a_number_is_rounded_by_at_most_half_of_its_third_digit(value):
    assert float(number(value)) == pytest.approx(value, rel=5.01e-3, abs=1e-320)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.0, "0"), (0.00219768, "0.0022"), (123.0, "1.2e+02"), (None, "–")],
)
def test_short_numbers_have_two_significant_digits(value, text):
    assert short(value) == text


def test_an_interval_follows_its_mean():
    assert with_interval(0.12345, 0.1, math.inf) == "0.123 [0.1, inf]"
    assert with_interval(math.nan, math.nan, math.nan) == "– [–, –]"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (0.0, "0 s"),
        (0.4, "0 s"),
        (89.9, "90 s"),
        (90.0, "1.5 min"),
        (596.0, "9.9 min"),
        (597.0, "10 min"),
        (5399.0, "90 min"),
        (5400.0, "1.5 h"),
        (129_599.0, "36 h"),
        (129_600.0, "1.5 days"),
        (8.64e6, "100 days"),
    ],
)
def test_a_duration_has_the_unit_that_fits_it(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize(
    ("items", "text"),
    [
        ([], "none"),
        (["OLS"], "OLS"),
        ([1, 2], "1 and 2"),
        ((1, "b", 2.5), "1, b and 2.5"),
    ],
    ids=str,
)
def test_items_are_listed_with_commas_and_an_and(items, text):
    assert listed(items) == text


def test_an_empty_list_can_be_named():
    assert listed([], "no layer") == "no layer"
    assert listed([3], "no layer") == "3"
