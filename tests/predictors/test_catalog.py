"""Every predictor of the panel keeps the same laws, and does what its textbook says.

A predictor enters here with one line in `TEXTBOOK`: its name, and the same algorithm
written slowly in NumPy, for one prefix and one query. A law that it does not keep, by
its nature, is an entry in the set of exceptions beside that law.
"""

import re
from functools import cache, partial
from itertools import product
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, Lasso
from sklearn.neighbors import KNeighborsRegressor
from support.refusals import refuses
from test_predictors import (
    DIM,
    EXAMPLES,
    GENERIC,
    KINDS,
    QUICKLY,
    X,
    Y,
    assert_close,
    by_name,
    compiled_calls,
    compiled_prefixes,
    textbook_knn,
    textbook_ols,
    textbook_ridge,
    textbook_sgd,
)

from algoscope.predictors import (
    PANEL,
    LinearPredictor,
    Predictor,
    chebyshev,
    conjugate_gradients,
    discrete_bayes,
    example_panel,
    gd,
    gd_growing,
    gd_plus_plus,
    heavy_ball,
    kaczmarz,
    knn,
    lasso,
    nadaraya_watson,
    newton,
    optimal_gd,
    optimal_preconditioned_gd,
    parse_predictor,
    preconditioned_gd,
    ridge,
    rls,
    sgd,
    tuned_gd,
    zero,
)
from algoscope.predictors.accelerated import (
    conjugate_gradients_iterates,
    newton_iterates,
)
from algoscope.predictors.lasso import lasso_prefix_weights
from algoscope.predictors.least_squares import rls_prefix_weights
from algoscope.predictors.moments import prefix_moments
from algoscope.predictors.neighbors import kernel_prefix_predictions
from algoscope.predictors.stochastic import sgd_prefix_weights
from algoscope.tasks.linear import LinearRegression

# Arrays have no place in a name: these are built here, for the laws.
COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])
VARIANCES = np.array([2.0, 0.5])
POOL = np.array([[1.0, 0.0], [-0.5, 2.0], [0.3, -0.7]])
WITH_ARRAYS = (
    preconditioned_gd(0.03, 3, COVARIANCE),
    optimal_preconditioned_gd(VARIANCES, 0.25),
    discrete_bayes(POOL, 0.25),
)


# The algorithms in NumPy: x [n, d], y [n] and a query [d] to a prediction.


def textbook_zero(x, y, query):
    return 0.0


def textbook_average(x, y, query):
    return sum(query @ a * b for a, b in zip(x, y, strict=True)) / max(len(x), 1)


def gradient(x, y, w, penalty=0.0):
    total = 2 * penalty * w
    for each, label in zip(x, y, strict=True):
        total = total + 2 * (w @ each - label) * each
    return total


def textbook_gd(x, y, query, *, rate, steps, penalty=0.0, inverse=None):
    w = np.zeros(len(query))
    p = np.eye(len(query)) if inverse is None else inverse
    for _ in range(steps):
        w = w - rate * p @ gradient(x, y, w, penalty)
    return query @ w


def textbook_gd_growing(x, y, query, *, rate, clip):
    w = np.zeros(len(query))
    for n in range(1, len(x) + 1):
        w = w - rate * np.clip(gradient(x[:n], y[:n], w), -clip, clip)
    return query @ w


def textbook_gd_plus_plus(x, y, query, *, rate, curvature, steps):
    """As tokens: each carries an input and what is left of its label."""
    prediction = 0.0
    for _ in range(steps):
        change = np.eye(len(query)) - curvature * x.T @ x
        x, query = x @ change, change @ query
        step = 2 * rate * x.T @ y
        y, prediction = y - x @ step, prediction + query @ step
    return prediction


def textbook_optimal_gd(x, y, query, *, ratio, variances=(1.0, 1.0)):
    v = np.array(variances)
    return query @ (x.T @ y / ((len(x) + 1) * v + v.sum() + ratio))


def textbook_clipped_sgd(x, y, query, *, rate, clip):
    w = np.zeros(len(query))
    for each, label in zip(x, y, strict=True):
        w = w - rate * np.clip(2 * each * (w @ each - label), -clip, clip)
    return query @ w


