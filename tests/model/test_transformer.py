"""One forward pass, held against the paper's equations and against its own symmetries.

`reference_transformer` computes the same thing slowly. The laws (causality, padding,
permutations) hold for any weights; hypothesis draws the tokens and the permutations.
"""

from dataclasses import FrozenInstanceError, replace
from functools import partial
from typing import Any, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jax.test_util import check_grads
from support.reference_transformer import run_reference
from support.refusals import refuses

from algoscope.model import transformer
from algoscope.model.architecture import Activation
from algoscope.model.layer import (
    ACTIVATIONS,
    EVERYWHERE,
    Block,
    Embedded,
    TransformerLayer,
    layer_norm,
)
from algoscope.model.transformer import (
    UNROLLED_LAYERS,
    ForwardPass,
    Transformer,
    stack_layers,
)

# All sizes differ, so that no axis can be mistaken for another.
SIZES = {
    "token": 3,
    "max_time": 9,
    "layers": 2,
    "hidden": 8,
    "heads": 2,
    "key": 5,
    "value": 6,
    "inner": 10,
}
TIME = 7
PAPER = Block()
IMAGINARY = Block(imaginary_timestep=True)
MODERN = Block(pre_norm=True, attention_scale=0.4, imaginary_timestep=True)

law = settings(max_examples=20)
seeds = st.integers(0, 2**32)


def draw_transformer(
    rng: np.random.Generator, block: Block = PAPER, dtype: str = "float64", **sizes: int
) -> Transformer:
    """Draw all weights, biases too, at the scale of one: no part may go unnoticed."""
    size = SIZES | sizes
    stack = (size["layers"], size["heads"])
    layers, hidden, inner = size["layers"], size["hidden"], size["inner"]

    def draw(*shape: int):
        fan_in = shape[-1] if shape else 1
        return jnp.asarray(rng.standard_normal(shape) / np.sqrt(fan_in), dtype)

    return Transformer(
        w_e=draw(hidden, size["token"]),
        positions=draw(size["max_time"], hidden),
        layers=TransformerLayer(
            w_q=draw(*stack, size["key"], hidden),
            w_k=draw(*stack, size["key"], hidden),
            w_v=draw(*stack, size["value"], hidden),
            w_f=draw(*stack, hidden, size["value"]),
            w_2=draw(layers, inner, hidden),
            w_1=draw(layers, hidden, inner),
            b_q=draw(*stack, size["key"]),
            b_k=draw(*stack, size["key"]),
            b_v=draw(*stack, size["value"]),
            b_f=draw(layers, hidden),
            b_2=draw(layers, inner),
            b_1=draw(layers, hidden),
        ),
        w_o=draw(hidden),
        b_o=draw(),
        block=block,
    )


def draw_tokens(rng: np.random.Generator, *batch: int, time: int = TIME) -> jax.Array:
    return jnp.asarray(rng.standard_normal((*batch, time, SIZES["token"])))


def layer_at(model: Transformer, index: int) -> TransformerLayer:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[index], model.layers)


def reorder(leaf: jax.Array, index: np.ndarray, axis: int) -> jax.Array:
    return jnp.asarray(np.take(np.asarray(leaf), index, axis))


def with_block(model: Transformer, **changes: Any) -> Transformer:
    return replace(model, block=replace(model.block, **changes))


def with_layers(model: Transformer, **changes: Any) -> Transformer:
    return replace(model, layers=replace(model.layers, **changes))


@eqx.filter_jit
def run(model: Transformer, tokens: jax.Array) -> ForwardPass:
    """Run with attention; compiled once per shape, for all tests."""
    return model(tokens, attention=True)


def assert_same_run(
    actual: ForwardPass, expected: Any, tolerance: float = 1e-10
) -> None:
    """Compare output, hidden states and attention, for shape and for numbers."""
    for name in ("output", "hidden", "attention"):
        mine, other = getattr(actual, name), getattr(expected, name)
        assert mine.shape == other.shape
        np.testing.assert_allclose(
            mine, other, rtol=tolerance, atol=tolerance, err_msg=name
        )


@pytest.fixture(scope="module")
def model() -> Transformer:
    """The paper's block with weights that no test has chosen."""
    return draw_transformer(np.random.default_rng(0))


@pytest.fixture(scope="module", params=[PAPER, MODERN], ids=["paper", "modern"])
def any_model(request, model) -> Transformer:
    """The same weights in the paper's block, and in one that differs in most fields."""
    return replace(model, block=request.param)


# Agreement with the reference.

