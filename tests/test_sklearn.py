"""An in-context learner as a regressor: scikit-learn's own checks, and the laws of fit.

Where the data fit the learner as they are, the regressor is the learner; where they do
not, what is done to them is what its documentation says.
"""

import pickle
import subprocess
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from support.refusals import refuses

from algoscope import InContextLearner
from algoscope.comparison.predict import predict_queries
from algoscope.model.transformer import random_transformer
from algoscope.sklearn import ICLRegressor, compress, conjugate_directions


@parametrize_with_checks([ICLRegressor(), ICLRegressor("linear-d2")])
def test_scikit_learn_s_checks_pass(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def learner() -> InContextLearner:
    return InContextLearner.from_pretrained("linear-d8")


def draw(rng, num_examples: int, num_features: int = 8, num_queries: int = 5):
    x = rng.standard_normal((num_examples, num_features))
    queries = rng.standard_normal((num_queries, num_features))
    return x, x @ rng.standard_normal(num_features), queries


def ask(learner: InContextLearner, x, y, queries) -> np.ndarray:
    """Return what the learner itself predicts from just these examples."""
    x, y = np.vstack([x, queries[:1]]), np.append(y, 0.0)  # the first query's place
    parts = (np.asarray(part, np.float32)[None] for part in (x, y, queries))
    return predict_queries(learner, *parts, after=len(y) - 1)[0]


def raw(**options) -> ICLRegressor:
    return ICLRegressor(standardize=False, **options)


# Data that fit.


@pytest.mark.parametrize("num_examples", [1, 20])
def test_on_data_that_fit_it_is_the_learner(learner, num_examples, rng):
    x, y, queries = draw(rng, num_examples)
    predictions = raw().fit(x, y).predict(queries)
    assert predictions.dtype == np.float64
    expected = ask(learner, x, y, queries)
    np.testing.assert_allclose(predictions, expected, rtol=1e-3, atol=1e-4)


def test_the_order_of_examples_is_kept(learner, rng):
    x, y, queries = draw(rng, 20)
    forth = raw().fit(x, y).predict(queries)
    back = raw().fit(x[::-1], y[::-1]).predict(queries)
    expected = ask(learner, x[::-1], y[::-1], queries)
    np.testing.assert_allclose(back, expected, rtol=1e-3, atol=1e-4)
    assert not np.allclose(forth, back, rtol=1e-5)


@pytest.mark.parametrize("num_features", [3, 8, 11])
def test_no_bit_depends_on_the_other_queries(num_features, rng):
    x, y, queries = draw(rng, 30, num_features, num_queries=37)
    regressor = ICLRegressor(block_size=16).fit(x, y)
    together = regressor.predict(queries)
    alone = [regressor.predict(query[None])[0] for query in queries]
    np.testing.assert_array_equal(together, alone)
    order = rng.permutation(37)
    np.testing.assert_array_equal(regressor.predict(queries[order]), together[order])
    fortran = regressor.predict(np.asfortranarray(queries))
    np.testing.assert_array_equal(fortran, together)


def test_the_size_of_blocks_changes_nothing(rng):
    x, y, queries = draw(rng, 10, num_queries=9)
    small, large = (
        raw(block_size=size).fit(x, y).predict(queries) for size in (16, 256)
    )
    np.testing.assert_allclose(small, large, rtol=1e-5, atol=1e-6)


def test_noiseless_linear_data_are_explained():
    x, y, *_ = make_regression(300, 8, n_informative=8, bias=40.0, random_state=0)
    assert ICLRegressor().fit(x[:200], y[:200]).score(x[200:], y[200:]) > 0.99


# Fewer and more features.


def test_missing_features_are_zeros(learner, rng):
    x, y, queries = draw(rng, 20, num_features=3)
    predictions = raw().fit(x, y).predict(queries)
    wide, wide_queries = (np.pad(part, ((0, 0), (0, 5))) for part in (x, queries))
    expected = ask(learner, wide, y, wide_queries)
    np.testing.assert_allclose(predictions, expected, rtol=1e-3, atol=1e-4)
    same = raw().fit(wide, y).predict(wide_queries)
    np.testing.assert_array_equal(predictions, same)


@pytest.mark.parametrize("shape", [(40, 9), (12, 30), (60, 60)], ids=str)
def test_more_features_are_projected_as_in_partial_least_squares(shape, rng):
    x, y = rng.standard_normal(shape), rng.standard_normal(shape[0])
    x, y = x - x.mean(axis=0), y - y.mean()
    z = x @ conjugate_directions(x, y, 4)
    np.testing.assert_allclose(z.T @ z / len(x), np.eye(4), atol=1e-10)
    theirs = PLSRegression(4, scale=False).fit(x, y).predict(x)
    np.testing.assert_allclose(z @ (z.T @ y) / len(x), theirs, atol=1e-8)


def test_directions_after_the_one_that_fits_are_zero(rng):
    x = np.linalg.qr(rng.standard_normal((30, 10)))[0]
    directions = conjugate_directions(x, x @ rng.standard_normal(10), 4)
    assert np.any(directions, axis=0).tolist() == [True, False, False, False]
    assert not np.any(conjugate_directions(x, np.zeros(30), 4))


def test_with_as_many_directions_as_features_nothing_is_lost(rng):
    x, y = rng.standard_normal((50, 6)), rng.standard_normal(50)
    z = x @ conjugate_directions(x, y, 6)
    ours = LinearRegression(fit_intercept=False).fit(z, y).predict(z)
    theirs = LinearRegression(fit_intercept=False).fit(x, y).predict(x)
    np.testing.assert_allclose(ours, theirs, atol=1e-9)


def test_many_features_are_predicted_well(rng):
    x, y, _ = draw(rng, 400, num_features=20)
    assert ICLRegressor().fit(x[:300], y[:300]).score(x[300:], y[300:]) > 0.95


# More examples.


@pytest.mark.parametrize("rank", [1, 5])
def test_compression_keeps_the_second_moments(rank, rng):
    x = rng.standard_normal((200, rank)) @ rng.standard_normal((rank, 5))
    y = rng.standard_normal(200)
    small_x, small_y = compress(x, y, 12)
    assert (small_x.shape, small_y.shape) == ((12, 5), (12,))
    np.testing.assert_allclose(small_x.T @ small_x / 12, x.T @ x / 200, atol=1e-12)
    np.testing.assert_allclose(small_x.T @ small_y / 12, x.T @ y / 200, atol=1e-12)


def test_compression_changes_nothing_for_least_squares_and_ridge_regression(rng):
    x, y = rng.standard_normal((200, 5)), rng.standard_normal(200)
    small = compress(x, y, 12)
    for before, after in (
        (LinearRegression(fit_intercept=False), LinearRegression(fit_intercept=False)),
        (Ridge(5.0, fit_intercept=False), Ridge(5.0 * 12 / 200, fit_intercept=False)),
    ):
        theirs, ours = before.fit(x, y).coef_, after.fit(*small).coef_
        np.testing.assert_allclose(ours, theirs, atol=1e-10)


def test_no_compressed_example_stands_out(rng):
    x = rng.standard_normal((500, 8))
    sizes = np.linalg.norm(compress(x, x[:, 0], 20)[0], axis=1)
    assert sizes.min() > 1.0
    assert sizes.max() < 5.0  # √8 on average; without the rotation √(20/8) · √8 = 4.5


def test_what_does_not_fit_is_compressed_then_learned_from(learner, rng):
    x, y, queries = draw(rng, 100)
    expected = ask(learner, *compress(x, y, learner.max_examples), queries)
    predictions = raw().fit(x, y).predict(queries)
    np.testing.assert_allclose(predictions, expected, rtol=1e-3, atol=1e-4)


def test_recent_examples_are_the_last_ones(rng):
    x, y, queries = draw(rng, 50)
    recent = ICLRegressor(overflow="recent").fit(x, y).predict(queries)
    last = ICLRegressor().fit(x[-20:], y[-20:]).predict(queries)
    np.testing.assert_array_equal(recent, last)


# Standardization.


def test_predictions_follow_the_units_of_the_data(rng):
    x, y, queries = draw(rng, 60, num_features=4)
    still = ICLRegressor().fit(x, y).predict(queries)
    scale, shift = np.array([1e-3, 5.0, 1e4, 1.0]), np.array([3.0, -1e3, 0.0, 7.0])
    moved = ICLRegressor().fit(scale * x + shift, 1e5 * y - 9e6)
    predictions = (moved.predict(scale * queries + shift) + 9e6) / 1e5
    np.testing.assert_allclose(predictions, still, rtol=1e-2, atol=1e-3)


def test_labels_are_given_the_variance_that_the_learner_was_trained_on(rng):
    x, y, _ = draw(rng, 20, num_features=5)
    fitted = ICLRegressor().fit(1e3 * x + 5, y + 100)
    np.testing.assert_allclose(fitted.y_context_.var(), 5)
    np.testing.assert_allclose(fitted.x_context_[:, :5].var(axis=0), 1)
    np.testing.assert_allclose(fitted.y_context_.mean(), 0, atol=1e-10)


def test_constant_features_and_labels_are_no_trouble(rng):
    x = rng.standard_normal((30, 3))
    x[:, 1] = 0.1
    y = x @ np.array([1.0, 2.0, 3.0])
    assert ICLRegressor().fit(x, y).score(x, y) > 0.98
    constant = ICLRegressor().fit(x, np.full(30, 7.1)).predict(x)
    np.testing.assert_allclose(constant, 7.1, atol=0.1)


# Living with scikit-learn.


def test_it_works_in_pipelines_searches_and_cross_validation():
    x, y, *_ = make_regression(120, 8, n_informative=8, noise=1.0, random_state=3)
    pipeline = make_pipeline(StandardScaler(), ICLRegressor())
    assert cross_val_score(pipeline, x, y, cv=3).min() > 0.95
    choices = {"overflow": ["compress", "recent"], "model": ["linear-d2", "linear-d8"]}
    search = GridSearchCV(ICLRegressor(), choices, cv=2).fit(x, y)
    assert search.best_params_ == {"model": "linear-d8", "overflow": "compress"}


def test_what_is_pickled_is_small_and_predicts_the_same(rng):
    x, y, queries = draw(rng, 100)
    fitted = ICLRegressor().fit(x, y)
    pickled = pickle.dumps(fitted)
    assert len(pickled) < 5000
    again = pickle.loads(pickled).predict(queries)
    np.testing.assert_array_equal(again, fitted.predict(queries))
    assert not hasattr(clone(fitted), "x_context_")


def save_random(directory, seed: int, max_time: int = 11) -> None:
    transformer = random_transformer(
        seed,
        token_size=3,
        max_time=max_time,
        num_layers=1,
        hidden_size=4,
        num_heads=1,
    )
    InContextLearner(transformer, "small").save_pretrained(directory)


def test_a_model_in_a_directory_is_read_again_when_it_changes(tmp_path, rng):
    x, y, queries = draw(rng, 5, num_features=2)
    before, after = (
        [save_random(tmp_path, seed), raw(model=tmp_path).fit(x, y).predict(queries)][1]
        for seed in (0, 1)
    )
    assert not np.allclose(before, after)
    saved = InContextLearner.from_pretrained(tmp_path)
    np.testing.assert_allclose(after, ask(saved, x, y, queries), rtol=1e-4, atol=1e-6)


def test_only_the_regressor_needs_scikit_learn():
    code = """if True:
        import sys
        sys.modules["sklearn"] = None
        import algoscope.model.learner, algoscope.adapters
        print("so far, so good")
        import algoscope.sklearn
    """
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert ran.stdout == "so far, so good\n"
    assert ran.stderr.splitlines()[-1] == (
        "ModuleNotFoundError: `ICLRegressor` needs scikit-learn: "
        "pip install 'algoscope[sklearn]'."
    )


# Rejected parameters and data.


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"model": 3},
            TypeError,
            "`model` must be a model's name or a directory, got 3.",
        ),
        (
            {"standardize": "yes"},
            TypeError,
            "`standardize` must be True or False, got 'yes'.",
        ),
        (
            {"overflow": "compres"},
            ValueError,
            "`overflow` must be one of compress, recent, error, got 'compres'. "
            "Did you mean 'compress'?",
        ),
        (
            {"excess": "drop"},
            ValueError,
            "`excess` must be one of project, error, got 'drop'.",
        ),
        (
            {"block_size": 0},
            ValueError,
            "`block_size` must be at least 1, got 0.",
        ),
        (
            {"overflow": "error"},
            ValueError,
            "`X` must hold at most 20 examples, got 21. "
            'To use all of them, set overflow="compress".',
        ),
        (
            {"excess": "error"},
            ValueError,
            "`X` must have at most 8 features, got 9. "
            'To use all of them, set excess="project".',
        ),
    ],
)
def test_parameters_and_data_that_do_not_fit_are_rejected(options, kind, message):
    with refuses(kind, message):
        ICLRegressor(**options).fit(np.ones((21, 9)), np.ones(21))


def test_an_unknown_model_is_rejected_with_the_nearest():
    with pytest.raises(ValueError, match="got 'linear-d9'. Did you mean 'linear-d"):
        ICLRegressor("linear-d9").fit(np.ones((2, 1)), np.ones(2))


def test_compression_to_fewer_examples_than_coordinates_is_rejected(tmp_path):
    save_random(tmp_path, 0, max_time=3)
    rule = 'be "recent" or "error" for a model with room for 1 examples only'
    with refuses(ValueError, f'`overflow` must {rule}, got "compress".'):
        ICLRegressor(tmp_path).fit(np.ones((3, 2)), np.ones(3))
