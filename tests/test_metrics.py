"""SPD is a squared distance, and its intervals cover what they should."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from refusals import refuses

from algoscope.metrics import bootstrap_interval, squared_prediction_difference

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


# Intervals.


def test_the_interval_of_many_normal_samples_is_that_of_normal_theory(rng):
    samples = rng.normal([0.0, 5.0, -3.0], [1.0, 0.1, 10.0], size=(2000, 3))
    low, high = bootstrap_interval(samples)
    error = 1.959964 * samples.std(0) / np.sqrt(len(samples))
    np.testing.assert_allclose((high - low) / (2 * error), 1.0, atol=0.15)
    np.testing.assert_array_less(
        np.abs((low + high) / 2 - samples.mean(0)), 0.15 * error
    )


@pytest.mark.parametrize("level", [0.5, 0.8, 0.95])
def test_intervals_cover_the_mean_as_often_as_they_say(level, rng):
    columns = 1000  # each an experiment of its own
    samples = rng.normal(3.0, 2.0, size=(100, columns))
    low, high = bootstrap_interval(samples, level=level, num_resamples=500)
    covered = np.mean((low <= 3.0) & (high >= 3.0))
    deviation = np.sqrt(level * (1 - level) / columns)
    assert abs(covered - level) < 4 * deviation


def test_intervals_of_skewed_samples_reach_further_up_than_down(rng):
    samples = rng.exponential(size=(50, 200))
    low, high = bootstrap_interval(samples)
    mean = samples.mean(0)
    assert np.mean((high - mean) > (mean - low)) > 0.9


def test_the_same_seed_gives_the_same_interval_and_another_seed_another(rng):
    samples = rng.standard_normal((30, 4))
    first, again = (bootstrap_interval(samples, seed=3) for _ in range(2))
    other = bootstrap_interval(samples, seed=4)
    np.testing.assert_array_equal(first, again)
    assert not np.any(np.equal(first, other))


@pytest.mark.parametrize("rest", [(), (1,), (4,), (2, 3)], ids=str)
def test_the_bounds_have_the_shape_of_one_sample(rest, rng):
    samples = rng.standard_normal((20, *rest))
    low, high = bootstrap_interval(samples, num_resamples=50)
    assert low.shape == high.shape == rest
    assert np.all(low < high)


def test_the_columns_are_resampled_together(rng):
    column = rng.standard_normal(20)
    low, high = bootstrap_interval(np.stack([column, 3 * column], axis=1))
    np.testing.assert_allclose(low[1], 3 * low[0], rtol=1e-12)
    np.testing.assert_allclose(high[1], 3 * high[0], rtol=1e-12)


def test_the_interval_of_equal_samples_is_their_value():
    low, high = bootstrap_interval(np.full((7, 2), 2.5))
    np.testing.assert_allclose([low, high], 2.5, rtol=1e-14)


def test_samples_in_single_precision_are_averaged_in_double_precision():
    low, high = bootstrap_interval(np.full(10, 0.1, np.float32), num_resamples=2)
    assert low.dtype == high.dtype == "float64"
    np.testing.assert_allclose([low, high], np.float64(np.float32(0.1)), rtol=1e-14)


@pytest.mark.parametrize("level", [0, 1, 0.0, 1.0, -0.5, 95, float("nan")])
def test_a_level_that_is_no_share_is_refused(level):
    with refuses(ValueError, f"`level` must lie between 0 and 1, got {level}."):
        bootstrap_interval(np.ones(3), level=level)


def test_fewer_than_two_resamples_are_refused():
    with refuses(ValueError, "`num_resamples` must be at least 2, got 1."):
        bootstrap_interval(np.ones(3), num_resamples=1)
    with refuses(TypeError, "`num_resamples` must be an integer, got 10.0."):
        bootstrap_interval(np.ones(3), num_resamples=10.0)  # pyright: ignore[reportArgumentType]


def test_no_samples_have_no_interval():
    with refuses(ValueError, "`number of samples` must be at least 1, got 0."):
        bootstrap_interval(np.zeros((0, 3)))
