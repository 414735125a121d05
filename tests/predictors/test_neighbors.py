"""Nearest neighbors and kernels: as in scikit-learn, with ties and far queries."""

import jax
import numpy as np
import pytest
from sklearn.neighbors import KNeighborsRegressor
from support.textbook import EXAMPLES, KINDS, X, Y, assert_close, predict

from algoscope.predictors import Predictor, knn, nadaraya_watson


def inverse_squares(distances: np.ndarray) -> np.ndarray:
    return 1 / distances**2


def answer(predictor: Predictor, x, y, queries) -> np.ndarray:
    """Return the predictions for many queries after the same examples."""
    return np.asarray(jax.jit(jax.vmap(predictor, (None, None, 0)))(x, y, queries))


@pytest.mark.parametrize(
    ("weighting", "weights"), [("uniform", "uniform"), ("weighted", inverse_squares)]
)
@pytest.mark.parametrize("num_neighbors", [1, 4])
def test_nearest_neighbors_are_those_of_scikit_learn(
    weighting, weights, num_neighbors, rng
):
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    queries = rng.standard_normal((20, 2))
    theirs = KNeighborsRegressor(num_neighbors, weights=weights).fit(x, y)
    ours = knn(num_neighbors, weighting)
    assert_close(answer(ours, x, y, queries), theirs.predict(queries))


def test_queries_that_match_an_example_are_answered_as_by_scikit_learn(rng):
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    x[4] = x[7]  # one input with two labels
    # Their inverse distances and our inverse squares agree where a distance is 0.
    theirs = KNeighborsRegressor(3, weights="distance", algorithm="kd_tree").fit(x, y)
    predictions = answer(knn(3, "weighted"), x, y, x)
    assert_close(predictions, theirs.predict(x))
    once = [0, 1, 2, 3, 5, 6, 8]
    np.testing.assert_array_equal(predictions[once], y[once])
    assert_close(predictions[[4, 7]], [(y[4] + y[7]) / 2] * 2)


@pytest.mark.parametrize("weighting", ["uniform", "weighted"])
def test_equally_near_examples_are_taken_in_order(weighting):
    y = np.tile([1.0, 2.0, 4.0, 8.0, 16.0], (len(X), 1))
    same = list(KINDS).index("one row throughout")
    assert_close(predict(knn(3, weighting), X, y)[same, -1], (1 + 2 + 4) / 3)


def test_while_there_are_fewer_examples_than_neighbors_all_of_them_count():
    y = np.tile(np.arange(1.0, EXAMPLES + 1), (len(X), 1))
    predictions = predict(knn(3), X, y)[0]
    assert_close(predictions[:4], [0, 1, 1.5, 2])


@pytest.mark.parametrize("num_neighbors", [1, 4])
def test_nearest_neighbors_of_power_1_are_those_of_scikit_learn(num_neighbors, rng):
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    queries = np.concatenate([rng.standard_normal((20, 2)), x[:2]])
    theirs = KNeighborsRegressor(num_neighbors, weights="distance").fit(x, y)
    ours = knn(num_neighbors, "weighted", power=1)
    assert_close(answer(ours, x, y, queries), theirs.predict(queries))


def test_a_far_query_is_answered_by_its_nearest_neighbor():
    x, y = X[0].copy(), Y[0]
    x[-1] = 1e4  # every kernel underflows
    (nearest,) = predict(knn(1), x[None], y[None])
    (kernel,) = predict(nadaraya_watson(0.5), x[None], y[None])
    assert kernel[-1] == nearest[-1]
