"""Distances are per suite; equality is up to rounding, or up to the box's own noise."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope.identification.hypothesis import hypothesis_of
from algoscope.identification.observations import Observations
from algoscope.identification.regimes import find_change
from algoscope.identification.scores import (
    Floor,
    Score,
    best_fitted,
    rank,
    tied_families,
    trimmed_mean,
)
from algoscope.identification.statements import make_statement

EXACT = Floor(noise=0.0, rounding=0.0)
OLS = hypothesis_of("ols", {})
RIDGE = hypothesis_of("ridge", {"penalty": 0.3})
RLS = hypothesis_of("rls", {"forgetting": 0.9, "penalty": 0.3})
ZERO = hypothesis_of("zero", {})
AT_BOUND = hypothesis_of("ridge", {"penalty": 1e-6})


def observed(suites=("a",) * 10, examples=6, noise=0.0, seed=0) -> Observations:
    rng = np.random.default_rng(seed)
    shape = (len(suites), examples)
    answers, again = rng.standard_normal((2, *shape)) * noise
    return Observations(
        rng.standard_normal((*shape, 1)),
        np.ones(shape),
        answers,
        tuple(suites),
        again if noise else None,
    )


def score(hypothesis, squares, seen=None) -> Score:
    seen = seen or observed()
    return Score(hypothesis, seen, np.broadcast_to(squares, seen.y.shape) * 1.0)


def test_a_suite_is_never_left_out_but_its_worst_datasets_are():
    seen = observed(["a"] * 5 + ["b"])
    squares = np.zeros((6, 6))
    squares[0, 1:] = 100.0  # one dataset of five
    squares[5, 1:] = 2.0  # the only one of its suite
    found = score(OLS, squares, seen)
    assert found.suites == {"a": 0.0, "b": 2.0}
    assert found.untrimmed == {"a": 20.0, "b": 2.0}
    assert found.distance == 1.0
    assert 0 not in best_fitted(found)


def test_trimming_leaves_out_the_fifth_that_fits_worst():
    assert trimmed_mean(np.array([5.0, 1.0, 1e9, 2.0, 4.0])) == 3.0
    assert trimmed_mean(np.array([7.0])) == 7.0


def test_equal_means_on_every_suite_and_at_every_n():
    assert score(OLS, 1e-11).is_same(EXACT)
    assert not score(OLS, 1e-9).is_same(EXACT)
    seen = observed(["a"] * 90 + ["b"] * 10)
    one_suite = np.zeros((100, 6))
    one_suite[90:] = 1.0
    assert not score(OLS, one_suite, seen).is_same(EXACT)
    one_n = np.zeros((100, 6))
    one_n[:, 3] = 1.0
    assert not score(OLS, one_n, seen).is_same(EXACT)
    few = np.zeros((100, 6))
    few[:4] = 1.0  # a solver fails on 4 of 90 datasets
    assert score(OLS, few, seen).is_same(EXACT)


def test_what_counts_as_rounding_is_measured_but_bounded():
    assert Floor(0.0, 1e-8).tolerance == pytest.approx(1e-7)
    assert Floor(0.0, 1e-2).tolerance == 1e-6


def test_equal_up_to_noise_is_as_near_as_a_second_answer():
    seen = observed(["a"] * 40 + ["b"] * 40, noise=0.1)
    noisy = Floor(noise=0.005, rounding=0.0)
    assert noisy.is_noisy
    same = seen.predictions**2 / seen.scales[:, None]  # the truth is 0
    assert Score(OLS, seen, same).is_same(noisy)
    off = (seen.predictions - 0.1) ** 2 / seen.scales[:, None]
    assert not Score(OLS, seen, off).is_same(noisy)
    only_b = np.where(np.arange(80)[:, None] < 40, same, off)
    assert not Score(OLS, seen, only_b).is_same(noisy)


@pytest.mark.parametrize(
    ("distances", "order"),
    [
        ([0.3, 0.2, 0.1], ["rls", "ridge", "ols"]),
        ([0.109, 0.2, 0.1], ["ols", "rls", "ridge"]),  # as near as the nearest
        ([0.111, 0.109, 0.1], ["ridge", "rls", "ols"]),
        ([9e-11, 1e-20, 1e-30], ["ols", "rls", "ridge"]),  # all of it is rounding
        ([2e-10, 9e-11, 1e-30], ["ridge", "rls", "ols"]),
    ],
)
def test_of_equals_the_simplest_comes_first_and_others_by_distance(distances, order):
    pairs = zip((OLS, RIDGE, RLS), distances, strict=True)
    ranked = rank([score(h, d) for h, d in pairs], EXACT)
    assert [s.hypothesis.family.name for s in ranked] == order


def test_a_fit_at_the_end_of_its_range_is_named_only_if_it_is_far_nearer():
    ranked = rank([score(AT_BOUND, 1e-3), score(RLS, 9e-3)], EXACT)
    assert ranked[0].hypothesis is RLS
    assert [s.hypothesis for s in tied_families(ranked, EXACT)] == [AT_BOUND]
    ranked = rank([score(AT_BOUND, 1e-3), score(RLS, 11e-3)], EXACT)
    assert ranked[0].hypothesis is AT_BOUND


def test_what_is_nearer_than_a_winner_inside_its_range_is_a_tie():
    """So that the next family is never nearer than the one that is named."""
    others = [score(AT_BOUND, 1e-3), score(OLS, 5e-3), score(RLS, 4e-3)]
    ranked = rank(others, EXACT)
    assert ranked[0].hypothesis is RLS
    names = [s.hypothesis.family.name for s in tied_families(ranked, EXACT)]
    assert names == [AT_BOUND.family.name]


MEMBERS = (OLS, RIDGE, AT_BOUND, RLS, ZERO, hypothesis_of("newton", {"steps": 3}))
MADE_UP = st.lists(
    st.tuples(st.sampled_from(MEMBERS), st.floats(-14, 0), st.integers(0, 10)),
    min_size=1,
    max_size=8,
)


@settings(max_examples=200, deadline=None)
@given(MADE_UP, st.sampled_from([0.0, 0.1]))
def test_the_next_family_is_never_nearer_than_the_winner(made_up, noise):
    """Whatever was measured, also where an algorithm equals and fails on a few."""
    seen = observed(noise=noise)
    scores = []
    for hypothesis, exponent, failures in made_up:
        squares = np.full((10, 6), 10**exponent)
        squares[:failures] = 1.0
        scores.append(score(hypothesis, squares, seen))
    floor = Floor(noise=noise**2 / 2, rounding=0.0)
    made = make_statement("everywhere", rank(scores, floor), floor, seen)
    following = made.runner_up
    assert following is None or following.distance > made.nearest.distance


def test_what_leaves_much_of_small_answers_does_not_explain_them():
    seen = observed(noise=0.01)
    size = Score.of(ZERO, seen).distance
    assert score(RIDGE, 0.19 * size * seen.counted, seen).explains
    assert not score(RIDGE, 0.21 * size * seen.counted, seen).explains
    assert Score.of(ZERO, seen).unexplained == pytest.approx(1)
    assert Score.of(ZERO, seen).explains  # there is nothing to explain
    silent = observed()
    assert score(RIDGE, 0.0, silent).unexplained == 0
    assert score(RIDGE, 1e-9, silent).unexplained == np.inf


def test_what_is_almost_equal_for_all_n_is_not_a_switch():
    seen = observed()
    assert find_change([], seen, seen, EXACT, [score(RIDGE, 1e-9)]) is None


def test_ties_cannot_be_told_apart_and_the_next_is_farther_away(rng):
    seen = observed(["a"] * 40)
    spread = rng.exponential(size=(40, 1))
    near = score(OLS, 1e-3 * spread, seen)
    tied = score(RIDGE, 1.05e-3 * spread, seen)
    uneven = score(
        hypothesis_of("newton", {"steps": 3}),
        1.15e-3 * rng.permutation(spread) * rng.exponential(size=(40, 1)) * 1.0,
        seen,
    )
    far = score(RLS, 2e-3 * spread, seen)
    ranked = rank([near, tied, uneven, far], EXACT)
    names = [s.hypothesis.family.name for s in tied_families(ranked, EXACT)]
    assert "ridge" in names
    assert "rls" not in names
    assert ranked[0].distance <= far.distance


def test_the_interval_is_that_of_resampled_datasets(rng):
    squares = np.repeat(rng.exponential(size=(40, 1)), 6, axis=1)
    found = score(OLS, squares, observed(["a"] * 40))
    low, high = found.interval
    assert low < found.distance < high
    assert 0.5 * found.distance < low
