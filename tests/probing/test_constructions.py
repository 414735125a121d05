"""Probes of transformers whose inside is known: the compiler says what is where (§5).

SGD and ridge regression, compiled as replays, write wₙ into named rows in one layer,
at the positions that have seen yₙ: 2n − 1, of yₙ itself, and 2n, of the query.
"""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algoscope.comparison.predict import draw_datasets
from algoscope.construction import Construction
from algoscope.construction.algorithms import SGD, Ridge
from algoscope.model.learner import InContextLearner
from algoscope.model.tokens import encode_context
from algoscope.predictors import ridge, sgd
from algoscope.probing import ProbingConfig, probe, weights_of
from algoscope.probing.measurement import Measurement
from algoscope.probing.states import TRAINING, Repeat, hidden_states
from algoscope.probing.targets import target_values
from algoscope.tasks.linear import LinearRegression

ALPHA = 0.05
TASK = LinearRegression(dim=2)
DESCENT, RIDGE = (
    Construction(algorithm, dim=2, num_examples=3)
    for algorithm in (SGD(ALPHA), Ridge(0.1))
)
TARGET = weights_of(sgd(ALPHA))
TARGETS = {DESCENT: TARGET, RIDGE: weights_of(ridge(0.1))}
WRITTEN = {DESCENT: [1, 3, 5], RIDGE: [3, 7, 11]}  # l of the first H⁽ˡ⁾ with w₁, w₂, w₃

EXACT = ProbingConfig(
    kinds=("linear",),
    prefixes=(1, 2, 3),
    num_training=512,
    num_test=256,
    block_size=64,
    repeats=1,
    solver="least_squares",
)

either = pytest.mark.parametrize("built", [DESCENT, RIDGE], ids=["sgd", "ridge"])


@cache
def compiled(built: Construction) -> InContextLearner:
    """Return the algorithm, calibrated on more datasets than are probed."""
    data = draw_datasets(TASK, num_datasets=4096, num_examples=4, seed=9, fold=0)
    tokens = 1.5 * np.asarray(encode_context(data.x, data.y), np.float64)
    return built.compile(tokens).learner(built.algorithm.name)


@cache
def probed(built: Construction) -> Measurement:
    found = probe(compiled(built), TASK, EXACT, targets=[TARGETS[built]])
    return found.measurements[0]


def written_at(built: Construction, n: int) -> tuple[int, np.ndarray]:
    """Return l of the first H⁽ˡ⁾ that holds wₙ, and the rows that hold it."""
    arrangement = built.arrange()
    (event,) = (e for e in arrangement.schedule.layers if e.out.name == f"w{n}")
    rows = arrangement.allocation.rows[event.out]
    return arrangement.schedule.layers[event] + 1, rows


@either
def test_weights_are_found_from_the_layer_on_that_writes_them(built: Construction):
    """After two examples in two dimensions, ridge has little left to change."""
    relative = probed(built).relative[0]
    for index, n in enumerate(EXACT.prefixes):
        layer, _ = written_at(built, n)
        assert layer == WRITTEN[built][index]
        assert np.all(relative[layer:, index] < 1e-8)  # a share of the variance
        assert np.all(relative[:layer, index] > (0.1 if built is DESCENT else 0.01))


@either
def test_weights_are_found_at_the_positions_that_have_seen_the_last_label(
    built: Construction,
):
    for index, n in enumerate(EXACT.prefixes):
        layer, _ = written_at(built, n)
        places = probed(built).attention[0, layer:, index].argmax(axis=-1)
        assert set(places.tolist()) <= {2 * n - 1, 2 * n}


@either
def test_the_compiler_wrote_them_into_the_rows_that_it_names(built: Construction):
    data = draw_datasets(TASK, num_datasets=512, num_examples=4, seed=0, fold=TRAINING)
    learner = compiled(built)
    layers = tuple(range(learner.transformer.num_layers + 1))
    states = hidden_states(learner, data, layers)
    weights = target_values(TARGETS[built], data, EXACT.prefixes)
    for index, n in enumerate(EXACT.prefixes):
        layer, rows = written_at(built, n)
        held = states[layer, :, 2 * n][:, rows]
        np.testing.assert_allclose(held, weights[:, index], rtol=1e-6, atol=1e-8)


def test_learned_attention_finds_them_too():
    """They are at yₙ and at the query; other positions hold older weights."""
    n = 2
    layer, _ = written_at(DESCENT, n)
    config = replace(
        EXACT,
        solver="adam",
        prefixes=(n,),
        layers=(layer - 1, layer),
        places=("learned", "last_label", "query", "all"),
        num_training=1024,
        num_learned=2048,
    )
    found = probe(compiled(DESCENT), TASK, config, targets=[TARGET], floors=False)
    before, after = found.of(TARGET.name, "linear").relative[0, :, 0]
    assert after < 1e-8
    assert before > 0.1
    alpha = found.of(TARGET.name, "linear").attention[0, 1, 0]
    assert alpha[2 * n - 1] + alpha[2 * n] > 0.75


DEEP = Construction(SGD(ALPHA), dim=4, num_examples=10)
DEEP_TASK = LinearRegression(dim=4)


def least_squares_error(
    features: np.ndarray, values: np.ndarray, fitted: int
) -> np.ndarray:
    """Return the held-out error of linear regression, over the variance."""
    features = np.column_stack([features, np.ones(len(features))])
    solution = np.linalg.lstsq(features[:fitted], values[:fitted])[0]
    errors = values[fitted:] - features[fitted:] @ solution
    return np.mean(errors**2) / np.mean(
        (values[fitted:] - values[:fitted].mean(axis=0)) ** 2
    )


def test_ten_steps_in_four_dimensions_are_found_as_they_are_written():
    """Before w₁₀ is written the probe reads no more of it than the program knows.

    The control has what the program has computed by then, wₖ, and what it may hold
    beside it: the last examples. A probe that beat it would compute by itself.
    """
    target = weights_of(sgd(ALPHA))
    config = replace(EXACT, prefixes=(10,), num_training=1024, num_test=512)
    data = draw_datasets(DEEP_TASK, num_datasets=2048, num_examples=11, seed=9, fold=0)
    tokens = 1.5 * np.asarray(encode_context(data.x, data.y), np.float64)
    learner = DEEP.compile(tokens).learner("sgd")
    found = probe(learner, DEEP_TASK, config, targets=[target]).measurements[0]
    relative = found.relative[0, :, 0]
    assert len(relative) == 21
    assert np.all(relative[19:] < 1e-3)
    assert relative[0] > 0.95

    repeat = Repeat.draw(DEEP_TASK, config, [target], 0)
    x, y = (
        np.concatenate([np.asarray(part, np.float64) for part in parts])
        for parts in (
            (repeat.training.x, repeat.test.x),
            (repeat.training.y, repeat.test.y),
        )
    )
    follow = jax.vmap(sgd(ALPHA).prefix_weights)
    weights = np.asarray(follow(jnp.asarray(x), jnp.asarray(y)))
    for step in range(1, 10):
        near = slice(step - 1, step + 2)
        features = [weights[:, step], x[:, near].reshape(len(x), -1), y[:, near]]
        query, label = x[:, 10], y[:, 9:10]
        control = least_squares_error(
            np.column_stack([*features, query, label]), weights[:, 10], 1024
        )
        assert relative[2 * step - 1] > 0.9 * control
        assert relative[2 * step - 1] < 1.2 * control
