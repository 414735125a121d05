"""One layer of the decoder: attention and a feed-forward part (paper §2.1, eq. 1-7).

    b_j = softmax((W_j^Q hᵢ + b_j^Q)ᵀ (W_j^K H_:i + b_j^K)) (W_j^V H_:i + b_j^V)
    a   = W^F [b₁, …, b_m] + b^F
    h′  = W₁ σ(W₂ λ(a + h) + b₂) + b₁ + a + h

λ is layer normalization without gain and shift, which the next matrix can absorb. In
the paper's block attention reads h itself and scores are not scaled; the modern block
(`pre_norm`) reads λ(h).

Axes: `time` tokens, `hidden` units (paper: H), `heads` (paper: m), `key` and `value`
units of one head, `inner` units of the feed-forward part, `stack` the layers, `mlps`
the same or, where widths differ, nothing.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import (
    InvalidTypeError,
    require_choice,
    require_not_negative,
    require_positive,
)
from algoscope.model import Activation

EVERYWHERE = slice(None)  # all tokens

Precision = Literal["any", "float32", "float64"]


def gelu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return x/2 (1 + erf(x/√2)) (eq. 6).

    Written out because `jax.nn.gelu` uses erfc, which is slower on a CPU.
    """
    return x * (0.5 + 0.5 * jax.lax.erf(x * math.sqrt(0.5)))


ACTIVATIONS: dict[str, Callable[[Array], Array]] = {
    "gelu": gelu,
    "gelu_tanh": partial(jax.nn.gelu, approximate=True),
    "relu": jax.nn.relu,
    "tanh": jnp.tanh,
    "silu": jax.nn.silu,
    "softplus": jax.nn.softplus,
    "sigmoid": jax.nn.sigmoid,
    "squared_relu": lambda x: jnp.square(jax.nn.relu(x)),
}


@dataclass(frozen=True)
class Block:
    """What a layer computes, apart from its weights. The defaults are the paper's."""

    pre_norm: bool = False  # attention reads λ(h) instead of h
    activation: Activation = "gelu"  # σ
    layer_norm_epsilon: float = 1e-5  # added to the variance; the paper has none
    attention_scale: float = 1.0  # multiplies the scores; commonly 1/√key
    imaginary_timestep: bool = False  # a zero logit before each softmax: app. C.4.1
    precision: Precision = "any"  # that constructed weights need

    def __post_init__(self):
        for name in ("pre_norm", "imaginary_timestep"):
            if not isinstance(value := getattr(self, name), bool):
                raise InvalidTypeError(name, "be True or False", repr(value))
        require_choice("activation", self.activation, get_args(Activation))
        require_choice("precision", self.precision, get_args(Precision))
        require_not_negative("layer_norm_epsilon", self.layer_norm_epsilon)
        require_positive("attention_scale", self.attention_scale)
        # A NumPy number would widen what it multiplies; a Python number does not.
        for name in ("layer_norm_epsilon", "attention_scale"):
            object.__setattr__(self, name, float(getattr(self, name)))


def layer_norm(
    h: Float[Array, "*batch hidden"], epsilon: float
) -> Float[Array, "*batch hidden"]:
    """Return λ(h) = (h − E[h]) / √(Var[h] + ε), over the last axis (eq. 7)."""
    centered = h - jnp.mean(h, axis=-1, keepdims=True)
    variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
    return centered * jax.lax.rsqrt(variance + epsilon)


@partial(jax.custom_jvp, nondiff_argnums=(1,))
def _softmax(
    scores: Float[Array, "*batch time"], imaginary: bool
) -> Float[Array, "*batch time"]:
    """Return exp(sᵢ) / Σⱼ exp(sⱼ), with one more zero logit in the sum if `imaginary`.

    The derivative is written out because automatic differentiation would store the
    maximum and the exponentials for the backward pass.
    """
    top = jnp.max(scores, axis=-1, keepdims=True)
    if imaginary:
        top = jnp.maximum(top, 0)
    weights = jnp.exp(scores - top)
    total = jnp.sum(weights, axis=-1, keepdims=True)
    return weights / (total + jnp.exp(-top) if imaginary else total)


