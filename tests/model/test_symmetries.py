"""Laws of the forward pass that hold for any weights: causality and symmetries.

Hypothesis draws the tokens and the permutations.
"""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.transformers import (
    IMAGINARY,
    PAPER,
    SIZES,
    TIME,
    assert_same_run,
    draw_tokens,
    draw_transformer,
    law,
    reorder,
    run,
    seeds,
    with_block,
    with_layers,
)

from algoscope.model.layer import Block
from algoscope.model.transformer import ForwardPass, Transformer


@pytest.fixture(scope="module")
def wide_model() -> Transformer:
    """Three heads, so that not every permutation is its own inverse."""
    return draw_transformer(np.random.default_rng(1), IMAGINARY, heads=3)


@pytest.fixture(scope="module")
def shallow_model() -> Transformer:
    """One layer, and no position differs from another."""
    model = draw_transformer(np.random.default_rng(2), IMAGINARY, layers=1)
    return replace(model, positions=jnp.zeros_like(model.positions))


@law
@given(data=st.data(), seed=seeds, position=st.integers(0, TIME - 1))
def test_changing_a_token_changes_nothing_before_it(any_model, data, seed, position):
    tokens = draw_tokens(np.random.default_rng(seed), 2)
    numbers = st.floats(-100, 100)
    token = data.draw(st.lists(numbers, min_size=3, max_size=3))
    changed = tokens.at[0, position].set(jnp.asarray(token))
    before, after = run(any_model, tokens), run(any_model, changed)
    assert before.attention is not None
    assert after.attention is not None
    for mine, other in [
        (before.output[:, :position], after.output[:, :position]),
        (before.hidden[:, :, :position], after.hidden[:, :, :position]),
        (before.attention[..., :position, :], after.attention[..., :position, :]),
        (before.hidden[1], after.hidden[1]),  # nor in another sequence
    ]:
        np.testing.assert_array_equal(mine, other)


@law
@given(seed=seeds, position=st.integers(0, TIME - 1))
def test_changing_a_token_changes_everything_from_it_onwards(any_model, seed, position):
    tokens = draw_tokens(np.random.default_rng(seed), 2)
    changed = tokens.at[:, position].add(1.0)
    before, after = run(any_model, tokens), run(any_model, changed)
    assert np.all((before.output != after.output)[:, position:])


@law
@given(seed=seeds, time=st.sampled_from([1, 2, TIME]))
def test_outputs_do_not_depend_on_how_many_tokens_follow(model, seed, time):
    tokens = draw_tokens(np.random.default_rng(seed), 2, time=SIZES["max_time"])
    whole, prefix = run(model, tokens), run(model, tokens[:, :time])
    assert whole.attention is not None
    expected = ForwardPass(
        whole.output[:, :time],
        whole.hidden[:, :, :time],
        whole.attention[..., :time, :time],
    )
    assert_same_run(prefix, expected, tolerance=1e-12)


@law
@given(seed=seeds, order=st.permutations(range(3)))
def test_permuting_the_batch_permutes_the_run(any_model, seed, order):
    tokens = draw_tokens(np.random.default_rng(seed), 3)
    permuted = run(any_model, tokens[np.array(order)])
    straight = jax.tree.map(lambda leaf: leaf[np.array(order)], run(any_model, tokens))
    assert_same_run(permuted, straight, tolerance=1e-12)


@law
@given(seed=seeds, order=st.permutations(range(3)))
def test_the_order_of_heads_does_not_matter(wide_model, seed, order):
    tokens, index = draw_tokens(np.random.default_rng(seed), 2), np.array(order)
    names = ("w_q", "w_k", "w_v", "w_f", "b_q", "b_k", "b_v")
    heads = {
        name: reorder(getattr(wide_model.layers, name), index, 1) for name in names
    }
    permuted = run(with_layers(wide_model, **heads), tokens)
    straight = run(wide_model, tokens)
    assert straight.attention is not None
    expected = replace(straight, attention=straight.attention[:, :, index])
    assert_same_run(permuted, expected)


@law
@given(seed=seeds, order=st.permutations(range(SIZES["inner"])))
def test_the_order_of_inner_units_does_not_matter(any_model, seed, order):
    tokens, index = draw_tokens(np.random.default_rng(seed), 2), np.array(order)
    w = any_model.layers
    permuted = with_layers(
        any_model,
        w_2=reorder(w.w_2, index, 1),
        b_2=reorder(w.b_2, index, 1),
        w_1=reorder(w.w_1, index, 2),
    )
    assert_same_run(run(permuted, tokens), run(any_model, tokens))


