"""Errors about values have one form, and checks accept exactly what they say."""

import math
from fractions import Fraction

import jax
import numpy as np
import pytest
from support.refusals import refuses

from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
    require_choice,
    require_examples,
    require_not_negative,
    require_positive,
    require_query,
)

NUMBER_CHECKS = [require_positive, require_not_negative]
CHOICES = ["ridge", "ols", "gd"]


def by_name(value):
    return getattr(value, "__name__", repr(value))


@pytest.mark.parametrize(
    ("error", "base"), [(InvalidValueError, ValueError), (InvalidTypeError, TypeError)]
)
def test_an_error_is_of_the_built_in_type_and_names_value_and_rule(error, base):
    raised = error("dim", "be odd", 2)
    assert isinstance(raised, base)
    assert str(raised) == "`dim` must be odd, got 2."


@pytest.mark.parametrize("error", [InvalidValueError, InvalidTypeError])
def test_a_remedy_follows_the_rule(error):
    message = str(error("dim", "be at least 1", 0, "Use 1."))
    assert message == "`dim` must be at least 1, got 0. Use 1."


@pytest.mark.parametrize("value", [3, 4, 2**31 - 1, np.int32(3), np.uint8(200)])
def test_integers_from_the_least_upwards_are_accepted(value):
    require_at_least("size", value, 3)


@pytest.mark.parametrize("value", [2**31, 10**20])
def test_integers_too_large_to_compute_with_are_rejected(value):
    with refuses(ValueError, f"`size` must be at most 2147483647, got {value}."):
        require_at_least("size", value, 3)
    with refuses(ValueError, "`size` must be at most 9, got 10."):
        require_at_least("size", 10, 3, most=9)


@pytest.mark.parametrize("value", [2, 0, -5, np.int64(2)])
def test_integers_below_the_least_are_rejected(value):
    with refuses(ValueError, f"`size` must be at least 3, got {value}."):
        require_at_least("size", value, 3)


def test_a_rejected_integer_carries_the_remedy():
    with refuses(ValueError, "`size` must be at least 1, got 0. Use 1."):
        require_at_least("size", 0, 1, "Use 1.")


@pytest.mark.parametrize(
    "value", [3.0, np.float64(3.0), math.nan, "3", None, True, np.True_, [3]], ids=repr
)
def test_anything_but_an_integer_has_the_wrong_type(value):
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
def test_negative_numbers_and_nan_are_rejected(value):
    with refuses(ValueError, f"`scale` must be positive, got {value}."):
        require_positive("scale", value)
    with refuses(ValueError, f"`scale` must not be negative, got {value}."):
        require_not_negative("scale", value)


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
def test_infinity_is_rejected(check):
    with refuses(ValueError, "`scale` must be finite, got inf."):
        check("scale", math.inf)


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
@pytest.mark.parametrize("value", ["1.0", None, True, np.True_, 1j, [1.0]], ids=repr)
def test_anything_but_a_number_has_the_wrong_type(check, value):
    with refuses(TypeError, f"`scale` must be a number, got {value!r}."):
        check("scale", value)


def test_a_rejected_number_carries_the_remedy():
    with refuses(ValueError, "`scale` must be positive, got 0. Use 1."):
        require_positive("scale", 0, "Use 1.")
    with refuses(ValueError, "`scale` must not be negative, got -1. Use 1."):
        require_not_negative("scale", -1, "Use 1.")


@pytest.mark.parametrize("check", NUMBER_CHECKS, ids=by_name)
def test_traced_values_are_not_numbers(check):
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


def test_a_near_miss_is_rejected_with_the_nearest_choice():
    message = (
        "`predictor` must be one of ridge, ols, gd, got 'rige'. Did you mean 'ridge'?"
    )
    with refuses(ValueError, message):
        require_choice("predictor", "rige", CHOICES)


@pytest.mark.parametrize("value", ["", "transformer", None, 3], ids=repr)
def test_what_is_near_nothing_is_rejected_without_a_suggestion(value):
    message = f"`predictor` must be one of ridge, ols, gd, got {value!r}."
    with refuses(ValueError, message):
        require_choice("predictor", value, CHOICES)


def test_a_choice_is_not_matched_by_its_beginning():
    with refuses(ValueError, "`predictor` must be one of ridge, ols, gd, got 'r'."):
        require_choice("predictor", "r", CHOICES)


def test_examples_have_one_label_each():
    require_examples(np.zeros((4, 2)), np.zeros(4))
    require_examples(np.zeros((0, 2)), np.zeros(0), dim=2)
    with refuses(
        ValueError, "`y` must have shape (4,), one label per example, got shape (3,)."
    ):
        require_examples(np.zeros((4, 2)), np.zeros(3))


@pytest.mark.parametrize(
    ("shape", "dim", "wanted"), [((4, 2), 3, "3"), ((5, 4, 2), None, "dim")]
)
def test_examples_of_another_shape_are_rejected_with_a_remedy(shape, dim, wanted):
    message = (
        f"`x` must have shape (examples, {wanted}), got shape {shape}. "
        "For a batch, use `jax.vmap`."
    )
    with refuses(ValueError, message):
        require_examples(np.zeros(shape), np.zeros(shape[:1]), dim)


@pytest.mark.parametrize("shape", [(), (2,), (1, 3)], ids=str)
def test_a_query_is_one_input(shape):
    require_query(np.zeros(3), 3)
    message = f"`query` must be one input of 3 coordinates, got shape {shape}."
    with refuses(ValueError, message):
        require_query(np.zeros(shape), 3)