@_softmax.defjvp
def _softmax_jvp(imaginary, primals, tangents):
    alpha = _softmax(*primals, imaginary)
    (change,) = tangents
    return alpha, alpha * (change - jnp.sum(alpha * change, axis=-1, keepdims=True))


def _multiply(
    w: Float[Array, "out inputs"], rows: Float[Array, "rows inputs"]
) -> Float[Array, "rows out"]:
    """Return W x for every row x.

    For a tall W, XLA on a CPU computes the gradient of Wᵀ twice as fast as that of W;
    the barrier keeps it from replacing one by the other.
    """
    tall = w.shape[0] > w.shape[1]
    return rows @ (jax.lax.optimization_barrier(w.T) if tall else w.T)


class Embedded(eqx.Module):
    """What attention reads in the first layer, as factors: s (W_E token + position).

    W W_E and W P are small matrices, so the first layer computes queries, keys and
    values, and their gradients, without multiplying W by hidden states.
    """

    tokens: Float[Array, "batch time token"]
    w_e: Float[Array, "hidden token"]
    positions: Float[Array, "time hidden"]
    scale: Float[Array, "batch time 1"] | None = None  # s; None means 1

    @property
    def hidden(self) -> Float[Array, "batch time hidden"]:
        """The factors multiplied out."""
        batch, time, size = self.tokens.shape
        rows = self.tokens.reshape(-1, size) @ self.w_e.T
        h = rows.reshape(batch, time, len(self.w_e)) + self.positions[None]
        return h if self.scale is None else h * self.scale

    def normed(self, epsilon: float) -> "Embedded":
        """Return λ(h)."""
        w_e = self.w_e - jnp.mean(self.w_e, axis=0, keepdims=True)
        positions = self.positions - jnp.mean(self.positions, axis=1, keepdims=True)
        centered = Embedded(self.tokens, w_e, positions).hidden
        variance = jnp.mean(centered * centered, axis=-1, keepdims=True)
        scale = jax.lax.rsqrt(variance + epsilon)
        return Embedded(self.tokens, w_e, positions, scale)

    def times(
        self, w: Float[Array, "out hidden"], at: slice = EVERYWHERE
    ) -> Float[Array, "batch asked out"]:
        """Return W h for every token asked."""
        scale = None if self.scale is None else self.scale[:, at]
        small = w @ self.w_e, self.positions[at] @ w.T
        return Embedded(self.tokens[:, at], *small, scale).hidden


def _of_tokens(
    w: Float[Array, "out hidden"],
    read: Float[Array, "batch time hidden"] | Embedded,
    at: slice,
) -> Float[Array, "batch asked out"]:
    """Return W h for every token asked."""
    if isinstance(read, Embedded):
        return read.times(w, at)
    h = read[:, at]
    return _multiply(w, h.reshape(-1, h.shape[-1])).reshape(*h.shape[:2], len(w))