def textbook_kaczmarz(x, y, query):
    w = np.zeros(len(query))
    for each, label in zip(x, y, strict=True):
        if np.any(each):
            direction = each / np.linalg.norm(each)
            w = w - direction * (direction @ w) + each * label / (each @ each)
    return query @ w


def textbook_heavy_ball(x, y, query, *, rate, momentum, steps):
    w = [np.zeros(len(query))] * 2
    for _ in range(steps):
        w.append(w[-1] - rate * gradient(x, y, w[-1]) + momentum * (w[-1] - w[-2]))
    return query @ w[-1]


def of_eigenvalues(x, y, query, inverse):
    """Return x′ᵀ f(XᵀX) XᵀY, where f is an approximate inverse on eigenvalues > 0."""
    values, vectors = np.linalg.eigh(x.T @ x)
    seen = values > 1e-10 * max(values[-1], 1e-300)
    values, vectors = values[seen], vectors[:, seen]
    return query @ vectors @ (inverse(values) * (vectors.T @ x.T @ y))


def textbook_chebyshev(x, y, query, *, steps, low, high):
    """Return the solver whose residual is Tₖ on [low, high], scaled to be 1 at 0."""
    degree = np.eye(steps + 1)[steps]

    def inverse(values):
        places = (high + low - 2 * values / len(x)) / (high - low)
        residual = np.polynomial.chebyshev.chebval(places, degree)
        at_0 = np.polynomial.chebyshev.chebval((high + low) / (high - low), degree)
        return (1 - residual / at_0) / values

    return of_eigenvalues(x, y, query, inverse)


def textbook_newton(x, y, query, *, steps):
    """The residual of M is squared in each step."""
    norm = np.linalg.norm(x.T @ x @ x.T @ x)
    return of_eigenvalues(
        x, y, query, lambda v: (1 - (1 - v**2 / norm) ** 2**steps) / v
    )


def textbook_conjugate_gradients(x, y, query, *, steps):
    """Return least squares within the Krylov space."""
    columns = [x.T @ y]
    for _ in range(steps - 1):
        columns.append(x.T @ (x @ columns[-1]))
    columns = [c / max(np.linalg.norm(c), 1e-300) for c in columns]
    basis, sizes, _ = np.linalg.svd(np.stack(columns, axis=1), full_matrices=False)
    basis = basis[:, sizes > 1e-10]
    return query @ basis @ np.linalg.pinv(x @ basis, rcond=1e-8) @ y


def textbook_lasso(x, y, query, *, penalty):
    """Try every pattern of signs."""
    best, least = np.zeros(len(query)), float(y @ y) / (2 * max(len(x), 1))
    for signs in product([-1.0, 0.0, 1.0], repeat=len(query)):
        s = np.array(signs)
        chosen = x[:, s != 0]
        right = chosen.T @ y - len(x) * penalty * s[s != 0]
        w = np.zeros(len(query))
        w[s != 0] = np.linalg.pinv(chosen.T @ chosen, rcond=1e-10) @ right
        loss = np.sum((y - x @ w) ** 2) / (2 * max(len(x), 1))
        loss += penalty * np.sum(np.abs(w))
        if loss < least - 1e-12:
            best, least = w, loss
    return query @ best


def textbook_rls(x, y, query, *, forgetting, penalty):
    n = len(x)
    ages = np.diag(forgetting ** np.arange(n - 1.0, -1, -1))
    matrix = x.T @ ages @ x + forgetting**n * penalty * np.eye(len(query))
    return query @ np.linalg.solve(matrix, x.T @ ages @ y)


def textbook_nadaraya_watson(x, y, query, *, bandwidth):
    kernels = [np.exp(-np.sum((a - query) ** 2) / (2 * bandwidth**2)) for a in x]
    return np.average(y, weights=kernels) if kernels else 0.0


def textbook_discrete_bayes(x, y, query, *, noise_variance):
    likelihoods = [
        np.prod(np.exp(-((y - x @ w) ** 2) / (2 * noise_variance))) for w in POOL
    ]
    return query @ np.average(POOL, axis=0, weights=likelihoods)


