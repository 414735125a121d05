"""Learning rules in JAX: the transformer does what the rule itself does.

The rules are those of docs/learning_rules.md. Three things are held equal at every
prefix: the rule, run by JAX one example at a time; the program that it is traced to;
and the transformer.
"""

import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.formula_reader import agrees
from support.forward import outputs
from support.refusals import refuses

import algoscope as asc
from algoscope.construction.algorithms import GD, SGD, Ridge
from algoscope.construction.compiler.compile import Compiled, arrange, compile_program
from algoscope.construction.compiler.numerics import DType, numerics
from algoscope.construction.language.interpreter import predictions
from algoscope.construction.language.replay import program_of
from algoscope.construction.language.rules import LearningRule
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.model.tokens import example_tokens

PAGE = Path(__file__).parents[2] / "docs" / "learning_rules.md"
LABELS = {"logistic": (0.0, 1.0)}
LABELS |= dict.fromkeys(("perceptron", "passive_aggressive"), (-1.0, 1.0))

# The largest errors at d = 3, 5, 7, relative to the largest prediction.
FLOAT64, FLOAT32 = 1e-10, 2e-3
SHAPES = ((3, 5), (5, 4), (7, 3))


@cache
def rules() -> dict[str, LearningRule]:
    """Return the rules of the page, by name."""
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.M | re.S)
    page: dict[str, Any] = {}
    exec("\n".join(blocks), page)
    return {k: v for k, v in page.items() if isinstance(v, LearningRule)}


NAMES = [
    *("sgd", "momentum", "nesterov", "adagrad", "nlms", "logistic", "two_layers"),
    *("perceptron", "passive_aggressive", "oja", "rls", "kalman", "bayes"),
    *("polynomial_ridge", "ista", "gauss_seidel"),
]


def draw(name: str, dim: int, num_examples: int, seed: int | None = None) -> np.ndarray:
    """Return datasets to calibrate on, or with a seed a few others."""
    few = None if seed is None else 4
    tokens = example_tokens(dim, num_examples, few, seed or 0)
    if name in LABELS:
        low, high = LABELS[name]
        tokens[:, 1::2, 0] = np.where(tokens[:, 1::2, 0] > 0, high, low)
    return tokens.astype(np.float32).astype(np.float64)


def run_rule(rule: LearningRule, tokens: np.ndarray) -> np.ndarray:
    """Return what the rule predicts at every prefix, all numbers of it."""
    x, y = jnp.asarray(tokens[:, ::2, 1:]), jnp.asarray(tokens[:, 1::2, 0])
    step, predict = jax.jit(jax.vmap(rule.step)), jax.jit(jax.vmap(rule.predict))
    start = jax.tree.map(jnp.asarray, rule.start(x.shape[-1]))
    state = jax.tree.map(lambda leaf: jnp.stack([leaf] * len(x)), start)
    found = []
    for k in range(x.shape[1]):
        leaves = jax.tree.leaves(predict(state, x[:, k]))
        flat = [np.asarray(leaf).reshape(len(x), -1) for leaf in leaves]
        found.append(np.concatenate(flat, axis=1))
        if k < y.shape[1]:
            state = step(state, x[:, k], y[:, k])
    return np.stack(found, axis=1)


def compiled(name: str, dim: int, num_examples: int, dtype: DType) -> Compiled:
    constants = numerics(dtype)
    program = program_of(rules()[name], dim, num_examples, constants.digits)
    tokens = draw(name, dim, num_examples)
    return compile_program(program, constants, tokens=tokens)


@pytest.mark.parametrize("name", NAMES)
def test_formulas_of_the_rule_are_right(name):
    agrees(program_of(rules()[name], 2, 2, 53), draw(name, 2, 2, seed=1))


def error(found: np.ndarray, expected: np.ndarray) -> float:
    return float(np.max(np.abs(found - expected)) / max(1.0, np.abs(expected).max()))


def test_the_page_has_the_rules():
    assert sorted(rules()) == sorted(NAMES)


@pytest.mark.parametrize(("dim", "num_examples"), SHAPES)
@pytest.mark.parametrize("name", NAMES)
def test_the_transformer_runs_the_rule(name, dim, num_examples):
    if name == "polynomial_ridge":
        dim, num_examples = {3: (3, 4), 5: (2, 5), 7: (1, 7)}[dim]
    tokens = draw(name, dim, num_examples, seed=1)
    expected = run_rule(rules()[name], tokens)[..., 0]
    made = compiled(name, dim, num_examples, "float64")
    assert error(predictions(made.program, tokens), expected) < 1e-13
    found = outputs(made.transformer, tokens)[:, ::2]
    assert error(found, expected) < FLOAT64


