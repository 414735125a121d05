"""Probes: which positions to read, how to read them, and how to fit them (§5, app. E).

    α = softmax(c s),   v̂ = FF(αᵀ W_v H⁽ˡ⁾)

s are scores of positions, the same for all inputs. α says where a target is encoded,
the error of v̂ how well, and FF in which form: FF is linear, or a two-layer MLP with
GeLU. Averaging and W_v are both linear, so the average is taken first, which is less
work. A probe for the prefix n sees the positions 0, …, 2n: up to the query x_{n+1}.

The constant c is our addition: Adam changes a number by about its learning rate per
step, and to select one of 80 positions a score has to rise by six or more, which at
10⁻³ would take thousands of steps.

Probes are fitted by Adam on the squared error, or linear ones by least squares. The
paper trains with Adam at 10⁻³ and mentions no schedule. Here the learning rate falls to
zero along half a cosine, so that fewer steps are enough. All probes of one kind, over
prefixes and layers, are one stack and one program, and see the same minibatches. They
are independent: the loss is a sum, and Adam treats each weight separately, so each
probe ends as if it were trained alone. Prefixes are divided over the devices, which
need no communication. Targets are centered and scaled for training, with one scale per
prefix: the last layer of a probe can undo this, the squared error only changes by a
factor, and one learning rate then suits the first prefix and the fortieth.

Axes: `time` positions, `hidden` units of the learner, `value` rows of W_v (paper: H′),
`inner` units of the MLP, `size` of the target, `stack` any number of probes.
"""

from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax.sharding import Mesh, NamedSharding, PartitionSpec
from jaxtyping import Array, Float, Int

from algoscope.foundation import largest_divisor
from algoscope.model.layer import gelu
from algoscope.probing.config import Kind, ProbingConfig
from algoscope.probing.states import StateSplit
from algoscope.probing.targets import TargetSplit

SCORE_SCALE = 20.0  # c

STEPS_PER_CALL = 100  # of one program; between calls Python reports progress
TEST_BATCH = 128  # datasets whose errors are computed at a time

Targets = Float[np.ndarray, "datasets prefixes size"]


class AttentionProbe(eqx.Module):
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
) -> AttentionProbe:
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
    return AttentionProbe(
        scores=zeros(time),
        w_v=draw(value_size, hidden_size),
        w_inner=draw(inner_size, value_size) if deep else None,
        b_inner=zeros(inner_size) if deep else None,
        w_out=draw(target_size, inner_size if deep else value_size),
        b_out=zeros(target_size),
    )


class Fitted(NamedTuple):
    """What probes achieve on held-out datasets, and which positions they read."""

    error: Float[np.ndarray, "layers prefixes"]  # mean squared, per dimension
    attention: Float[np.ndarray, "layers prefixes time"]


def initial_probes(
    kind: Kind,
    config: ProbingConfig,
    *,
    layers: tuple[int, ...],
    hidden_size: int,
    target_size: int,
    seed: int,
) -> AttentionProbe:
    """Return a stack [layers, prefixes]; each probe depends only on its layer and n."""

    def draw(layer: int, prefix: int) -> AttentionProbe:
        return random_probe(
            np.random.default_rng([seed, layer, prefix]),
            kind,
            time=config.time,
            hidden_size=hidden_size,
            value_size=config.value_size,
            inner_size=config.inner_size,
            target_size=target_size,
        )

    drawn = [draw(layer, n) for layer in layers for n in config.prefixes]

    def stack(*leaves: Array) -> Array:
        first = (len(layers), len(config.prefixes))
        return jnp.asarray(np.stack(leaves).reshape(*first, *leaves[0].shape))

    return jax.tree.map(stack, *drawn)