three_nearest = partial(textbook_knn, num_neighbors=3)
TEXTBOOK = {
    "Zero": textbook_zero,
    "Average": textbook_average,
    "OLS": textbook_ols,
    "Ridge(0.1)": partial(textbook_ridge, penalty=0.1),
    "Lasso(0.1)": partial(textbook_lasso, penalty=0.1),
    "RLS(0.9, 0.1)": partial(textbook_rls, forgetting=0.9, penalty=0.1),
    "GD(0.02)": partial(textbook_gd, rate=0.02, steps=1),
    "GD(0.02, steps=8, penalty=0.1)": partial(
        textbook_gd, rate=0.02, steps=8, penalty=0.1
    ),
    "GDGrowing(0.02)": partial(textbook_gd_growing, rate=0.02, clip=20),
    "GD++(0.02, 0.01, 3)": partial(
        textbook_gd_plus_plus, rate=0.02, curvature=0.01, steps=3
    ),
    "PreconditionedGD(0.02, 4)": partial(textbook_gd, rate=0.02, steps=4),
    "PreconditionedGD(0.03, 3)": partial(
        textbook_gd, rate=0.03, steps=3, inverse=np.linalg.inv(COVARIANCE)
    ),
    "OptimalGD(0.25)": partial(textbook_optimal_gd, ratio=0.25),
    "OptimalPreconditionedGD(0.25)": partial(
        textbook_optimal_gd, ratio=0.25, variances=VARIANCES
    ),
    "SGD(0.03)": partial(textbook_sgd, learning_rate=0.03),
    "SGD(0.03, 0.2)": partial(textbook_sgd, learning_rate=0.03, penalty=0.2),
    "SGD(0.03, clip=0.5)": partial(textbook_clipped_sgd, rate=0.03, clip=0.5),
    "Kaczmarz": textbook_kaczmarz,
    "HeavyBall(0.02, 0.5, 4)": partial(
        textbook_heavy_ball, rate=0.02, momentum=0.5, steps=4
    ),
    "Chebyshev(4, 0.2, 2.5)": partial(textbook_chebyshev, steps=4, low=0.2, high=2.5),
    "ConjugateGradients(2)": partial(textbook_conjugate_gradients, steps=2),
    "Newton(4)": partial(textbook_newton, steps=4),
    "KNN(3, uniform)": partial(three_nearest, weighted=False),
    "KNN(3, weighted)": partial(three_nearest, weighted=True),
    "KNN(3, weighted, power=1)": partial(three_nearest, weighted=True, power=1),
    "NadarayaWatson(0.5)": partial(textbook_nadaraya_watson, bandwidth=0.5),
    "DiscreteBayes(3 tasks, 0.25)": partial(
        textbook_discrete_bayes, noise_variance=0.25
    ),
}

MEMBERS = (*example_panel(), *WITH_ARRAYS)
all_predictors = pytest.mark.parametrize("predictor", MEMBERS, ids=by_name)
linear_predictors = pytest.mark.parametrize(
    "predictor", [p for p in MEMBERS if isinstance(p, LinearPredictor)], ids=by_name
)


def all_but(exceptions: set[str]):
    """Parametrize over the predictors that keep a law; the exceptions must exist."""
    names = {member.name for member in MEMBERS}
    assert exceptions <= names, exceptions - names
    kept = [member for member in MEMBERS if member.name not in exceptions]
    return pytest.mark.parametrize("predictor", kept, ids=by_name)


