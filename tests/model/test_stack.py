"""Layers whose MLPs differ in width compute what padded ones do."""

import json
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refuses
from support.torch_present import require
from support.transformers import MODERN, PAPER, draw_tokens, draw_transformer

import algoscope as asc
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.model import stack
from algoscope.model.checkpoints import CONFIG
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import Part
from algoscope.model.stack import INNER_AXES, inner_sizes_of, layer_of
from algoscope.model.transformer import Transformer
from algoscope.patching.ablations import ablate
from algoscope.training.start import load_start, redraw

WIDTHS = (3, 10, 1, 3)


def in_two_forms(
    rng, block=PAPER, dtype="float64", widths=WIDTHS
) -> tuple[Transformer, Transformer]:
    """Return a transformer padded with zeros, and the same with widths of its own."""
    drawn = draw_transformer(rng, block, dtype, layers=len(widths))
    padded, own = {}, {}
    for name, axis in INNER_AXES.items():
        each = np.asarray(getattr(drawn.layers, name)).copy()
        parts = []
        for index, width in enumerate(widths):
            beyond = [slice(None)] * (each.ndim - 1)
            beyond[axis] = slice(width, None)
            each[index][tuple(beyond)] = 0
            parts.append(np.take(each[index], range(width), axis))
        padded[name] = jnp.asarray(each)
        own[name] = jnp.asarray(np.concatenate(parts, axis))
    whole = replace(drawn, layers=replace(drawn.layers, **padded))
    layers = replace(drawn.layers, **own, inner_sizes=widths)
    return whole, replace(drawn, layers=layers)


@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "modern"])
@pytest.mark.parametrize("unrolled", [0, 16])
def test_widths_of_its_own_compute_the_same(rng, monkeypatch, block, unrolled):
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", unrolled)
    padded, own = in_two_forms(rng, block)
    tokens = draw_tokens(rng, 2)
    one, other = padded(tokens, attention=True), own(tokens, attention=True)
    for name in ("output", "hidden", "attention"):
        np.testing.assert_allclose(
            getattr(other, name), getattr(one, name), rtol=0, atol=1e-12
        )
    at = slice(None, None, 2)
    np.testing.assert_allclose(
        own.outputs(tokens, at), padded.outputs(tokens, at), rtol=0, atol=1e-12
    )

    def double(depth, h):
        return jnp.where(depth == 2, 2 * h, h)

    np.testing.assert_allclose(
        own.edited(tokens, double), padded.edited(tokens, double), rtol=0, atol=1e-12
    )


@pytest.mark.parametrize("widths", [(3,), (3, 10)], ids=["one", "two"])
def test_so_do_layers_without_any_between_the_first_and_the_last(rng, widths):
    padded, own = in_two_forms(rng, widths=widths)
    tokens, at = draw_tokens(rng, 2), slice(None, None, 2)
    np.testing.assert_allclose(
        own.outputs(tokens, at), padded.outputs(tokens, at), rtol=0, atol=1e-12
    )


def test_gradients_are_the_same(rng):
    padded, own = in_two_forms(rng)
    tokens = draw_tokens(rng, 2)

    def loss(transformer):
        return jnp.sum(transformer.edited(tokens, lambda depth, h: h) ** 2)

    one, other = (eqx.filter_grad(loss)(each).layers for each in (padded, own))
    for index, width in enumerate(WIDTHS):
        found = layer_of(other, index)
        np.testing.assert_allclose(found.w_q, one.w_q[index], rtol=0, atol=1e-10)
        np.testing.assert_allclose(
            found.w_2, one.w_2[index, :width], rtol=0, atol=1e-10
        )
        np.testing.assert_allclose(
            found.w_1, one.w_1[index, :, :width], rtol=0, atol=1e-10
        )


def test_layers_are_counted_from_both_ends(rng):
    _, own = in_two_forms(rng)
    assert inner_sizes_of(own.layers) == WIDTHS
    first, last = layer_of(own.layers, 0), layer_of(own.layers, -1)
    np.testing.assert_array_equal(first.b_2, own.layers.b_2[:3])
    np.testing.assert_array_equal(last.w_1, own.layers.w_1[:, -3:])
    with pytest.raises(IndexError):
        layer_of(own.layers, len(WIDTHS))