@pytest.mark.parametrize("name", NAMES)
def test_the_rule_runs_in_float32(name):
    dim, num_examples = 3, 4
    tokens = draw(name, dim, num_examples, seed=1)
    expected = run_rule(rules()[name], tokens)[..., 0]
    made = compiled(name, dim, num_examples, "float32")
    found = outputs(made.transformer, tokens)[:, ::2]
    assert error(found, expected) < FLOAT32


@pytest.mark.parametrize(("dim", "num_examples"), [(2, 1), (3, 4), (4, 7)])
def test_tracing_takes_no_more_layers_than_writing_by_hand(dim, num_examples):
    def traced(name):
        program = program_of(rules()[name], dim, num_examples)
        return arrange(program, numerics())

    by_hand = {"sgd": SGD(), "nesterov": SGD(penalty=0.1), "rls": Ridge()}
    for name, algorithm in by_hand.items():
        assert traced(name).num_layers <= algorithm.num_layers(dim, num_examples)
    for name in ("sgd", "rls"):
        rows = by_hand[name].hidden_size(dim, num_examples)
        assert traced(name).hidden_size <= rows + dim


def test_sums_over_examples_take_as_many_layers_as_batch_methods():
    def accelerated(state, x):
        A, b = state
        w = before = jnp.zeros_like(b)
        for _ in range(6):
            z = w + 0.9 * (w - before)
            w, before = z - 0.02 * (A @ z - b), w
        return w @ x

    ista = rules()["ista"]
    rule = LearningRule(ista.step, accelerated, ista.init)
    for num_examples in (3, 9):
        program = program_of(rule, 3, num_examples)
        assert arrange(program, numerics()).num_layers == GD(steps=6).num_layers(3, 9)
        tokens = draw("", 3, num_examples, seed=1)
        assert (
            error(predictions(program, tokens), run_rule(rule, tokens)[..., 0]) < 1e-13
        )


def test_several_outputs_are_those_of_the_rule():
    learner = asc.compile(rules()["bayes"], dim=3, num_examples=4)
    tokens = draw("bayes", 3, 4, seed=1)[:1]
    x, y = jnp.asarray(tokens[0, ::2, 1:]), jnp.asarray(tokens[0, 1::2, 0])
    expected = run_rule(rules()["bayes"], tokens)[0, -1]
    np.testing.assert_allclose(learner.outputs(x[:-1], y, x[-1]), expected, atol=1e-11)
    assert np.allclose(learner(x[:-1], y, x[-1]), expected[0], atol=1e-11)
    assert learner.compiled.num_outputs == len(expected) == 2


