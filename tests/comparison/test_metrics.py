"""Metrics are the distances, angles and shares they say, and intervals cover.

Every metric is held against the slow formula in NumPy, a law, or scikit-learn.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from sklearn.metrics import r2_score
from support.refusals import refuses

from algoscope.comparison.intervals import bootstrap_interval, summarize
from algoscope.comparison.metrics import (
    cosine_similarity,
    error_similarity,
    implied_weights,
    label_scores,
    linearity,
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


# Samples that were not measured.


def test_what_was_not_measured_is_left_out_and_counted(rng):
    samples = rng.exponential(size=(40, 3))
    samples[rng.random((40, 3)) < 0.4] = np.nan
    found = summarize(samples)
    np.testing.assert_allclose(found.mean, np.nanmean(samples, axis=0), rtol=1e-13)
    np.testing.assert_array_equal(found.median, np.nanmedian(samples, axis=0))
    np.testing.assert_array_equal(found.counts, np.sum(~np.isnan(samples), axis=0))


def test_the_interval_is_that_of_the_samples_that_were_measured(rng):
    samples = rng.normal(3.0, 2.0, size=(4000, 2))
    samples[:3000, 1] = np.nan
    low, high = bootstrap_interval(samples)
    error = 1.959964 * 2.0 / np.sqrt([4000, 1000])
    np.testing.assert_allclose((high - low) / (2 * error), 1.0, atol=0.15)


def test_a_missing_sample_changes_nothing_in_other_columns(rng):
    samples = rng.standard_normal((30, 2))
    pierced = samples.copy()
    pierced[3, 0] = np.nan
    whole, other = bootstrap_interval(samples), bootstrap_interval(pierced)
    for mine, same in zip(whole, other, strict=True):
        np.testing.assert_allclose(mine[1], same[1], rtol=1e-12)
        assert mine[0] != same[0]


def test_what_was_never_measured_has_no_statistics():
    found = summarize(np.array([[np.nan, 1.0], [np.nan, 3.0]]))
    for column in found[:4]:
        assert np.isnan(column[0])
        assert np.isfinite(column[1])
    assert found.counts.tolist() == [0, 2]


def test_one_measured_sample_of_many_is_its_own_interval():
    samples = np.full(30, np.nan)
    samples[7] = 2.5  # a third of the resamples does not draw it
    low, high = bootstrap_interval(samples)
    assert low == high == 2.5


def test_an_infinite_sample_makes_the_mean_infinite_without_an_interval():
    found = summarize(np.array([[np.inf, 1.0], [2.0, 1.0], [np.nan, 1.0]]))
    assert found.mean.tolist() == [np.inf, 1.0]
    assert np.isnan([found.low[0], found.high[0]]).all()
    assert found.counts.tolist() == [2, 3]


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


# Implied weights and linearity.

DATASETS, PREFIXES, QUERIES, DIM = 6, 4, 7, 3


def linear_answers(rng):
    queries = rng.standard_normal((DATASETS, QUERIES, DIM))
    weights = rng.standard_normal((DATASETS, PREFIXES, DIM))
    return queries, weights, np.einsum("bnd,bqd->bnq", weights, queries)


def test_weights_implied_by_linear_answers_are_the_weights(rng):
    queries, weights, answers = linear_answers(rng)
    np.testing.assert_allclose(implied_weights(queries, answers), weights, rtol=1e-9)


def test_the_distance_of_implied_weights_is_that_of_the_weights(rng):
    queries, first, answers = linear_answers(rng)
    second = rng.standard_normal(first.shape)
    others = np.einsum("bnd,bqd->bnq", second, queries)
    one, other = (implied_weights(queries, each) for each in (answers, others))
    expected = np.sum((first - second) ** 2, axis=-1) / DIM
    np.testing.assert_allclose(squared_distance(one, other, DIM), expected, rtol=1e-8)


def test_implied_weights_are_the_least_squares_of_any_answers(rng):
    queries = rng.standard_normal((DATASETS, QUERIES, DIM))
    answers = rng.standard_normal((DATASETS, PREFIXES, QUERIES))
    found = implied_weights(queries, answers)
    for rows, targets, weights in zip(queries, answers, found, strict=True):
        expected = np.linalg.lstsq(rows, targets.T)[0].T
        np.testing.assert_allclose(weights, expected, rtol=1e-9, atol=1e-12)


def test_weights_are_missing_or_infinite_where_an_answer_is(rng):
    queries, weights, answers = linear_answers(rng)
    answers[0, 0, 2], answers[1, 1, 3], answers[2, 2, :2] = np.nan, np.inf, (1, -np.inf)
    found = implied_weights(queries, answers)
    assert np.all(np.isnan(found[0, 0]))
    assert np.all(found[1, 1] == np.inf)
    assert np.all(found[2, 2] == np.inf)
    np.testing.assert_allclose(found[3:], weights[3:], rtol=1e-9)


def test_too_few_queries_are_refused():
    message = (
        "`number of queries` must be at least d = 3, or the weights are not "
        "determined, got 2."
    )
    with refuses(ValueError, message):
        implied_weights(np.ones((1, 2, 3)), np.ones((1, 1, 2)))


def test_linear_answers_are_linear_and_others_less(rng):
    queries, weights, answers = linear_answers(rng)
    np.testing.assert_allclose(linearity(queries, answers, weights), 1.0, rtol=1e-12)
    bent = answers + 0.5 * np.abs(answers)
    share = linearity(queries, bent, implied_weights(queries, bent))
    assert np.all((share > 0) & (share < 1))


def test_answers_without_structure_are_linear_by_the_share_of_the_weights(rng):
    queries = rng.standard_normal((400, 12, DIM))
    answers = rng.standard_normal((400, 1, 12))
    share = linearity(queries, answers, implied_weights(queries, answers))
    low, high = bootstrap_interval(share[:, 0], level=0.999)
    assert low < DIM / 12 < high


def test_answers_of_zero_have_no_linearity():
    queries = np.eye(2)[None]
    zero = np.zeros((1, 1, 2))
    assert np.isnan(linearity(queries, zero, zero)).all()


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
