"""The decoder-only transformer (paper §2.1, eq. 1-7).

A transformer is its weights and nothing else: `training` finds them by gradient
descent, `construction` computes them, and the same forward pass runs both.

Tokens are embedded as H⁽⁰⁾ = W_E tokens + positions; layer l maps H⁽ˡ⁾ to H⁽ˡ⁺¹⁾ (see
`layer`); the output is w_Oᵀ H⁽ᴸ⁾ + b_O, in the modern block (`pre_norm`) of λ(H⁽ᴸ⁾).

`random_transformer` draws weights to start training from (app. D). It uses NumPy: the
numbers do not depend on the device, and nothing is compiled.

Axes as in `layer`: `time` tokens, `hidden` units, `stack` the layers.
"""

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import get_args

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)
from algoscope.model import Initialization
from algoscope.model.layer import (
    EVERYWHERE,
    Block,
    Embedded,
    TransformerLayer,
    layer_norm,
)
from algoscope.model.stack import depth_of, layer_of, scan_layers

Edit = Callable[[Array, Array], Array]  # from ℓ and H⁽ˡ⁾ [batch, time, hidden]


class ForwardPass(eqx.Module):
    """All that one run computes: predictions, and states that can be probed.

    Example:
        >>> import algoscope as asc
        >>> transformer = asc.InContextLearner.from_pretrained("linear-d2").transformer
        >>> run = transformer(jnp.zeros((5, 3)), attention=True)  # x₁ y₁ x₂ y₂ x₃
        >>> run.output.shape, run.hidden.shape, run.attention.shape
        ((5,), (5, 5, 64), (4, 4, 5, 5))
    """

    output: Float[Array, "*batch time"]
    hidden: Float[Array, "*batch depth time hidden"]  # H⁽⁰⁾, …, H⁽ᴸ⁾
    attention: Float[Array, "*batch layers heads time time"] | None = None


