"""Every predictor again, as in a textbook: slow, in NumPy, one prefix at a time.

An implementation maps x [n, d], y [n] and a query [d] to a prediction. `TEXTBOOK` lists
them by the name of the predictor, and `MEMBERS` are the predictors themselves: the
examples of the catalog, and those that need arrays, which cannot be typed.

`X` and `Y` hold one dataset of each kind in `KINDS`, all in one batch, so that a test
over all of them compiles once.
"""

from functools import cache, partial
from itertools import product

import jax
import jax.numpy as jnp
import numpy as np

from algoscope.predictors import (
    Predictor,
    discrete_bayes,
    example_predictors,
    optimal_preconditioned_gd,
    preconditioned_gd,
)

EXAMPLES, DIM = 5, 2  # prefixes of 0 to 4 examples: fewer than d, d, and more
QUICKLY = {"xla_backend_optimization_level": 0}  # compile: it runs only once

COVARIANCE = np.array([[2.0, 0.5], [0.5, 1.0]])
VARIANCES = np.array([2.0, 0.5])
POOL = np.array([[1.0, 0.0], [-0.5, 2.0], [0.3, -0.7]])


def textbook_zero(x, y, query):
    return 0.0


def textbook_average(x, y, query):
    return sum(query @ a * b for a, b in zip(x, y, strict=True)) / max(len(x), 1)


def textbook_ols(x, y, query):
    return query @ np.linalg.pinv(x, rcond=1e-8) @ y


def textbook_ridge(x, y, query, *, penalty):
    return query @ np.linalg.solve(x.T @ x + penalty * np.eye(len(query)), x.T @ y)


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


def textbook_sgd(x, y, query, *, learning_rate, penalty=0.0):
    w = np.zeros(len(query))
    for each, label in zip(x, y, strict=True):
        w = w - 2 * learning_rate * (each * (w @ each) - each * label + penalty * w)
    return query @ w


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

MEMBERS = (
    *example_predictors(),
    preconditioned_gd(0.03, 3, COVARIANCE),
    optimal_preconditioned_gd(VARIANCES, 0.25),
    discrete_bayes(POOL, 0.25),
)


def _draw_kinds() -> dict[str, tuple[np.ndarray, np.ndarray]]:
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


KINDS = _draw_kinds()
GENERIC = [list(KINDS).index("generic")]
X, Y = (np.stack(part) for part in zip(*KINDS.values(), strict=True))


def wide_datasets() -> tuple[np.ndarray, np.ndarray]:
    """Return x and y of eight coordinates, some of them without effect."""
    rng = np.random.default_rng(20221128)
    x = rng.standard_normal((len(KINDS), 14, 8))
    w = rng.standard_normal((len(KINDS), 8)) * (rng.random((len(KINDS), 8)) < 0.5)
    noise = 0.3 * rng.standard_normal((len(KINDS), 14))
    return x, np.einsum("bnd,bd->bn", x, w) + noise


def by_name(predictor: Predictor) -> str:
    """Name a test after its predictor."""
    return predictor.name


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
    """Return predictions for any number of datasets, with the one compiled shape."""
    size = len(X)
    parts = []
    for start in range(0, len(x), size):
        rows = np.resize(np.arange(start, min(start + size, len(x))), size)
        parts.append(np.asarray(compiled_prefixes(predictor)(x[rows], y[rows])))
    return np.concatenate(parts)[: len(x)]


def assert_close(actual, expected, tolerance: float = 1e-10) -> None:
    np.testing.assert_allclose(actual, expected, rtol=tolerance, atol=tolerance)
