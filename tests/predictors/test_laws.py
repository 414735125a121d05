"""Every predictor keeps the same laws, and computes what its textbook says.

A predictor enters with one line in `TEXTBOOK` (tests/support/textbook.py). A law that
it does not keep by its nature is an entry in the set of exceptions beside that law.
"""

from dataclasses import FrozenInstanceError

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refuses
from support.textbook import (
    DIM,
    EXAMPLES,
    GENERIC,
    MEMBERS,
    QUICKLY,
    TEXTBOOK,
    X,
    Y,
    assert_close,
    by_name,
    compiled_calls,
    predict,
)

from algoscope.predictors import (
    CATALOG,
    LinearPredictor,
    Predictor,
    parse_predictor,
    zero,
)
from algoscope.predictors.protocols import Parametrized

POOLED = "DiscreteBayes(3 tasks, 0.25)"  # it knows the possible weights beforehand

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


def test_every_predictor_of_the_catalog_is_in_the_textbook():
    assert {member.name for member in MEMBERS} == set(TEXTBOOK)


# What is computed.


@all_predictors
def test_the_algorithm_is_the_textbook_s_at_every_prefix(predictor):
    textbook = TEXTBOOK[predictor.name]
    for x, y, predictions in zip(X, Y, predict(predictor, X, Y), strict=True):
        expected = [textbook(x[:n], y[:n], x[n]) for n in range(EXAMPLES)]
        assert_close(predictions, expected)


@all_predictors
def test_predictions_at_every_prefix_are_those_of_one_call_each(predictor):
    calls = compiled_calls(predictor)(X, Y)
    assert_close(predict(predictor, X, Y), calls, 1e-12)


@all_predictors
def test_without_compilation_the_predictions_are_the_same(predictor):
    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])
    compiled = predict(predictor, X, Y)[0, 2]
    assert_close(predictor(x[:2], y[:2], x[2]), compiled, 1e-12)


@all_but({POOLED})
def test_without_examples_the_prediction_is_zero(predictor):
    assert predict(predictor, X, Y)[:, 0].tolist() == [0.0] * len(X)
    assert compiled_calls(predictor)(X, Y)[:, 0].tolist() == [0.0] * len(X)


@linear_predictors
def test_weights_times_the_query_is_the_prediction(predictor):
    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])
    weights = predictor.prefix_weights(x, y)
    assert weights.shape == (EXAMPLES + 1, DIM)
    products = np.sum(np.asarray(weights)[:-1] * X[0], axis=1)
    assert_close(products, predict(predictor, X, Y)[0], 1e-12)
    np.testing.assert_array_equal(predictor.weights(x, y), weights[-1])


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
    x = np.stack([X[0]] * len(labels))
    up, down = predict(predictor, x, labels)[:, -1].reshape(-1, 2).T
    influence = jax.jit(predictor.influence, compiler_options=QUICKLY)(
        X[0, :-1], Y[0, :-1], X[0, -1]
    )
    assert_close(influence, (up - down) / (2 * change), 1e-6)


@all_predictors
def test_every_predictor_is_a_predictor_and_a_value(predictor):
    assert isinstance(predictor, Predictor)
    with pytest.raises(FrozenInstanceError):
        predictor.name = "another"  # pyright: ignore[reportAttributeAccessIssue]


# Precision and extreme data.


@all_predictors
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_predictions_have_the_precision_of_the_data(predictor, dtype):
    for n in (0, 1, 4):
        x, y = (jax.ShapeDtypeStruct(s, dtype) for s in ((n, DIM), (n,)))
        prefixes = jax.eval_shape(predictor.predict_prefixes, x, y)
        assert (prefixes.shape, prefixes.dtype) == ((n,), dtype)
        query = jax.ShapeDtypeStruct((DIM,), dtype)
        one = jax.eval_shape(predictor.__call__, x, y, query)
        assert (one.shape, one.dtype) == ((), dtype)


@all_predictors
def test_single_precision_is_near_double_precision(predictor):
    single = predict(predictor, X.astype("float32"), Y.astype("float32"))
    assert single.dtype == "float32"
    assert_close(single, predict(predictor, X, Y), 1e-4)


# Fixed rates and intervals diverge on inputs that are too large for them, and overflow.
EXPLOSIVE = {
    "GD(0.02, steps=8, penalty=0.1)",
    "GD++(0.02, 0.01, 3)",
    "PreconditionedGD(0.02, 4)",
    "PreconditionedGD(0.03, 3)",
    "HeavyBall(0.02, 0.5, 4)",
    "Chebyshev(4, 0.2, 2.5)",
}


@all_predictors
def test_degenerate_data_give_finite_predictions(predictor):
    assert np.all(np.isfinite(predict(predictor, X, Y)))


@all_but(EXPLOSIVE)
def test_extreme_data_give_finite_predictions(predictor):
    # A near copy of a row, and rows whose sizes differ by orders of magnitude.
    x = np.stack([X[0]] * len(X))
    x[0, 1] = x[0, 0] * (1 + 1e-14)
    x[1] *= np.geomspace(1e-12, 1e12, EXAMPLES)[:, None]
    x[2] *= 1e-30
    x[3] *= 1e30
    assert np.all(np.isfinite(predict(predictor, x, Y)))


# Symmetries.


CLIPPED = {"GDGrowing(0.02)", "SGD(0.03, clip=0.5)"}
NOT_SCALED = CLIPPED | {"Lasso(0.1)", POOLED}