PRIMITIVES = {
    "scan": lambda w, x: jax.lax.scan(lambda c, v: (c + v * c, v * v), w[0], x)[0],
    "stacked scan": lambda w, x: jnp.sum(
        jax.lax.scan(lambda c, v: (c, v * c), w[0], x, reverse=True)[1] * x
    ),
    "fori_loop": lambda w, x: jax.lax.fori_loop(
        0, 3, lambda i, z: z.at[i].set(z[i] * x[i] + z[0]), w
    )[2],
    "while": lambda w, x: jax.lax.while_loop(
        lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 0.5), (0, w @ x)
    )[1],
    "cond": lambda w, x: jax.lax.cond(x[0] > 0, lambda: w @ x, lambda: -x[1]),
    "vmap": lambda w, x: jnp.sum(jax.vmap(lambda a, b: a * b + a)(w, x)),
    "abs": lambda w, x: jnp.sum(jnp.abs(x) * w),
    "sign": lambda w, x: jnp.sign(x) @ w,
    "relu": lambda w, x: jax.nn.relu(x) @ w,
    "clip": lambda w, x: jnp.clip(w * x, -0.5, 0.5).sum(),
    "max": lambda w, x: jnp.max(x) + jnp.min(w),
    "and": lambda w, x: jnp.where((x > 0) & ~(w > x) | (w < -1), x, w).sum(),
    "exp": lambda w, x: jnp.exp(0.5 * w @ x),
    "exp2": lambda w, x: jnp.exp2(0.5 * w) @ x + 3.0 ** (0.2 * x[0]),
    "tanh": lambda w, x: jnp.tanh(w) @ x,
    "softmax": lambda w, x: jax.nn.softmax(w) @ x,
    "power": lambda w, x: jnp.sum(w**3 * x) + jnp.sum((1 + x**2) ** -2 * w),
    "norm": lambda w, x: w @ x / jnp.linalg.norm(x),
    "rsqrt": lambda w, x: w @ x * jax.lax.rsqrt(1 + x @ x),
    "ratio": lambda w, x: jnp.sum(w / (x + 0.1)),
    "constants": lambda w, x: w @ x / 4 + jnp.dot(jnp.arange(3.0), x),
    "associative_scan": lambda w, x: (
        jax.lax.associative_scan(jnp.multiply, x[:2])[1] * w[0]
    ),
    "cumsum": lambda w, x: jnp.cumsum(w * x)[1],
    "gather": lambda w, x: jnp.roll(w, 1)[jnp.array([2, 0, 0])] @ x,
    "scatter": lambda w, x: w.at[0].set(x[1]).at[1:].add(x[1:] * w[0]) @ x,
    "scatter-mul": lambda w, x: w.at[jnp.array([2, 0, 2])].mul(x) @ x,
    "scatter-mul by a constant": lambda w, x: w.at[:2].multiply(0.5).at[9].mul(2) @ x,
    "scatter-max": lambda w, x: (w.at[1:].max(x[1:]).at[0].min(x[0])) @ x,
    "scatter of x": lambda w, x: jnp.ones(3).at[1].mul(x[0] * w[1]).sum(),
    "prod": lambda w, x: jnp.prod(w * x) + jnp.prod(x[:1]),
    "all, any": lambda w, x: jnp.where(jnp.all(x > -1) | jnp.any(x > 1.5), w @ x, 0.0),
    "matrix": lambda w, x: jnp.outer(w, x)[1] @ jnp.stack([x, w, x], axis=1)[0],
    "einsum": lambda w, x: jnp.einsum("i,j,ij->", w, x, jnp.eye(3) + 1),
    "custom_jvp": lambda w, x: jax.grad(lambda w: jax.nn.relu(w @ x))(w) @ x,
    "equal": lambda w, x: jnp.where(w == x, 1.0, w).sum() + jnp.sum(x != w),
}


@pytest.mark.parametrize("name", PRIMITIVES)
def test_primitives_mean_what_they_mean_in_jax(name):
    predict = PRIMITIVES[name]
    rule = LearningRule(lambda w, x, y: w + 0.3 * x * y, predict, np.ones)
    tokens = draw("", 3, 2, seed=1)
    expected = run_rule(rule, tokens)[..., 0]
    program = program_of(rule, 3, 2)
    assert error(predictions(program, tokens), expected) < 1e-11
    found = outputs(compile_program(program).transformer, tokens)[:, ::2]
    assert error(found, expected) < 1e-9


def test_what_depends_on_no_data_is_a_constant_of_the_step():
    """Averaging with weights 1/k divides by nothing that the data can change."""

    def step(state, x, y):
        w, mean, count = state
        w = w - 0.05 * jax.grad(lambda w: (w @ x - y) ** 2)(w)
        return w, mean + (w - mean) / (count + 1), count + 1

    rule = LearningRule(
        step,
        lambda state, x: state[1] @ x + 0.1 * state[2],
        lambda dim: (np.zeros(dim), np.zeros(dim), 0),
    )
    program = program_of(rule, 3, 4)
    assert all(event.norm is None for event in program.events)
    tokens = draw("", 3, 4, seed=1)
    assert error(predictions(program, tokens), run_rule(rule, tokens)[..., 0]) < 1e-14


@pytest.mark.parametrize(
    "step",
    [
        lambda w, x, y: 0.9 * w + 0.1,
        lambda w, x, y: w + 0.1 * w * w,
        lambda w, x, y: jnp.where(w > 1.01, 0.5 * w, w + 0.1),
        lambda w, x, y: w + 0.1 * jax.nn.sigmoid(w),
        lambda w, x, y: x + 1.0,
        lambda w, x, y: w / (1 + w @ w),
    ],
)
def test_columns_that_do_not_see_an_example_do_not_change(step):
    rule = LearningRule(step, lambda w, x: w @ x, np.ones)
    tokens = draw("", 2, 4, seed=1)
    program = program_of(rule, 2, 4)
    assert error(predictions(program, tokens), run_rule(rule, tokens)[..., 0]) < 1e-12
    found = outputs(compile_program(program).transformer, tokens)[:, ::2]
    assert error(found, run_rule(rule, tokens)[..., 0]) < 1e-10


