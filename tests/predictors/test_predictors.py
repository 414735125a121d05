"""Every predictor is the algorithm that it names, at every prefix.

Laws hold for all members of the family. `TEXTBOOK` computes each of them slowly, one
prefix at a time, in NumPy; scikit-learn and closed forms of the risk are two more
opinions.
"""

from dataclasses import FrozenInstanceError
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from support.refusals import refuses

from algoscope.predictors import (
    LinearPredictor,
    Predictor,
    bayes,
    figure_1_references,
    gd,
    knn,
    ols,
    ridge,
    sgd,
)

EXAMPLES, DIM = 5, 2  # prefixes of 0 to 4 examples: fewer than d, d, and more
EPS = float(np.finfo(np.float64).eps)
QUICKLY = {"xla_backend_optimization_level": 0}  # compile: it runs only once

law = settings(max_examples=25)
seeds = st.integers(0, 2**32)


# The algorithms in NumPy: x [n, d], y [n] and a query [d] to a prediction.


def textbook_ols(x, y, query):
    return query @ np.linalg.pinv(x, rcond=1e-8) @ y


def textbook_ridge(x, y, query, *, penalty):
    return query @ np.linalg.solve(x.T @ x + penalty * np.eye(len(query)), x.T @ y)


def textbook_gd(x, y, query, *, learning_rate):
    start, gradient = np.zeros(len(query)), np.zeros(len(query))
    for each, label in zip(x, y, strict=True):
        gradient += 2 * (start @ each - label) * each
    return query @ (start - learning_rate * gradient)


def textbook_sgd(x, y, query, *, learning_rate, penalty=0.0):
    w = np.zeros(len(query))
    for each, label in zip(x, y, strict=True):
        w = w - 2 * learning_rate * (each * (w @ each) - each * label + penalty * w)
    return query @ w


def textbook_knn(x, y, query, *, num_neighbors, weighted, power=2):
    """Among examples that are equally near, the earlier ones come first."""
    squares = [float(np.sum((each - query) ** 2)) for each in x]
    nearest = sorted(range(len(x)), key=squares.__getitem__)[:num_neighbors]
    if not nearest:
        return 0.0
    weights = [1.0] * len(nearest)
    if weighted and squares[nearest[0]] == 0:
        weights = [float(squares[i] == 0) for i in nearest]
    elif weighted:
        weights = [np.sqrt(squares[i]) ** -power for i in nearest]
    return np.average(y[nearest], weights=weights)


three_nearest = partial(textbook_knn, num_neighbors=3)
TEXTBOOK = {
    ols: textbook_ols,
    ridge(0.1): partial(textbook_ridge, penalty=0.1),
    gd(0.02): partial(textbook_gd, learning_rate=0.02),
    sgd(0.03): partial(textbook_sgd, learning_rate=0.03),
    sgd(0.03, 0.2): partial(textbook_sgd, learning_rate=0.03, penalty=0.2),
    knn(3, "uniform"): partial(three_nearest, weighted=False),
    knn(3, "weighted"): partial(three_nearest, weighted=True),
}


def by_name(predictor: Predictor) -> str:
    return predictor.name


all_predictors = pytest.mark.parametrize("predictor", TEXTBOOK, ids=by_name)
linear_predictors = pytest.mark.parametrize(
    "predictor", [p for p in TEXTBOOK if isinstance(p, LinearPredictor)], ids=by_name
)
indifferent_to_order = pytest.mark.parametrize(
    "predictor", [p for p in TEXTBOOK if "SGD" not in p.name], ids=by_name
)


# The data: one dataset of each kind, all in one batch, so that a law compiles once.


def draw_kinds() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    rng = np.random.default_rng(20221128)
    x = rng.standard_normal((EXAMPLES, DIM))
    y = rng.standard_normal(EXAMPLES)
    repeated, some_zero, collinear = x.copy(), x.copy(), x.copy()
    repeated[[1, 3]] = x[0]  # their labels contradict each other
    some_zero[[0, 2]] = 0
    collinear[:, 1] = -2 * x[:, 0]
    return {
        "generic": (x, y),
        "repeated rows": (repeated, y),
        "zero rows": (some_zero, y),
        "collinear coordinates": (collinear, y),
        "one row throughout": (np.tile(x[0], (EXAMPLES, 1)), y),
        "zeros throughout": (np.zeros_like(x), y),
        "one label throughout": (x, np.full(EXAMPLES, 1.5)),
        "labels of zero": (x, np.zeros(EXAMPLES)),
    }


