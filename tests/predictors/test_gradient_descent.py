"""Gradient descent and its relatives: special cases, convergence, best rates."""

from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np
from support.textbook import (
    DIM,
    EXAMPLES,
    X,
    Y,
    assert_close,
    predict,
    wide_datasets,
)

from algoscope.predictors import (
    LinearPredictor,
    Predictor,
    chebyshev,
    gd,
    gd_plus_plus,
    heavy_ball,
    optimal_gd,
    optimal_preconditioned_gd,
    tuned_gd,
)
from algoscope.predictors.accelerated import (
    conjugate_gradients_iterates,
    newton_iterates,
)
from algoscope.predictors.least_squares import prefix_moments
from algoscope.predictors.neighbors import kernel_prefix_predictions
from algoscope.predictors.stochastic import sgd_prefix_weights
from algoscope.tasks.linear import LinearRegression


def test_moments_are_those_of_each_prefix():
    gram, moment = jax.jit(prefix_moments)(X[0], Y[0])
    for n in range(EXAMPLES + 1):
        assert_close(gram[n], X[0, :n].T @ X[0, :n], 1e-13)
        assert_close(moment[n], X[0, :n].T @ Y[0, :n], 1e-13)


def test_gd_plus_plus_without_curvature_is_gradient_descent():
    assert_close(
        predict(gd_plus_plus(0.02, 0.0, 3), X, Y), predict(gd(0.02, 3), X, Y), 1e-13
    )


def test_heavy_ball_without_momentum_is_gradient_descent():
    assert_close(
        predict(heavy_ball(0.02, 0.0, 3), X, Y), predict(gd(0.02, 3), X, Y), 1e-13
    )


def test_a_chebyshev_interval_of_one_point_is_gradient_descent_of_that_rate():
    # θ is the eigenvalue of S/n: a step is (b − Sw)/nθ, so 2α = 1/nθ.
    n = EXAMPLES - 1
    constant = predict(chebyshev(3, 2.0, 2.0), X, Y)[:, n]
    assert_close(constant, predict(gd(1 / (4 * n), 3), X, Y)[:, n], 1e-12)


def test_conjugate_gradients_are_exact_and_stay_so_on_data_of_any_rank():
    iterates = jax.jit(
        jax.vmap(lambda x, y: conjugate_gradients_iterates(x, y, num_steps=20))
    )
    for x, y in (wide_datasets(), (X, Y)):
        w = np.asarray(iterates(x, y))
        assert np.all(np.isfinite(w))
        for i, n in product(range(len(x)), range(x.shape[1] + 1)):
            condition = np.linalg.cond(x[i, :n]) if n else 1.0
            if condition < 1e3 or condition > 1e10:  # of full rank, or clearly not
                expected = np.linalg.pinv(x[i, :n], rcond=1e-8) @ y[i, :n]
                assert_close(w[i, -1, n], expected, 1e-8)
                assert_close(w[i, 12, n], w[i, -1, n], 1e-8)


def test_newton_squares_what_is_left_in_every_direction_in_each_step():
    x, y = (part[0] for part in wide_datasets())
    w = np.asarray(jax.jit(partial(newton_iterates, num_steps=16))(x, y))[:, -1]
    _, directions = np.linalg.eigh(x.T @ x)
    left = 1 - (w @ x.T @ x @ directions) / (y @ x @ directions)
    assert np.max(np.abs(left[4])) > 0.5  # squaring it is visible for several steps
    assert_close(left[1:], left[:-1] ** 2, 1e-9)
    assert_close(w[-1], np.linalg.lstsq(x, y)[0], 1e-9)


def test_hyper_parameters_may_be_traced():
    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])

    @jax.jit
    @jax.vmap
    def both(h):
        def total(h):
            rates = sgd_prefix_weights(
                x, y, learning_rate=h, penalty=h * jnp.arange(2.0), power=h
            )
            return jnp.sum(rates**2) + jnp.sum(
                kernel_prefix_predictions(x, y, bandwidth=h)
            )

        return total(h), jax.grad(total)(h)

    values, slopes = both(jnp.array([0.1, 0.1 + 1e-6, 0.1 - 1e-6]))
    np.testing.assert_allclose(slopes[0], (values[1] - values[2]) / 2e-6, rtol=1e-6)


def test_decaying_rates_and_penalties_per_coordinate_are_as_in_the_formula():
    penalties = np.array([0.5, 0.0])
    w = np.zeros(DIM)
    for t, (each, label) in enumerate(zip(X[0], Y[0], strict=True), start=1):
        gradient = 2 * (each * (w @ each - label) + penalties * w)
        w = w - 0.1 / np.sqrt(t) * gradient
    ours = sgd_prefix_weights(
        jnp.asarray(X[0]),
        jnp.asarray(Y[0]),
        learning_rate=0.1,
        penalty=jnp.asarray(penalties),
        power=0.5,
    )
    assert_close(ours[-1], w, 1e-13)


