"""Our learners as opened ones: the protocol, edits, and one compilation for all."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.learners import small_learner
from support.refusals import refuses

from algoscope.model.opened import (
    Add,
    OpenedLearner,
    Swap,
    name_tokens,
    predict_intact,
)


def data(rng: np.random.Generator, count: int = 5):
    x, y = rng.normal(size=(count, 3, 2)), rng.normal(size=(count, 3))
    return x.astype(np.float32), y.astype(np.float32)


def test_a_learner_shows_its_states_and_names(rng):
    learner = small_learner()
    assert isinstance(learner, OpenedLearner)
    x, y = data(rng)
    states = learner.hidden_states(x, y)
    depth, time = len(learner.layer_names), len(learner.token_names(2))
    assert states.shape == (5, depth, time, learner.hidden_size)
    assert name_tokens(0) == ["query"]
    expected = jax.vmap(learner.predict_prefixes)(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(predict_intact(learner, x, y), expected, atol=1e-6)


@pytest.mark.parametrize("layer", [0, 1, 2])
def test_a_compiled_edit_and_a_function_of_arrays_have_the_same_effect(layer, rng):
    learner, (x, y) = small_learner(), data(rng)
    mask = np.array([True, False, True, False, False])
    donated = rng.normal(size=(5, 5, 4)).astype(np.float32)
    change = donated[:, 0]
    pairs = [
        (Swap(donated, mask), lambda h: np.where(mask[:, None], donated, h)),
        (Add(change, mask), lambda h: h + change[:, None] * mask[:, None]),
    ]
    for compiled, plain in pairs:
        found = learner.predict_edited(x, y, layer, compiled)
        np.testing.assert_allclose(
            found, learner.predict_edited(x, y, layer, plain), atol=1e-6
        )
        assert np.abs(found - predict_intact(learner, x, y)).max() > 1e-4


def test_states_of_another_run_give_its_predictions(rng):
    learner, (x, y), (others, labels) = small_learner(), data(rng), data(rng)
    donated = learner.hidden_states(others, labels)
    expected = predict_intact(learner, others, labels)
    for layer in range(3):
        edit = Swap(donated[:, layer], np.ones(5, bool))
        found = learner.predict_edited(x, y, layer, edit)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_other_arrays_and_other_layers_do_not_compile_again(rng):
    traced = []

    class Traced(eqx.Module):
        change: np.ndarray

        def __call__(self, h):
            traced.append(h.shape)
            return h + self.change[:, None]

    x, y = data(rng)
    for layer in range(3):
        change = rng.normal(size=(5, 4)).astype(np.float32)
        small_learner(seed=layer).predict_edited(x, y, layer, Traced(change))
    assert len(traced) == 2  # at the input, and in the layers that share one body


def test_numbers_that_are_not_finite_are_refused(rng):
    x, y = data(rng)
    with refuses(ValueError, "`x` must be finite, got NaN or infinity."):
        small_learner().hidden_states(x * np.inf, y)
    with refuses(ValueError, "`layer` must be at least 0, got -1."):
        small_learner().predict_edited(x, y, -1, lambda h: h)
