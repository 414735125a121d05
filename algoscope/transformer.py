"""The decoder-only transformer (paper §2.1, eq. 1-7).

A transformer is its weights and nothing else: `training` finds them by gradient
descent, `construction` writes them down, and the same forward pass runs both.

Layer l maps the hidden states H⁽ˡ⁾ to H⁽ˡ⁺¹⁾:

    b_j = softmax((W_j^Q hᵢ + b_j^Q)ᵀ (W_j^K H_:i + b_j^K)) (W_j^V H_:i + b_j^V)
    a   = W^F [b₁, …, b_m] + b^F
    h′  = W₁ σ(W₂ λ(a + h) + b₂) + b₁ + a + h

λ is layer normalization without gain and shift, which the next matrix can absorb. In
the paper's block attention reads h itself and scores are not scaled; the modern block
(`pre_norm`) reads λ(h), and the read-out then sees λ(H⁽ᴸ⁾).

Axes: `time` tokens, `hidden` units (paper: H), `heads` (paper: m), `key` and `value`
units of one head, `inner` units of the feed-forward part, `stack` the layers.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.configuration import Activation
from algoscope.validation import (
    InvalidValueError,
    require_choice,
    require_not_negative,
    require_positive,
)


def gelu(x: Float[Array, "*shape"]) -> Float[Array, "*shape"]:
    """Return x/2 (1 + erf(x/√2)) (eq. 6).

    Written out because `jax.nn.gelu` goes through erfc, which a CPU computes slower.
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

# Up to this depth the layers are laid out one after the other for XLA, which runs
# faster; beyond it they share one compiled body, which compiles faster.
UNROLLED_LAYERS = 16

EVERYWHERE = slice(None)  # all tokens

Precision = Literal["any", "float32", "float64"]
Edit = Callable[[Array, Array], Array]  # of ℓ and H⁽ˡ⁾ [batch, time, hidden]


