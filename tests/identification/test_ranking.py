"""Distances ignore a few bad datasets; of equals, the simplest comes first."""

import numpy as np
import pytest

from algoscope.identification.families import FAMILIES
from algoscope.identification.fitting import Hypothesis, Observations
from algoscope.identification.ranking import (
    best_fitted,
    bootstrap_distance_interval,
    confidence,
    describe_candidate,
    describe_regime,
    rank,
    trimmed_mean,
)


def hypothesis(name: str, num_parameters: int = 0) -> Hypothesis:
    """Return some member of a family with so many continuous parameters."""
    family = next(
        f
        for f in FAMILIES
        if (f.name, len(f.parameters), f.fixed) == (name, num_parameters, ())
    )
    return Hypothesis(family, 0, np.zeros(num_parameters))


OLS, RIDGE, RLS = hypothesis("ols"), hypothesis("ridge", 1), hypothesis("rls", 2)


def test_the_fifth_of_the_datasets_that_fits_worst_does_not_count():
    distances = np.array([[5.0, 1.0, np.inf, 2.0, 3.0], [1.0, 1.0, 1.0, 1.0, 9.0]])
    assert best_fitted(distances).tolist() == [[1, 3, 4, 0], [0, 1, 2, 3]]
    assert trimmed_mean(distances).tolist() == [2.75, 1.0]


@pytest.mark.parametrize(
    ("distances", "order"),
    [
        ([0.3, 0.2, 0.1], ["rls", "ridge", "ols"]),
        ([0.109, 0.2, 0.1], ["ols", "rls", "ridge"]),  # within 10 % of the nearest
        ([0.111, 0.109, 0.1], ["ridge", "rls", "ols"]),
        ([9e-11, 1e-20, 1e-30], ["ols", "rls", "ridge"]),  # all of it is rounding
        ([2e-10, 9e-11, 1e-30], ["ridge", "rls", "ols"]),
    ],
)
def test_of_equals_the_simplest_comes_first_and_others_by_distance(distances, order):
    hypotheses = [OLS, RIDGE, RLS]
    ranked = rank(hypotheses, dict(zip(hypotheses, distances, strict=True)))
    assert [h.family.name for h in ranked] == order


def test_confidence_is_how_often_the_family_is_nearest(rng):
    near, far = rng.exponential(size=(2, 50))
    ranked = [OLS, RIDGE]
    assert confidence(ranked, {OLS: near, RIDGE: 10 + far}, seed=0) == 1.0
    assert confidence(ranked, {OLS: 10 + near, RIDGE: far}, seed=0) == 0.0
    split = confidence(ranked, {OLS: near, RIDGE: far[::-1]}, seed=0)
    assert 0 < split < 1
    # Another member of the same family does not count against it.
    assert confidence([OLS, OLS], {OLS: near}, seed=0) == 1.0


def test_a_candidate_and_its_regimes_are_measured_where_there_are_answers(rng):
    x, y = rng.standard_normal((5, 4, 1)), np.ones((5, 4))
    predictions = np.ones((5, 4))
    predictions[0, 3] = np.nan
    observed = Observations(x, y, predictions)
    guesses = np.ones((5, 4))
    guesses[:, 2:] = 2.0  # cᵢ = 1 + 1: each of these adds 1/2
    spans = [("determined", 1, 1), ("over-determined", 2, 3)]
    candidate = describe_candidate(OLS, guesses, observed, spans, seed=0)
    assert candidate.regimes == pytest.approx({"determined": 0, "over-determined": 0.5})
    assert candidate.median_spd == {"determined": 0.0, "over-determined": 1.0}
    # The first dataset has one answer of two at distance 1/2, the others two of three;
    # the last, which fits no better than the others, is left out.
    assert candidate.distance == pytest.approx((1 / 4 + 3 / 3) / 4)
    assert candidate.low <= candidate.distance <= candidate.high
    first = describe_regime(spans[0], [OLS], [candidate], threshold=0.1)
    second = describe_regime(spans[1], [OLS], [candidate], threshold=0.1)
    assert (first.verdict, first.first, first.last, first.distance) == ("ols", 1, 1, 0)
    assert (second.verdict, second.nearest) == ("none", "ols")
    assert second.distance == pytest.approx(0.5)


def test_the_interval_is_that_of_the_trimmed_mean(rng):
    samples = rng.exponential(size=40) ** 3
    low, high = bootstrap_distance_interval(samples, seed=3)
    drawn = np.random.default_rng(3).integers(0, 40, (1000, 40))
    naive = sorted(np.sort(samples[rows])[:32].mean() for rows in drawn)
    assert (low, high) == pytest.approx((naive[24], naive[974]))
    assert low < trimmed_mean(samples) < high
    endless = np.array([1.0, 2.0, np.inf, np.inf])
    assert bootstrap_distance_interval(endless, seed=0)[1] == np.inf
