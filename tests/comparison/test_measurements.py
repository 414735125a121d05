"""What is measured of a predictor does not depend on how it may be asked.

The same algorithm is asked as a linear predictor, as one that hides its weights, and
as a black box: autodiff, least squares and central differences must agree.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from support.boxes import Boxed, Curved, Opaque, curved_answers, ridge_answers
from support.refusals import refuses

from algoscope.comparison import gradients as gradients_module
from algoscope.comparison.compare import Trial, kinds_for, measure
from algoscope.comparison.gradients import influences, sensitivities
from algoscope.comparison.implied_weights import implied
from algoscope.comparison.metrics import linearity, squared_distance
from algoscope.comparison.symmetries import SYMMETRIES, symmetries
from algoscope.predictors import gd, knn, ols, ridge, sgd

DATASETS, LENGTH, DIM, QUERIES = 5, 4, 2, 6
RIDGE = ridge(0.5)
BOX = Boxed("box", ridge_answers)
CURVED, CURVED_BOX = Curved(RIDGE), Boxed("curved box", curved_answers)


@pytest.fixture(scope="module")
def trial() -> Trial:
    rng = np.random.default_rng(20230501)
    x = rng.standard_normal((DATASETS, LENGTH, DIM))
    y = np.einsum("bnd,bd->bn", x, rng.standard_normal((DATASETS, DIM)))
    return Trial(x, y, rng.standard_normal((DATASETS, QUERIES, DIM)))


def each_dataset(trial: Trial, n: int) -> Iterator[tuple[np.ndarray, ...]]:
    for x, y in zip(trial.x, trial.y, strict=True):
        yield x[:n], y[:n], x[n]


def assert_close(actual, expected, tolerance: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Implied weights.


def test_implied_weights_are_the_actual_ones_however_they_are_found(trial):
    asked = (trial.x, trial.y, trial.queries)
    read, found = implied(RIDGE, *asked), implied(Opaque(RIDGE), *asked)
    boxed = implied(BOX, *asked)
    assert read.weights.shape == (DATASETS, LENGTH, DIM)
    assert_close(found.weights, read.weights, 1e-10)
    assert_close(found.answers, read.answers, 1e-10)
    assert_close(boxed.weights[:, 1:], read.weights[:, 1:], 1e-10)
    assert np.all(np.isnan(boxed.weights[:, 0]))  # it is not asked without examples


def test_the_distance_of_implied_weights_is_that_of_the_actual_ones(trial):
    asked = (trial.x, trial.y, trial.queries)
    a, b = (implied(each, *asked).weights for each in (ols, RIDGE))
    c = implied(BOX, *asked).weights
    assert_close(
        squared_distance(a, c, DIM)[:, 1:], squared_distance(a, b, DIM)[:, 1:], 1e-8
    )
    assert np.all(squared_distance(a, b, DIM)[:, 1:] > 0)
    assert not np.any(squared_distance(a, a, DIM))
    np.testing.assert_array_equal(squared_distance(a, b, 2), squared_distance(b, a, 2))


def test_linear_predictors_are_linear_and_neighbors_are_not(trial):
    asked = (trial.x, trial.y, trial.queries)
    for predictor in (RIDGE, BOX):
        found = implied(predictor, *asked)
        share = linearity(trial.queries, found.answers, found.weights)
        assert_close(share[:, 1:], 1.0, 1e-9)
    found = implied(knn(1), *asked)
    share = linearity(trial.queries, found.answers, found.weights)[:, 1:]
    assert np.all((share > 0) & (share < 0.99))


# Gradients.


def test_the_sensitivity_of_a_linear_predictor_is_its_weights(trial):
    found = sensitivities(RIDGE, trial.x, trial.y)
    weights = implied(RIDGE, trial.x, trial.y, trial.queries).weights
    assert_close(found, weights, 1e-10)


def test_the_influence_of_a_linear_smoother_is_its_hat_vector(trial):
    found = influences(RIDGE, trial.x, trial.y)
    assert found.shape == (DATASETS, LENGTH, LENGTH)
    for n in range(LENGTH):
        for row, (x, _, query) in zip(found[:, n], each_dataset(trial, n), strict=True):
            hat = query @ np.linalg.solve(x.T @ x + 0.5 * np.eye(DIM), x.T)
            assert_close(row[:n], hat, 1e-10)
            assert not np.any(row[n:])


@pytest.mark.parametrize("gradient", [sensitivities, influences])
@pytest.mark.parametrize(
    ("traced", "box"), [(RIDGE, BOX), (CURVED, CURVED_BOX)], ids=["ridge", "curved"]
)
def test_differences_of_a_black_box_are_the_derivatives(gradient, traced, box, trial):
    exact = gradient(traced, trial.x, trial.y)
    found = gradient(box, trial.x, trial.y)
    assert np.all(np.isnan(found[:, 0]))
    assert np.any(exact[:, 1:])
    assert_close(found[:, 1:], exact[:, 1:], 1e-5)
    finer = gradient(box, trial.x, trial.y, step=1e-4)
    assert_close(finer[:, 1:], exact[:, 1:], 1e-7)


def test_neighbors_feel_their_labels_and_not_their_query(trial):
    assert not np.any(sensitivities(knn(2), trial.x, trial.y))
    found = influences(knn(2), trial.x, trial.y)
    assert sorted(found[0, 3]) == [0.0, 0.0, 0.5, 0.5]
    assert found[0, 1].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_batches_of_any_size_give_the_same_gradients(trial, monkeypatch):
    whole = sensitivities(gd(0.05), trial.x, trial.y)
    monkeypatch.setattr(gradients_module, "SEQUENCES", 2 * LENGTH)
    np.testing.assert_allclose(
        sensitivities(gd(0.05), trial.x, trial.y), whole, rtol=1e-12
    )


def test_the_gradient_is_missing_where_the_box_abstains(trial):
    box = Boxed("late", ridge_answers, least=2)
    for gradient in (sensitivities, influences):
        found = gradient(box, trial.x, trial.y)
        missing = np.any(np.isnan(found), axis=(0, 2))
        assert missing.tolist() == [True, True, False, False]


@pytest.mark.parametrize("gradient", [sensitivities, influences])
def test_a_step_that_is_none_is_refused(gradient, trial):
    with refuses(ValueError, "`step` must be positive, got 0.0."):
        gradient(BOX, trial.x, trial.y, step=0.0)


# Symmetries.


def largest(predictor, trial: Trial) -> dict[str, float]:
    """Return the largest relative change from two examples on."""
    found = symmetries(predictor, trial.x, trial.y, seed=3)
    assert tuple(found) == SYMMETRIES
    return {name: float(np.nanmax(each[:, 2:])) for name, each in found.items()}


# Which symmetries theory takes from whom, on noiseless data.
BROKEN = {
    ols: set(),
    RIDGE: {"input scale", "duplicate"},
    gd(0.05): {"input scale", "duplicate"},
    sgd(0.05): {"permutation", "input scale", "duplicate"},
    knn(2): {"duplicate"},
    CURVED: set(SYMMETRIES) - {"permutation"},
}


@pytest.mark.parametrize("predictor", BROKEN, ids=lambda each: each.name)
def test_a_predictor_keeps_and_breaks_the_symmetries_that_theory_says(predictor, trial):
    for name, change in largest(predictor, trial).items():
        if name in BROKEN[predictor]:
            assert change > 1e-3, name
        else:
            assert change < 1e-9, name


def test_a_black_box_has_the_symmetries_of_its_algorithm(trial):
    traced, boxed = (symmetries(p, trial.x, trial.y) for p in (CURVED, CURVED_BOX))
    for name in SYMMETRIES:
        assert_close(boxed[name][:, 1:], traced[name][:, 1:], 1e-9)
        assert np.all(np.isnan(boxed[name][:, 0]))


def test_a_change_is_relative_to_the_size_of_the_predictions(trial):
    found = symmetries(gd(0.05), trial.x, trial.y)
    w = np.cumsum(2 * 0.05 * trial.x * trial.y[..., None], axis=1)
    predictions = np.sum(w[:, :-1] * trial.x[:, 1:], axis=-1)
    scale = np.sqrt(np.mean(predictions**2, axis=0))
    # Inputs twice as large make gd's predictions four times as large.
    assert_close(found["input scale"][:, 1:], 3 * np.abs(predictions) / scale, 1e-10)


def test_an_example_is_repeated_only_where_there_is_room(trial):
    found = symmetries(gd(0.05), trial.x, trial.y)["duplicate"]
    assert np.isnan(found).any(axis=0).tolist() == [True, False, False, True]


def test_the_shortest_datasets_have_symmetries(trial):
    found = symmetries(gd(0.05), trial.x[:, :2], trial.y[:, :2])
    assert np.all(np.isnan(found["duplicate"]))
    assert np.all(found["permutation"][:, 1] == 0)


# The panel.


def test_what_several_metrics_need_is_measured_once():
    assert kinds_for(("spd", "ilwd", "symmetry", "r2")) == ["implied", "symmetries"]
    assert kinds_for(("spd", "sim_e")) == []


def test_a_predictor_that_diverges_is_infinite_and_a_box_that_abstains_is_not(trial):
    nan = Boxed("nan", lambda x, y, queries: np.full(len(queries), np.nan))
    assert np.all(np.isnan(measure("predictions", nan, trial)))
    big = gd(1e308)
    with np.errstate(over="ignore"):
        diverged = measure("predictions", big, trial)[:, 1:]
    assert not np.any(np.isnan(diverged))
    assert np.any(np.isinf(diverged))


def test_references_are_measured_in_double_precision(trial):
    single = Trial(
        *(each.astype("float32") for each in (trial.x, trial.y, trial.queries))
    )
    for exactly, dtype in ((False, "float32"), (True, "float64")):
        found = measure("implied", RIDGE, single, exactly=exactly)
        assert found.weights.dtype == dtype