def test_a_symmetric_matrix_is_kept_as_a_triangle():
    program = program_of(rules()["rls"], 5, 3)
    sizes = {event.out.name: event.out.size for event in program.events}
    assert sizes["state1.1"] == sizes["state1.2"] == 15


def test_a_state_may_fill_up_entry_by_entry():
    """Here the last three examples, one more per step."""

    def step(state, x, y):
        w, X, Y, k = state
        X, Y = X.at[k % 3].set(x), Y.at[k % 3].set(y)
        return w + 0.1 * X.T @ (Y - X @ w), X, Y, k + 1

    rule = LearningRule(
        step,
        lambda state, x: state[0] @ x,
        lambda dim: (np.zeros(dim), np.zeros((3, dim)), np.zeros(3), 0),
    )
    tokens = draw("", 2, 5, seed=1)
    program = program_of(rule, 2, 5)
    assert error(predictions(program, tokens), run_rule(rule, tokens)[..., 0]) < 1e-13
    found = outputs(compile_program(program).transformer, tokens)[:, ::2]
    assert error(found, run_rule(rule, tokens)[..., 0]) < FLOAT64


# What is refused.


def linear(step: Any) -> LearningRule:
    return LearningRule(step, lambda w, x: w @ x, np.zeros)


REFUSED = {
    "sort": (lambda w, x, y: w + jnp.sort(x), "`sort`"),
    "log": (lambda w, x, y: w + jnp.log(x), "`log`"),
    "sine": (lambda w, x, y: w + jnp.sin(x), "`sin`"),
    "root": (lambda w, x, y: w + jnp.sqrt(x), "the root of something"),
    "zero": (lambda w, x, y: w + x / 0.0, "a division by zero"),
    "index": (
        lambda w, x, y: w + x[jnp.where(y > 0, 1, 0)],
        "an index that depends on data",
    ),
    "scattered": (
        lambda w, x, y: w.at[jnp.where(y > 0, 0, 1).astype(int)].add(1.0),
        "an index that depends on data",
    ),
    "not finite": (lambda w, x, y: w + x * jnp.nan, "a constant that is infinite"),
    "infinite": (lambda w, x, y: w + x + jnp.inf, "a constant that is infinite"),
    "loop": (
        lambda w, x, y: w + jax.lax.while_loop(lambda c: c < 3, lambda c: c + 1, y),
        "a loop whose length depends on data",
    ),
    "power": (lambda w, x, y: w + x**0.3, "`pow`"),
    "nearest": (lambda w, x, y: w + jnp.argmin(x), "`argmin`"),
    "solve": (
        lambda w, x, y: w + jnp.linalg.solve(jnp.outer(x, x) + jnp.eye(2), x),
        "`lu`",
    ),
}


def refusal_of(step) -> tuple[str, str, str]:
    """Return the message that refuses a step, its quotation, and the line it names."""
    with pytest.raises(InvalidValueError) as caught:
        asc.compile(linear(step), dim=2, num_examples=2)
    message = str(caught.value)
    line = re.search(r"test_rules\.py:(\d+): `(.*?)`\.", message)
    assert line, message
    return message, line[2], Path(__file__).read_text().splitlines()[int(line[1]) - 1]


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_layer_computes_is_refused_with_the_line(name):
    step, what = REFUSED[name]
    message, quoted, source = refusal_of(step)
    assert message.startswith("`step` must consist of what layers can compute, got")
    assert what in message
    assert quoted.rstrip(".") in source


UNTRACEABLE = {
    "if": (lambda w, x, y: w if y > 0 else w + x, "a choice by data", "jnp.where"),
    "mask": (lambda w, x, y: w + x[x > 0].sum(), "a selection by data", "jnp.where"),
    "numpy": (lambda w, x, y: w + np.clip(x, 0, 1), "an array that", "Use jnp"),
    "float": (lambda w, x, y: w + float(y), "a number that", "Leave out float()"),
    "list": (lambda w, x, y: w + [1, 2][y.astype(int)], "an index that", "Use fixed"),
}


@pytest.mark.parametrize("name", UNTRACEABLE)
def test_what_jax_cannot_trace_is_refused_with_the_line(name):
    step, what, remedy = UNTRACEABLE[name]
    message, _, source = refusal_of(step)
    assert message.startswith(f"`step` must consist of what JAX can trace, got {what}")
    assert remedy in message
    assert f'"{name}": ' in source


FAULTY = {
    "name": (lambda w, x, y: w + unknown, "NameError: name 'unknown'"),  # pyright: ignore
    "shape": (lambda w, x, y: w @ jnp.ones((5, 5)), "TypeError: dot_general requires"),
}