@all_but(NOT_SCALED)
@pytest.mark.parametrize("factor", [-2.5, 1e-6, 1e6, 0.0])
def test_predictions_scale_with_the_labels(predictor, factor):
    scaled = predict(predictor, X, factor * Y)
    expected = factor * predict(predictor, X, Y)
    np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=1e-12 * abs(factor))


COORDINATES_MATTER = CLIPPED | {
    "Lasso(0.1)",
    "PreconditionedGD(0.03, 3)",
    "OptimalPreconditionedGD(0.25)",
    POOLED,
}


@all_but(COORDINATES_MATTER)
def test_predictions_do_not_change_when_the_space_is_rotated(predictor, rng):
    rotation, _ = np.linalg.qr(rng.standard_normal((DIM, DIM)))
    rotated, still = predict(predictor, X @ rotation, Y), predict(predictor, X, Y)
    # Where examples are equally near, rounding decides which of them is nearer.
    kinds = GENERIC if predictor.name.startswith("KNN") else slice(None)
    assert_close(rotated[kinds], still[kinds], 1e-9)


@all_predictors
@pytest.mark.parametrize("place", range(EXAMPLES))
def test_a_label_matters_only_after_its_example(predictor, place):
    changed = Y.copy()
    changed[:, place] += 1.0
    before, after = predict(predictor, X, Y), predict(predictor, X, changed)
    np.testing.assert_array_equal(after[:, : place + 1], before[:, : place + 1])
    if place < EXAMPLES - 1:
        moved = after[0, place + 1] != before[0, place + 1]
        assert moved == (predictor is not zero)


ORDERED = {
    "RLS(0.9, 0.1)",
    "GDGrowing(0.02)",
    "SGD(0.03)",
    "SGD(0.03, 0.2)",
    "SGD(0.03, clip=0.5)",
    "Kaczmarz",
}


@all_but(ORDERED)
def test_the_order_of_examples_does_not_matter(predictor, rng):
    # Equally near examples are taken in order: only data without them qualify for kNN.
    kinds = GENERIC if predictor.name.startswith("KNN") else slice(None)
    x, y = X.copy(), Y.copy()
    for row in range(len(x)):
        order = rng.permutation(EXAMPLES - 1)
        x[row, :-1], y[row, :-1] = x[row, order], y[row, order]
    assert not np.array_equal(x, X)
    last, shuffled_last = (predict(predictor, *d)[kinds, -1] for d in ((X, Y), (x, y)))
    assert_close(shuffled_last, last, 1e-9)


@all_but({member.name for member in MEMBERS} - ORDERED)
def test_the_order_of_examples_matters_to_learners_that_see_them_in_turn(predictor):
    x, y = X.copy(), Y.copy()
    x[:, :-1], y[:, :-1] = X[:, -2::-1], Y[:, -2::-1]
    forth, back = predict(predictor, X, Y), predict(predictor, x, y)
    assert abs(forth[0, -1] - back[0, -1]) > 1e-5


# Wrong shapes.


@all_predictors
def test_inputs_that_are_no_matrix_are_rejected(predictor):
    y, query = jnp.ones(4), jnp.ones(2)
    for shape in ((4,), (3, 4, 2)):
        message = f"`x` must have shape (examples, dim), got shape {shape}. "
        with refuses(ValueError, message + "For a batch, use `jax.vmap`."):
            predictor(jnp.ones(shape), y, query)
        with refuses(ValueError, message + "For a batch, use `jax.vmap`."):
            predictor.predict_prefixes(jnp.ones(shape), y)


@all_predictors
@pytest.mark.parametrize("shape", [(3,), (1,), (), (4, 1)], ids=str)
def test_labels_that_do_not_match_the_inputs_are_rejected(predictor, shape):
    x, y = jnp.ones((4, 2)), jnp.ones(shape)
    message = f"`y` must have shape (4,), one label per example, got shape {shape}."
    with refuses(ValueError, message):
        predictor(x, y, jnp.ones(2))
    with refuses(ValueError, message):
        predictor.predict_prefixes(x, y)


@all_predictors
@pytest.mark.parametrize("shape", [(3,), (1, 2)], ids=str)
def test_a_query_that_is_not_one_input_is_rejected(predictor, shape):
    message = f"`query` must be one input of 2 coordinates, got shape {shape}."
    with refuses(ValueError, message):
        predictor(jnp.ones((0, 2)), jnp.ones(0), jnp.ones(shape))


def test_an_equal_predictor_is_compiled_once():
    """For data of one shape: JAX calls the function only to compile it."""
    compiled = []

    def sums(x, y, *, scale):
        compiled.append(scale)
        return jnp.cumsum(jnp.pad(scale * x * y[:, None], ((1, 0), (0, 0))), axis=0)

    x, y = jnp.asarray(X[0]), jnp.asarray(Y[0])
    for _ in range(3):
        predictor = LinearPredictor("sums", Parametrized(sums, scale=0.5))
        assert float(predictor(x, y, x[0])) == pytest.approx(float(y @ (x @ x[0]) / 2))
        assert predictor.predict_prefixes(x, y).shape == y.shape
    assert len(compiled) == 2  # for a query, and for every x


@pytest.mark.parametrize("text", [e for c in CATALOG.values() for e in c.examples])
def test_a_predictor_that_is_made_again_is_equal(text):
    assert parse_predictor(text) == parse_predictor(text)
    assert hash(parse_predictor(text)) == hash(parse_predictor(text))