KINDS = draw_kinds()
GENERIC = [list(KINDS).index("generic")]
X, Y = (np.stack(part) for part in zip(*KINDS.values(), strict=True))


@cache
def compiled_prefixes(predictor: Predictor):
    return jax.jit(jax.vmap(predictor.predict_prefixes))


@cache
def compiled_calls(predictor: Predictor):
    """Return a function that calls the predictor once for every prefix."""

    def calls(x, y):
        return jnp.stack([predictor(x[:n], y[:n], x[n]) for n in range(len(x))])

    return jax.jit(jax.vmap(calls), compiler_options=QUICKLY)


def predict(predictor: Predictor, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(compiled_prefixes(predictor)(x, y))


def assert_close(actual, expected, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)


# Laws of all predictors.


@all_predictors
def test_predictions_at_every_prefix_are_those_of_one_call_each(predictor):
    calls = compiled_calls(predictor)(X, Y)
    assert_close(predict(predictor, X, Y), calls, 1e-12)


@all_predictors
def test_the_algorithm_is_the_textbook_s(predictor):
    for x, y, predictions in zip(X, Y, predict(predictor, X, Y), strict=True):
        textbook = [TEXTBOOK[predictor](x[:n], y[:n], x[n]) for n in range(EXAMPLES)]
        assert_close(predictions, textbook)


@all_predictors
def test_without_compilation_the_predictions_are_the_same(predictor):
    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])
    compiled = predict(predictor, X, Y)[0, 2]
    assert_close(predictor(x[:2], y[:2], x[2]), compiled, 1e-12)


@all_predictors
def test_without_examples_the_prediction_is_zero(predictor):
    assert predict(predictor, X, Y)[:, 0].tolist() == [0.0] * len(X)
    assert compiled_calls(predictor)(X, Y)[:, 0].tolist() == [0.0] * len(X)


@all_predictors
@pytest.mark.parametrize("num_examples", [0, 1, 4])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_have_the_precision_of_the_data(predictor, num_examples, dtype):
    x = jax.ShapeDtypeStruct((num_examples, DIM), dtype)
    y = jax.ShapeDtypeStruct((num_examples,), dtype)
    query = jax.ShapeDtypeStruct((DIM,), dtype)
    prefixes = jax.eval_shape(predictor.predict_prefixes, x, y)
    assert (prefixes.shape, prefixes.dtype) == ((num_examples,), dtype)
    one = jax.eval_shape(predictor.__call__, x, y, query)
    assert (one.shape, one.dtype) == ((), dtype)


@all_predictors
def test_single_precision_is_near_double_precision(predictor):
    single = predict(predictor, X.astype("float32"), Y.astype("float32"))
    assert single.dtype == "float32"
    assert_close(single, predict(predictor, X, Y), 1e-4)


@all_predictors
def test_degenerate_data_give_finite_predictions(predictor):
    # A near copy of a row, and rows whose sizes differ by orders of magnitude.
    x = np.stack([X[0]] * len(X))
    x[0, 1] = x[0, 0] * (1 + 1e-14)
    x[1] *= np.geomspace(1e-12, 1e12, EXAMPLES)[:, None]
    x[2] *= 1e-30
    x[3] *= 1e30
    for values in (X, x):
        assert np.all(np.isfinite(predict(predictor, values, Y)))


@all_predictors
@pytest.mark.parametrize("factor", [-2.5, 1e-6, 1e6, 0.0])
def test_predictions_scale_with_the_labels(predictor, factor):
    scaled = predict(predictor, X, factor * Y)
    expected = factor * predict(predictor, X, Y)
    np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=1e-12 * abs(factor))


@all_predictors
def test_predictions_do_not_change_when_the_space_is_rotated(predictor, rng):
    rotation, _ = np.linalg.qr(rng.standard_normal((DIM, DIM)))
    rotated, still = predict(predictor, X @ rotation, Y), predict(predictor, X, Y)
    # Where examples are equally near, rounding decides which of them is nearer.
    kinds = slice(None) if isinstance(predictor, LinearPredictor) else GENERIC
    assert_close(rotated[kinds], still[kinds], 1e-9)


@all_predictors
@pytest.mark.parametrize("place", range(EXAMPLES))
def test_a_label_matters_only_after_its_example(predictor, place):
    changed = Y.copy()
    changed[:, place] += 1.0
    before, after = predict(predictor, X, Y), predict(predictor, X, changed)
    np.testing.assert_array_equal(after[:, : place + 1], before[:, : place + 1])
    if place == 0:
        assert after[0, 1] != before[0, 1]


