"""What is measured of a predictor does not depend on how it may be asked.

The same algorithm is asked as a JAX predictor and as a black box: derivatives and
central differences must agree.
"""

from collections.abc import Iterator

import numpy as np
import pytest
from support.boxes import Boxed, Curved, curved_answers, ridge_answers
from support.refusals import refuses

from algoscope.comparison import linearization
from algoscope.comparison.compare import compare
from algoscope.comparison.linearization import implied, influences, sensitivities
from algoscope.comparison.metrics import MEASUREMENTS, METRICS, EvaluationData
from algoscope.comparison.symmetries import SYMMETRIES, symmetries
from algoscope.predictors import gd, knn, ols, ridge, sgd
from algoscope.tasks.linear import LinearRegression

DATASETS, LENGTH, DIM, QUERIES = 5, 4, 2, 6
RIDGE = ridge(0.5)
BOX = Boxed("box", ridge_answers)
CURVED, CURVED_BOX = Curved(RIDGE), Boxed("curved box", curved_answers)


@pytest.fixture(scope="module")
def data() -> EvaluationData:
    rng = np.random.default_rng(20230501)
    x = rng.standard_normal((DATASETS, LENGTH, DIM))
    y = np.einsum("bnd,bd->bn", x, rng.standard_normal((DATASETS, DIM)))
    return EvaluationData(x, y, rng.standard_normal((DATASETS, QUERIES, DIM)))


def each_dataset(data: EvaluationData, n: int) -> Iterator[tuple[np.ndarray, ...]]:
    for x, y in zip(data.x, data.y, strict=True):
        yield x[:n], y[:n], x[n]


def assert_close(actual, expected, tolerance: float) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Gradients.


def test_the_sensitivity_of_a_linear_predictor_is_its_weights(data):
    found = sensitivities(RIDGE, data.x, data.y)
    weights = implied(RIDGE, data.x, data.y, data.queries).weights
    assert_close(found, weights, 1e-10)


def test_the_influence_of_a_linear_smoother_is_its_hat_vector(data):
    found = influences(RIDGE, data.x, data.y)
    assert found.shape == (DATASETS, LENGTH, LENGTH)
    for n in range(LENGTH):
        for row, (x, _, query) in zip(found[:, n], each_dataset(data, n), strict=True):
            hat = query @ np.linalg.solve(x.T @ x + 0.5 * np.eye(DIM), x.T)
            assert_close(row[:n], hat, 1e-10)
            assert not np.any(row[n:])


@pytest.mark.parametrize("gradient", [sensitivities, influences])
@pytest.mark.parametrize(
    ("traced", "box"), [(RIDGE, BOX), (CURVED, CURVED_BOX)], ids=["ridge", "curved"]
)
def test_differences_of_a_black_box_are_the_derivatives(gradient, traced, box, data):
    exact = gradient(traced, data.x, data.y)
    found = gradient(box, data.x, data.y)
    assert np.all(np.isnan(found[:, 0]))
    assert np.any(exact[:, 1:])
    assert_close(found[:, 1:], exact[:, 1:], 1e-5)
    finer = gradient(box, data.x, data.y, step=1e-4)
    assert_close(finer[:, 1:], exact[:, 1:], 1e-7)


def test_neighbors_feel_their_labels_and_not_their_query(data):
    assert not np.any(sensitivities(knn(2), data.x, data.y))
    found = influences(knn(2), data.x, data.y)
    assert sorted(found[0, 3]) == [0.0, 0.0, 0.5, 0.5]
    assert found[0, 1].tolist() == [1.0, 0.0, 0.0, 0.0]


def test_batches_of_any_size_give_the_same_gradients(data, monkeypatch):
    whole = sensitivities(gd(0.05), data.x, data.y)
    monkeypatch.setattr(linearization, "SEQUENCES_PER_CALL", 2 * LENGTH)
    np.testing.assert_allclose(
        sensitivities(gd(0.05), data.x, data.y), whole, rtol=1e-12
    )


def test_the_gradient_is_missing_where_the_box_abstains(data):
    box = Boxed("late", ridge_answers, least=2)
    for gradient in (sensitivities, influences):
        found = gradient(box, data.x, data.y)
        missing = np.any(np.isnan(found), axis=(0, 2))
        assert missing.tolist() == [True, True, False, False]


