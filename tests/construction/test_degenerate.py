"""Degenerate data: every shipped algorithm is exact to its bar, or warns."""

import warnings
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope import predictors
from algoscope.construction.algorithms import ALGORITHMS
from algoscope.construction.build import build
from algoscope.construction.compiler.numerics import DType
from algoscope.construction.language.interpreter import predictions
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import constant
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.model.tokens import encode_context

DIM, NUM = 3, 3
# Largest error relative to the largest of 1 and the predictions.
BARS = {"float64": 1e-8, "float32": 1e-2}
KINDS = ("plain", "repeated", "zero", "collinear", "huge", "tiny", "contradicting")
NAMES = list(ALGORITHMS)
SIZES = {"ridge_one": (DIM, 1)}  # where it is not (DIM, NUM)
# Further sizes and parameters; `ols` takes at most d examples.
FURTHER = {
    ("ridge", 2, 7, 1e-3): {"penalty": 1e-3},
    ("ridge", 5, 6, 5.0): {"penalty": 5.0},
    ("sgd", 4, 9, 0.21): {"penalty": 0.21},
    ("ols", 5, 4, 0.0): {},
    ("kaczmarz", 2, 6, 0.0): {},
}


@cache
def learner(
    name: str, dtype: DType, dim: int = DIM, num: int = NUM, penalty: float = 0.0
) -> InContextLearner:
    parameters = FURTHER.get((name, dim, num, penalty), {})
    return build(name, dim, num, dtype=dtype, **parameters)


@cache
def textbook(name: str, dim: int = DIM, num: int = NUM, penalty: float = 0.0):
    parameters = FURTHER.get((name, dim, num, penalty), {})
    algorithm = ALGORITHMS[name](**parameters)
    if algorithm.reference is not None:
        return jax.jit(algorithm.reference.predict_prefixes)
    program = algorithm.program(dim, num)  # its meaning is that of the textbook's loop
    return lambda x, y: predictions(program, np.asarray(encode_context(x, y))[None])[0]


def draw(
    kind: str, seed: int, dim: int = DIM, num: int = NUM
) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(num + 1, dim)), rng.normal(size=dim)
    if kind in ("repeated", "contradicting"):
        x[1] = x[0]
    elif kind == "zero":
        x[rng.integers(num)] = 0
    elif kind == "collinear":
        x[:num] = rng.normal(size=(num, 1)) * x[0]
    elif kind == "huge":
        x *= 1e4
    elif kind == "tiny":
        x *= 1e-7
    y = x @ w
    if kind == "contradicting":
        y[1] += 1.0
    return x, y


def check(kind: str, seed: int, dtype: DType, name: str, *size: Any) -> None:
    """Assert that predictions are within the bar of the textbook's, or warned of."""
    size = size or SIZES.get(name, ())
    x, y = (each.astype(dtype) for each in draw(kind, seed, *size[:2]))
    y = np.where(y > 0, 1, 0).astype(dtype) if name == "logistic_sgd" else y
    wide = (jnp.asarray(each, jnp.float64) for each in (x, y))
    expected = np.asarray(textbook(name, *size)(*wide))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        built = learner(name, dtype, *size)
        found = np.asarray(built.predict_prefixes(jnp.asarray(x), jnp.asarray(y)))
    if not caught and np.isfinite(expected).all():
        bar = BARS[dtype] * max(1.0, np.abs(expected).max())
        assert np.abs(found - expected).max() < bar


@pytest.mark.parametrize("dtype", BARS)
@pytest.mark.parametrize("name", NAMES)
def test_predictions_are_the_textbooks_or_there_is_a_warning(name, dtype):
    @settings(deadline=None, max_examples=25, derandomize=True)
    @given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**20))
    def hold(kind: str, seed: int) -> None:
        check(kind, seed, dtype, name)

    hold()


@pytest.mark.parametrize("dtype", BARS)
@pytest.mark.parametrize("size", FURTHER, ids=str)
def test_at_further_sizes_too(size, dtype):
    @settings(deadline=None, max_examples=20, derandomize=True)
    @given(kind=st.sampled_from(KINDS), seed=st.integers(0, 2**20))
    def hold(kind: str, seed: int) -> None:
        check(kind, seed, dtype, *size)

    hold()


@pytest.mark.parametrize("dtype", BARS)
def test_plain_data_do_not_warn(dtype):
    # The last of d steps of conjugate gradients loses digits in float32, and warns.
    loses = {"conjugate_gradients"} if dtype == "float32" else set()
    for name in sorted(set(NAMES) - loses):
        size = SIZES.get(name, ())
        x, y = draw("plain", 0, *size)
        y = np.where(y > 0, 1, 0) if name == "logistic_sgd" else y
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            learner(name, dtype, *size).predict_prefixes(
                jnp.asarray(x, dtype), jnp.asarray(y, dtype)
            )


@pytest.mark.parametrize("kind", ["tiny", "plain", "huge"])
def test_the_warning_is_two_sided(kind):
    """Ridge with λ = 1 at x near 1 is well-conditioned; far from it, it is warned."""
    x, y = draw(kind, 0)
    built = build("ridge", DIM, NUM, penalty=1.0, dtype="float32")
    expected = predictors.ridge(1.0).predict_prefixes(jnp.asarray(x), jnp.asarray(y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = built.predict_prefixes(
            jnp.asarray(x, "float32"), jnp.asarray(y, "float32")
        )
    size = (
        np.abs(expected).max() if kind == "tiny" else max(1.0, np.abs(expected).max())
    )
    off = np.abs(found - expected).max() / size
    assert caught or off < 1e-3
    assert kind != "plain" or not caught


@pytest.mark.parametrize("kind", ["repeated", "zero", "collinear"])
def test_ols_is_exact_for_dependent_examples(kind):
    for seed in range(5):
        x, y = draw(kind, seed)
        expected = textbook("ols")(jnp.asarray(x), jnp.asarray(y))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = learner("ols", "float64").predict_prefixes(
                jnp.asarray(x), jnp.asarray(y)
            )
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)


def test_what_is_not_there_cannot_be_read_or_divided_by():
    program = Program(2, 2)
    for read in (program.example, program.seen):
        with refuses(
            InvalidValueError, "`k` must be below 2, the number of examples, got 5."
        ):
            read(5)
    with refuses(
        InvalidValueError, "`norm` must not be zero for `quotient`, got constant 0."
    ):
        program.divide(program.x, constant(0.0))
    with refuses(
        InvalidValueError, "`norm` must not be zero for `product`, got constant 0."
    ):
        program.multiply(program.x, program.x, norm=constant([0.0, 0.0]))
    assert program.events == []


def test_a_division_by_a_constant_takes_no_layer():
    program = Program(2, 2)
    half = program.divide(program.x, constant(-2.0))
    assert program.events == []
    assert half.terms[program.token].tolist() == [[0, 0.5, 0], [0, 0, 0.5]]