@law
@given(seed=seeds, order=st.permutations(range(SIZES["hidden"])))
def test_the_order_of_hidden_units_does_not_matter(any_model, seed, order):
    tokens, index = draw_tokens(np.random.default_rng(seed), 2), np.array(order)
    w = any_model.layers
    readers = {
        name: reorder(getattr(w, name), index, -1)
        for name in ("w_q", "w_k", "w_v", "w_2")
    }
    permuted = replace(
        with_layers(
            any_model,
            **readers,
            w_f=reorder(w.w_f, index, 2),
            w_1=reorder(w.w_1, index, 1),
            b_f=reorder(w.b_f, index, 1),
            b_1=reorder(w.b_1, index, 1),
        ),
        w_e=reorder(any_model.w_e, index, 0),
        positions=reorder(any_model.positions, index, 1),
        w_o=reorder(any_model.w_o, index, 0),
    )
    straight = run(any_model, tokens)
    expected = replace(straight, hidden=reorder(straight.hidden, index, -1))
    assert_same_run(run(permuted, tokens), expected)


@law
@given(seed=seeds, order=st.permutations(range(TIME - 1)))
def test_without_positions_one_layer_sees_the_past_as_a_set(shallow_model, seed, order):
    tokens = draw_tokens(np.random.default_rng(seed), 2)
    shuffled = tokens[:, np.array([*order, TIME - 1])]
    outputs = [run(shallow_model, each).output[:, -1] for each in (tokens, shuffled)]
    np.testing.assert_allclose(*outputs, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("block", [PAPER, Block(pre_norm=True)], ids=repr)
def test_without_positions_equal_tokens_are_told_apart_by_nothing(model, rng, block):
    model = replace(model, block=block, positions=jnp.zeros_like(model.positions))
    tokens = jnp.broadcast_to(draw_tokens(rng, 2, time=1), (2, TIME, SIZES["token"]))
    output = run(model, tokens).output
    np.testing.assert_allclose(output, output[:, :1].repeat(TIME, 1), rtol=1e-10)


def test_the_imaginary_timestep_tells_the_length_of_equal_tokens(model, rng):
    model = replace(model, block=IMAGINARY, positions=jnp.zeros_like(model.positions))
    tokens = jnp.broadcast_to(draw_tokens(rng, 2, time=1), (2, TIME, SIZES["token"]))
    output = np.asarray(run(model, tokens).output)
    assert np.all(np.abs(np.diff(output)) > 1e-6)


def test_scaling_the_scores_is_scaling_the_queries(model, rng):
    tokens = draw_tokens(rng, 2)
    scaled = with_block(model, attention_scale=0.3)
    w = model.layers
    by_hand = with_layers(model, w_q=0.3 * w.w_q, b_q=0.3 * w.b_q)
    assert_same_run(run(scaled, tokens), run(by_hand, tokens))


def test_a_key_bias_matters_only_with_the_imaginary_timestep(model, rng):
    tokens = draw_tokens(rng, 2)
    b_k = jnp.asarray(rng.standard_normal(model.layers.b_k.shape))
    assert_same_run(run(with_layers(model, b_k=b_k), tokens), run(model, tokens))
    imaginary = with_block(model, imaginary_timestep=True)
    shifted = run(with_layers(imaginary, b_k=b_k), tokens)
    assert np.all(shifted.output != run(imaginary, tokens).output)


@pytest.mark.parametrize("block", [PAPER, IMAGINARY], ids=repr)
def test_layers_that_write_nothing_leave_the_hidden_states_alone(model, rng, block):
    silent = {
        name: jnp.zeros_like(getattr(model.layers, name))
        for name in ("w_f", "b_f", "w_1", "b_1")
    }
    model = with_layers(replace(model, block=block), **silent)
    passed = run(model, draw_tokens(rng, 2))
    for layer in range(1, 1 + model.num_layers):
        np.testing.assert_array_equal(passed.hidden[:, layer], passed.hidden[:, 0])
    np.testing.assert_allclose(
        passed.output, passed.hidden[:, 0] @ model.w_o + model.b_o, rtol=1e-12
    )
