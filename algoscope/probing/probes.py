"""The probe: which positions to read, and how to read them (paper §5, app. E).

    α = softmax(c s),   v̂ = FF(αᵀ W_v H⁽ˡ⁾)

s are scores of positions, the same for all inputs. α says where a target is encoded,
the error of v̂ how well, and FF in which form: FF is linear, or a two-layer MLP with
GeLU. Averaging and W_v are both linear, so the average is taken first, which is less
work. A probe for the prefix n sees the positions 0, …, 2n: up to the query x_{n+1}.

The constant c is our addition: Adam changes a number by about its learning rate per
step, and to select one of 80 positions a score has to rise by six or more, which at
10⁻³ would take thousands of steps.

Axes: `time` positions, `hidden` units of the learner, `value` rows of W_v (paper: H′),
`inner` units of the MLP, `size` of the target, `stack` any number of probes.
"""

from typing import Literal

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from algoscope.model.layer import gelu

Kind = Literal["linear", "mlp"]

SCORE_SCALE = 20.0  # c


class Probe(eqx.Module):
    """The weights of one probe, or of a stack of probes along leading axes."""

    scores: Float[Array, "*stack time"]  # s
    w_v: Float[Array, "*stack value hidden"]
    w_inner: Float[Array, "*stack inner value"] | None
    b_inner: Float[Array, "*stack inner"] | None
    w_out: Float[Array, "*stack size last"]
    b_out: Float[Array, "*stack size"]

    def attention(self, last: Int[Array, ""]) -> Float[Array, " time"]:
        """Return α over the positions up to `last`, and 0 after it."""
        seen = jnp.arange(self.scores.shape[-1]) <= last
        return jax.nn.softmax(jnp.where(seen, SCORE_SCALE * self.scores, -jnp.inf))

    def __call__(
        self, h: Float[Array, "batch time hidden"], last: Int[Array, ""]
    ) -> Float[Array, "batch size"]:
        """Return v̂ from the hidden states of one layer up to the position `last`."""
        read = jnp.einsum("t,bth->bh", self.attention(last), h) @ self.w_v.T
        if self.w_inner is not None and self.b_inner is not None:
            read = gelu(read @ self.w_inner.T + self.b_inner[None])
        return read @ self.w_out.T + self.b_out[None]


def random_probe(
    rng: np.random.Generator,
    kind: Kind,
    *,
    time: int,
    hidden_size: int,
    value_size: int,
    inner_size: int,
    target_size: int,
) -> Probe:
    """Return a probe with random matrices that attends to all positions equally.

    Matrices are drawn from U(±1/√fan_in), with NumPy, which needs no compilation;
    scores and biases are zero.
    """

    def draw(rows: int, fan_in: int) -> Float[Array, "rows fan_in"]:
        values = rng.uniform(-1, 1, (rows, fan_in)) / np.sqrt(fan_in)
        return jnp.asarray(values.astype(np.float32))

    def zeros(size: int) -> Float[Array, " size"]:
        return jnp.asarray(np.zeros(size, np.float32))

    deep = kind == "mlp"
    return Probe(
        scores=zeros(time),
        w_v=draw(value_size, hidden_size),
        w_inner=draw(inner_size, value_size) if deep else None,
        b_inner=zeros(inner_size) if deep else None,
        w_out=draw(target_size, inner_size if deep else value_size),
        b_out=zeros(target_size),
    )
