"""Rotations of the residual stream: they change every row and no prediction."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from algoscope.ground_truth.rotation import random_rotation, rotate
from algoscope.model.layer import Block, layer_norm
from algoscope.model.transformer import random_transformer


@settings(deadline=None, max_examples=20)
@given(size=st.integers(2, 40), seed=st.integers(0, 1000))
def test_a_rotation_is_orthogonal_and_commutes_with_layer_norm(size: int, seed: int):
    rotation = random_rotation(size, seed)
    np.testing.assert_allclose(rotation @ rotation.T, np.eye(size), atol=1e-12)
    h = np.random.default_rng(seed).normal(size=(3, size))
    turned = layer_norm(jnp.asarray(h @ rotation.T), 1e-5)
    expected = np.asarray(layer_norm(jnp.asarray(h), 1e-5)) @ rotation.T
    np.testing.assert_allclose(turned, expected, atol=1e-9)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_a_rotated_transformer_predicts_the_same_from_other_states(pre_norm: bool):
    block = Block(pre_norm=pre_norm, imaginary_timestep=True)
    transformer = random_transformer(
        0,
        token_size=3,
        max_time=5,
        num_layers=2,
        hidden_size=8,
        num_heads=2,
        block=block,
        dtype="float64",
    )
    rotation = random_rotation(8, 1)
    tokens = jnp.asarray(np.random.default_rng(0).normal(size=(4, 5, 3)))
    before, after = transformer(tokens), rotate(transformer, rotation)(tokens)
    np.testing.assert_allclose(after.output, before.output, atol=1e-12)
    expected = np.asarray(before.hidden) @ rotation.T
    np.testing.assert_allclose(after.hidden, expected, atol=1e-12)
    assert np.abs(after.hidden - before.hidden).max() > 0.1


def test_other_matrices_are_refused():
    transformer = random_transformer(
        0, token_size=3, max_time=5, num_layers=1, hidden_size=4, num_heads=1
    )
    with pytest.raises(ValueError, match=r"have shape \(4, 4\)"):
        rotate(transformer, np.eye(3))
    with pytest.raises(ValueError, match="be orthogonal and keep the vector of ones"):
        rotate(transformer, np.diag([1.0, 1.0, 1.0, -1.0]))
    with pytest.raises(ValueError, match="`size` must be at least 2"):
        random_rotation(1)
