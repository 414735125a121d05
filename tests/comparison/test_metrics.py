"""Metrics are the distances, angles and shares that their formulas say.

Every metric is compared with the slow formula in NumPy, a law, or scikit-learn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import r2_score
from support.refusals import refuses

from algoscope.comparison.intervals import summarize
from algoscope.comparison.metrics import (
    cosine_similarity,
    error_similarity,
    label_scores,
    mean_over_region,
    squared_distance,
    squared_prediction_difference,
)

law = settings(max_examples=30)


@st.composite
def two_predictions(draw):
    """Draw the predictions of two predictors on the same datasets."""
    shape = draw(array_shapes(min_dims=2, max_dims=2, min_side=1))
    predictions = arrays(np.float64, shape, elements=st.floats(-1e6, 1e6))
    return draw(predictions), draw(predictions)


# SPD.


def test_the_difference_is_squared_and_divided_by_the_dimension():
    first = np.array([[1.0, 2.0, 3.0], [0.0, -1.0, 5.0]])
    second = np.array([[1.0, 0.0, 6.0], [4.0, 1.0, 5.0]])
    spd = squared_prediction_difference(first, second, dim=2)
    assert spd.tolist() == [[0.0, 2.0, 4.5], [8.0, 2.0, 0.0]]


@law
@given(two_predictions(), st.integers(1, 100))
def test_a_predictor_is_at_distance_zero_from_itself(predictions, dim):
    first, _ = predictions
    assert not np.any(squared_prediction_difference(first, first.copy(), dim))


@law
@given(two_predictions(), st.integers(1, 100))
def test_the_distance_is_symmetric(predictions, dim):
    first, second = predictions
    np.testing.assert_array_equal(
        squared_prediction_difference(first, second, dim),
        squared_prediction_difference(second, first, dim),
    )


@law
@given(two_predictions(), st.integers(1, 100))
def test_the_distance_is_divided_by_the_dimension(predictions, dim):
    first, second = predictions
    whole = squared_prediction_difference(first, second, 1)
    np.testing.assert_array_equal(
        squared_prediction_difference(first, second, dim), whole / dim
    )


def test_predictions_in_single_precision_are_subtracted_in_double_precision():
    # In single precision 1e8 + 1 is 1e8.
    single = np.array([[1e8]], np.float32)
    spd = squared_prediction_difference(single, np.array([[1e8 + 1]]), dim=1)
    assert spd.dtype == "float64"
    assert spd.tolist() == [[1.0]]
    both = squared_prediction_difference(single, np.array([[1.0]], np.float32), dim=1)
    assert both.tolist() == [[(1e8 - 1) * (1e8 - 1)]]


def test_predictions_of_different_shapes_are_refused():
    message = "`second` must have the shape (3, 2) of `first`, got (3, 1)."
    with refuses(ValueError, message):
        squared_prediction_difference(np.ones((3, 2)), np.ones((3, 1)), dim=2)


def test_a_dimension_below_one_is_refused():
    same = np.ones((3, 2))
    with refuses(ValueError, "`dim` must be at least 1, got 0."):
        squared_prediction_difference(same, same, dim=0)
    with refuses(TypeError, "`dim` must be an integer, got 2.0."):
        squared_prediction_difference(same, same, dim=2.0)  # pyright: ignore[reportArgumentType]


# Distances and angles.


def test_a_distance_sums_over_coordinates_and_is_divided_by_the_dimension():
    first, second = np.array([[1.0, 2.0], [0.0, 0.0]]), np.array([[4.0, -2.0]] * 2)
    assert squared_distance(first, second, dim=5).tolist() == [5.0, 4.0]


def test_what_diverged_is_infinitely_far_and_what_is_missing_is_missing():
    one, inf, nan = (np.full((1, 1), value) for value in (1.0, np.inf, np.nan))
    assert squared_distance(inf, one, 1) == squared_distance(inf, inf, 1) == np.inf
    assert np.isnan(squared_distance(nan, inf, 1))


def test_the_cosine_does_not_depend_on_lengths(rng):
    a, b = rng.standard_normal((2, 5, 3))
    expected = [u @ v / np.sqrt((u @ u) * (v @ v)) for u, v in zip(a, b, strict=True)]
    for size in (1.0, 1e-3, 1e150):
        np.testing.assert_allclose(cosine_similarity(size * a, b), expected, rtol=1e-12)
    np.testing.assert_allclose(cosine_similarity(a, -a), -1.0, rtol=1e-12)


def test_nothing_points_nowhere():
    zero, one = np.zeros((1, 2)), np.ones((1, 2))
    for other in (zero, one, np.inf * one, np.nan * one):
        assert np.isnan(cosine_similarity(zero, other))
    assert np.isnan(cosine_similarity(np.inf * one, one))


def test_arrays_of_different_shapes_are_refused():
    wide, narrow = np.ones((3, 2)), np.ones((3, 1))
    rule = "must have the shape (3, 2) of"
    for metric in (cosine_similarity, lambda a, b: squared_distance(a, b, 1)):
        with refuses(ValueError, f"`second` {rule} `first`, got (3, 1)."):
            metric(wide, narrow)
    with refuses(ValueError, f"`y` {rule} `first`, got (3, 1)."):
        error_similarity(wide, wide, narrow)
    with refuses(ValueError, f"`y` {rule} `predictions`, got (3, 1)."):
        label_scores(wide, narrow)


# Errors and labels.


def test_similarity_of_errors_is_the_cosine_of_the_errors_so_far(rng):
    first, second, y = rng.standard_normal((3, 5, 4))
    found = error_similarity(first, second, y)
    assert np.all(np.isnan(found[:, 0]))
    for n in range(1, 4):
        span = slice(1, n + 1)
        expected = cosine_similarity((first - y)[:, span], (second - y)[:, span])
        np.testing.assert_allclose(found[:, n], expected, rtol=1e-12)


def test_errors_that_were_not_measured_are_left_out(rng):
    first, second, y = rng.standard_normal((3, 5, 4))
    pierced = first.copy()
    pierced[:, 2] = np.nan
    kept = [0, 1, 3]
    expected = error_similarity(first[:, kept], second[:, kept], y[:, kept])
    found = error_similarity(pierced, second, y)
    np.testing.assert_allclose(found[:, kept], expected, rtol=1e-12)


def test_the_mean_of_label_scores_is_the_coefficient_of_determination(rng):
    predictions, y = rng.standard_normal((2, 50, 3))
    predictions[:20, 1] = np.nan
    found = summarize(label_scores(predictions, y)).mean
    for n in range(3):
        asked = ~np.isnan(predictions[:, n])
        expected = r2_score(y[asked, n], predictions[asked, n])
        assert found[n] == pytest.approx(expected, rel=1e-12)


# Regions.


def test_the_mean_over_a_region_includes_both_ends():
    spd = np.array([[1.0, 2.0, 4.0, 8.0], [0.0, np.nan, 2.0, 4.0]])
    assert mean_over_region(spd, 2, 3).tolist() == [6.0, 3.0]
    assert mean_over_region(spd, 0, 0).tolist() == [1.0, 0.0]
    assert np.isnan(mean_over_region(spd, 1, 2)[1])


@pytest.mark.parametrize("region", [(-1, 2), (2, 1), (0, 4)])
def test_a_region_that_is_not_there_is_refused(region):
    message = "`region` must be a first and a last n with 0 ≤ first ≤ last ≤ 3, got "
    with refuses(ValueError, f"{message}{region}."):
        mean_over_region(np.ones((2, 4)), *region)