def train_probes(
    probes: AttentionProbe,
    states: StateSplit,
    targets: TargetSplit,
    config: ProbingConfig,
    *,
    seed: int,
    report: Callable[[int], None] = lambda steps: None,
) -> Fitted:
    """Train a stack [layers, prefixes] on `training` and measure it on `test`.

    `report` receives the number of steps just done.
    """
    training, test = targets
    mean, scale = training.mean(axis=0), scales(training)

    def scaled(values: Targets) -> Float[np.ndarray, "datasets prefixes size"]:
        return ((values - mean) / scale[:, None]).astype(np.float32)

    last = jnp.asarray([2 * n for n in config.prefixes])
    state = optax.scale_by_adam().init(eqx.filter(probes, eqx.is_array))
    mesh = _mesh(len(config.prefixes))
    h = jax.device_put(states.training, NamedSharding(mesh, PartitionSpec()))
    wanted = jnp.asarray(np.moveaxis(scaled(training), 1, 0))
    size = (config.steps, config.batch_size)
    rows = np.random.default_rng(seed).integers(len(training), size=size)
    rates = _rates(config)
    for start in range(0, config.steps, STEPS_PER_CALL):
        part = slice(start, start + STEPS_PER_CALL)
        now = (jnp.asarray(rates[part]), jnp.asarray(rows[part]))
        probes, state = _advance_together(mesh, probes, state, h, wanted, last, *now)
        jax.block_until_ready(state)
        report(len(rows[part]))
    del h
    held_out = jnp.asarray(np.moveaxis(states.test, 0, 1))
    error, alpha = _measure(probes, held_out, jnp.asarray(scaled(test)), last)
    return Fitted(np.asarray(error, np.float64) * scale**2, np.asarray(alpha))


def variance(targets: TargetSplit) -> Float[np.ndarray, " prefixes"]:
    """Return the held-out error of predicting the mean of the training datasets."""
    errors = targets.test - targets.training.mean(axis=0)
    return np.mean(errors**2, axis=(0, 2))


def scales(training: Targets) -> Float[np.ndarray, " prefixes"]:
    """Return the scale by which targets are divided; 1 for a constant target."""
    spread = np.sqrt(variance(TargetSplit(training, training)))
    return np.where(spread > 0, spread, 1)


def _rates(config: ProbingConfig) -> Float[np.ndarray, " steps"]:
    """Return the learning rate of every step: half a cosine, down to zero."""
    share = np.arange(config.steps) / config.steps
    rates = config.learning_rate * 0.5 * (1 + np.cos(np.pi * share))
    return rates.astype(np.float32)


def _mesh(num_prefixes: int) -> Mesh:
    """Return a mesh of as many devices as divide the prefixes evenly."""
    devices = jax.local_devices()
    count = largest_divisor(num_prefixes, len(devices))
    return Mesh(np.array(devices[:count]), ("prefixes",))


@eqx.filter_jit
def _advance_together(
    mesh: Mesh, probes: AttentionProbe, state: optax.OptState, *data: Array
):
    """Apply `_advance` with the prefixes divided over the devices of the mesh."""

    def by_prefix(leaf: Array) -> PartitionSpec:  # the count of steps has no axes
        return PartitionSpec(None, "prefixes") if leaf.ndim else PartitionSpec()

    stacks = jax.tree.map(by_prefix, (probes, state))
    shared, own = PartitionSpec(), PartitionSpec("prefixes")
    return jax.shard_map(
        _advance,
        mesh=mesh,
        in_specs=(*stacks, shared, own, own, shared, shared),
        out_specs=stacks,
        check_vma=False,
    )(probes, state, *data)


def _advance(
    probes: AttentionProbe,
    state: optax.OptState,
    h: Float[Array, "layers datasets time hidden"],
    targets: Float[Array, "prefixes datasets size"],
    last: Int[Array, " prefixes"],
    rates: Float[Array, " steps"],
    rows: Int[Array, "steps batch"],
) -> tuple[AttentionProbe, optax.OptState]:
    """Return the probes and Adam's moments after one step per row of `rows`."""
    optimizer = optax.scale_by_adam()

    def loss(probes: AttentionProbe, rows: Int[Array, " batch"]) -> Float[Array, ""]:
        wanted = targets[:, rows][None]
        errors = predict(probes, h[:, rows], last) - wanted
        return jnp.sum(errors * errors) / rows.shape[0]

    def step(carry, now: tuple[Array, Array]):
        (probes, state), (rate, rows) = carry, now
        gradient = jax.grad(loss)(probes, rows)
        updates, state = optimizer.update(gradient, state)
        updates = jax.tree.map(lambda update: -rate * update, updates)
        return (eqx.apply_updates(probes, updates), state), None

    (probes, state), _ = jax.lax.scan(step, (probes, state), (rates, rows))
    return probes, state


