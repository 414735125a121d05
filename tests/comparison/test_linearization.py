"""Implied weights are the least squares of the answers; R² says how linear they are.

The same algorithm is asked as a linear predictor, as one that hides its weights, and
as a black box.
"""

import numpy as np
import pytest
from support.boxes import Boxed, Opaque, ridge_answers
from support.refusals import refuses

from algoscope.comparison.intervals import bootstrap_interval
from algoscope.comparison.linearization import implied, implied_weights, linearity
from algoscope.comparison.metrics import squared_distance
from algoscope.predictors import knn, ols, ridge

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
    bent = answers + 0.1 * answers**2
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


# Of predictors.

RIDGE, BOX = ridge(0.5), Boxed("box", ridge_answers)


def assert_close(actual, expected, tolerance: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def asked() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Datasets and queries."""
    rng = np.random.default_rng(20230501)
    x = rng.standard_normal((DATASETS, PREFIXES, DIM))
    y = np.einsum("bnd,bd->bn", x, rng.standard_normal((DATASETS, DIM)))
    return x, y, rng.standard_normal((DATASETS, QUERIES, DIM))


def test_implied_weights_are_the_actual_ones_however_they_are_found(asked):
    read, found = implied(RIDGE, *asked), implied(Opaque(RIDGE), *asked)
    boxed = implied(BOX, *asked)
    assert read.weights.shape == (DATASETS, PREFIXES, DIM)
    assert_close(found.weights, read.weights, 1e-10)
    assert_close(found.answers, read.answers, 1e-10)
    assert_close(boxed.weights[:, 1:], read.weights[:, 1:], 1e-10)
    assert np.all(np.isnan(boxed.weights[:, 0]))  # it is not asked without examples


def test_the_distance_of_implied_weights_is_that_of_the_actual_ones(asked):
    a, b = (implied(each, *asked).weights for each in (ols, RIDGE))
    c = implied(BOX, *asked).weights
    assert_close(
        squared_distance(a, c, DIM)[:, 1:], squared_distance(a, b, DIM)[:, 1:], 1e-8
    )
    assert np.all(squared_distance(a, b, DIM)[:, 1:] > 0)
    assert not np.any(squared_distance(a, a, DIM))
    np.testing.assert_array_equal(squared_distance(a, b, 2), squared_distance(b, a, 2))


def test_linear_predictors_are_linear_and_neighbors_are_not(asked):
    for predictor in (RIDGE, BOX):
        found = implied(predictor, *asked)
        share = linearity(asked[2], found.answers, found.weights)
        assert_close(share[:, 1:], 1.0, 1e-9)
    found = implied(knn(1), *asked)
    share = linearity(asked[2], found.answers, found.weights)[:, 1:]
    assert np.all((share > 0) & (share < 0.99))