BLOCKS: dict[str, Block] = {
    "pre_norm": Block(pre_norm=True),
    "attention_scale": Block(attention_scale=0.3),
    "no_epsilon": Block(layer_norm_epsilon=0.0),
    "imaginary_timestep": Block(imaginary_timestep=True),
    "all_at_once": Block(True, "silu", 0.1, 2.0, True),
} | {name: Block(activation=name) for name in get_args(Activation)}


@pytest.mark.parametrize("name", BLOCKS)
def test_every_block_computes_the_papers_equations(model, rng, name):
    model, tokens = replace(model, block=BLOCKS[name]), draw_tokens(rng, 2)
    assert_same_run(run(model, tokens), run_reference(model, tokens))


@pytest.mark.parametrize(
    "sizes",
    [
        {"heads": 1},
        {"heads": 3, "key": 8, "value": 3, "inner": 2},
        {"layers": 1, "key": 1, "value": 1, "inner": 1},
        {"hidden": 2, "max_time": TIME},
    ],
    ids=str,
)
def test_sizes_are_free(rng, sizes):
    model, tokens = draw_transformer(rng, MODERN, **sizes), draw_tokens(rng)
    assert_same_run(run(model, tokens), run_reference(model, tokens))


@pytest.mark.parametrize("batch", [(), (3,), (2, 2)], ids=str)
def test_batches_have_any_shape(model, rng, batch):
    tokens = draw_tokens(rng, *batch)
    assert_same_run(run(model, tokens), run_reference(model, tokens))


@pytest.mark.parametrize("time", [1, 2, SIZES["max_time"]])
def test_sequences_have_any_length(model, rng, time):
    tokens = draw_tokens(rng, 2, time=time)
    assert_same_run(run(model, tokens), run_reference(model, tokens))


@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "modern"])
def test_single_precision_agrees_to_its_rounding(rng, block):
    model = draw_transformer(rng, block, dtype="float32")
    tokens = draw_tokens(rng, 2).astype("float32")
    actual = run(model, tokens)
    assert {leaf.dtype for leaf in jax.tree.leaves(actual)} == {jnp.dtype("float32")}
    # Rounding is 6e-8; some hundred sums and products of order one stay below this.
    assert_same_run(actual, run_reference(model, tokens), tolerance=2e-5)


@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "modern"])
def test_a_deep_stack_agrees_layer_by_layer(rng, block):
    model = draw_transformer(rng, block, layers=UNROLLED_LAYERS + 1)
    # Layers that write less: random ones at the scale of one amplify the rounding.
    model = replace(model, layers=jax.tree.map(lambda w: w / 2, model.layers))
    tokens = draw_tokens(rng, 2)
    assert_same_run(run(model, tokens), run_reference(model, tokens))


def test_a_scan_over_the_layers_equals_the_layers_one_by_one(model, rng, monkeypatch):
    tokens = draw_tokens(rng, 2)
    unrolled = run(model, tokens)
    monkeypatch.setattr(transformer, "UNROLLED_LAYERS", 1)
    scanned = jax.jit(partial(model, attention=True))
    assert "scan" in str(jax.make_jaxpr(scanned)(tokens))
    assert_same_run(scanned(tokens), unrolled, tolerance=1e-12)


# What a run holds.


def test_hidden_states_begin_with_the_embedded_tokens(any_model, rng):
    tokens = draw_tokens(rng, 2)
    embedded = np.asarray(tokens) @ np.asarray(any_model.w_e).T
    embedded += np.asarray(any_model.positions)[:TIME]
    np.testing.assert_allclose(run(any_model, tokens).hidden[:, 0], embedded, 1e-12)


def test_each_hidden_state_is_what_its_layer_makes_of_the_last(any_model, rng):
    passed = run(any_model, draw_tokens(rng, 2))
    hidden, attention = np.asarray(passed.hidden), np.asarray(passed.attention)
    step = jax.jit(TransformerLayer.__call__, static_argnums=2)
    for index in range(any_model.num_layers):
        layer, before = layer_at(any_model, index), jnp.asarray(hidden[:, index])
        after, alpha = step(layer, before, any_model.block)
        np.testing.assert_allclose(hidden[:, index + 1], after, 1e-12, 1e-12)
        np.testing.assert_allclose(attention[:, index], alpha, 1e-12, 1e-12)


def test_attention_weights_are_a_distribution_over_the_past(any_model, rng):
    alpha = np.asarray(run(any_model, draw_tokens(rng, 2)).attention)
    assert np.all(alpha[..., ~np.tri(TIME, dtype=bool)] == 0)
    assert np.all(alpha[..., np.tri(TIME, dtype=bool)] > 0)
    total = alpha.sum(-1)
    if any_model.block.imaginary_timestep:
        assert np.all(total < 1)
    else:
        np.testing.assert_allclose(total, 1, rtol=1e-14)