@pytest.mark.parametrize("name", FAULTY)
def test_an_error_of_the_rule_is_told_with_its_line(name):
    step, what = FAULTY[name]
    message, _, source = refusal_of(step)
    assert message.startswith(f"`step` must run without errors, got {what}")
    assert f'"{name}": ' in source


def test_functions_that_take_other_arguments_are_refused():
    for step, init, words in (
        (lambda w, x: w, np.zeros, "`step` must run without errors, got TypeError: "),
        (lambda w, x, y: w, lambda: 0.0, "`init` must run without errors, got Type"),
    ):
        with pytest.raises(InvalidValueError, match=words):
            program_of(LearningRule(step, jnp.dot, init), 2, 2)


def _drawn(w, x, y, key):
    return w - jax.random.uniform(key) * x * (w @ x - y)


RANDOM = {
    "constant": (
        lambda s, x, y: (_drawn(s[0], x, y, jax.random.key(3)),),
        lambda dim: (np.zeros(dim),),
    ),
    "counted": (
        lambda s, x, y: (
            _drawn(s[0], x, y, jax.random.fold_in(jax.random.key(3), s[1])),
            s[1] + 1,
        ),
        lambda dim: (np.zeros(dim), 0),
    ),
    "split": (
        lambda s, x, y: (
            _drawn(s[0], x, y, s[1]),
            jax.random.split(s[1])[0],
        ),
        lambda dim: (np.zeros(dim), jax.random.PRNGKey(0)),
    ),
}


@pytest.mark.parametrize("name", RANDOM)
def test_random_numbers_of_a_fixed_key_are_constants(name):
    step, init = RANDOM[name]
    rule = LearningRule(step, lambda s, x: s[0] @ x, init)
    program, tokens = program_of(rule, 2, 3), draw("", 2, 3, seed=1)
    assert error(predictions(program, tokens), run_rule(rule, tokens)[..., 0]) < 1e-14
    compile_program(program)  # a key that `predict` does not use takes no row


def test_what_is_no_number_is_refused_as_a_state():
    with refuses(
        InvalidTypeError,
        "`init` must be made of arrays of numbers, got a key of random "
        "numbers. Use jax.random.PRNGKey.",
    ):
        program_of(LearningRule(lambda s, x, y: s, jnp.dot, jax.random.key(0)), 2, 3)


def test_rules_that_do_not_fit_are_refused():
    with refuses(InvalidTypeError, "`init` must hold real numbers, got complex ones."):
        program_of(LearningRule(lambda w, x, y: w, jnp.dot, np.zeros(2, complex)), 2, 2)
    with pytest.raises(InvalidValueError, match="one of gelu, gelu_tanh, silu, got"):
        asc.compile(rules()["sgd"], dim=2, num_examples=2, activation="relu")
    with refuses(InvalidTypeError, "`step` must be a function, got int."):
        LearningRule(3, jnp.dot, np.zeros)  # pyright: ignore[reportArgumentType]
    with refuses(InvalidValueError, "`init` must hold at least one array, got none."):
        program_of(LearningRule(lambda s, x, y: s, lambda s, x: x[0], ()), 2, 2)
    with refuses(
        InvalidValueError,
        "`step` must return `state` of shape (2,), as it starts, got shape ().",
    ):
        program_of(linear(lambda w, x, y: w @ x), 2, 2)
    with refuses(InvalidValueError, "`init` must be finite, got NaN or infinity."):
        program_of(LearningRule(lambda w, x, y: w, jnp.dot, np.array([np.nan])), 1, 1)
    with refuses(
        InvalidValueError,
        "`predict` must be given beside `step`, got none. "
        "Or give a rule made by `learning_rule`.",
    ):
        asc.compile(lambda w, x, y: w, dim=2, num_examples=2)
    with refuses(InvalidValueError, "`dim` must be given, got none."):
        asc.compile(rules()["sgd"], num_examples=2)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*NAMES} - {"polynomial_ridge"}))
def test_a_rule_of_eight_dimensions_is_compiled_in_ten_seconds(name):
    """But polynomial ridge regression: it has 44 features there, and P 990 numbers."""
    start = time.process_time()
    made = compiled(name, 8, 20, "float64")
    assert time.process_time() - start < 10
    tokens = draw(name, 8, 20, seed=1)
    expected = run_rule(rules()[name], tokens)[..., 0]
    found = outputs(made.transformer, tokens)[:, ::2]
    assert error(found, expected) < FLOAT64