def predict(predictor: Predictor, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return predictions for any number of datasets, with the one compiled shape."""
    size = len(X)
    parts = []
    for start in range(0, len(x), size):
        rows = np.resize(np.arange(start, min(start + size, len(x))), size)
        parts.append(np.asarray(compiled_prefixes(predictor)(x[rows], y[rows])))
    return np.concatenate(parts)[: len(x)]


def predict_all(predictor: Predictor, x: jax.Array, y: jax.Array) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(predictor.predict_prefixes))(x, y))


# Laws of the whole panel.


def test_every_predictor_of_the_panel_is_in_the_textbook():
    assert {member.name for member in MEMBERS} == set(TEXTBOOK)


@all_predictors
def test_the_algorithm_is_the_textbook_s_at_every_prefix(predictor):
    textbook = TEXTBOOK[predictor.name]
    for x, y, predictions in zip(X, Y, predict(predictor, X, Y), strict=True):
        expected = [textbook(x[:n], y[:n], x[n]) for n in range(EXAMPLES)]
        assert_close(predictions, expected, 1e-9)


@all_predictors
def test_predictions_at_every_prefix_are_those_of_refitting(predictor):
    assert_close(predict(predictor, X, Y), compiled_calls(predictor)(X, Y), 1e-11)


@all_but({"DiscreteBayes(3 tasks, 0.25)"})  # it knows the tasks beforehand
def test_without_examples_the_prediction_is_zero(predictor):
    assert predict(predictor, X, Y)[:, 0].tolist() == [0.0] * len(X)


# Rates and intervals that are fixed diverge on inputs beyond them, and overflow.
EXPLOSIVE = {
    "GD(0.02, steps=8, penalty=0.1)",
    "GD++(0.02, 0.01, 3)",
    "PreconditionedGD(0.02, 4)",
    "PreconditionedGD(0.03, 3)",
    "HeavyBall(0.02, 0.5, 4)",
    "Chebyshev(4, 0.2, 2.5)",
}


@all_but(EXPLOSIVE)
def test_extreme_data_give_finite_predictions(predictor):
    x = np.stack([X[0]] * len(X))
    x[0, 1] = x[0, 0] * (1 + 1e-14)
    x[1] *= np.geomspace(1e-12, 1e12, EXAMPLES)[:, None]
    x[2] *= 1e-30
    x[3] *= 1e30
    assert np.all(np.isfinite(predict(predictor, x, Y)))


@all_predictors
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_have_the_precision_of_the_data(predictor, dtype):
    for n in (0, 1, 4):
        x, y = (jax.ShapeDtypeStruct(s, dtype) for s in ((n, DIM), (n,)))
        prefixes = jax.eval_shape(predictor.predict_prefixes, x, y)
        assert (prefixes.shape, prefixes.dtype) == ((n,), dtype)
        query = jax.ShapeDtypeStruct((DIM,), dtype)
        assert jax.eval_shape(predictor.__call__, x, y, query).dtype == dtype


@all_predictors
def test_a_label_matters_only_after_its_example(predictor):
    changed = Y.copy()
    changed[:, 2] += 1.0
    before, after = predict(predictor, X, Y), predict(predictor, X, changed)
    assert_close(after[:, :3], before[:, :3], 1e-12)
    assert (after[0, 3] != before[0, 3]) == (predictor is not zero)


ORDERED = {
    "RLS(0.9, 0.1)",
    "GDGrowing(0.02)",
    "SGD(0.03)",
    "SGD(0.03, 0.2)",
    "SGD(0.03, clip=0.5)",
    "Kaczmarz",
}


def reversed_order() -> tuple[np.ndarray, np.ndarray]:
    x, y = X.copy(), Y.copy()
    x[:, :-1], y[:, :-1] = X[:, -2::-1], Y[:, -2::-1]
    return x, y


@all_but(ORDERED)
def test_the_order_of_examples_does_not_matter(predictor):
    # Equally near examples are taken in order: only data without them qualify for kNN.
    kinds = GENERIC if predictor.name.startswith("KNN") else slice(None)
    forth, back = predict(predictor, X, Y), predict(predictor, *reversed_order())
    assert_close(back[kinds, -1], forth[kinds, -1], 1e-9)


@all_but({member.name for member in MEMBERS} - ORDERED)
def test_the_order_of_examples_matters_to_learners_that_see_them_in_turn(predictor):
    forth, back = predict(predictor, X, Y), predict(predictor, *reversed_order())
    assert abs(forth[0, -1] - back[0, -1]) > 1e-5


@linear_predictors
def test_the_influence_of_a_label_is_what_changing_it_does(predictor):
    change = 1e-4
    labels = np.stack(
        [
            Y[0] + sign * change * np.eye(EXAMPLES)[i]
            for i in range(EXAMPLES - 1)
            for sign in (1, -1)
        ]
    )
    up, down = (
        predict(predictor, np.stack([X[0]] * len(labels)), labels)[:, -1]
        .reshape(-1, 2)
        .T
    )
    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])
    influence = jax.jit(predictor.influence, compiler_options=QUICKLY)(
        x[:-1], y[:-1], x[-1]
    )
    assert_close(influence, (up - down) / (2 * change), 1e-6)


# Names.


@pytest.mark.parametrize("predictor", example_panel(), ids=by_name)
@pytest.mark.parametrize("spell", [str, str.lower, str.upper], ids=lambda s: s.__name__)
def test_the_name_of_a_predictor_calls_for_it(predictor, spell):
    assert parse_predictor(spell(predictor.name)).name == predictor.name


def test_every_name_of_the_panel_has_an_example():
    examples = {str(p.name).split("(")[0].lower() for p in example_panel()}
    plain = {name.replace("_", "").replace("plusplus", "++") for name in PANEL}
    assert plain - {"bayes"} == examples  # its name is that of the ridge that it is


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ridge(penalty=0.1)", "Ridge(0.1)"),
        ("Ridge( 1 )", "Ridge(1)"),
        (" ols() ", "OLS"),
        ("kaczmarz", "Kaczmarz"),
        ("knn", "KNN(3, uniform)"),
        ("knn(5, Weighted, 1)", "KNN(5, weighted, power=1)"),
        ("knn(5, 'weighted')", "KNN(5, weighted)"),
        ("gd_plus_plus(0.02, 0.01)", "GD++(0.02, 0.01, 1)"),
        ("nadaraya_watson(2)", "NadarayaWatson(2)"),
        ("sgd(1e-3, clip=20)", "SGD(0.001, clip=20)"),
        ("sgd(0.03, clip=None)", "SGD(0.03)"),
        ("bayes(noise_variance=0.15, prior_variance=1.5)", "Ridge(0.1)"),
    ],
)
def test_a_predictor_is_what_its_text_calls_for(text, name):
    assert parse_predictor(text).name == name


def test_an_unknown_name_is_refused_with_the_nearest():
    message = f"`predictor` must be one of {', '.join(PANEL)}, got 'rige'. "
    with refuses(ValueError, message + "Did you mean 'ridge'?"):
        parse_predictor("rige(0.1)")


@pytest.mark.parametrize(
    ("text", "form", "remedy"),
    [
        ("ridge", "ridge(penalty)", "Missing a required argument: 'penalty'."),
        ("ols(1)", "ols()", "Too many positional arguments."),
        (
            "gd(0.02, step=8)",
            "gd(learning_rate, steps=1, penalty=0.0)",
            "Got an unexpected keyword argument 'step'.",
        ),
    ],
)
def test_wrong_arguments_are_refused_with_the_right_ones(text, form, remedy):
    message = f"`predictor` must have the form {form}, got {text!r}. {remedy}"
    with refuses(ValueError, message):
        parse_predictor(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.1",
        "ridge(",
        "ridge(0.1) + ols",
        "ridge(float(1))",
        "ridge(*[1])",
        "ridge(**{'penalty': 1})",
        "a.ridge(0.1)",
        "__import__('os').system('true')",
        "ridge(0.1, penalty=1, penalty=2)",
        "ridge(\0)",
    ],
)
def test_text_that_is_no_plain_call_is_refused(text):
    rule = "be a name, or a call with plain arguments such as 'ridge(0.1)'"
    with refuses(ValueError, f"`predictor` must {rule}, got {text!r}."):
        parse_predictor(text)


# One family after another.


def test_moments_are_those_of_each_prefix():
    gram, moment = jax.jit(prefix_moments)(X[0], Y[0])
    for n in range(EXAMPLES + 1):
        assert_close(gram[n], X[0, :n].T @ X[0, :n], 1e-13)
        assert_close(moment[n], X[0, :n].T @ Y[0, :n], 1e-13)


@cache
def wide() -> tuple[np.ndarray, np.ndarray]:
    """Datasets of eight coordinates, some of them without effect."""
    rng = np.random.default_rng(20221128)
    x = rng.standard_normal((len(KINDS), 14, 8))
    w = rng.standard_normal((len(KINDS), 8)) * (rng.random((len(KINDS), 8)) < 0.5)
    noise = 0.3 * rng.standard_normal((len(KINDS), 14))
    return x, np.einsum("bnd,bd->bn", x, w) + noise


lasso_batch = jax.jit(
    jax.vmap(
        lambda x, y, penalty: lasso_prefix_weights(x, y, penalty=penalty),
        in_axes=(0, 0, None),
    )
)


@pytest.mark.parametrize("penalty", [0.01, 0.1, 0.5])
def test_the_lasso_is_that_of_scikit_learn(penalty):
    x, y = wide()
    weights = np.asarray(lasso_batch(x, y, penalty))
    theirs = Lasso(penalty, fit_intercept=False, tol=1e-10, max_iter=10**6)
    for i in range(len(x)):
        for n in (1, 2, 5, 8, 9, 14):
            expected = theirs.fit(x[i, :n], y[i, :n]).coef_
            np.testing.assert_allclose(weights[i, n], expected, atol=1e-6)


def test_a_derivative_of_the_lasso_is_a_difference_quotient():
    x, y = wide()

    @jax.jit
    def slope(penalty):
        def sizes(penalty):
            w = lasso_prefix_weights(
                jnp.asarray(x[0]), jnp.asarray(y[0]), penalty=penalty
            )
            return jnp.sum(w**2)

        return sizes(penalty), jax.grad(sizes)(penalty)

    (up, _), (down, _) = slope(0.1 + 1e-6), slope(0.1 - 1e-6)
    np.testing.assert_allclose(slope(0.1)[1], (up - down) / 2e-6, rtol=1e-5)


@pytest.mark.parametrize("num_neighbors", [1, 4])
def test_nearest_neighbors_of_power_1_are_those_of_scikit_learn(num_neighbors, rng):
    x, y = rng.standard_normal((9, 2)), rng.standard_normal(9)
    queries = np.concatenate([rng.standard_normal((20, 2)), x[:2]])
    theirs = KNeighborsRegressor(num_neighbors, weights="distance").fit(x, y)
    ours = knn(num_neighbors, "weighted", power=1)
    answers = jax.jit(jax.vmap(ours, (None, None, 0)))(x, y, queries)
    assert_close(answers, theirs.predict(queries))


def test_bayesian_ridge_of_scikit_learn_is_ridge_with_the_ratio_of_precisions():
    x, y = wide()
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
    x, y = (jnp.asarray(part[0]) for part in wide())
    ours = rls_prefix_weights(x, y, forgetting=1.0, penalty=0.3)
    assert_close(ours, ridge(0.3).prefix_weights(x, y), 1e-12)


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
    for x, y in (wide(), (X, Y)):
        w = np.asarray(iterates(x, y))
        assert np.all(np.isfinite(w))
        for i, n in product(range(len(x)), range(x.shape[1] + 1)):
            condition = np.linalg.cond(x[i, :n]) if n else 1.0
            if condition < 1e3 or condition > 1e10:  # of full rank, or clearly not
                expected = np.linalg.pinv(x[i, :n], rcond=1e-8) @ y[i, :n]
                assert_close(w[i, -1, n], expected, 1e-8)
                assert_close(w[i, 12, n], w[i, -1, n], 1e-8)


def test_newton_squares_what_is_left_in_every_direction_in_each_step():
    x, y = (part[0] for part in wide())
    w = np.asarray(jax.jit(partial(newton_iterates, num_steps=16))(x, y))[:, -1]
    _, directions = np.linalg.eigh(x.T @ x)
    left = 1 - (w @ x.T @ x @ directions) / (y @ x @ directions)
    assert np.max(np.abs(left[4])) > 0.5  # squaring it is visible for several steps
    assert_close(left[1:], left[:-1] ** 2, 1e-9)
    assert_close(w[-1], np.linalg.lstsq(x, y)[0], 1e-9)


def test_a_far_query_is_answered_by_its_nearest_neighbor():
    x, y = X[0].copy(), Y[0]
    x[-1] = 1e4  # every kernel underflows
    (nearest,) = predict(knn(1), x[None], y[None])
    (kernel,) = predict(nadaraya_watson(0.5), x[None], y[None])
    assert kernel[-1] == nearest[-1]


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


def test_without_a_tie_the_discrete_posterior_finds_the_task_of_the_pool(rng):
    x = rng.standard_normal((30, DIM))
    w = jax.jit(discrete_bayes(POOL, 0.01).weights)(x, x @ POOL[1])
    assert_close(w, POOL[1], 1e-12)
    # One label that no task explains: every likelihood underflows.
    w = jax.jit(discrete_bayes(POOL, 1e-6).weights)(np.ones((1, DIM)), np.full(1, 1e4))
    assert_close(w, POOL[1], 1e-12)  # the largest prediction at (1, 1)


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


# The guide.


def test_the_predictor_of_the_guide_is_the_textbook_s():
    guide = Path(__file__).parents[2] / "docs" / "how_to_add_a_predictor.md"
    blocks = re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)
    module, _, textbook = blocks[:3]  # the panel's lines between them are a diff
    names = {"np": np, "partial": partial}
    exec(module, names)
    exec(textbook, names)
    predictions = predict(names["normalized_gd"](0.1, 4), X, Y)
    for x, y, ours in zip(X, Y, predictions, strict=True):
        expected = [
            names["textbook_normalized_gd"](x[:n], y[:n], x[n], rate=0.1, steps=4)
            for n in range(EXAMPLES)
        ]
        assert_close(ours, expected, 1e-9)


# Refusals.


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: gd(0.1, 0), "`steps` must be at least 1, got 0."),
        (lambda: gd(0.1, 2, -1.0), "`penalty` must not be negative, got -1.0."),
        (lambda: gd_growing(0.1, 0.0), "`clip` must be positive, got 0.0."),
        (lambda: gd_growing(-0.1), "`learning_rate` must be positive, got -0.1."),
        (lambda: sgd(0.1, clip=-1.0), "`clip` must be positive, got -1.0."),
        (lambda: kaczmarz(0.0), "`learning_rate` must be positive, got 0.0."),
        (lambda: gd_plus_plus(0.0, 0.1), "`learning_rate` must be positive, got 0.0."),
        (
            lambda: gd_plus_plus(0.1, -0.1),
            "`curvature` must not be negative, got -0.1.",
        ),
        (lambda: preconditioned_gd(0.1, 0), "`steps` must be at least 1, got 0."),
        (
            lambda: preconditioned_gd(0.1, 1, np.array([[1.0, 2.0], [2.0, 1.0]])),
            "`covariance` must be a positive definite matrix, "
            "got [[1.0, 2.0], [2.0, 1.0]].",
        ),
        (
            lambda: optimal_gd(-1.0),
            "`noise_to_prior` must not be negative, got -1.0.",
        ),
        (
            lambda: optimal_preconditioned_gd(np.array([1.0, 0.0])),
            "`variances` must be one positive number per coordinate, got [1.0, 0.0].",
        ),
        (
            lambda: tuned_gd(LinearRegression(2), 0, 4),
            "`steps` must be at least 1, got 0.",
        ),
        (
            lambda: tuned_gd(LinearRegression(2), 1, 0),
            "`num_examples` must be at least 1, got 0.",
        ),
        (lambda: heavy_ball(0.1, 1.0, 2), "`momentum` must be below 1, got 1.0."),
        (
            lambda: heavy_ball(0.1, -0.5, 2),
            "`momentum` must not be negative, got -0.5.",
        ),
        (
            lambda: chebyshev(2, 3.0, 2.0),
            "`low` must be at most `high`, which is 2.0, got 3.0.",
        ),
        (lambda: chebyshev(2, 0.0, 2.0), "`low` must be positive, got 0.0."),
        (lambda: conjugate_gradients(0), "`steps` must be at least 1, got 0."),
        (lambda: newton(-1), "`steps` must be at least 0, got -1."),
        (
            lambda: lasso(0.0),
            "`penalty` must be positive, got 0.0. For no penalty, use `ols`.",
        ),
        (lambda: rls(1.5, 0.1), "`forgetting` must be at most 1, got 1.5."),
        (lambda: rls(0.0, 0.1), "`forgetting` must be positive, got 0.0."),
        (lambda: rls(0.9, 0.0), "`penalty` must be positive, got 0.0."),
        (lambda: nadaraya_watson(0.0), "`bandwidth` must be positive, got 0.0."),
        (
            lambda: knn(3, "weighted", power=-1.0),
            "`power` must be positive, got -1.0.",
        ),
        (
            lambda: discrete_bayes(np.zeros((0, 2)), 0.1),
            "`pool` must have shape (tasks, dim), with one task or more, "
            "got shape (0, 2).",
        ),
        (
            lambda: discrete_bayes(POOL, 0.0),
            "`noise_variance` must be positive, got 0.0.",
        ),
    ],
)
def test_parameters_out_of_range_are_refused(build, message):
    with refuses(ValueError, message):
        build()