@indifferent_to_order
def test_the_order_of_examples_does_not_matter(predictor, rng):
    # Equally near examples are taken in order: only data without them qualify for kNN.
    linear = isinstance(predictor, LinearPredictor)
    kinds = slice(None) if linear else GENERIC
    x, y = X.copy(), Y.copy()
    for row in range(len(x)):
        order = rng.permutation(EXAMPLES - 1)
        x[row, :-1], y[row, :-1] = x[row, order], y[row, order]
    assert not np.array_equal(x[0], X[0])
    last, shuffled_last = (predict(predictor, *d)[kinds, -1] for d in ((X, Y), (x, y)))
    assert_close(shuffled_last, last, 1e-9)


@pytest.mark.parametrize(
    "predictor", [p for p in TEXTBOOK if "SGD" in p.name], ids=by_name
)
def test_the_order_of_examples_matters_to_stochastic_gradient_descent(predictor):
    x, y = X.copy(), Y.copy()
    x[:, :-1], y[:, :-1] = X[:, -2::-1], Y[:, -2::-1]
    forth, back = predict(predictor, X, Y), predict(predictor, x, y)
    assert abs(forth[0, -1] - back[0, -1]) > 1e-5


@linear_predictors
def test_weights_times_the_query_is_the_prediction(predictor):
    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])
    weights = predictor.prefix_weights(x, y)
    assert weights.shape == (EXAMPLES + 1, DIM)
    assert weights[0].tolist() == [0.0] * DIM
    products = np.sum(np.asarray(weights)[:-1] * X[0], axis=1)
    assert_close(products, predict(predictor, X, Y)[0], 1e-12)
    np.testing.assert_array_equal(predictor.weights(x, y), weights[-1])


@all_predictors
def test_every_predictor_is_a_predictor_and_a_value(predictor):
    assert isinstance(predictor, Predictor)
    with pytest.raises(FrozenInstanceError):
        predictor.name = "another"  # pyright: ignore[reportAttributeAccessIssue]


def test_the_references_of_figure_1_are_in_the_order_of_its_legend():
    assert [reference.name for reference in figure_1_references()] == [
        "OLS",
        "Ridge(0.1)",
        "Ridge(0.5)",
        "GD(0.01)",
        "GD(0.02)",
        "SGD(0.01)",
        "SGD(0.03)",
        "KNN(3, uniform)",
        "KNN(3, weighted)",
    ]


# Least squares and ridge regression.

# Each shape is compiled once. n < d, n = d, n > d, and sizes of 1.
SHAPES = [(1, 1), (2, 5), (5, 5), (7, 1), (12, 4)]
ols_weights = jax.jit(ols.prefix_weights)


@st.composite
def problems(draw):
    """Draw x of any rank, and y that x need not explain."""
    examples, dim = draw(st.sampled_from(SHAPES))
    rank = draw(st.integers(1, min(examples, dim)))
    rng = np.random.default_rng(draw(seeds))
    x = rng.standard_normal((examples, rank)) @ rng.standard_normal((rank, dim))
    for kind in draw(st.sets(st.sampled_from(["repeat", "zero"]))):
        row = draw(st.integers(0, examples - 1))
        x[row] = x[0] if kind == "repeat" else 0.0
    return x, rng.standard_normal(examples)


@law
@given(problems())
def test_least_squares_is_the_pseudoinverse_at_every_prefix(problem):
    x, y = problem
    weights = np.asarray(ols_weights(x, y))
    worst = 0.0  # the largest 1/σ so far, with which rounding grows
    for n in range(1, len(x) + 1):
        sizes = np.linalg.svd(x[:n], compute_uv=False)
        sizes = sizes[sizes > 1e-10 * sizes[0]]
        if len(sizes) == 0:
            continue
        worst = max(worst, 1 / sizes[-1])
        condition = np.linalg.norm(x) * worst
        if condition > 1e5:  # which rank x has is a matter of taste
            return
        tolerance = float(100 * EPS * condition**2 * worst * np.linalg.norm(y))
        expected = np.linalg.pinv(x[:n], rcond=1e-10) @ y[:n]
        np.testing.assert_allclose(weights[n], expected, rtol=0, atol=tolerance)


@cache
def ridge_weights(penalty: float):
    return jax.jit(ridge(penalty).prefix_weights)