class TransformerLayer(eqx.Module):
    """The weights of one layer, or of a stack of layers along a leading axis.

    MLPs of different widths, the `inner_sizes`, are held without that axis: `stack`
    tells how, and takes the layers apart.
    """

    w_q: Float[Array, "*stack heads key hidden"]
    w_k: Float[Array, "*stack heads key hidden"]
    w_v: Float[Array, "*stack heads value hidden"]
    w_f: Float[Array, "*stack heads hidden value"]
    w_2: Float[Array, "*mlps inner hidden"]  # applied first: eq. 5
    w_1: Float[Array, "*mlps hidden inner"]
    b_q: Float[Array, "*stack heads key"]
    b_k: Float[Array, "*stack heads key"]
    b_v: Float[Array, "*stack heads value"]
    b_f: Float[Array, "*stack hidden"]
    b_2: Float[Array, "*mlps inner"]
    b_1: Float[Array, "*stack hidden"]
    inner_sizes: tuple[int, ...] | None = eqx.field(static=True, default=None)

    def __call__(
        self,
        h: Float[Array, "batch time hidden"],
        block: Block,
        at: slice = EVERYWHERE,
        embedded: Embedded | None = None,
    ) -> tuple[
        Float[Array, "batch asked hidden"], Float[Array, "batch heads asked time"]
    ]:
        """Return H⁽ˡ⁺¹⁾ and the attention weights that led to it, at the tokens asked.

        Attention reads all tokens; only what is asked for is computed. `embedded` is h
        in factors, known in the first layer.
        """
        epsilon, read = block.layer_norm_epsilon, embedded
        if read is None:
            read = layer_norm(h, epsilon) if block.pre_norm else h
        elif block.pre_norm:
            read = read.normed(epsilon)
        a, alpha = self.attention(read, block, at)
        return self.feed_forward(a + h[:, at], block), alpha

    def attention(
        self,
        read: Float[Array, "batch time hidden"] | Embedded,
        block: Block,
        at: slice = EVERYWHERE,
    ) -> tuple[
        Float[Array, "batch asked hidden"], Float[Array, "batch heads asked time"]
    ]:
        """Return a (eq. 1-3) and the weights α of every head, at the tokens asked."""
        in_factors = isinstance(read, Embedded)
        batch, time, _ = (read.tokens if in_factors else read).shape
        heads, key, hidden = self.w_q.shape
        value = self.w_v.shape[1]
        # Softmax cancels what b_k adds to a row of scores, unless an imaginary zero is
        # among them. Leaving it out keeps rounding errors out of its zero gradient.
        b_k = self.b_k if block.imaginary_timestep else jnp.zeros_like(self.b_k)

        def project(at: slice, *parts):
            """Return each part for all heads, from one matrix product."""
            w = jnp.concatenate([w.reshape(-1, hidden) for w, _ in parts])
            b = jnp.concatenate([b.reshape(-1) for _, b in parts])
            product = _of_tokens(w, read, at)
            ends = np.cumsum([b.size for _, b in parts])[:-1]
            by_head = [
                part.reshape(*product.shape[:2], heads, part.shape[-1] // heads)
                for part in jnp.split(product + b[None, None], ends, axis=-1)
            ]
            return [part.transpose(0, 2, 1, 3) for part in by_head]

        queries, keys = (self.w_q, self.b_q), (self.w_k, b_k)
        values = (self.w_v, self.b_v)
        if at == EVERYWHERE:
            q, k, v = project(at, queries, keys, values)
        else:
            (q,), (k, v) = project(at, queries), project(EVERYWHERE, keys, values)
        with jax.named_scope("attention"):  # the name in a profile
            q = q * block.attention_scale  # fewer numbers than the scores
            scores = jnp.einsum("bmtk,bmsk->bmts", q, k)
            future = np.triu(np.full((time, time), -np.inf, scores.dtype), 1)[at]
            alpha = _softmax(scores + future[None, None], block.imaginary_timestep)
            # An einsum to btmv would multiply transposed matrices, which is slower.
            b = jnp.einsum("bmts,bmsv->bmtv", alpha, v).transpose(0, 2, 1, 3)
        w_f = self.w_f.transpose(0, 2, 1).reshape(heads * value, hidden)
        a = b.reshape(-1, heads * value) @ w_f + self.b_f[None]
        return a.reshape(batch, b.shape[1], hidden), alpha

    def feed_forward(
        self, x: Float[Array, "batch time hidden"], block: Block
    ) -> Float[Array, "batch time hidden"]:
        """Return W₁ σ(W₂ λ(x) + b₂) + b₁ + x (eq. 4-5)."""
        rows = layer_norm(x, block.layer_norm_epsilon).reshape(-1, x.shape[-1])
        inner = ACTIVATIONS[block.activation](
            _multiply(self.w_2, rows) + self.b_2[None]
        )
        return x + (_multiply(self.w_1, inner) + self.b_1[None]).reshape(x.shape)
