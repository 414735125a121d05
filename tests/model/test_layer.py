"""One layer and its parts: attention, layer normalization, activations, the block."""

from dataclasses import FrozenInstanceError, replace
from functools import partial
from typing import get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.test_util import check_grads
from support.refusals import refuses
from support.transformers import (
    IMAGINARY,
    MODERN,
    PAPER,
    SIZES,
    TIME,
    draw_tokens,
    draw_transformer,
    law,
    layer_at,
    seeds,
)

from algoscope.model import Activation
from algoscope.model.layer import (
    ACTIVATIONS,
    Block,
    Embedded,
    TransformerLayer,
    layer_norm,
)


@partial(jax.jit, static_argnums=1)
def attend(
    score: float | jax.Array, block: Block, h: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Return a and α of a layer in which every score is `score`, and b^F is 5."""
    heads, key, value, hidden = 2, 1, 3, h.shape[-1]
    zeros, ones = jnp.zeros((heads, key, hidden)), jnp.ones((heads, key))
    layer = TransformerLayer(
        w_q=zeros,
        w_k=zeros,
        w_v=jnp.ones((heads, value, hidden)),
        w_f=jnp.ones((heads, hidden, value)),
        w_2=jnp.zeros((1, hidden)),
        w_1=jnp.zeros((hidden, 1)),
        b_q=ones,
        b_k=score * ones,
        b_v=jnp.zeros((heads, value)),
        b_f=jnp.full((hidden,), 5.0),
        b_2=jnp.zeros((1,)),
        b_1=jnp.zeros((hidden,)),
    )
    return layer.attention(h, block)


@pytest.mark.parametrize("score", [-1e6, -800.0, 800.0, 1e6])
def test_equal_scores_of_any_size_spread_attention_evenly(rng, score):
    _, alpha = attend(score, PAPER, jnp.asarray(rng.standard_normal((1, 4, 3))))
    evenly = np.tri(4) / np.arange(1, 5)[:, None]
    np.testing.assert_allclose(alpha[0], [evenly] * 2, rtol=1e-14)


@pytest.mark.parametrize("score", [-1e6, -800.0])
def test_the_imaginary_timestep_takes_all_attention_from_low_scores(rng, score):
    a, alpha = attend(score, IMAGINARY, jnp.asarray(rng.standard_normal((1, 4, 3))))
    assert np.all(alpha == 0)
    assert np.all(a == 5)


@pytest.mark.parametrize("score", [800.0, 1e6])
def test_the_imaginary_timestep_takes_no_attention_from_high_scores(rng, score):
    h = jnp.asarray(rng.standard_normal((1, 4, 3)))
    for mine, other in zip(
        attend(score, IMAGINARY, h), attend(score, PAPER, h), strict=True
    ):
        np.testing.assert_allclose(mine, other, rtol=1e-14)


@pytest.mark.parametrize("score", [-1.5, 0.0, 2.0])
def test_the_imaginary_timestep_counts_as_a_score_of_zero(rng, score):
    _, alpha = attend(score, IMAGINARY, jnp.asarray(rng.standard_normal((1, 4, 3))))
    seen = np.arange(1, 5) * np.exp(score)
    np.testing.assert_allclose(alpha[0].sum(-1), [seen / (1 + seen)] * 2, rtol=1e-12)


@pytest.mark.parametrize("block", [PAPER, IMAGINARY], ids=repr)
def test_first_and_second_derivatives_of_attention_are_right(rng, block):
    model = draw_transformer(rng, block, layers=1)
    layer = layer_at(model, 0)
    h = jnp.asarray(rng.standard_normal((1, 3, SIZES["hidden"])))

    @jax.jit
    def attention(h: jax.Array):
        return layer.attention(h, block)

    check_grads(attention, (h,), order=1, modes=["fwd"], eps=1e-5, rtol=1e-7)
    check_grads(attention, (h,), order=2, modes=["rev"], eps=1e-5, rtol=1e-7)


@pytest.mark.parametrize("block", [PAPER, IMAGINARY], ids=repr)
@pytest.mark.parametrize("score", [-1e6, 1e6])
def test_derivatives_at_extreme_scores_are_finite(rng, block, score):
    h = jnp.asarray(rng.standard_normal((1, 4, 3)))
    slopes = jax.jit(jax.jacrev(attend), static_argnums=1)(score, block, h)
    assert all(np.all(np.isfinite(slope)) for slope in slopes)


@law
@given(seed=seeds)
def test_an_embedding_in_factors_is_the_one_multiplied_out(seed: int):
    rng = np.random.default_rng(seed)
    embedded = Embedded(
        draw_tokens(rng, 2),
        jnp.asarray(rng.standard_normal((SIZES["hidden"], SIZES["token"]))),
        jnp.asarray(rng.standard_normal((TIME, SIZES["hidden"]))),
    )
    w = rng.standard_normal((5, SIZES["hidden"]))
    h = np.asarray(embedded.tokens) @ np.asarray(embedded.w_e).T
    h = h + np.asarray(embedded.positions)
    mean, deviation = h.mean(-1, keepdims=True), np.sqrt(h.var(-1, keepdims=True) + 0.1)
    normed = (h - mean) / deviation
    at = slice(1, None, 3)
    np.testing.assert_allclose(embedded.hidden, h, atol=1e-12)
    np.testing.assert_allclose(embedded.normed(0.1).hidden, normed, atol=1e-12)
    np.testing.assert_allclose(
        embedded.normed(0.1).times(jnp.asarray(w), at),
        normed[:, at] @ w.T,
        atol=1e-12,
    )


@law
@given(seed=seeds, scale=st.floats(1e-3, 1e3), shift=st.floats(-1e3, 1e3))
def test_layer_norm_sees_neither_shift_nor_scale(seed, scale, shift):
    h = jnp.asarray(np.random.default_rng(seed).standard_normal((3, 5)))
    normal = np.asarray(layer_norm(h, 0.0))
    np.testing.assert_allclose(normal.mean(-1), 0, atol=1e-12)
    np.testing.assert_allclose(normal.var(-1), 1, rtol=1e-12)
    moved = layer_norm(scale * h + shift, 0.0)
    # The sum rounds off 1e-16 of the shift, the division brings it to the scale of one.
    rounding = 1e-14 * (1 + abs(shift) / scale) / float(h.std(-1).min())
    np.testing.assert_allclose(moved, normal, rtol=1e-12, atol=rounding)
    np.testing.assert_allclose(layer_norm(-h, 0.0), -normal, rtol=1e-12)


def test_layer_norm_of_large_close_numbers_is_accurate():
    h = jnp.array([[1.0, 2.0, 3.0, 4.0]])
    np.testing.assert_allclose(layer_norm(h + 1e8, 0.0), layer_norm(h, 0.0), rtol=1e-7)


def test_epsilon_is_added_to_the_variance():
    h = jnp.array([[3.0, -3.0], [2.0, 2.0]])
    np.testing.assert_allclose(layer_norm(h, 7.0), [[0.75, -0.75], [0, 0]], rtol=1e-12)


@pytest.mark.parametrize(
    ("activation", "at_one"),
    [
        ("gelu", 0.8413447460685429),  # Φ(1)
        ("gelu_tanh", 0.8411919906082768),
        ("relu", 1.0),
        ("tanh", 0.7615941559557649),
        ("silu", 0.7310585786300049),
        ("softplus", 1.3132616875182228),
        ("sigmoid", 0.7310585786300049),
        ("squared_relu", 1.0),
    ],
)
def test_activations_have_their_textbook_values(activation, at_one):
    assert float(ACTIVATIONS[activation](jnp.asarray(1.0))) == pytest.approx(
        at_one, rel=1e-12
    )


def test_every_activation_that_can_be_named_exists():
    assert tuple(ACTIVATIONS) == get_args(Activation)


def test_a_block_is_a_value():
    assert Block() == Block(False, "gelu", 1e-5, 1.0, False)
    assert hash(MODERN) == hash(replace(MODERN))
    with pytest.raises(FrozenInstanceError):
        MODERN.pre_norm = False  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        (
            {"activation": "gleu"},
            ValueError,
            "`activation` must be one of gelu, gelu_tanh, relu, tanh, silu, softplus, "
            "sigmoid, squared_relu, got 'gleu'. Did you mean 'gelu'?",
        ),
        (
            {"layer_norm_epsilon": -1e-5},
            ValueError,
            "`layer_norm_epsilon` must not be negative, got -1e-05.",
        ),
        (
            {"layer_norm_epsilon": None},
            TypeError,
            "`layer_norm_epsilon` must be a number, got None.",
        ),
        (
            {"attention_scale": 0.0},
            ValueError,
            "`attention_scale` must be positive, got 0.0.",
        ),
        (
            {"attention_scale": "1"},
            TypeError,
            "`attention_scale` must be a number, got '1'.",
        ),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_blocks_that_make_no_sense_are_rejected(options, kind, message):
    with refuses(kind, message):
        Block(**options)