@law
@given(problems(), st.sampled_from([1e-3, 0.5, 100.0]))
def test_ridge_regression_solves_its_normal_equations_at_every_prefix(problem, penalty):
    x, y = problem
    weights = np.asarray(ridge_weights(penalty)(x, y))
    for n in range(len(x) + 1):
        matrix = x[:n].T @ x[:n] + penalty * np.eye(x.shape[1])
        expected = np.linalg.solve(matrix, x[:n].T @ y[:n])
        condition = np.linalg.norm(matrix, 2) / penalty
        tolerance = float(100 * EPS * condition * np.linalg.norm(y) / penalty**0.5)
        np.testing.assert_allclose(weights[n], expected, rtol=0, atol=tolerance)


@pytest.mark.parametrize("condition", [1e1, 1e3, 1e5])
def test_least_squares_solves_ill_conditioned_square_systems(condition, rng):
    for _ in range(5):
        left, right = np.linalg.qr(rng.standard_normal((2, 5, 5)))[0]
        x = left @ np.diag(np.geomspace(1, 1 / condition, 5)) @ right
        w = rng.standard_normal(5)
        error = np.linalg.norm(np.asarray(ols_weights(x, x @ w))[-1] - w)
        # Greville's recursion carries (XᵀX)⁺: it loses the square of the condition.
        assert error < 10 * EPS * condition**2 * np.linalg.norm(w)


def test_least_squares_keeps_its_precision_over_a_long_sequence(rng):
    x = rng.standard_normal((300, DIM))
    y = rng.standard_normal(300)
    weights = np.asarray(ols_weights(x, y))
    expected = [np.linalg.lstsq(x[:n], y[:n])[0] for n in (100, 200, 300)]
    assert_close(weights[[100, 200, 300]], np.stack(expected), 1e-11)


def test_least_squares_interpolates_with_minimum_norm(rng):
    x, y = rng.standard_normal((2, 5)), rng.standard_normal(2)
    w = np.asarray(ols_weights(x, y))[-1]
    assert_close(x @ w, y)
    _, _, rows = np.linalg.svd(x)
    for unseen in rows[2:]:  # moving along it changes no prediction on the examples
        assert_close(x @ (w + unseen), y)
        for step in (-1.0, -1e-3, 1e-3, 1.0):
            assert np.linalg.norm(w + step * unseen) > np.linalg.norm(w)


def assert_ridge_is_near_least_squares(penalty, rng):
    for examples, dim in ((2, 5), (12, 4)):
        x, y = rng.standard_normal((examples, dim)), rng.standard_normal(examples)
        limit = np.asarray(ols_weights(x, y))[-1]
        w = np.asarray(ridge_weights(penalty)(x, y))[-1]
        # In each singular direction, w_λ is σ²/(σ² + λ) of the limit.
        smallest = np.linalg.svd(x, compute_uv=False)[-1]
        bound = penalty / smallest**2 * np.linalg.norm(limit)
        assert np.linalg.norm(w - limit) <= bound + 1e-8


@pytest.mark.parametrize("penalty", [1e-3, 1e-6])
def test_ridge_regression_tends_to_least_squares_as_the_penalty_vanishes(penalty, rng):
    assert_ridge_is_near_least_squares(penalty, rng)


def test_the_bayes_predictor_is_ridge_regression_with_the_ratio_of_variances():
    best = bayes(noise_variance=0.15, prior_variance=1.5)
    assert best.name == "Ridge(0.1)"
    assert_close(predict(best, X, Y), predict(ridge(0.1), X, Y), 1e-14)


def test_the_bayes_predictor_without_noise_is_least_squares():
    assert bayes(noise_variance=0.0, prior_variance=2.0) is ols


# Agreement with scikit-learn.


@pytest.mark.parametrize("num_examples", range(1, EXAMPLES))
def test_linear_predictors_are_those_of_scikit_learn(num_examples):
    both = [
        (ols, LinearRegression(fit_intercept=False)),
        (ridge(0.1), Ridge(0.1, fit_intercept=False)),
    ]
    kinds = [list(KINDS).index(kind) for kind in ("generic", "repeated rows")]
    for ours, theirs in both:
        predictions = predict(ours, X, Y)[kinds, num_examples]
        expected = [
            theirs.fit(x[:num_examples], y[:num_examples]).predict(x[[num_examples]])
            for x, y in zip(X[kinds], Y[kinds], strict=True)
        ]
        assert_close(predictions, np.concatenate(expected), 1e-9)


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


# Closed forms of the risk: w ~ N(0, τ²I), x ~ N(0, I), y = wᵀx + N(0, σ²), as means
# over datasets of squared errors at a fresh input, divided by d.

