"""The forward pass in NumPy, for tests that run many transformers of many shapes.

XLA compiles for every new shape, which takes seconds; NumPy does not. It computes in
the precision of the weights, as the transformer does (paper eq. 1-7).
"""

from typing import Any

import numpy as np

from algoscope.construction.compiler.activations import ACTIVATIONS
from algoscope.model.layer import Block, TransformerLayer
from algoscope.model.stack import INNER_AXES, LAYER_WEIGHTS
from algoscope.model.transformer import Transformer


def normalize(h: np.ndarray, epsilon: float) -> np.ndarray:
    """Return λ(h) (eq. 7)."""
    centered = h - h.mean(axis=-1, keepdims=True)
    variance = (centered * centered).mean(axis=-1, keepdims=True)
    return centered / np.sqrt(variance + h.dtype.type(epsilon))


def weights_of_attention(scores: np.ndarray, imaginary: bool) -> np.ndarray:
    """Return the causal softmax, with one more zero logit in the sum if `imaginary`."""
    future = np.triu(np.ones(scores.shape[-2:], bool), 1)
    scores = np.where(future, -np.inf, scores)
    top = scores.max(axis=-1, keepdims=True)
    if imaginary:
        top = np.maximum(top, 0)
    weights = np.exp(scores - top)
    total = weights.sum(axis=-1, keepdims=True)
    return weights / (total + np.exp(-top) if imaginary else total)


def run_layer(w: dict[str, np.ndarray], h: np.ndarray, block: Block) -> np.ndarray:
    """Return the next hidden states (eq. 1-5)."""
    epsilon = block.layer_norm_epsilon
    read = normalize(h, epsilon) if block.pre_norm else h
    q, k, v = (
        np.einsum("bth,mkh->bmtk", read, w[f"w_{name}"]) + w[f"b_{name}"][:, None]
        for name in "qkv"
    )
    scores = h.dtype.type(block.attention_scale) * (q @ k.swapaxes(-1, -2))
    alpha = weights_of_attention(scores, block.imaginary_timestep)
    a = np.einsum("bmtv,mhv->bth", alpha @ v, w["w_f"], optimize=True) + w["b_f"]
    z = a + h
    inner = ACTIVATIONS[block.activation](normalize(z, epsilon) @ w["w_2"].T + w["b_2"])
    return z + (inner @ w["w_1"].T + w["b_1"])


def layer_weights(layers: TransformerLayer, index: int) -> dict[str, np.ndarray]:
    """Return the weights of one layer, whether or not all MLPs are equally wide."""
    sizes, found = layers.inner_sizes, {}
    for name in LAYER_WEIGHTS:
        leaf = np.asarray(getattr(layers, name))
        if sizes is None or name not in INNER_AXES:
            found[name] = leaf[index]
        else:
            own = np.arange(sizes[index]) + sum(sizes[:index])
            found[name] = np.take(leaf, own, INNER_AXES[name])
    return found


def hidden_states(model: Transformer, tokens: Any) -> np.ndarray:
    """Return H⁽⁰⁾, …, H⁽ᴸ⁾ as [batch, depth, time, hidden]."""
    dtype = np.asarray(model.w_e).dtype
    tokens = np.asarray(tokens, dtype)
    positions = np.asarray(model.positions)[: tokens.shape[1]]
    hidden = [tokens @ np.asarray(model.w_e).T + positions]
    for layer in range(model.num_layers):
        weights = layer_weights(model.layers, layer)
        hidden.append(run_layer(weights, hidden[-1], model.block))
        assert hidden[-1].dtype == dtype, "something was computed in another precision"
    return np.stack(hidden, axis=1)


def outputs(model: Transformer, tokens: Any) -> np.ndarray:
    """Return the output at every token."""
    last = hidden_states(model, tokens)[:, -1]
    if model.block.pre_norm:
        last = normalize(last, model.block.layer_norm_epsilon)
    return last @ np.asarray(model.w_o) + np.asarray(model.b_o)
