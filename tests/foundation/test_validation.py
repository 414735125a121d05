"""Refusals have one form, and the checks let through exactly what they say."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from support.refusals import refuses

from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    refusal,
    require_at_least,
    require_choice,
    require_not_negative,
    require_positive,
)

NUMBER_CHECKS = [require_positive, require_not_negative]
CHOICES = ["ridge", "ols", "gd"]


def by_name(value):
    return getattr(value, "__name__", repr(value))


def test_a_refusal_names_the_value_and_the_rule():
    assert refusal("dim", "be at least 1", 0) == "`dim` must be at least 1, got 0."


def test_a_remedy_follows_the_refusal():
    message = refusal("dim", "be at least 1", 0, "Use 1.")
    assert message == "`dim` must be at least 1, got 0. Use 1."


@pytest.mark.parametrize(
    ("error", "base"), [(InvalidValueError, ValueError), (InvalidTypeError, TypeError)]
)
def test_an_error_is_of_the_built_in_kind_and_states_the_refusal(error, base):
    raised = error("dim", "be at least 1", 0, "Use 1.")
    assert isinstance(raised, base)
    assert str(raised) == "`dim` must be at least 1, got 0. Use 1."
    assert str(error("dim", "be odd", 2)) == "`dim` must be odd, got 2."


@pytest.mark.parametrize("value", [3, 4, 10**20, np.int32(3), np.uint8(200)])
def test_integers_from_the_least_upwards_are_accepted(value):
    require_at_least("size", value, 3)


@pytest.mark.parametrize("value", [2, 0, -5, np.int64(2)])
def test_integers_below_the_least_are_refused(value):
    with refuses(ValueError, f"`size` must be at least 3, got {value}."):
        require_at_least("size", value, 3)


def test_a_refused_integer_carries_the_remedy():
    with refuses(ValueError, "`size` must be at least 1, got 0. Use 1."):
        require_at_least("size", 0, 1, "Use 1.")


@pytest.mark.parametrize(
    "value", [3.0, np.float64(3.0), math.nan, "3", None, True, np.True_, [3]], ids=repr
)
def test_what_is_no_integer_is_refused_as_a_kind(value):
    with refuses(TypeError, f"`size` must be an integer, got {value!r}."):
        require_at_least("size", value, 1)


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
@pytest.mark.parametrize(
    "value", [1, 1e-300, 0.5, np.float32(0.5), np.int8(2), Fraction(1, 3)], ids=repr
)
def test_positive_numbers_are_accepted(check, value):
    check("scale", value)


@pytest.mark.parametrize("value", [0, 0.0, -0.0, np.float32(0)], ids=repr)
def test_zero_is_accepted_only_where_the_rule_is_not_to_be_negative(value):
    require_not_negative("scale", value)
    with refuses(ValueError, f"`scale` must be positive, got {value}."):
        require_positive("scale", value)


@pytest.mark.parametrize("value", [-1, -1e-300, -math.inf, math.nan])
def test_negative_numbers_and_nan_are_refused(value):
    with refuses(ValueError, f"`scale` must be positive, got {value}."):
        require_positive("scale", value)
    with refuses(ValueError, f"`scale` must not be negative, got {value}."):
        require_not_negative("scale", value)


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
def test_infinity_is_refused(check):
    with refuses(ValueError, "`scale` must be finite, got inf."):
        check("scale", math.inf)


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
@pytest.mark.parametrize("value", ["1.0", None, True, np.True_, 1j, [1.0]], ids=repr)
def test_what_is_no_number_is_refused_as_a_kind(check, value):
    with refuses(TypeError, f"`scale` must be a number, got {value!r}."):
        check("scale", value)


def test_a_refused_number_carries_the_remedy():
    with refuses(ValueError, "`scale` must be positive, got 0. Use 1."):
        require_positive("scale", 0, "Use 1.")
    with refuses(ValueError, "`scale` must not be negative, got -1. Use 1."):
        require_not_negative("scale", -1, "Use 1.")


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
def test_traced_values_are_no_numbers(check):
    with pytest.raises(TypeError, match="`scale` must be a"):
        jax.make_jaxpr(lambda value: check("scale", value))(-1.0)


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_is_accepted(choice):
    require_choice("predictor", choice, CHOICES)


def test_choices_may_come_from_an_iterator():
    require_choice("predictor", "gd", iter(CHOICES))
    message = "`predictor` must be one of ridge, ols, gd, got 'knn'."
    with refuses(ValueError, message):
        require_choice("predictor", "knn", iter(CHOICES))


def test_a_near_miss_is_refused_with_the_nearest_choice():
    message = (
        "`predictor` must be one of ridge, ols, gd, got 'rige'. Did you mean 'ridge'?"
    )
    with refuses(ValueError, message):
        require_choice("predictor", "rige", CHOICES)


@pytest.mark.parametrize("value", ["", "transformer", None, 3], ids=repr)
def test_what_is_near_nothing_is_refused_without_a_suggestion(value):
    message = f"`predictor` must be one of ridge, ols, gd, got {value!r}."
    with refuses(ValueError, message):
        require_choice("predictor", value, CHOICES)


def test_a_choice_is_not_matched_by_its_beginning():
    with refuses(ValueError, "`predictor` must be one of ridge, ols, gd, got 'r'."):
        require_choice("predictor", "r", CHOICES)