RISK_DIM, RISK_EXAMPLES, NUM_DATASETS = 4, 20, 5000
TAU2, SIGMA2 = 2.0, 0.8
RATIO = SIGMA2 / TAU2
BEST = bayes(noise_variance=SIGMA2, prior_variance=TAU2)

# The normal distribution exceeds 5 once in two million draws. The seed is fixed, so a
# test that passes once passes always.
Z = 5.0


@pytest.fixture(scope="module")
def drawn() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Many datasets: x, wᵀx and the noise."""
    rng = np.random.default_rng(20221128)
    x = rng.standard_normal((NUM_DATASETS, RISK_EXAMPLES, RISK_DIM))
    w = np.sqrt(TAU2) * rng.standard_normal((NUM_DATASETS, RISK_DIM))
    noise = np.sqrt(SIGMA2) * rng.standard_normal((NUM_DATASETS, RISK_EXAMPLES))
    return x, np.einsum("bnd,bd->bn", x, w), noise


def z_scores(samples: np.ndarray, mean: np.ndarray | float) -> np.ndarray:
    """Return the z of the columns' sample means against `mean`."""
    error = samples.mean(0) - mean
    return error / (samples.std(0) / np.sqrt(len(samples)))


def test_the_risk_of_least_squares_without_noise_falls_to_zero_linearly(drawn):
    x, clean, _ = drawn
    losses = (predict(ols, x, clean) - clean) ** 2 / RISK_DIM
    n = np.arange(RISK_DIM)
    expected = TAU2 * (1 - n / RISK_DIM)
    assert np.max(np.abs(z_scores(losses[:, :RISK_DIM], expected))) < Z
    assert np.max(losses[:, RISK_DIM:]) < 1e-12


def test_the_risk_of_least_squares_with_noise_is_that_of_an_inverse_wishart(drawn):
    x, clean, noise = drawn
    losses = (predict(ols, x, clean + noise) - clean) ** 2 / RISK_DIM
    n = np.arange(RISK_DIM + 6, RISK_EXAMPLES)  # nearer to d the variance is infinite
    expected = SIGMA2 / (n - RISK_DIM - 1)
    assert np.max(np.abs(z_scores(losses[:, n], expected))) < Z


@cache
def one_step(learning_rate: float) -> LinearPredictor:
    return gd(learning_rate)


def one_step_losses(drawn, n: int, learning_rate: float) -> np.ndarray:
    x, clean, noise = drawn
    predictions = predict(one_step(learning_rate), x, clean + noise)
    return (predictions[:, n] - clean[:, n]) ** 2 / RISK_DIM


@pytest.mark.parametrize("n", [1, 4, 12])
def test_one_step_with_the_optimal_learning_rate_has_the_risk_of_theory(drawn, n):
    total = n + RISK_DIM + 1 + RATIO
    losses = one_step_losses(drawn, n, 1 / (2 * total))
    expected = TAU2 * (RISK_DIM + 1 + RATIO) / total
    assert abs(z_scores(losses[:, None], expected)[0]) < Z


@pytest.mark.parametrize("factor", [0.4, 1.6])
def test_one_step_with_another_learning_rate_has_more_risk(drawn, factor):
    optimal = 1 / (2 * (4 + RISK_DIM + 1 + RATIO))
    excess = one_step_losses(drawn, 4, factor * optimal)
    excess -= one_step_losses(drawn, 4, optimal)
    assert z_scores(excess[:, None], 0.0)[0] > Z


def test_the_risk_of_the_bayes_predictor_is_the_posterior_variance(drawn):
    x, clean, noise = drawn
    losses = (predict(BEST, x, clean + noise) - clean) ** 2
    for n in (0, 1, RISK_DIM, 3 * RISK_DIM):
        precision = np.einsum("bni,bnj->bij", x[:, :n], x[:, :n]) / SIGMA2
        precision += np.eye(RISK_DIM) / TAU2
        expected = np.trace(np.linalg.inv(precision), axis1=1, axis2=2)
        assert abs(z_scores((losses[:, n] - expected)[:, None], 0.0)[0]) < Z


@pytest.mark.parametrize("other", [ols, ridge(10 * RATIO), gd(0.03)], ids=by_name)
def test_no_other_predictor_has_less_risk_than_the_bayes_predictor(drawn, other):
    x, clean, noise = drawn
    risk = (predict(BEST, x, clean + noise) - clean) ** 2
    excess = (predict(other, x, clean + noise) - clean) ** 2 - risk
    assert z_scores(excess[:, RISK_DIM + 2 : RISK_DIM + 3], 0.0)[0] > Z