class Transformer(eqx.Module):
    """Linear read-in, learned absolute positions, L layers, linear read-out.

    Example:
        >>> import algoscope as asc
        >>> transformer = asc.InContextLearner.from_pretrained("linear-d2").transformer
        >>> transformer.num_layers, transformer.token_size, transformer.max_time
        (4, 3, 41)
    """

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
        """The length of the longest sequence, in tokens."""
        return self.positions.shape[0]

    @property
    def num_layers(self) -> int:
        """The depth L."""
        return depth_of(self.layers)

    @property
    def num_parameters(self) -> int:
        """The number of weights."""
        return sum(leaf.size for leaf in jax.tree.leaves(self))

    def __call__(
        self, tokens: Float[Array, "*batch time token"], *, attention: bool = False
    ) -> ForwardPass:
        """Run the tokens through every layer, keeping all hidden states.

        With `attention`, the attention weights of every head are kept too.
        """
        batch = tokens.shape[:-2]
        with self._precisely():
            h = self._embed(tokens).hidden
            last, (later, alpha) = self._run_layers(h)
            output = self.read_out(last)
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

        The last layer is computed only there, which saves half of it in a sequence that
        alternates inputs and labels. The first layer reads tokens and positions in
        factors (`Embedded`), except with constructed weights, which rely on the order
        of additions.
        """
        layers = self.layers
        with self._precisely():
            embedded = self._embed(tokens)
            h = embedded.hidden
            factors = embedded if self.block.precision == "any" else None
            if self.num_layers > 1:
                h, _ = layer_of(layers, 0)(h, self.block, embedded=factors)
                h, _ = self._run_layers(h, slice(1, -1))
                factors = None
            h, _ = layer_of(layers, -1)(h, self.block, at, factors)
            output = self.read_out(h)
        return output.reshape(*tokens.shape[:-2], h.shape[1])

    def edited(
        self, tokens: Float[Array, "batch time token"], edit: Edit
    ) -> Float[Array, "batch time"]:
        """Return the outputs when each H⁽ˡ⁾ is replaced by edit(ℓ, H⁽ˡ⁾) on the way."""

        def step(h, numbered):
            layer, depth = numbered
            h, _ = layer(h, self.block)
            return edit(depth, h), None

        depths = jnp.arange(self.num_layers + 1)
        with self._precisely():
            h = edit(depths[0], self._embed(tokens).hidden)
            h, _ = scan_layers(step, h, self.layers, depths[1:])
            return self.read_out(h)

    def _precisely(self) -> AbstractContextManager:
        """Return a context with full matrix precision, if the weights need it.

        Accelerators multiply with fewer digits by default; constructed weights rely on
        large numbers that cancel, and would give wrong results.
        """
        needed = self.block.precision
        if needed == "any":
            return nullcontext()
        held = jax.dtypes.canonicalize_dtype(self.w_e.dtype)
        if held != needed:
            remedy = "Build the transformer for the precision that it runs in."
            if needed == "float64" and held == "float32":
                remedy = "Call jax.config.update('jax_enable_x64', True) first."
            rule = f"be {needed}, the precision that the weights were built for"
            raise InvalidValueError("dtype", rule, held.name, remedy)
        return jax.default_matmul_precision("highest")

    def _embed(self, tokens: Float[Array, "*batch time token"]) -> Embedded:
        """Return H⁽⁰⁾ in factors, all batch axes joined."""
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
        flat = tokens.reshape(math.prod(batch), time, token_size)
        return Embedded(flat.astype(self.w_e.dtype), self.w_e, self.positions[:time])

    def _run_layers(
        self, h: Float[Array, "batch time hidden"], between: slice = slice(None)
    ):
        """Return the last hidden states, and the states and α of every layer."""

        def step(h, numbered):
            layer, _ = numbered
            h, alpha = layer(h, self.block)
            return h, (h, alpha)

        return scan_layers(step, h, self.layers, between=between, unroll=True)

    def embedded(
        self, tokens: Float[Array, "batch time token"]
    ) -> Float[Array, "batch time hidden"]:
        """Return H⁽⁰⁾, after a check of the tokens and of the precision."""
        with self._precisely():
            return self._embed(tokens).hidden

    def read_out(
        self, last: Float[Array, "batch time hidden"]
    ) -> Float[Array, "batch time"]:
        """Return the outputs from H⁽ᴸ⁾."""
        if self.block.pre_norm:
            last = layer_norm(last, self.block.layer_norm_epsilon)
        return last @ self.w_o + self.b_o


@eqx.filter_jit
def run_compiled(
    transformer: Transformer, tokens: Float[Array, "*batch time token"]
) -> ForwardPass:
    """Return the whole run, compiled once per shape for all callers."""
    return transformer(tokens)


def random_transformer(
    seed: int,
    *,
    token_size: int,
    max_time: int,
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    inner_size: int | None = None,
    block: Block | None = None,
    initialization: Initialization = "uniform_scaling",
    dtype: str = "float32",
) -> Transformer:
    """Return a transformer with random weights and zero biases.

    `uniform_scaling` draws matrices from U(±1/√fan_in), `normal` from N(0, 1/fan_in).
    The two projections that write to the residual stream, W^F and W₁, are divided by
    √(2L), so that the sum over layers starts at the scale of one of them.

    Example:
        >>> random_transformer(
        ...     0, token_size=3, max_time=9, num_layers=2, hidden_size=8, num_heads=2
        ... ).num_parameters
        1785
    """
    sizes = {
        "token_size": token_size,
        "max_time": max_time,
        "num_layers": num_layers,
        "hidden_size": hidden_size,
        "num_heads": num_heads,
    }
    for name, size in sizes.items():
        require_at_least(name, size, 1)
    require_at_least("seed", seed, 0)
    require_choice("dtype", dtype, ("float32", "float64"))
    require_choice("initialization", initialization, get_args(Initialization))
    if hidden_size % num_heads:
        raise InvalidValueError(
            "num_heads",
            "divide `hidden_size`",
            f"num_heads={num_heads} and hidden_size={hidden_size}",
        )
    if inner_size is not None:
        require_at_least("inner_size", inner_size, 1)
    rng = np.random.default_rng(seed)
    key = hidden_size // num_heads
    inner = 4 * hidden_size if inner_size is None else inner_size

    def draw(*shape: int, fan_in: int, gain: float = 1.0):
        if initialization == "uniform_scaling":
            values = rng.uniform(-1, 1, shape)
        else:
            values = rng.standard_normal(shape)
        return jnp.asarray(gain / np.sqrt(fan_in) * values, dtype)

    def zeros(*shape: int):
        return jnp.asarray(np.zeros(shape), dtype)

    residual = 1 / np.sqrt(2 * num_layers)
    stack = (num_layers, num_heads)
    layers = TransformerLayer(
        w_q=draw(*stack, key, hidden_size, fan_in=hidden_size),
        w_k=draw(*stack, key, hidden_size, fan_in=hidden_size),
        w_v=draw(*stack, key, hidden_size, fan_in=hidden_size),
        w_f=draw(*stack, hidden_size, key, fan_in=hidden_size, gain=residual),
        w_2=draw(num_layers, inner, hidden_size, fan_in=hidden_size),
        w_1=draw(num_layers, hidden_size, inner, fan_in=inner, gain=residual),
        b_q=zeros(*stack, key),
        b_k=zeros(*stack, key),
        b_v=zeros(*stack, key),
        b_f=zeros(num_layers, hidden_size),
        b_2=zeros(num_layers, inner),
        b_1=zeros(num_layers, hidden_size),
    )
    return Transformer(
        w_e=draw(hidden_size, token_size, fan_in=token_size),
        positions=draw(max_time, hidden_size, fan_in=max_time),
        layers=layers,
        w_o=draw(hidden_size, fan_in=hidden_size),
        b_o=zeros(),
        block=Block() if block is None else block,
    )
