"""Degenerate data: every shipped algorithm is exact to its bar, or warns."""

import warnings
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope.construction.algorithms import ALGORITHMS
from algoscope.construction.build import build
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import constant
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner

pytestmark = pytest.mark.optimized  # Rounding is the matter.

DIM, NUM = 3, 3
# Largest error relative to the largest of 1, the labels and the predictions.
BAR = 1e-6
KINDS = ("plain", "repeated", "zero", "collinear", "huge", "tiny", "contradicting")
NAMES = [name for name in ALGORITHMS if name not in ("ridge_one", "logistic_sgd")]


@cache
def learner(name: str) -> InContextLearner:
    return build(name, DIM, NUM)


@cache
def textbook(name: str):
    reference = ALGORITHMS[name]().reference
    assert reference is not None
    return jax.jit(reference.predict_prefixes)


def draw(kind: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x, w = rng.normal(size=(NUM + 1, DIM)), rng.normal(size=DIM)
    if kind in ("repeated", "contradicting"):
        x[1] = x[0]
    elif kind == "zero":
        x[rng.integers(NUM)] = 0
    elif kind == "collinear":
        x[:NUM] = rng.normal(size=(NUM, 1)) * x[0]
    elif kind == "huge":
        x *= 1e4
    elif kind == "tiny":
        x *= 1e-7
    y = x @ w
    if kind == "contradicting":
        y[1] += 1.0
    return x, y


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
@settings(deadline=None, max_examples=5, derandomize=True)
@given(seed=st.integers(0, 2**20))
def test_predictions_are_the_textbooks_or_there_is_a_warning(name, kind, seed):
    x, y = draw(kind, seed)
    expected = np.asarray(textbook(name)(jnp.asarray(x), jnp.asarray(y)))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = np.asarray(
            learner(name).predict_prefixes(jnp.asarray(x), jnp.asarray(y))
        )
    size = max(1.0, np.abs(expected).max())
    if not caught and np.isfinite(expected).all():
        assert np.abs(found - expected).max() < BAR * size


def test_plain_data_do_not_warn():
    for name in NAMES:
        x, y = draw("plain", 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            learner(name).predict_prefixes(jnp.asarray(x), jnp.asarray(y))


@pytest.mark.parametrize("kind", ["repeated", "zero", "collinear"])
def test_ols_is_exact_for_dependent_examples(kind):
    for seed in range(5):
        x, y = draw(kind, seed)
        expected = textbook("ols")(jnp.asarray(x), jnp.asarray(y))
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = learner("ols").predict_prefixes(jnp.asarray(x), jnp.asarray(y))
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
