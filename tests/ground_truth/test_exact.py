"""The program as an opened learner: the same states and effects as the weights have."""

import jax.numpy as jnp
import numpy as np
import pytest

from algoscope.ground_truth import LabelledLearner
from algoscope.ground_truth.reading import datasets
from algoscope.model.opened import Swap, predict_intact


def test_states_are_those_of_the_weights(plain: LabelledLearner):
    data = datasets(plain, 8, seed=7)
    exact = plain.exact.hidden_states(data.x, data.y)
    found = np.asarray(plain.learner.hidden_states(data.x, data.y))
    used = np.abs(exact).max(axis=(0, 1, 2)) > 0
    assert used.sum() > 8
    np.testing.assert_allclose(found[..., used], exact[..., used], atol=1e-9)


def test_intact_it_predicts_what_the_weights_predict(labelled: LabelledLearner):
    data = datasets(labelled, 8, seed=7)
    exact = predict_intact(labelled.exact, data.x, data.y)
    found = predict_intact(labelled.learner, data.x, data.y)
    np.testing.assert_allclose(found, exact, atol=1e-5)


@pytest.mark.parametrize("layer", [0, 1, 3, 8])
@pytest.mark.parametrize("token", [1, 8])
def test_swapped_states_have_the_same_effect(
    plain: LabelledLearner, layer: int, token: int
):
    data, donors = datasets(plain, 8, seed=7), datasets(plain, 8, seed=8)
    mask = np.arange(9) == token
    answers = []
    for learner in (plain.learner, plain.exact):
        donated = learner.hidden_states(donors.x, donors.y)[:, layer]
        edit = Swap(jnp.asarray(donated), jnp.asarray(mask))
        answers.append(learner.predict_edited(data.x, data.y, layer, edit))
    np.testing.assert_allclose(*answers, atol=1e-8)
