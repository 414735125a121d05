"""Probes: what they compute from a reading, and how a stack of them is trained (§5).

    α = softmax(s),   r = αᵀH⁽ˡ⁾,   v̂ = FF(r)

s are scores of positions, the same for all inputs, or α is a fixed place. FF is linear,
or an MLP with one inner layer and GeLU. The paper has a matrix W_v in front of FF. Here
it is part of FF's first matrix, which changes nothing as long as W_v has as many rows
as H⁽ˡ⁾ has units (paper: 512 for both).

All probes of one kind, over layers, prefixes, places and targets, are one stack in one
program. They see the same datasets and are independent: each ends as if it were trained
alone. The learning rate rises over the first steps and falls to zero along half a
cosine.

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

Weights = dict[str, Any]  # arrays that are trained, by name


class Probes(eqx.Module):
    """The weights of one probe, or of a stack of probes of one kind.

    Where attention is learned, a probe whitens what it attends to by itself: as the
    fixed place does where it started.
    """

    w_out: Float[Array, "*stack size last"]
    b_out: Float[Array, "*stack size"]
    w_in: Float[Array, "*stack hidden inner"] | None = None
    b_in: Float[Array, "*stack inner"] | None = None
    scores: Float[Array, "*stack time"] | None = None  # if learned, as the next two
    mean: Float[Array, "*stack hidden"] | None = None  # is not trained
    whitening: Float[Array, "*stack hidden hidden"] | None = None  # neither

    @property
    def kind(self) -> Kind:
        """`linear` or `mlp`."""
        return "linear" if self.w_in is None else "mlp"

    @property
    def trained(self) -> Weights:
        """The weights that training changes."""
        found = {name: getattr(self, name) for name in RATES}
        return {name: leaf for name, leaf in found.items() if leaf is not None}

    @property
    def attention(self) -> Float[Array, "*stack time"]:
        """α of every probe; only where it is learned."""
        assert self.scores is not None
        return jax.nn.softmax(self.scores)

    def __call__(
        self, read: Float[Array, "batch hidden"]
    ) -> Float[Array, "batch size"]:
        """Return v̂ of one probe."""
        if self.mean is not None and self.whitening is not None:
            read = (read - self.mean[None]) @ self.whitening
        if self.w_in is not None and self.b_in is not None:
            read = gelu(read @ self.w_in + self.b_in[None])
        return read @ self.w_out.T + self.b_out[None]

    def error(
        self,
        read: Float[Array, "batch hidden"],
        wanted: Float[Array, "batch size"],
        used: Bool[Array, " size"],
    ) -> Float[Array, ""]:
        """Return the mean squared error of one probe."""
        return squared_error(self(read), wanted, used)


def squared_error(
    predicted: Float[Array, "batch size"],
    wanted: Float[Array, "batch size"],
    used: Bool[Array, " size"],
) -> Float[Array, ""]:
    """Return the mean over datasets and over the components that a target has."""
    errors = jnp.where(used[None], predicted - wanted, 0)
    total = jnp.sum(errors * errors) / len(wanted)
    return total / jnp.sum(used).astype(total.dtype)


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
    w_out = w_out.swapaxes(-1, -2)
    b_out = np.zeros((*w_out.shape[:3], size), np.float32)
    return Probes(*map(jnp.asarray, (w_out, b_out, w_in, b_in)))


class AdamState(NamedTuple):
    """The running moments of the gradients."""

    first: Weights
    second: Weights

    @classmethod
    def zeros(cls, probes: Probes) -> "AdamState":
        """Return the state before the first step."""
        blank = {name: jnp.zeros_like(each) for name, each in probes.trained.items()}
        return cls(blank, blank)


def learning_rate(step: Array, steps: int, highest: float) -> Float[Array, ""]:
    """Return the rate of a step: it rises linearly, and falls along half a cosine."""
    share = (step + 0.5) / steps
    rate = jnp.where(
        share < WARMUP, share / WARMUP, 0.5 * (1 + jnp.cos(jnp.pi * share))
    )
    return (highest * rate).astype(jnp.float32)


def adam_step(
    weights: Weights, state: AdamState, gradient: Weights, step: Array, rate: Array
) -> tuple[Weights, AdamState]:
    """Return the weights and the state after one step of Adam."""
    count = (step + 1).astype(jnp.float32)
    first, second = (
        {
            name: beta * old[name] + (1 - beta) * gradient[name] ** power
            for name in gradient
        }
        for beta, old, power in zip(BETAS, state, (1, 2), strict=True)
    )
    one, two = (1 - jnp.asarray(beta, jnp.float32) ** count for beta in BETAS)
    moved = {
        name: weights[name]
        - RATES[name]
        * rate
        * (first[name] / one)
        / (jnp.sqrt(second[name] / two) + EPSILON)
        for name in gradient
    }
    return moved, AdamState(first, second)


class Moments(NamedTuple):
    """Sums over datasets of u uᵀ, in float64: u is a reading, a 1, and all targets.

    With z the whitened reading and the 1, and v a target, they hold Σ z zᵀ and Σ z vᵀ,
    which determine the best linear probe: W = (Σ z zᵀ + εI)⁻¹ Σ z vᵀ.
    """

    sums: Any  # [layers, columns, all, all]

    @classmethod
    def zeros(
        cls, layers: int, columns: int, hidden: int, num_targets: int, size: int
    ) -> "Moments":
        """Return the sums over no datasets."""
        width = hidden + 1 + num_targets * size
        return cls(np.zeros((layers, columns, width, width)))

    def plus(
        self,
        read: Float[Array, "layers columns batch hidden"],
        wanted: Float[Array, "columns kinds batch size"],
    ) -> "Moments":
        """Return the sums with those over a batch."""
        layers, columns, batch, _ = read.shape
        values = jnp.moveaxis(wanted, 2, 1).reshape(columns, batch, -1)
        flat, ones = read.reshape(-1, *read.shape[2:]), jnp.ones((batch, 1), read.dtype)

        def squares(index: Array) -> Array:
            own = jax.lax.dynamic_index_in_dim(flat, index, keepdims=False)
            u = jnp.concatenate([own, ones, values[index % columns]], axis=1)
            return u.T @ u

        found = jax.lax.map(squares, jnp.arange(layers * columns))
        return Moments(self.sums + found.reshape(self.sums.shape))

    def solve(self, hidden: int, num_targets: int) -> Probes:
        """Return the best linear probe of every reading."""
        sums, more = np.asarray(self.sums), hidden + 1
        mean = sums / np.maximum(sums[..., hidden, hidden], 1)[..., None, None]
        whole = mean[..., :more, :more] + RIDGE * np.eye(more)
        solution = np.linalg.solve(whole, mean[..., :more, more:])
        each = solution.reshape(*solution.shape[:-1], num_targets, -1)
        weights = np.moveaxis(each, -3, -1).astype(np.float32)  # […, kinds, size, more]
        return Probes(*map(jnp.asarray, (weights[..., :-1], weights[..., -1])))
