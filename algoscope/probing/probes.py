"""Probes: what they compute from a reading, and how a stack of them is trained (§5).

    α = softmax(s),   r = αᵀH⁽ˡ⁾,   v̂ = FF(r)

s are scores of positions, the same for all inputs, or α is a fixed place. FF is linear,
or an MLP with one inner layer and GeLU. The paper has a matrix W_v in front of FF. Here
it is part of FF's first matrix, which changes nothing as long as W_v has as many rows
as H⁽ˡ⁾ has units (paper: 512 for both).

All probes of one kind, over layers, prefixes, places and targets, are one stack in one
program. They see the same datasets and are independent: the loss is a sum, and Adam
treats each weight separately, so each ends as if it were trained alone. The learning
rate rises over the first steps and falls to zero along half a cosine.

The best linear probe of a fixed place has a closed form in the second moments of its
reading, which are accumulated over the same datasets: `Moments`.

Axes: `layers`, `columns`, `kinds` of targets and `size` as in `stream`; `inner` units
of the MLP.
"""

from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float

from algoscope.model.layer import gelu
from algoscope.probing.config import Kind

WARMUP = 0.05  # of the steps
RIDGE = 1e-10  # of the variance of a reading, for directions that do not vary
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam

# Learning rates relative to that of the first matrix. A score has to change by several
# units to select a position, an entry of a matrix by much less.
RATES = {"scores": 5.0, "w_in": 1.0, "b_in": 1.0, "w_out": 0.3, "b_out": 0.3}


class Probes(eqx.Module):
    """The weights of a stack of probes of one kind."""

    w_out: Float[Array, "layers columns kinds last size"]
    b_out: Float[Array, "layers columns kinds size"]
    w_in: Float[Array, "layers columns kinds hidden inner"] | None = None
    b_in: Float[Array, "layers columns kinds inner"] | None = None
    scores: Float[Array, "layers columns kinds time"] | None = None  # if learned

    @property
    def kind(self) -> Kind:
        """`linear` or `mlp`."""
        return "linear" if self.w_in is None else "mlp"

    @property
    def attention(self) -> Float[Array, "layers columns kinds time"]:
        """α of every probe; only where it is learned."""
        assert self.scores is not None
        return jax.nn.softmax(self.scores)

    def __call__(
        self, read: Float[Array, "layers columns kinds batch hidden"]
    ) -> Float[Array, "layers columns kinds batch size"]:
        """Return v̂ from whitened readings."""
        if self.w_in is not None and self.b_in is not None:
            inner = jnp.einsum("lcjbh,lcjhi->lcjbi", read, self.w_in)
            read = gelu(inner + self.b_in[:, :, :, None])
        out = jnp.einsum("lcjbi,lcjid->lcjbd", read, self.w_out)
        return out + self.b_out[:, :, :, None]


def random_mlps(
    seed: int,
    *,
    layers: tuple[int, ...],
    columns: list[tuple[int, str]],
    num_targets: int,
    hidden_size: int,
    inner_size: int,
    size: int,
) -> Probes:
    """Return a stack of random MLPs; each depends on its layer, prefix and place only.

    `columns` are pairs of prefix and place. Entries are uniform: those of the first
    matrix have the variance 1/fan_in, biases in front of GeLU the variance 1, those of
    the second matrix the variance 1/(3 fan_in); the last biases are zero.
    """

    def draw(layer: int, column: tuple[int, str]) -> tuple[np.ndarray, ...]:
        n, place = column
        rng = np.random.default_rng([seed, layer, n, *place.encode()])

        def uniform(*shape: int, variance: float) -> np.ndarray:
            bound = np.sqrt(3 * variance)
            return rng.uniform(-bound, bound, shape).astype(np.float32)

        return (
            uniform(num_targets, hidden_size, inner_size, variance=1 / hidden_size),
            uniform(num_targets, inner_size, variance=1.0),
            uniform(num_targets, inner_size, size, variance=1 / (3 * inner_size)),
        )

    drawn = [[draw(layer, column) for column in columns] for layer in layers]
    w_in, b_in, w_out = (
        np.stack([np.stack([cell[part] for cell in row]) for row in drawn])
        for part in range(3)
    )
    b_out = np.zeros((*w_out.shape[:3], size), np.float32)
    return Probes(*map(jnp.asarray, (w_out, b_out, w_in, b_in)))