# Risk: w ~ N(0, τ²I), x ~ N(0, diag v), y = wᵀx + N(0, σ²); 5 standard errors.

RISK_DIM, TAU2, SIGMA2 = 4, 2.0, 0.8
RATIO = SIGMA2 / TAU2


@cache
def drawn(variances: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return many datasets: x, y and w."""
    rng = np.random.default_rng(20221128)
    x = rng.standard_normal((5000, 13, RISK_DIM)) * np.sqrt(variances)
    w = np.sqrt(TAU2) * rng.standard_normal((5000, RISK_DIM))
    noise = np.sqrt(SIGMA2) * rng.standard_normal((5000, 13))
    return x, np.einsum("bnd,bd->bn", x, w) + noise, w


def risks(predictor: LinearPredictor, variances: tuple[float, ...]) -> np.ndarray:
    """Return E (wₙᵀx′ − wᵀx′)² over x′, for each dataset and n."""
    x, y, w = drawn(variances)
    learned = np.asarray(jax.jit(jax.vmap(predictor.prefix_weights))(x, y))
    return np.sum((learned - w[:, None]) ** 2 * np.array(variances), axis=-1)


def test_the_risk_of_the_optimal_step_is_that_of_theory():
    samples = risks(optimal_gd(RATIO), (1.0,) * RISK_DIM)
    n = np.arange(samples.shape[1])
    offset = RISK_DIM + 1 + RATIO
    expected = RISK_DIM * TAU2 * offset / (n + offset)
    errors = samples.std(0) / np.sqrt(len(samples))
    assert np.all(np.abs(samples.mean(0) - expected) < 5 * errors)


def test_the_risk_of_the_optimal_preconditioned_step_is_that_of_theory():
    v = np.array([4.0, 1.0, 0.25, 0.25])
    best = risks(optimal_preconditioned_gd(v, RATIO), tuple(v))
    n = np.arange(best.shape[1])[:, None]
    # With E bᵢwᵢ = nvᵢτ² and the best ηᵢ, coordinate i has the risk vᵢτ²(1 − ηᵢnvᵢ).
    eta = 1 / ((n + 1) * v + v.sum() + RATIO)
    expected = np.sum(v * TAU2 * (1 - eta * n * v), axis=1)
    errors = best.std(0) / np.sqrt(len(best))
    assert np.all(np.abs(best.mean(0) - expected) < 5 * errors)
    # One rate for all coordinates is worse; seen best where there are many examples.
    excess = (risks(optimal_gd(RATIO), tuple(v)) - best)[:, -1]
    assert excess.mean() > 5 * excess.std() / np.sqrt(len(excess))


def predict_all(predictor: Predictor, x: jax.Array, y: jax.Array) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(predictor.predict_prefixes))(x, y))


def learning_rate(predictor: LinearPredictor) -> float:
    return float(predictor.name.split("(")[1].rstrip(")").split(",")[0])


def test_a_tuned_rate_of_one_step_is_the_least_squares_solution_for_it():
    task = LinearRegression(dim=3, noise_variance=0.1)
    keys = jax.random.split(jax.random.key(7), 300)
    data = jax.jit(jax.vmap(lambda key: task.sample(key, 6)))(keys)
    # The prediction is α times a number, so the best α is a regression on it.
    unit = predict_all(gd(1.0), data.x, data.y)[:, 1:]
    best = np.sum(unit * np.asarray(data.y)[:, 1:]) / np.sum(unit**2)
    tuned = tuned_gd(task, 1, 5, num_datasets=300, seed=7)
    np.testing.assert_allclose(learning_rate(tuned), best, rtol=2e-3)


def test_a_tuned_rate_of_several_steps_has_less_risk_than_its_neighbors():
    task = LinearRegression(dim=3, noise_variance=0.1)
    rate = learning_rate(tuned_gd(task, 3, 6, num_datasets=2000))
    keys = jax.random.split(jax.random.key(1), 2000)
    data = jax.jit(jax.vmap(lambda key: task.sample(key, 7)))(keys)

    def losses(rate: float) -> np.ndarray:
        errors = predict_all(gd(rate, 3), data.x, data.y) - np.asarray(data.y)
        return np.mean(errors[:, 1:] ** 2, axis=1)

    for factor in (0.6, 1.4):
        excess = losses(factor * rate) - losses(rate)
        assert excess.mean() > 3 * excess.std() / np.sqrt(len(excess))