def test_attention_is_kept_only_on_request(model, rng):
    tokens = draw_tokens(rng, 2)
    without = jax.eval_shape(model, tokens)
    assert without.attention is None
    kept = jax.eval_shape(partial(model, attention=True), tokens)
    assert kept.attention is not None
    assert (kept.output, kept.hidden) == (without.output, without.hidden)


@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("unrolled", [1, UNROLLED_LAYERS])
@pytest.mark.parametrize(
    "at", [EVERYWHERE, slice(0, None, 2), slice(-1, None)], ids=str
)
@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "modern"])
def test_outputs_asked_for_are_those_of_the_whole_run(
    rng, monkeypatch, block, at, unrolled, layers
):
    monkeypatch.setattr(transformer, "UNROLLED_LAYERS", unrolled)
    model = draw_transformer(rng, block, layers=layers)
    tokens = draw_tokens(rng, 2, 3)
    outputs = jax.jit(lambda tokens: model.outputs(tokens, at))(tokens)
    expected = run_reference(model, tokens).output[..., at]
    assert outputs.shape == expected.shape
    np.testing.assert_allclose(outputs, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("layers", [1, 2])
@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "modern"])
def test_gradients_through_factors_are_those_of_the_whole_run(rng, block, layers):
    model, tokens = draw_transformer(rng, block, layers=layers), draw_tokens(rng, 2)
    at = slice(0, None, 2)

    @jax.jit
    def gradients(model: Transformer) -> tuple[Transformer, Transformer]:
        in_factors = jax.grad(lambda model: jnp.sum(model.outputs(tokens, at) ** 2))
        whole = jax.grad(lambda model: jnp.sum(model(tokens).output[:, at] ** 2))
        return in_factors(model), whole(model)

    found, expected = map(jax.tree.leaves, gradients(model))
    for mine, other in zip(found, expected, strict=True):
        scale = np.max(np.abs(other), initial=1e-3)
        np.testing.assert_allclose(mine / scale, other / scale, atol=1e-12)


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


@pytest.mark.parametrize("precision", ["any", "float64"])
def test_weights_written_by_hand_read_hidden_states(rng, monkeypatch, precision):
    def refuse(*_):
        raise AssertionError("in factors")

    monkeypatch.setattr(Embedded, "times", refuse)
    model = with_block(draw_transformer(rng), precision=precision)
    if precision == "float64":
        assert model.outputs(draw_tokens(rng, 2)).shape == (2, TIME)
        return
    with pytest.raises(AssertionError, match="in factors"):
        model.outputs(draw_tokens(rng, 2))


def test_tokens_are_read_in_the_precision_of_the_weights(rng):
    model = draw_transformer(rng, dtype="float32")
    passed = jax.eval_shape(run, model, draw_tokens(rng, 2))
    assert {leaf.dtype for leaf in jax.tree.leaves(passed)} == {jnp.dtype("float32")}


@pytest.mark.parametrize("layers", [1, UNROLLED_LAYERS + 1])
@pytest.mark.parametrize("field", ["attention_scale", "layer_norm_epsilon"])
def test_numpy_numbers_in_the_block_do_not_widen_the_computation(rng, field, layers):
    block = replace(PAPER, **{field: 1 / np.sqrt(SIZES["key"])})
    model = draw_transformer(rng, block, dtype="float32", layers=layers)
    passed = jax.eval_shape(run, model, draw_tokens(rng, 2))
    assert {leaf.dtype for leaf in jax.tree.leaves(passed)} == {jnp.dtype("float32")}


def test_an_empty_batch_gives_an_empty_run(model):
    passed = jax.eval_shape(run, model, jnp.zeros((0, TIME, SIZES["token"])))
    assert passed.output.shape == (0, TIME)


def test_a_transformer_knows_its_sizes(model):
    assert model.token_size == SIZES["token"]
    assert model.max_time == SIZES["max_time"]
    assert model.num_layers == SIZES["layers"]
    read_in_and_out = 8 * 3 + 9 * 8 + 8 + 1
    attention = 2 * (2 * (5 * 8 + 5) + (6 * 8 + 6) + 8 * 6) + 8
    feed_forward = 10 * 8 + 10 + 8 * 10 + 8
    assert model.num_parameters == read_in_and_out + 2 * (attention + feed_forward)


# Laws.


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


@pytest.fixture(scope="module")
def wide_model() -> Transformer:
    """Three heads, so that not every permutation is its own inverse."""
    return draw_transformer(np.random.default_rng(1), IMAGINARY, heads=3)


@pytest.fixture(scope="module")
def shallow_model() -> Transformer:
    """One layer, and no position differs from another."""
    model = draw_transformer(np.random.default_rng(2), IMAGINARY, layers=1)
    return replace(model, positions=jnp.zeros_like(model.positions))


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


