"""Learners that JAX cannot trace are probed and patched as those that it can."""

from dataclasses import replace

import numpy as np
import pytest
from support.learners import small_learner
from support.opened import Wrapped
from support.refusals import refuses

from algoscope.patching import PatchingConfig, patch
from algoscope.probing import ProbingConfig, called, probe

SMALL = ProbingConfig(
    prefixes=(1, 2),
    places=("learned", "query", "all"),
    inner_size=4,
    batch_size=8,
    num_training=200,
    num_learned=40,
    num_validation=16,
    num_test=32,
    block_size=8,
    repeats=1,
)


def errors(result) -> list[np.ndarray]:
    return [each.error for each in result.measurements]


def test_probes_are_the_same_whether_jax_sees_the_learner_or_not():
    learner = small_learner()
    found, expected = (
        probe(each, budget=SMALL, targets=["w_ols"], floors=False)
        for each in (Wrapped(learner), learner)
    )
    for mine, theirs in zip(errors(found), errors(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_states_of_long_probings_are_called_a_few_steps_at_a_time(monkeypatch):
    """Fewer pilot datasets scale the states in another way, so errors differ a bit."""
    config = replace(SMALL, layers=(0, 2))
    wrapped, most = Wrapped(small_learner()), 8 * 2 * 5 * 4 * 4
    expected = probe(wrapped, budget=config, targets=["w_ols"], floors=False)
    monkeypatch.setattr(called, "ROOM", 2 * most + 1)
    found = probe(wrapped, budget=config, targets=["w_ols"], floors=False)
    for mine, theirs in zip(errors(found), errors(expected), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=0.2)
    source = called.CalledStates(wrapped, (0, 2), "float32")
    assert source.num_steps(20, 8, 5) == 2
    monkeypatch.setattr(called, "ROOM", 1)
    assert source.num_steps(20, 8, 5) == 1


def test_an_interrupted_probing_is_resumed_from_its_cache(tmp_path):
    wrapped = Wrapped(small_learner())
    options = {"targets": ["w_ols"], "floors": False, "directory": tmp_path}
    first = probe(wrapped, budget=SMALL, **options)
    calls = wrapped.calls
    again = probe(wrapped, budget=SMALL, **options)
    assert wrapped.calls == calls
    for mine, theirs in zip(errors(again), errors(first), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_patches_are_the_same_but_for_ablations():
    learner = small_learner()
    config = PatchingConfig(
        num_examples=2,
        num_pairs=4,
        num_training=64,
        num_edits=8,
        num_ablation_datasets=8,
    )
    found, expected = (
        patch(each, budget=config) for each in (Wrapped(learner), learner)
    )
    for name, each in expected.maps.items():
        np.testing.assert_allclose(found.maps[name].mean, each.mean, atol=1e-5)
    assert found.ablations == ()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda h: h[..., :2],
            "`hidden states of small` must be real numbers of shape (64, 3, 5, 4), got "
            "shape (64, 3, 5, 2) and dtype float32.",
        ),
        (
            lambda h: h * np.nan,
            "`hidden states of small` must be finite, got NaN or infinity.",
        ),
    ],
)
def test_unfit_states_are_refused_before_anything_is_trained(change, message):
    wrapped = Wrapped(small_learner())
    states = wrapped.hidden_states
    wrapped.hidden_states = lambda x, y: change(states(x, y))
    with refuses(ValueError, message):
        probe(wrapped, budget=SMALL, targets=["w_ols"], floors=False)
