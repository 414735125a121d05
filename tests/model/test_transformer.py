"""One forward pass, compared with the paper's equations computed slowly and plainly."""

from dataclasses import replace
from functools import partial
from typing import Any, get_args

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.reference_transformer import run_reference
from support.refusals import refuses
from support.transformers import (
    IMAGINARY,
    MODERN,
    PAPER,
    SIZES,
    TIME,
    assert_same_run,
    draw_tokens,
    draw_transformer,
    layer_at,
    run,
    with_block,
)

from algoscope.model import Activation, stack
from algoscope.model.layer import EVERYWHERE, Block, Embedded, TransformerLayer
from algoscope.model.stack import UNROLLED_LAYERS
from algoscope.model.transformer import Transformer

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
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", 1)
    scanned = jax.jit(partial(model, attention=True))
    assert "scan" in str(jax.make_jaxpr(scanned)(tokens))
    assert_same_run(scanned(tokens), unrolled, tolerance=1e-12)


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
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", unrolled)
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


@pytest.mark.parametrize("precision", ["any", "float64"])
def test_only_constructed_weights_read_hidden_states_in_the_first_layer(
    rng, monkeypatch, precision
):
    def reject(*_):
        raise AssertionError("in factors")

    monkeypatch.setattr(Embedded, "times", reject)
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
        monkeypatch.setattr(stack, "UNROLLED_LAYERS", 0)
    models = [draw_transformer(rng, IMAGINARY) for _ in range(3)]
    ensemble = jax.tree.map(lambda *leaves: np.stack(leaves), *models)
    tokens = draw_tokens(rng, 2)
    mapped = jax.jit(jax.vmap(lambda each: each(tokens, attention=True)))(ensemble)
    for index, model in enumerate(models):
        one = jax.tree.map(lambda leaf, i=index: np.asarray(leaf)[i], mapped)
        assert_same_run(one, run(model, tokens), tolerance=1e-12)


def test_layers_run_in_the_order_of_the_stack(model, rng):
    backwards = jax.tree.map(lambda leaf: leaf[::-1], model.layers)
    reversed_model = replace(model, layers=backwards)
    tokens = draw_tokens(rng, 2)
    assert_same_run(run(reversed_model, tokens), run_reference(reversed_model, tokens))
    assert np.all(run(reversed_model, tokens).output != run(model, tokens).output)


def test_tokens_of_another_size_are_rejected(model):
    message = "`tokens` must hold tokens of size 3, got shape (2, 7, 4)."
    with refuses(ValueError, message):
        model(jnp.zeros((2, 7, 4)))


def test_sequences_longer_than_the_positions_are_rejected(model):
    message = "`tokens` must hold at most 9 tokens, one per position embedding, got 10."
    with refuses(ValueError, message):
        model(jnp.zeros((2, 10, 3)))


@pytest.mark.parametrize("shape", [(3,), (0, 3), (2, 0, 3)], ids=str)
def test_a_sequence_without_tokens_is_rejected(model, shape):
    message = (
        "`tokens` must have shape (…, time, token) with at least one token, "
        f"got shape {shape}."
    )
    with refuses(ValueError, message):
        model(jnp.zeros(shape))