class AdamState(NamedTuple):
    """The running moments of the gradients."""

    first: Any
    second: Any

    @classmethod
    def zeros(cls, probes: Probes) -> "AdamState":
        """Return the state before the first step."""
        blank = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), probes)
        return cls(blank, blank)


def learning_rate(step: Array, steps: int, highest: float) -> Float[Array, ""]:
    """Return the rate of a step: it rises linearly, and falls along half a cosine."""
    share = (step + 0.5) / steps
    rate = jnp.where(
        share < WARMUP, share / WARMUP, 0.5 * (1 + jnp.cos(jnp.pi * share))
    )
    return (highest * rate).astype(jnp.float32)


def adam_step(
    probes: Probes, state: AdamState, gradient: Probes, step: Array, rate: Array
) -> tuple[Probes, AdamState]:
    """Return the probes and the state after one step of Adam."""
    count = (step + 1).astype(jnp.float32)
    corrections = [1 - jnp.asarray(beta, jnp.float32) ** count for beta in BETAS]

    def updated(name: str):
        new = [
            beta * getattr(old, name) + (1 - beta) * getattr(gradient, name) ** power
            for beta, old, power in zip(BETAS, state, (1, 2), strict=True)
        ]
        first, second = (
            each / scale for each, scale in zip(new, corrections, strict=True)
        )
        change = RATES[name] * rate * first / (jnp.sqrt(second) + EPSILON)
        return getattr(probes, name) - change, *new

    names = [name for name in RATES if getattr(probes, name) is not None]
    found = {name: updated(name) for name in names}
    weights, first, second = (
        Probes(**{name: found[name][part] for name in names}) for part in range(3)
    )
    return weights, AdamState(first, second)


def squared_errors(
    predicted: Float[Array, "layers columns kinds batch size"],
    wanted: Float[Array, "columns kinds batch size"],
    used: Bool[Array | np.ndarray, "kinds size"],
) -> Float[Array, "layers columns kinds"]:
    """Return the mean squared error per component that a target has."""
    errors = jnp.where(used[None, None, :, None], predicted - wanted[None], 0)
    total = jnp.sum(errors * errors, axis=(-2, -1)) / wanted.shape[-2]
    return total / jnp.sum(used, axis=-1).astype(total.dtype)[None, None]


class Moments(NamedTuple):
    """Sums over datasets of z zᵀ and z vᵀ; z is a whitened reading and a 1, in float64.

    They determine the best linear probe: W = (Σ z zᵀ + εI)⁻¹ Σ z vᵀ.
    """

    squares: Any  # [layers, columns, more, more]
    products: Any  # [layers, columns, kinds, more, size]

    @classmethod
    def zeros(
        cls, layers: int, columns: int, hidden: int, num_targets: int, size: int
    ) -> "Moments":
        """Return the sums over no datasets."""
        first = (layers, columns)
        return cls(
            np.zeros((*first, hidden + 1, hidden + 1)),
            np.zeros((*first, num_targets, hidden + 1, size)),
        )

    def plus(
        self,
        read: Float[Array, "layers columns batch hidden"],
        wanted: Float[Array, "columns kinds batch size"],
    ) -> "Moments":
        """Return the sums with those over a batch."""
        ones = jnp.ones((*read.shape[:-1], 1), read.dtype)
        z = jnp.concatenate([read, ones], axis=-1)
        squares = jnp.einsum("lcbh,lcbk->lchk", z, z)
        products = jnp.einsum("lcbh,cjbd->lcjhd", z, wanted)
        return Moments(self.squares + squares, self.products + products)

    def solve(self) -> Probes:
        """Return the best linear probe of every reading."""
        squares, products = map(np.asarray, self)
        more = squares.shape[-1]
        count = np.maximum(squares[..., -1:, -1:], 1)  # the sum of ones
        whole = squares / count + RIDGE * np.eye(more)
        solution = np.linalg.solve(whole[:, :, None], products / count[:, :, None])
        weights = solution.astype(np.float32)
        return Probes(*map(jnp.asarray, (weights[..., :-1, :], weights[..., -1, :])))
