"""Functions of values and matrices: what NumPy computes, in the layers stated."""

from collections.abc import Callable

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

import algoscope as asc
from algoscope import construction as c
from algoscope.construction.compiler.compile import Planner, arrange, compile_program
from algoscope.construction.compiler.numerics import numerics
from algoscope.construction.language.interpreter import evaluate, interpret
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import constant, join
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.model.tokens import example_tokens

X = np.array([[0.5, -2.0], [1.0, 0.0], [-0.25, 3.0]])  # of the queries

# Each function of x, what NumPy says, and the layers that it takes.
FUNCTIONS: dict[str, tuple[Callable, Callable, int]] = {
    "sigmoid": (c.sigmoid, lambda x: 1 / (1 + np.exp(-x)), 1),
    "tanh": (c.tanh, np.tanh, 1),
    "exp": (c.exp, np.exp, 1),
    "above": (c.above, lambda x: 1.0 * (x > 0), 1),
    "sign": (c.sign, np.sign, 1),
    "relu": (c.relu, lambda x: np.maximum(x, 0), 1),
    "absolute": (c.absolute, np.abs, 1),
    "maximum": (lambda x: c.maximum(x, 0.3 - x), lambda x: np.maximum(x, 0.3 - x), 1),
    "minimum": (lambda x: c.minimum(x, 0.3 - x), lambda x: np.minimum(x, 0.3 - x), 1),
    "where": (
        lambda x: c.where(c.above(x[0]), x, 1 - 2 * x),
        lambda x: np.where(x[..., :1] > 0, x, 1 - 2 * x),
        1,
    ),
    "norm": (
        lambda x: c.norm(join([x, constant(1.0)])),
        lambda x: np.sqrt(1 + np.sum(x**2, axis=-1, keepdims=True)),
        2,
    ),
    "reciprocal": (lambda x: c.reciprocal(x + 9.0), lambda x: 1 / (x + 9), 2),
    "a sign kept": (lambda x: 2.0 / (x[1] - 7.0), lambda x: 2 / (x[..., 1:] - 7), 1),
    "product": (lambda x: x * x[1], lambda x: x * x[..., 1:], 1),
    "dot": (lambda x: x @ x, lambda x: np.sum(x * x, axis=-1, keepdims=True), 1),
    "square": (lambda x: x**2, lambda x: x**2, 1),
    "quotient": (
        lambda x: x / (x[0] - 7.0),
        lambda x: x / (x[..., :1] - 7),
        1,
    ),
    "linear": (
        lambda x: x @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]) / 2,
        lambda x: x @ np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 3.0]]) / 2,
        0,
    ),
}


def tokens_of(x: np.ndarray) -> np.ndarray:
    tokens = np.zeros((1, 2 * len(x) - 1, x.shape[1] + 1))
    tokens[0, ::2, 1:] = x
    return tokens