# Attention with scores beyond what exp can hold.


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


# Derivatives.


def smooth_output(model: Transformer, tokens: jax.Array) -> jax.Array:
    return model(tokens).output


def draw_like(rng: np.random.Generator, tree: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(rng.standard_normal(leaf.shape)), tree)


def inner_product(one: Any, other: Any) -> float:
    return sum(jax.tree.leaves(jax.tree.map(lambda a, b: np.vdot(a, b), one, other)))


def test_forward_and_reverse_mode_and_finite_differences_agree(any_model, rng):
    at = (any_model, draw_tokens(rng, 2))
    change, weights = draw_like(rng, at), rng.standard_normal((2, TIME))

    @jax.jit
    def both_modes(at, change, weights):
        _, pushed = jax.jvp(smooth_output, at, change)
        _, pull_back = jax.vjp(smooth_output, *at)
        return pushed, pull_back(weights)

    pushed, pulled = both_modes(at, change, weights)
    slope = inner_product(weights, pushed)
    assert inner_product(pulled, change) == pytest.approx(slope, rel=1e-10)
    before, after = (
        run(
            *jax.tree.map(
                lambda x, dx, e=e: jnp.asarray(np.asarray(x) + e * dx), at, change
            )
        )
        for e in (-1e-6, 1e-6)
    )
    difference = np.asarray(after.output) - np.asarray(before.output)
    assert np.vdot(weights, difference) / 2e-6 == pytest.approx(slope, rel=1e-6)


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


# Transformations.


def test_a_compiled_run_equals_a_plain_one(model, rng):
    tokens = draw_tokens(rng, 2)
    plain = model(tokens, attention=True)
    assert_same_run(run(model, tokens), plain, tolerance=1e-12)


def test_mapping_over_sequences_equals_a_batch(model, rng):
    tokens = draw_tokens(rng, 2)
    mapped = jax.jit(jax.vmap(partial(model, attention=True)))(tokens)
    assert_same_run(mapped, run(model, tokens), tolerance=1e-12)


@pytest.mark.parametrize("unrolled", [True, False])
def test_mapping_over_models_equals_one_model_at_a_time(rng, monkeypatch, unrolled):
    if not unrolled:
        monkeypatch.setattr(transformer, "UNROLLED_LAYERS", 0)
    models = [draw_transformer(rng, IMAGINARY) for _ in range(3)]
    ensemble = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    tokens = draw_tokens(rng, 2)
    mapped = jax.jit(jax.vmap(lambda each: each(tokens, attention=True)))(ensemble)
    for index, model in enumerate(models):
        one = jax.tree.map(lambda leaf, i=index: np.asarray(leaf)[i], mapped)
        assert_same_run(one, run(model, tokens), tolerance=1e-12)


# The parts.


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


def test_stacked_layers_run_in_the_order_given(model, rng):
    layers = [layer_at(model, index) for index in (0, 1)]
    assert eqx.tree_equal(stack_layers(layers), model.layers)
    reversed_model = replace(model, layers=stack_layers(layers[::-1]))
    tokens = draw_tokens(rng, 2)
    assert_same_run(run(reversed_model, tokens), run_reference(reversed_model, tokens))
    assert np.all(run(reversed_model, tokens).output != run(model, tokens).output)


# Refusals.


def test_tokens_of_another_size_are_refused(model):
    message = "`tokens` must hold tokens of size 3, got shape (2, 7, 4)."
    with refuses(ValueError, message):
        model(jnp.zeros((2, 7, 4)))


def test_sequences_longer_than_the_positions_are_refused(model):
    message = "`tokens` must hold at most 9 tokens, one per position embedding, got 10."
    with refuses(ValueError, message):
        model(jnp.zeros((2, 10, 3)))


def test_an_empty_stack_is_refused():
    with refuses(ValueError, "`layers` must hold at least one layer, got none."):
        stack_layers([])


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
def test_blocks_that_make_no_sense_are_refused(options, kind, message):
    with refuses(kind, message):
        Block(**options)


def test_a_block_is_a_value():
    assert Block() == Block(False, "gelu", 1e-5, 1.0, False)
    assert hash(MODERN) == hash(replace(MODERN))
    with pytest.raises(FrozenInstanceError):
        MODERN.pre_norm = False  # pyright: ignore[reportAttributeAccessIssue]


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0, 3)], ids=str)
def test_a_sequence_without_tokens_is_refused(model, shape):
    message = (
        "`tokens` must have shape (…, time, token) with at least one token, "
        f"got shape {shape}."
    )
    with refuses(ValueError, message):
        model(jnp.zeros(shape))
