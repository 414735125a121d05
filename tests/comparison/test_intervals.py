"""Intervals cover the mean, missing samples are counted, averages skip them."""

import json
from dataclasses import asdict

import numpy as np
import pytest
from support.comparisons import curve
from support.refusals import refuses

from algoscope.comparison.intervals import (
    Curve,
    Estimate,
    bootstrap_interval,
    curve_from_json,
    curves_of,
    estimate_from_json,
    estimates_of,
    regime_spans,
    summarize,
)
from algoscope.foundation.files import json_text

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


# Curves and estimates.

PAIRS = [("ICL", "OLS"), ("ICL", "Ridge(1)")]


def test_each_pair_has_its_curve_and_its_estimate(rng):
    samples = rng.exponential(size=(20, 2, 3))
    samples[:5, 1, 2] = np.nan
    found = summarize(samples)
    for index, each in enumerate(curves_of(PAIRS, found)):
        assert (each.first, each.second) == PAIRS[index]
        assert each.columns == [column[index].tolist() for column in found]
    assert curves_of(PAIRS, found)[1].counts == [20, 20, 15]
    single = summarize(samples[:, :, 2])
    first, second = estimates_of(PAIRS, single)
    assert (first.first, first.second, first.count) == (*PAIRS[0], 20)
    assert second.count == 15
    assert second.mean == pytest.approx(np.nanmean(samples[:, 1, 2]), rel=1e-12)
    assert second.low < second.median < second.high


def test_curves_and_estimates_are_read_from_the_json_they_are_written_to():
    inf, nan = float("inf"), float("nan")
    drawn = Curve("a", "b", [nan, inf], [0.1, nan], [1.0, nan], [nan, inf], [0, 2])
    single = Estimate("a", "b", inf, nan, nan, 2.5, 7)
    for value, read in ((drawn, curve_from_json), (single, estimate_from_json)):
        again = read(json.loads(json_text(asdict(value))))
        assert type(again) is type(value)
        assert repr(again) == repr(value)  # NaN is not equal to itself


def test_an_average_includes_both_ends():
    each = curve("ICL", "A", [1.0, 2.0, 4.0, 8.0])
    assert each.average(0, 3) == 3.75
    assert each.average(1, 2) == 3.0
    assert each.average(3, 3) == 8.0


def test_an_average_skips_what_was_not_measured():
    nan = float("nan")
    each = Curve("a", "b", [nan, 2.0, 4.0], *[[nan, 0.0, 0.0]] * 3, counts=[0, 5, 5])
    assert each.average(0, 2) == each.average(1, 2) == 3.0
    assert np.isnan(each.average(0, 0))


@pytest.mark.parametrize("dim", range(1, 7))
@pytest.mark.parametrize("most", range(1, 7))
def test_every_number_of_examples_is_in_one_regime(dim, most):
    spans = regime_spans(dim, most)
    covered = [n for _, first, last in spans for n in range(first, last + 1)]
    assert covered == list(range(1, most + 1))
    for name, first, last in spans:
        expected = {"under-determined": -1, "determined": 0, "over-determined": 1}[name]
        assert {int(np.sign(n - dim)) for n in range(first, last + 1)} == {expected}