def test_ablations_are_the_same(rng):
    data = rng.normal(size=(5, 4, 2)), rng.normal(size=(5, 4))
    for part in (Part(2), Part(3), Part(1, 1)):
        one, other = (
            ablate(InContextLearner(each), part, *data).predict_prefixes(
                jnp.asarray(data[0][0]), jnp.asarray(data[1][0])
            )
            for each in in_two_forms(np.random.default_rng(3))
        )
        np.testing.assert_allclose(other, one, rtol=0, atol=1e-11)


def test_saved_and_loaded_it_is_the_same(rng, tmp_path):
    padded, own = (InContextLearner(each) for each in in_two_forms(rng))
    own.save_pretrained(tmp_path)
    again = InContextLearner.from_pretrained(tmp_path)
    assert again.transformer.layers.inner_sizes == WIDTHS
    assert again.digest == own.digest != padded.digest
    padded.save_pretrained(tmp_path)
    assert "inner_sizes" not in json.loads((tmp_path / CONFIG).read_text())


@pytest.mark.parametrize(
    ("sizes", "problem"),
    [
        ([3, 10, 2, 2], None),  # other units, which no file can tell
        ([3, 10, 1], "layers.w_q is float64[4, 2, 5, 8], but stack is 3"),
        ([3, 10, 1, 4], "layers.w_2 is float64[17, 8], but inner is 18"),
        ([3, 10, 0, 4], "its inner_sizes are no list of widths"),
        ("3", "its inner_sizes are no list of widths"),
        ([3.0, 10, 1, 3], "its inner_sizes are no list of widths"),
        (None, "layers.w_2 is float64[17, 8], not float64[stack, inner, hidden]"),
    ],
)
def test_widths_that_do_not_fit_are_rejected(rng, tmp_path, sizes, problem):
    InContextLearner(in_two_forms(rng)[1]).save_pretrained(tmp_path)
    config = json.loads((tmp_path / CONFIG).read_text())
    (tmp_path / CONFIG).write_text(json.dumps(config | {"inner_sizes": sizes}))
    if problem is None:
        assert InContextLearner.from_pretrained(tmp_path).num_layers == 4
        return
    with pytest.raises(DamagedFileError) as caught:
        InContextLearner.from_pretrained(tmp_path)
    message = f"{tmp_path} does not hold a saved transformer ({problem}"
    assert str(caught.value).startswith(message)


def test_pytorch_computes_the_same(rng, tmp_path):
    torch = require()
    own = InContextLearner(in_two_forms(rng)[1])
    asc.export(own, tmp_path)
    from algoscope.exchange.torch_model import load

    tokens = draw_tokens(rng, 2)
    with torch.no_grad():
        found = load(tmp_path)(torch.tensor(np.asarray(tokens)))
    expected = own.transformer(tokens)
    np.testing.assert_allclose(found.output, expected.output, rtol=0, atol=1e-12)
    np.testing.assert_allclose(found.hidden, expected.hidden, rtol=0, atol=1e-12)


def test_what_needs_equal_widths_refuses_others(rng, tmp_path):
    own = InContextLearner(in_two_forms(rng, MODERN, "float32")[1])
    plain = replace(own.transformer.block, imaginary_timestep=False)
    square = InContextLearner(replace(own.transformer, block=plain))
    with pytest.raises(InvalidValueError, match="one with MLPs of different widths"):
        asc.export(square, tmp_path, to="gpt2")
    remedy = "Build it with `trainable=True`, or --trainable."
    message = f"must hold MLPs of equal widths, got 1 to 10 units. {remedy}"
    with refuses(InvalidValueError, f"`learner` {message}"):
        redraw(own)
    with refuses(InvalidValueError, f"`start` {message}"):
        load_start(own)


def test_a_construction_holds_no_more_units_than_it_uses():
    ridge = asc.build("ridge", 3, 4).transformer
    padded = asc.build("ridge", 3, 4, trainable=True).transformer
    assert len(set(inner_sizes_of(ridge.layers))) > 1
    assert padded.layers.inner_sizes is None
    written = np.asarray(jnp.any(ridge.layers.w_1 != 0, axis=0))
    assert written.mean() > 0.8