@dataclass(frozen=True)
class Block:
    """What a layer computes, apart from its weights. The defaults are the paper's."""

    pre_norm: bool = False  # attention reads λ(h) instead of h
    activation: Activation = "gelu"  # σ
    layer_norm_epsilon: float = 1e-5  # added to the variance; the paper has none
    attention_scale: float = 1.0  # multiplies the scores; commonly 1/√key
    imaginary_timestep: bool = False  # a zero logit before each softmax: app. C.4.1
    precision: Precision = "any"  # what weights that were written by hand need

    def __post_init__(self):
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

    The derivative is written out because the one that autodiff finds for the zero
    logit keeps the maximum and the exponentials for the backward pass.
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

    For a tall W, XLA on a CPU finds the gradient of Wᵀ twice as fast as that of W; the
    barrier keeps it from turning one into the other.
    """
    tall = w.shape[0] > w.shape[1]
    return rows @ (jax.lax.optimization_barrier(w.T) if tall else w.T)


class TransformerLayer(eqx.Module):
    """The weights of one layer, or of a stack of layers along a leading axis."""

    w_q: Float[Array, "*stack heads key hidden"]
    w_k: Float[Array, "*stack heads key hidden"]
    w_v: Float[Array, "*stack heads value hidden"]
    w_f: Float[Array, "*stack heads hidden value"]
    w_2: Float[Array, "*stack inner hidden"]  # applied first: eq. 5
    w_1: Float[Array, "*stack hidden inner"]
    b_q: Float[Array, "*stack heads key"]
    b_k: Float[Array, "*stack heads key"]
    b_v: Float[Array, "*stack heads value"]
    b_f: Float[Array, "*stack hidden"]
    b_2: Float[Array, "*stack inner"]
    b_1: Float[Array, "*stack hidden"]

    def __call__(
        self, h: Float[Array, "batch time hidden"], block: Block, at: slice = EVERYWHERE
    ) -> tuple[
        Float[Array, "batch asked hidden"], Float[Array, "batch heads asked time"]
    ]:
        """Return H⁽ˡ⁺¹⁾ and the attention weights that led to it, at the tokens asked.

        All tokens are read; what is not asked for is not computed.
        """
        read = layer_norm(h, block.layer_norm_epsilon) if block.pre_norm else h
        a, alpha = self.attention(read, block, at)
        return self.feed_forward(a + h[:, at], block), alpha

    def attention(
        self, h: Float[Array, "batch time hidden"], block: Block, at: slice = EVERYWHERE
    ) -> tuple[
        Float[Array, "batch asked hidden"], Float[Array, "batch heads asked time"]
    ]:
        """Return a (eq. 1-3) and the weights α of every head, at the tokens asked."""
        batch, time, hidden = h.shape
        heads, key, _ = self.w_q.shape
        value = self.w_v.shape[1]
        # Softmax cancels what b_k adds to a row of scores, unless an imaginary zero is
        # among them. Left out, no rounding noise enters its gradient, which is zero.
        b_k = self.b_k if block.imaginary_timestep else jnp.zeros_like(self.b_k)

        def project(h, *parts):
            """Return each part for all heads, from one matrix product."""
            w = jnp.concatenate([w.reshape(-1, hidden) for w, _ in parts])
            b = jnp.concatenate([b.reshape(-1) for _, b in parts])
            projected = _multiply(w, h.reshape(-1, hidden)) + b[None]
            ends = np.cumsum([b.size for _, b in parts])[:-1]
            by_head = [
                part.reshape(*h.shape[:2], heads, part.shape[1] // heads)
                for part in jnp.split(projected, ends, axis=-1)
            ]
            return [part.transpose(0, 2, 1, 3) for part in by_head]

        queries, keys = (self.w_q, self.b_q), (self.w_k, b_k)
        values = (self.w_v, self.b_v)
        if at == EVERYWHERE:
            q, k, v = project(h, queries, keys, values)
        else:
            (q,), (k, v) = project(h[:, at], queries), project(h, keys, values)
        q = q * block.attention_scale  # fewer numbers than the scores
        scores = jnp.einsum("bmtk,bmsk->bmts", q, k)
        future = np.triu(np.full((time, time), -np.inf, scores.dtype), 1)[at]
        alpha = _softmax(scores + future[None, None], block.imaginary_timestep)
        b = jnp.einsum("bmts,bmsv->btmv", alpha, v)
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


class ForwardPass(eqx.Module):
    """All that one run computes: what is predicted, and what can be probed."""

    output: Float[Array, "*batch time"]
    hidden: Float[Array, "*batch depth time hidden"]  # H⁽⁰⁾, …, H⁽ᴸ⁾
    attention: Float[Array, "*batch layers heads time time"] | None = None


class Transformer(eqx.Module):
    """Linear read-in, learned absolute positions, L layers, linear read-out."""

    w_e: Float[Array, "hidden token"]
    positions: Float[Array, "max_time hidden"]
    layers: TransformerLayer  # stacked: every field has a leading layer axis
    w_o: Float[Array, " hidden"]
    b_o: Float[Array, ""]
    block: Block = eqx.field(static=True, default=Block())

    @property
    def token_size(self) -> int:
        """The size of one input token."""
        return self.w_e.shape[1]

    @property
    def max_time(self) -> int:
        """The longest sequence, in tokens, that there are positions for."""
        return self.positions.shape[0]

    @property
    def num_layers(self) -> int:
        """The depth L."""
        return self.layers.w_1.shape[0]

    @property
    def num_parameters(self) -> int:
        """How many numbers the weights hold."""
        return sum(leaf.size for leaf in jax.tree.leaves(self))

    def __call__(
        self, tokens: Float[Array, "*batch time token"], *, attention: bool = False
    ) -> ForwardPass:
        """Run the tokens through every layer, keeping all hidden states.

        With `attention`, the attention weights of every head are kept too.
        """
        batch = tokens.shape[:-2]
        with self._precisely():
            h = self._embed(tokens)
            last, (later, alpha) = self._run_layers(h, self.layers)
            output = self._read_out(last)
        hidden = jnp.concatenate([h[None], later])

        def unfold(kept: Array) -> Array:
            return jnp.moveaxis(kept, 0, 1).reshape(*batch, len(kept), *kept.shape[2:])

        return ForwardPass(
            output.reshape(*batch, h.shape[1]),
            unfold(hidden),
            unfold(alpha) if attention else None,
        )

    def outputs(
        self, tokens: Float[Array, "*batch time token"], at: slice = EVERYWHERE
    ) -> Float[Array, "*batch asked"]:
        """Return the outputs at the tokens asked, and nothing else.

        The last layer then does no work for the others, of which a sequence that
        alternates inputs and labels has as many as it has labels.
        """
        before = jax.tree.map(lambda leaf: leaf[:-1], self.layers)
        final = jax.tree.map(lambda leaf: leaf[-1], self.layers)
        with self._precisely():
            h = self._embed(tokens)
            h, _ = self._run_layers(h, before)
            h, _ = final(h, self.block, at)
            output = self._read_out(h)
        return output.reshape(*tokens.shape[:-2], h.shape[1])

    def edited(
        self, tokens: Float[Array, "batch time token"], edit: Edit
    ) -> Float[Array, "batch time"]:
        """Return the outputs when each H⁽ˡ⁾ is replaced by edit(ℓ, H⁽ˡ⁾) on the way."""

        def step(h, numbered):
            depth, layer = numbered
            h, _ = layer(h, self.block)
            return edit(depth, h), None

        depths = jnp.arange(self.num_layers + 1)
        with self._precisely():
            h = edit(depths[0], self._embed(tokens))
            h, _ = jax.lax.scan(step, h, (depths[1:], self.layers))
            return self._read_out(h)

    def _precisely(self) -> AbstractContextManager:
        """Return a context in which products keep all digits, if the weights need it.

        Accelerators multiply with fewer by default; weights written by hand rely on
        large numbers that cancel, and would give nonsense.
        """
        needed = self.block.precision
        if needed == "any":
            return nullcontext()
        held = jax.dtypes.canonicalize_dtype(self.w_e.dtype)
        if held != needed:
            remedy = "Build the transformer for the precision it is to run in."
            if needed == "float64" and held == "float32":
                remedy = "Call jax.config.update('jax_enable_x64', True) first."
            rule = f"be {needed}, for which the weights were written"
            raise InvalidValueError("dtype", rule, held.name, remedy)
        return jax.default_matmul_precision("highest")

    def _embed(
        self, tokens: Float[Array, "*batch time token"]
    ) -> Float[Array, "flat time hidden"]:
        """Return H⁽⁰⁾, all batch axes joined."""
        if tokens.ndim < 2 or tokens.shape[-2] < 1:
            rule = "have shape (…, time, token) with at least one token"
            raise InvalidValueError("tokens", rule, f"shape {tokens.shape}")
        *batch, time, token_size = tokens.shape
        if token_size != self.token_size:
            rule = f"hold tokens of size {self.token_size}"
            raise InvalidValueError("tokens", rule, f"shape {tokens.shape}")
        if time > self.max_time:
            rule = f"hold at most {self.max_time} tokens, one per position embedding"
            raise InvalidValueError("tokens", rule, time)
        rows = tokens.reshape(-1, token_size).astype(self.w_e.dtype) @ self.w_e.T
        h = rows.reshape(math.prod(batch), time, self.w_e.shape[0])
        return h + self.positions[None, :time]

    def _run_layers(
        self, h: Float[Array, "batch time hidden"], layers: TransformerLayer
    ):
        """Return the last hidden states, and all of them stacked with all α."""

        def step(h, layer: TransformerLayer):
            h, alpha = layer(h, self.block)
            return h, (h, alpha)

        depth = layers.w_1.shape[0]
        if depth > UNROLLED_LAYERS or depth == 0:
            return jax.lax.scan(step, h, layers)
        kept = []
        for index in range(depth):
            layer = jax.tree.map(lambda leaf, i=index: leaf[i], layers)
            h, states = step(h, layer)
            kept.append(states)
        return h, jax.tree.map(lambda *states: jnp.stack(states), *kept)

    def _read_out(
        self, last: Float[Array, "batch time hidden"]
    ) -> Float[Array, "batch time"]:
        if self.block.pre_norm:
            last = layer_norm(last, self.block.layer_norm_epsilon)
        return last @ self.w_o + self.b_o


@eqx.filter_jit
def run_compiled(
    transformer: Transformer, tokens: Float[Array, "*batch time token"]
) -> ForwardPass:
    """Return the whole run, compiled once per shape for all who ask for one."""
    return transformer(tokens)


def stack_layers(layers: list[TransformerLayer]) -> TransformerLayer:
    """Return the layers, all of one shape, as one stack in the order given."""
    if not layers:
        raise InvalidValueError("layers", "hold at least one layer", "none")
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *layers)