@pytest.mark.parametrize("name", FUNCTIONS)
@settings(deadline=None, max_examples=20, derandomize=True)
@given(seed=st.integers(0, 2**20))
def test_the_interpreter_agrees_with_numpy(name, seed):
    function, expected, _ = FUNCTIONS[name]
    program = Program(2, 2)
    value = function(program.x)
    x = np.random.default_rng(seed).normal(size=(3, 2))
    found = evaluate(value, interpret(program, tokens_of(x)))[0, ::2]
    np.testing.assert_allclose(found, expected(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_take_the_layers_stated(name):
    function, _, layers = FUNCTIONS[name]
    program = Program(2, 2)
    value = function(program.x)
    program.predict(*(value[k] for k in range(value.size)))
    assert arrange(program, numerics()).num_layers == max(layers, 1)
    assert bool(program.events) == bool(layers)


def test_the_weights_agree():
    program, outputs, expected = Program(2, 2), [], []
    for function, exact, _ in FUNCTIONS.values():
        value = function(program.x)
        outputs += [value[k] for k in range(value.size)]
        expected += exact(X)[2].ravel().tolist()
    program.predict(*outputs)
    compiled = compile_program(program)
    form = Planner(compiled, compiled.calibration).form(program.outputs)
    hidden = compiled.transformer(jnp.asarray(tokens_of(X))).hidden[0, -1, -1]
    found = form[:, :-1] @ np.asarray(hidden) + form[:, -1]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-8)


def test_thresholds_suit_float32():
    program = Program(2, 1, digits=24)
    program.predict(*c.sign(program.x)[:1], *c.absolute(program.x)[1:])
    learner = asc.compile(program, dtype="float32")
    x = jnp.asarray(X, jnp.float32)
    found = learner.outputs(x[:1], jnp.zeros(1, jnp.float32), x[0])
    np.testing.assert_allclose(found, [1.0, 2.0], atol=1e-5)


def test_functions_need_a_program():
    with refuses(
        InvalidValueError,
        "`value` must belong to a program, got 1. "
        "Functions of constants are free: compute them in NumPy.",
    ):
        c.exp(constant(2.0))
    with refuses(InvalidTypeError, "`value` must be a value of a program, got float."):
        c.exp(2.0)  # pyright: ignore[reportArgumentType]
    with refuses(
        InvalidValueError,
        "`by` must be one number: a layer divides by one, got token with 2.",
    ):
        _ = Program(2, 1).x / Program(2, 1).x


# Matrices.


def random_matrices() -> tuple[Program, c.Matrix, np.ndarray]:
    """Return a program, the matrix (x₁², x₁x₂; x₂x₁, x₂²) and it in numbers."""
    program = Program(2, 2)
    return program, c.outer(program.x, program.x), np.einsum("ti,tj->tij", X, X)


def test_matrices_compute_what_numpy_does():
    program, a, exact = random_matrices()
    assert program.events[-1].out.size == 3  # a triangle
    constants = np.array([[1.0, 2.0], [0.0, -1.0]])
    vector = a @ program.x
    product = a @ (a + constants)
    free = constants @ (2 * a - constants).T / 4
    scaled = a * program.x[0]
    state = interpret(program, tokens_of(X))
    cases = (
        (vector, np.einsum("tij,tj->ti", exact, X)),
        (product.entries, (exact @ (exact + constants)).reshape(3, 4)),
        (
            free.entries,
            (constants @ (2 * exact - constants).swapaxes(1, 2) / 4).reshape(3, 4),
        ),
        (a[0, 1], exact[:, 0, 1:]),
        (scaled.entries, (exact * X[:, :1, None]).reshape(3, 4)),
    )
    for value, expected in cases:
        np.testing.assert_allclose(evaluate(value, state)[0, ::2], expected, atol=1e-12)


@pytest.mark.parametrize("mean", [False, True])
def test_moments_are_those_of_the_examples_seen(mean):
    program = Program(3, 4)
    gram, moment = c.moments(program, mean=mean)
    tokens = example_tokens(3, 4, 2)
    state = interpret(program, tokens)
    x, y = tokens[:, ::2, 1:], tokens[:, 1::2, 0]
    for n in range(1, 5):
        seen, labels, over = x[:, :n], y[:, :n], n if mean else 1
        expected = np.einsum("bni,bnj->bij", seen, seen) / over
        found = evaluate(gram.entries, state)[:, 2 * n].reshape(2, 3, 3)
        np.testing.assert_allclose(found, expected, atol=1e-12)
        expected = np.einsum("bni,bn->bi", seen, labels) / over
        np.testing.assert_allclose(
            evaluate(moment, state)[:, 2 * n], expected, atol=1e-12
        )


def test_gradient_descent_is_five_lines():
    program = Program(2, 6)
    gram, moment = c.moments(program)
    w = constant(np.zeros(2))
    for _ in range(3):
        w = w - 0.02 * (gram @ w - moment) if w.terms else 0.02 * moment
    program.predict(w @ program.x)
    learner = asc.compile(program)
    assert learner.num_layers == 5
    reference = asc.gd(0.01, 3)
    tokens = example_tokens(2, 6, 1, seed=3)[0]
    x, y = jnp.asarray(tokens[::2, 1:]), jnp.append(tokens[1::2, 0], 0.0)
    np.testing.assert_allclose(
        learner.predict_prefixes(x, y), reference.predict_prefixes(x, y), atol=1e-10
    )


REFUSED: dict[str, tuple[Callable, str]] = {
    "shape": (
        lambda p, a: c.Matrix(p.x, (3, 3)),
        "`shape` must have the 2 entries of token, got (3, 3).",
    ),
    "sum": (
        lambda p, a: a + np.ones((3, 2)),
        "`summand` must have the shape (2, 2), got (3, 2).",
    ),
    "product": (
        lambda p, a: a @ p.y,
        "`right side of @` must have 2 rows, as many as the left side has columns, "
        "got shape (1, 1).",
    ),
    "left": (
        lambda p, a: np.ones((2, 3)) @ a,
        "`left side of @` must be an array of 2 columns, got shape (2, 3).",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_matrices_refuse(name):
    program, a, _ = random_matrices()
    act, message = REFUSED[name]
    with pytest.raises(InvalidValueError) as caught:
        act(program, a)
    assert str(caught.value).startswith(message)
