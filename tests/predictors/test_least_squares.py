"""Least squares, ridge regression and the Bayes predictors are what theory says.

Pseudoinverses, normal equations, scikit-learn, and closed forms of the risk.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import BayesianRidge, LinearRegression, Ridge
from support.textbook import (
    DIM,
    EXAMPLES,
    KINDS,
    POOL,
    X,
    Y,
    assert_close,
    by_name,
    compiled_prefixes,
    predict,
    wide_datasets,
)

from algoscope.predictors import (
    LinearPredictor,
    Predictor,
    bayes,
    discrete_bayes,
    gd,
    ols,
    ridge,
)
from algoscope.predictors.least_squares import rls_prefix_weights

EPS = float(np.finfo(np.float64).eps)

law = settings(max_examples=25)
seeds = st.integers(0, 2**32)

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


def test_bayesian_ridge_of_scikit_learn_is_ridge_with_the_ratio_of_precisions():
    x, y = wide_datasets()
    theirs = BayesianRidge(fit_intercept=False, max_iter=3).fit(x[0], y[0])
    # Its mean is computed before the last update of the precisions: refit with those.
    alpha, lambda_ = float(theirs.alpha_), float(theirs.lambda_)
    fixed = BayesianRidge(
        fit_intercept=False,
        max_iter=1,
        alpha_init=alpha,
        lambda_init=lambda_,
        alpha_1=1e30,
        alpha_2=1e30 / alpha,
        lambda_1=1e30,
        lambda_2=1e30 / lambda_,
    ).fit(x[0], y[0])
    assert_close([fixed.alpha_, fixed.lambda_], [alpha, lambda_], 1e-9)
    ours = ridge(lambda_ / alpha)
    w = jax.jit(ours.weights)(x[0], y[0])
    assert_close(w, fixed.coef_, 1e-8)


def test_recursive_least_squares_without_forgetting_is_ridge_regression():
    x, y = (jnp.asarray(part[0]) for part in wide_datasets())
    ours = rls_prefix_weights(x, y, forgetting=1.0, penalty=0.3)
    assert_close(ours, ridge(0.3).prefix_weights(x, y), 1e-12)


def test_without_a_tie_the_discrete_posterior_finds_the_task_of_the_pool(rng):
    x = rng.standard_normal((30, DIM))
    w = jax.jit(discrete_bayes(POOL, 0.01).weights)(x, x @ POOL[1])
    assert_close(w, POOL[1], 1e-12)
    # One label that no task explains: every likelihood underflows.
    w = jax.jit(discrete_bayes(POOL, 1e-6).weights)(np.ones((1, DIM)), np.full(1, 1e4))
    assert_close(w, POOL[1], 1e-12)  # the largest prediction at (1, 1)


# Closed forms of the risk: w ~ N(0, τ²I), x ~ N(0, I), y = wᵀx + N(0, σ²), as means
# over datasets of squared errors at a fresh input, divided by d.

RISK_DIM, RISK_EXAMPLES, NUM_DATASETS = 4, 20, 5000
TAU2, SIGMA2 = 2.0, 0.8
RATIO = SIGMA2 / TAU2
BEST = bayes(noise_variance=SIGMA2, prior_variance=TAU2)

# The normal distribution exceeds 5 once in two million draws. The seed is fixed, so a
# test that passes once passes always.
Z = 5.0


def predict_any(predictor: Predictor, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(compiled_prefixes(predictor)(x, y))


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
    losses = (predict_any(ols, x, clean) - clean) ** 2 / RISK_DIM
    n = np.arange(RISK_DIM)
    expected = TAU2 * (1 - n / RISK_DIM)
    assert np.max(np.abs(z_scores(losses[:, :RISK_DIM], expected))) < Z
    assert np.max(losses[:, RISK_DIM:]) < 1e-12


def test_the_risk_of_least_squares_with_noise_is_that_of_an_inverse_wishart(drawn):
    x, clean, noise = drawn
    losses = (predict_any(ols, x, clean + noise) - clean) ** 2 / RISK_DIM
    n = np.arange(RISK_DIM + 6, RISK_EXAMPLES)  # nearer to d the variance is infinite
    expected = SIGMA2 / (n - RISK_DIM - 1)
    assert np.max(np.abs(z_scores(losses[:, n], expected))) < Z


@cache
def one_step(learning_rate: float) -> LinearPredictor:
    return gd(learning_rate)


def one_step_losses(drawn, n: int, learning_rate: float) -> np.ndarray:
    x, clean, noise = drawn
    predictions = predict_any(one_step(learning_rate), x, clean + noise)
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
    losses = (predict_any(BEST, x, clean + noise) - clean) ** 2
    for n in (0, 1, RISK_DIM, 3 * RISK_DIM):
        precision = np.einsum("bni,bnj->bij", x[:, :n], x[:, :n]) / SIGMA2
        precision += np.eye(RISK_DIM) / TAU2
        expected = np.trace(np.linalg.inv(precision), axis1=1, axis2=2)
        assert abs(z_scores((losses[:, n] - expected)[:, None], 0.0)[0]) < Z


@pytest.mark.parametrize("other", [ols, ridge(10 * RATIO), gd(0.03)], ids=by_name)
def test_no_other_predictor_has_less_risk_than_the_bayes_predictor(drawn, other):
    x, clean, noise = drawn
    risk = (predict_any(BEST, x, clean + noise) - clean) ** 2
    excess = (predict_any(other, x, clean + noise) - clean) ** 2 - risk
    assert z_scores(excess[:, RISK_DIM + 2 : RISK_DIM + 3], 0.0)[0] > Z


def test_the_risk_without_examples_is_the_variance_of_the_labels(drawn):
    x, clean, noise = drawn
    labels = clean + noise
    losses = (predict_any(ols, x, labels) - labels)[:, :1] ** 2 / RISK_DIM
    assert abs(z_scores(losses, TAU2 + SIGMA2 / RISK_DIM)[0]) < Z
