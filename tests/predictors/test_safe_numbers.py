"""Predictors answer rightly for numbers of any size and kind, or say they cannot."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import only_own_checks, refuses

from algoscope.predictors import parse_predictor
from algoscope.predictors.catalog import CATALOG

# Where all data are scaled by s, so is the prediction of these, whatever s is.
SCALED = ("ols", "kaczmarz", "conjugate_gradients(2)", "newton(3)", "knn(3)")
SCALED += ("knn(3, weighted)",)
ALL = (*SCALED, "ridge(0.1)", "lasso(0.1)", "gd(0.02)", "sgd(0.01)", "average")
ALL += ("nadaraya_watson(0.5)",)
EXAMPLES = {text for entry in CATALOG.values() for text in entry.examples}
OTHERS = sorted(EXAMPLES - set(ALL) - {"zero"})


@pytest.fixture
def data(rng):
    x, w, query = rng.normal(size=(6, 3)), rng.normal(size=3), rng.normal(size=3)
    return x, x @ w, query


def ask(name, x, y, query) -> float:
    """Ask as a user without x64 does."""
    with jax.enable_x64(False):
        return float(parse_predictor(name)(*map(jnp.asarray, (x, y, query))))


@pytest.mark.parametrize("name", SCALED)
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e15, 1e-15])
def test_a_prediction_scales_with_the_data(data, name, scale):
    x, y, query = (np.asarray(each, np.float32) for each in data)
    expected = ask(name, x, y, query) * scale
    found = ask(name, *(each * np.float32(scale) for each in (x, y, query)))
    assert found == pytest.approx(expected, rel=2e-3)
    assert found != 0


@pytest.mark.parametrize("name", SCALED)
def test_inputs_that_are_hardly_more_than_zero_are_learned(data, name):
    x, y, query = data
    x, query = ((each * 1e-42).astype(np.float32) for each in (x, query))
    with jax.enable_x64(True):  # with the few digits that are left
        usual = (jnp.asarray(each.astype(float) * 1e42) for each in (x, query))
        expected = float(
            parse_predictor(name)(next(usual), jnp.asarray(y), next(usual))
        )
    found = ask(name, x, y.astype(np.float32), query)
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("scale", [1e30, 1e-30, 1e-40])
def test_labels_of_any_size_are_learned(data, name, scale):
    x, y, query = (np.asarray(each, np.float32) for each in data)
    found = ask(name, x, (y.astype(float) * scale).astype(np.float32), query)
    if name != "lasso(0.1)":  # whose penalty is not relative to them
        assert found == pytest.approx(ask(name, x, y, query) * scale, rel=2e-3)


@pytest.mark.parametrize("name", ["ols", "kaczmarz", "knn(3, weighted)"])
@pytest.mark.parametrize("scale", [1e30, 1e-30])
def test_one_example_of_another_size_is_learned_too(data, name, scale):
    """The first predictions know no other example; squared, it is 0 or infinity."""
    x, y, _ = (np.asarray(each, np.float32) for each in data)
    x[:2], y[:2] = x[:2] * np.float32(scale), y[:2] * np.float32(scale)
    predictor = parse_predictor(name)
    with jax.enable_x64(False):
        found = predictor.predict_prefixes(jnp.asarray(x), jnp.asarray(y))
    with jax.enable_x64(True):
        wide = (jnp.asarray(each, float) for each in (x, y))
        expected = predictor.predict_prefixes(*wide)
    assert found[1] != 0
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_ridge_regression_on_huge_data_is_least_squares(data):
    huge = [np.asarray(each * 1e30, np.float32) for each in data]
    assert ask("ridge(0.1)", *huge) == pytest.approx(ask("ols", *huge), rel=1e-5)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize("unknown", [np.nan, np.inf, -np.inf])
def test_what_is_made_from_an_unknown_number_is_unknown(data, name, unknown):
    x, y, query = data
    wrong_x, wrong_y, wrong_query = x.copy(), y.copy(), query.copy()
    wrong_x[2, 1], wrong_y[2], wrong_query[0] = unknown, unknown, unknown
    for asked in ((wrong_x, y, query), (x, wrong_y, query), (x, y, wrong_query)):
        assert np.isnan(ask(name, *asked))
    predictor = parse_predictor(name)
    right = np.asarray(predictor.predict_prefixes(jnp.asarray(x), jnp.asarray(y)))
    of_x = predictor.predict_prefixes(jnp.asarray(wrong_x), jnp.asarray(y))
    of_y = predictor.predict_prefixes(jnp.asarray(x), jnp.asarray(wrong_y))
    np.testing.assert_allclose(of_x, np.where(np.arange(6) < 2, right, np.nan))
    np.testing.assert_allclose(of_y, np.where(np.arange(6) < 3, right, np.nan))


@pytest.mark.parametrize("name", OTHERS)
def test_so_it_is_for_every_other_predictor_of_the_catalog(data, name):
    """Tiny labels are learned; what is unknown stays so; no examples tell nothing."""
    x, y, query = (np.asarray(each, np.float32) for each in data)
    tiny = ask(name, x, y * np.float32(1e-30), query)
    assert 0 < abs(tiny) < 1e-27
    assert tiny == pytest.approx(
        ask(name, x, y * np.float32(1e-3), query) * 1e-27, 2e-3
    )
    unknown = np.where(np.arange(6) == 2, np.nan, y)
    assert np.isnan(ask(name, x, unknown, query))
    assert np.isnan(ask(name, np.where(np.arange(3) == 1, np.inf, x), y, query))
    assert np.isnan(ask(name, x, y, query * np.nan))
    assert ask(name, x[:0], y[:0], query) == 0


@pytest.mark.parametrize("name", ALL)
def test_integers_are_numbers(name):
    x, y = np.array([[1, 2], [3, 5], [-1, 4]]), np.array([3, -2, 6])
    query = np.array([1, -1])
    predictor = parse_predictor(name)
    with only_own_checks():
        found = float(predictor(x, y, query))  # pyright: ignore[reportArgumentType]
    expected = ask(name, *(each.astype(float) for each in (x, y, query)))
    assert found == pytest.approx(expected, rel=1e-5)


def test_what_is_no_number_is_rejected():
    words = np.array([["a"], ["b"]])
    with refuses(TypeError, "`x` must hold real numbers, got <U1 values."):
        parse_predictor("ols")(words, np.zeros(2), np.zeros(1))  # pyright: ignore


@pytest.mark.parametrize(
    "text", ["newton(100000000000000000000)", "gd(0.1, steps=10000000)"]
)
def test_more_steps_than_anyone_can_wait_for_are_rejected(text):
    with pytest.raises(ValueError, match="`steps` must be at most 1000000, got 10"):
        parse_predictor(text)


def test_a_call_that_is_nested_too_deeply_is_rejected():
    for text in (f"knn({'1+' * 50_000}1)", f"ridge({'-' * 50_000}1)"):
        with pytest.raises(ValueError, match="`predictor` must be a name, or a call"):
            parse_predictor(text)