@pytest.mark.parametrize("gradient", [sensitivities, influences])
def test_a_step_that_is_none_is_refused(gradient, data):
    with refuses(ValueError, "`step` must be positive, got 0.0."):
        gradient(BOX, data.x, data.y, step=0.0)


# Symmetries.


def largest(predictor, data: EvaluationData) -> dict[str, float]:
    """Return the largest relative change from two examples on."""
    found = symmetries(predictor, data.x, data.y, seed=3)
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
def test_a_predictor_keeps_and_breaks_the_symmetries_that_theory_says(predictor, data):
    for name, change in largest(predictor, data).items():
        if name in BROKEN[predictor]:
            assert change > 1e-3, name
        else:
            assert change < 1e-9, name


def test_a_black_box_has_the_symmetries_of_its_algorithm(data):
    traced, boxed = (symmetries(p, data.x, data.y) for p in (CURVED, CURVED_BOX))
    for name in SYMMETRIES:
        assert_close(boxed[name][:, 1:], traced[name][:, 1:], 1e-9)
        assert np.all(np.isnan(boxed[name][:, 0]))


def test_a_change_is_relative_to_the_size_of_the_predictions(data):
    found = symmetries(gd(0.05), data.x, data.y)
    w = np.cumsum(2 * 0.05 * data.x * data.y[..., None], axis=1)
    predictions = np.sum(w[:, :-1] * data.x[:, 1:], axis=-1)
    scale = np.sqrt(np.mean(predictions**2, axis=0))
    # Inputs twice as large make gd's predictions four times as large.
    assert_close(found["input scale"][:, 1:], 3 * np.abs(predictions) / scale, 1e-10)


def test_an_example_is_repeated_only_where_there_is_room(data):
    found = symmetries(gd(0.05), data.x, data.y)["duplicate"]
    assert np.isnan(found).any(axis=0).tolist() == [True, False, False, True]


def test_the_shortest_datasets_have_symmetries(data):
    found = symmetries(gd(0.05), data.x[:, :2], data.y[:, :2])
    assert np.all(np.isnan(found["duplicate"]))
    assert np.all(found["permutation"][:, 1] == 0)


# The catalog.


def test_every_metric_needs_a_measurement():
    assert {metric.needs for metric in METRICS.values()} == set(MEASUREMENTS)


@pytest.fixture
def measured(monkeypatch) -> list[tuple[str, str, str]]:
    """The kind, predictor and precision of every measurement that `compare` makes."""
    seen = []
    for kind, measure in MEASUREMENTS.items():

        def watched(predictor, data, kind=kind, measure=measure):
            seen.append((kind, predictor.name, str(data.queries.dtype)))
            return measure(predictor, data)

        monkeypatch.setitem(MEASUREMENTS, kind, watched)
    return seen


def test_what_several_metrics_need_is_measured_once_and_references_exactly(measured):
    compare(
        gd(0.1),
        [RIDGE],
        LinearRegression(DIM),
        num_examples=2,
        num_datasets=4,
        num_costly_datasets=3,
        metrics=("spd", "ilwd", "sim_w", "r2", "symmetry", "sim_e"),
    )
    pairs = [("GD(0.1)", "float32"), ("Ridge(0.5)", "float64")]
    kinds = ["predictions", "implied", "symmetries"]
    assert measured == [(kind, *pair) for kind in kinds for pair in pairs]


def test_a_predictor_that_diverges_is_infinite_and_a_box_that_abstains_is_not(data):
    measure = MEASUREMENTS["predictions"]
    nan = Boxed("nan", lambda x, y, queries: np.full(len(queries), np.nan))
    assert np.all(np.isnan(measure(nan, data)))
    with np.errstate(over="ignore"):
        diverged = measure(gd(1e308), data)[:, 1:]
    assert not np.any(np.isnan(diverged))
    assert np.any(np.isinf(diverged))


def test_measurements_have_the_precision_of_the_data(data):
    single = EvaluationData(
        *(each.astype("float32") for each in (data.x, data.y, data.queries))
    )
    for asked, dtype in ((single, "float32"), (single.exact(), "float64")):
        assert MEASUREMENTS["implied"](RIDGE, asked).weights.dtype == dtype