def predict(
    probes: AttentionProbe,
    h: Float[Array, "layers batch time hidden"],
    last: Int[Array, " prefixes"],
) -> Float[Array, "layers prefixes batch size"]:
    """Return v̂ of every probe of a stack [layers, prefixes]."""

    def of_layer(probes: AttentionProbe, h: Float[Array, "batch time hidden"]) -> Array:
        return jax.vmap(lambda probe, last: probe(h, last))(probes, last)

    return jax.vmap(of_layer)(probes, h)


@eqx.filter_jit
def _measure(
    probes: AttentionProbe,
    h: Float[Array, "datasets layers time hidden"],
    targets: Float[Array, "datasets prefixes size"],
    last: Int[Array, " prefixes"],
) -> tuple[Float[Array, "layers prefixes"], Float[Array, "layers prefixes time"]]:
    """Return the mean squared error per dimension, and α."""

    def of_dataset(both):
        h, wanted = both
        errors = predict(probes, h[:, None], last)[:, :, 0] - wanted[None]
        return jnp.mean(errors * errors, axis=-1)

    each = jax.lax.map(of_dataset, (h, targets), batch_size=TEST_BATCH)
    attend = jax.vmap(jax.vmap(AttentionProbe.attention), in_axes=(0, None))
    return jnp.mean(each, axis=0), attend(probes, last)


def fit_least_squares(
    states: StateSplit, targets: TargetSplit, prefixes: tuple[int, ...]
) -> Fitted:
    """Fit linear probes of single positions, and keep the best position up to 2n.

    The position is chosen on the training datasets and measured on the others; α is 1
    there.
    """
    fits = [
        _fit_layer(training, test, targets, prefixes)
        for training, test in zip(states.training, states.test, strict=True)
    ]
    errors, attention = zip(*fits, strict=True)
    return Fitted(np.stack(errors), np.stack(attention))


def _fit_layer(
    training: Float[np.ndarray, "datasets time hidden"],
    test: Float[np.ndarray, "others time hidden"],
    targets: TargetSplit,
    prefixes: tuple[int, ...],
) -> tuple[Float[np.ndarray, " prefixes"], Float[np.ndarray, "prefixes time"]]:
    time = training.shape[1]
    fitted = np.full((len(prefixes), time), np.inf)  # errors on the training datasets
    held_out = np.full((len(prefixes), time), np.inf)
    for position in range(time):
        seeing = [i for i, n in enumerate(prefixes) if 2 * n >= position]
        if not seeing:
            continue
        known, wanted = (values[:, seeing] for values in targets)
        h, others = (_with_one(s[:, position]) for s in (training, test))
        solution = np.linalg.lstsq(h, known.reshape(len(known), -1))[0]
        for table, rows, values in ((fitted, h, known), (held_out, others, wanted)):
            errors = (rows @ solution).reshape(values.shape) - values
            table[seeing, position] = np.mean(errors**2, axis=(0, 2))
    best = np.argmin(fitted, axis=1)
    chosen = np.take_along_axis(held_out, best[:, None], axis=1)[:, 0]
    return chosen, np.eye(time, dtype=np.float32)[best]


def _with_one(
    h: Float[np.ndarray, "datasets hidden"],
) -> Float[np.ndarray, "datasets more"]:
    """Return the states in float64 with a column of ones, for the bias."""
    return np.concatenate([h, np.ones((len(h), 1))], axis=1, dtype=np.float64)