def test_the_risk_without_examples_is_the_variance_of_the_labels(drawn):
    x, clean, noise = drawn
    labels = clean + noise
    losses = (predict(ols, x, labels) - labels)[:, :1] ** 2 / RISK_DIM
    assert abs(z_scores(losses, TAU2 + SIGMA2 / RISK_DIM)[0]) < Z


# Refusals.


@pytest.mark.parametrize("kind", [gd, sgd])
def test_a_learning_rate_that_is_not_positive_is_refused(kind):
    with refuses(ValueError, "`learning_rate` must be positive, got 0.0."):
        kind(0.0)
    with refuses(ValueError, "`learning_rate` must be positive, got -0.1."):
        kind(-0.1)
    with refuses(TypeError, "`learning_rate` must be a number, got '0.1'."):
        kind("0.1")


def test_a_negative_penalty_of_gradient_descent_is_refused():
    with refuses(ValueError, "`penalty` must not be negative, got -0.5."):
        sgd(0.01, penalty=-0.5)
    with refuses(TypeError, "`penalty` must be a number, got None."):
        sgd(0.01, penalty=None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("penalty", [0, 0.0, -1.0, float("nan")])
def test_ridge_regression_without_a_penalty_is_refused_in_favor_of_ols(penalty):
    message = f"`penalty` must be positive, got {penalty}. For no penalty, use `ols`."
    with refuses(ValueError, message):
        ridge(penalty)


def test_a_penalty_that_is_no_number_is_refused():
    with refuses(TypeError, "`penalty` must be a number, got True."):
        ridge(True)


def test_variances_that_are_none_are_refused():
    with refuses(ValueError, "`noise_variance` must not be negative, got -0.1."):
        bayes(noise_variance=-0.1, prior_variance=1.0)
    with refuses(ValueError, "`prior_variance` must be positive, got 0.0."):
        bayes(noise_variance=0.1, prior_variance=0.0)
    with refuses(TypeError, "`noise_variance` must be a number, got '1'."):
        bayes(noise_variance="1", prior_variance=1.0)  # pyright: ignore[reportArgumentType]
    with refuses(TypeError, "`prior_variance` must be a number, got None."):
        bayes(noise_variance=0.1, prior_variance=None)  # pyright: ignore[reportArgumentType]


def test_no_neighbors_are_refused():
    with refuses(ValueError, "`num_neighbors` must be at least 1, got 0."):
        knn(0)
    with refuses(TypeError, "`num_neighbors` must be an integer, got 3.0."):
        knn(3.0)  # pyright: ignore[reportArgumentType]


def test_an_unknown_weighting_is_refused():
    message = "`weighting` must be one of uniform, weighted, got 'weigthed'."
    with refuses(ValueError, f"{message} Did you mean 'weighted'?"):
        knn(3, "weigthed")  # pyright: ignore[reportArgumentType]


@all_predictors
def test_inputs_that_are_no_matrix_are_refused(predictor):
    y, query = jnp.ones(4), jnp.ones(2)
    for shape in ((4,), (3, 4, 2)):
        message = f"`x` must have shape (examples, dim), got shape {shape}. "
        with refuses(ValueError, message + "For a batch, use `jax.vmap`."):
            predictor(jnp.ones(shape), y, query)
        with refuses(ValueError, message + "For a batch, use `jax.vmap`."):
            predictor.predict_prefixes(jnp.ones(shape), y)


@all_predictors
@pytest.mark.parametrize("shape", [(3,), (1,), (), (4, 1)], ids=str)
def test_labels_that_do_not_match_the_inputs_are_refused(predictor, shape):
    x, y = jnp.ones((4, 2)), jnp.ones(shape)
    message = f"`y` must have shape (4,), one label per example, got shape {shape}."
    with refuses(ValueError, message):
        predictor(x, y, jnp.ones(2))
    with refuses(ValueError, message):
        predictor.predict_prefixes(x, y)


@all_predictors
@pytest.mark.parametrize("shape", [(3,), (1, 2)], ids=str)
def test_a_query_that_is_not_one_input_is_refused(predictor, shape):
    message = f"`query` must be one input of 2 coordinates, got shape {shape}."
    with refuses(ValueError, message):
        predictor(jnp.ones((0, 2)), jnp.ones(0), jnp.ones(shape))
