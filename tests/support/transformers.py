"""Random transformers of odd sizes, and how tests run and compare them."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from hypothesis import settings
from hypothesis import strategies as st

from algoscope.model.layer import Block, TransformerLayer
from algoscope.model.transformer import ForwardPass, Transformer

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
DIM, ROOM = 3, 5  # of the learner of tests/model: d, and examples before a query
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
