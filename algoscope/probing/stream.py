"""The data of probes, drawn as they are used: datasets, targets, and scaled readings.

A `Stream` draws fresh datasets inside the program that trains probes, computes their
targets in float64 and the states to read, and scales both. What is read are the hidden
states of a learner (`LearnerStates`, or `called` if JAX cannot trace it), or quantities
of the data (see `floors`).

A dataset is keyed by the step and its place in the batch, so a stream can be resumed at
any step. The states of a batch are computed in parts, one on each device; then every
device gets the readings of all datasets for its share of the columns, the pairs of
prefix and place that probes are trained for.

Two scalings make training faster and change nothing about what a probe can express.
States are standardized per unit, over datasets and positions. The reading of a fixed
place is whitened: its mean is removed, and a linear map makes its covariance the
identity, so that small directions are learned as fast as large ones. Targets are
centered and divided by one scale per prefix.

A unit that is constant, and a direction without variance, are scaled to zero. They hold
no information, but in a transformer written by hand they can be as large as 2³¹ (the
pads of its layer norms), and what remains after centering is rounding noise.

Axes: `layers`, `columns`, `prefixes`; `time` positions, `hidden` units, `kinds` of
targets, `size` of a target, filled up with zeros to that of the largest; `batch`
datasets, of which a device computes a `part`; `columns` are those of a device.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, Protocol, runtime_checkable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Float, Int, UInt32

from algoscope.comparison.predict import HELD_OUT
from algoscope.foundation import largest_divisor
from algoscope.model.opened import AnyKind
from algoscope.model.tokens import encode_context
from algoscope.model.transformer import Transformer
from algoscope.probing.called import CalledStates, GivenStates, ShownStates
from algoscope.probing.targets import ProbeTarget
from algoscope.tasks.task import Dataset, Task

# Folded into keys: used by nothing else.
TRAINING, VALIDATION, TEST, PILOT, LEARNED = (HELD_OUT + 11 + i for i in range(5))

CORES = "cores"  # the axis of the mesh
SHARED, BY_COLUMN = PartitionSpec(), PartitionSpec(None, CORES)
CHUNK = 16  # datasets whose states are computed at a time
NO_VARIANCE = 1e-9  # of a direction, where the mean over directions is 1

States = Float[Array, "part layers time hidden"]
Readings = Float[Array, "layers columns batch hidden"]
Wanted = Float[Array, "part prefixes kinds size"]


@runtime_checkable
class StateSource(Protocol):
    """What probes read: states of every dataset, at several layers and positions."""

    def __call__(self, data: Dataset) -> States: ...


class LearnerStates(eqx.Module):
    """The hidden states of some layers of a transformer, up to the last x."""

    transformer: Transformer
    layers: tuple[int, ...] = eqx.field(static=True)

    def __call__(self, data: Dataset) -> States:
        """Return H⁽ˡ⁾ of the layers."""
        hidden = self.transformer(encode_context(data.x, data.y)).hidden
        return hidden[:, jnp.asarray(self.layers)]


class Scaling(NamedTuple):
    """How states, readings and targets are scaled."""

    center: Any  # [layers, hidden] of the states, float64 as the next one
    scale: Any  # [layers, hidden]
    mean: Any  # [layers, columns, hidden] of readings of scaled states
    whitening: Any  # [layers, columns, hidden, hidden]
    target_mean: Any  # [prefixes, kinds, size]
    target_scale: Any  # [prefixes, kinds]


SCALING = Scaling(SHARED, SHARED, BY_COLUMN, BY_COLUMN, SHARED, SHARED)


class Stream(eqx.Module):
    """Datasets, their targets and what is read of them, drawn step by step."""

    source: StateSource
    attention: Float[np.ndarray, "all_columns time"]  # α of every column
    prefix_of: Int[np.ndarray, " all_columns"]  # index of its prefix
    seed: UInt32[np.ndarray, ""]
    task: Task = eqx.field(static=True)
    targets: tuple[ProbeTarget, ...] = eqx.field(static=True)
    prefixes: tuple[int, ...] = eqx.field(static=True)
    num_examples: int = eqx.field(static=True)
    given: GivenStates | None = None  # where the source cannot be traced

    @property
    def sizes(self) -> tuple[int, ...]:
        """The number of components of each target."""
        data = jax.eval_shape(lambda: self.task.sample(jax.random.key(0), 2))
        return tuple(jax.eval_shape(t.of, data).shape[-1] for t in self.targets)

    def draw(
        self, fold: Any, step: Int[Array, ""], places: Int[Array, " part"]
    ) -> Dataset:
        """Return the datasets at these places of a step's batch."""
        key = jax.random.fold_in(jax.random.key(self.seed), fold)
        key = jax.random.fold_in(key, step)
        keys = jax.vmap(lambda place: jax.random.fold_in(key, place))(places)
        data = jax.vmap(lambda key: self.task.sample(key, self.num_examples))(keys)
        return data if self.given is None else self.given.show(data, step, places)

    def num_steps(self, wanted: int, batch_size: int) -> int:
        """Return how many steps a program may take at once: all, or what fits."""
        if not isinstance(self.source, CalledStates):
            return wanted
        return self.source.num_steps(wanted, batch_size, 2 * self.num_examples - 1)

    def opened(
        self, fold: int, steps: range, batch_size: int, room: int | None = None
    ) -> "Stream":
        """Return the stream for some steps, with their states if they must be called.

        `room` is the number of steps that every call of the same program has.
        """
        if not isinstance(self.source, CalledStates):
            return self
        shown = replace(self, source=ShownStates())
        with jax.enable_x64(True):
            data = _draw_batches(shown, np.uint32(fold), np.array(steps), batch_size)
        given = self.source.given(data, steps.start, room or len(steps))
        return replace(shown, given=given)

    def wanted(self, data: Dataset) -> Wanted:
        """Return the targets in float64, filled up with zeros to the largest."""
        exact = jax.tree.map(lambda leaf: leaf.astype(jnp.float64), data)
        largest, rows = max(self.sizes), jnp.asarray(self.prefixes)
        each = [jax.vmap(target.of)(exact)[:, rows] for target in self.targets]
        wide = [
            jnp.pad(one, ((0, 0), (0, 0), (0, largest - one.shape[-1]))) for one in each
        ]
        return jnp.stack(wide, axis=2)

    def scaled_states(self, data: Dataset, scaling: Scaling) -> States:
        """Return the standardized states in float32."""
        return _in_chunks(lambda chunk: self._scaled(chunk, scaling), data)

    def _scaled(self, data: Dataset, scaling: Scaling) -> States:
        """Return the same of a few datasets, computed in the precision of the states.

        Its rounding is relative to the difference, also where states are large.
        """
        states = self.source(data)
        center, scale = (
            each.astype(states.dtype)[None, :, None]
            for each in (scaling.center, scaling.scale)
        )
        return ((states - center) * scale).astype(jnp.float32)

    def scaled_targets(self, data: Dataset, scaling: Scaling) -> Wanted:
        """Return the centered and scaled targets in float32."""
        centered = self.wanted(data) - scaling.target_mean[None]
        return (centered / scaling.target_scale[None, :, :, None]).astype(jnp.float32)

    def per_column(self, values: Wanted) -> Float[Array, "columns kinds batch size"]:
        """Return, for this device's columns, the targets of all datasets."""
        mine = self._exchange(values[:, self.prefix_of])
        return jnp.moveaxis(mine, 0, 2)

    def readings(self, data: Dataset, scaling: Scaling) -> Readings:
        """Return, for this device's columns, what all datasets show at fixed places."""
        alpha = jnp.asarray(self.attention, jnp.float32)

        def of(chunk: Dataset) -> Float[Array, "some all_columns layers hidden"]:
            states = self._scaled(chunk, scaling)
            return jnp.einsum("ct,blth->bclh", alpha, states)

        return jnp.transpose(self._exchange(_in_chunks(of, data)), (2, 1, 0, 3))

    def _exchange(self, values: Array) -> Array:
        """Give every device all datasets, for its own columns only."""
        return jax.lax.all_to_all(values, CORES, 1, 0, tiled=True)


@eqx.filter_jit
def _draw_batches(
    stream: Stream, fold: Any, steps: Int[AnyKind, " steps"], size: int
) -> Dataset:
    """Return whole batches, one for each step."""
    places = jnp.arange(size)
    return jax.vmap(lambda step: stream.draw(fold, step, places))(jnp.asarray(steps))


def _in_chunks(of: Callable[[Dataset], Array], data: Dataset) -> Array:
    """Return of(data), computed for a few datasets at a time.

    What a learner computes on the way then stays in the cache of its core.
    """
    size = largest_divisor(len(data.x), CHUNK)
    chunks = jax.tree.map(lambda leaf: leaf.reshape(-1, size, *leaf.shape[1:]), data)
    found = jax.lax.map(of, chunks)
    return found.reshape(-1, *found.shape[2:])


def whiten(readings: Readings, scaling: Scaling) -> Readings:
    """Return readings with mean 0 and the identity as their covariance."""
    centered = readings - scaling.mean[:, :, None]
    return jnp.einsum("lcbh,lchk->lcbk", centered, scaling.whitening)


def mesh_for(*batch_sizes: int) -> Mesh:
    """Return a mesh of as many devices as divide these batches evenly."""
    devices = jax.local_devices()
    count = largest_divisor(int(np.gcd.reduce(batch_sizes)), len(devices))
    return Mesh(np.array(devices[:count]), (CORES,))


def filled_up(columns: list[Any], mesh: Mesh) -> list[Any]:
    """Return the columns, with copies of the first, as many as devices can divide."""
    return columns + [columns[0]] * (-len(columns) % mesh.size)


@eqx.filter_jit
def _on_cores(function, mesh: Mesh, specs: Any, fixed: tuple, arguments: tuple) -> Any:
    return jax.shard_map(
        partial(function, *fixed),
        mesh=mesh,
        in_specs=specs[0],
        out_specs=specs[1],
        check_vma=False,
    )(*arguments)


def on_cores(
    function: Callable[..., Any], mesh: Mesh, specs: Any, fixed: tuple, *arguments: Any
) -> Any:
    """Call function(*fixed, *arguments) on every device of the mesh, compiled.

    `specs` say how the arguments and the results are divided. It runs in float64 mode,
    where only what is float64 already is computed in it: learners keep their precision.
    """
    with jax.enable_x64(True):
        found = _on_cores(function, mesh, specs, fixed, arguments)
        return jax.block_until_ready(found)


def own_places(batch_size: int) -> Int[Array, " part"]:
    """Return the places in a batch that this device computes."""
    share = batch_size // jax.lax.axis_size(CORES)
    return jax.lax.axis_index(CORES) * share + jnp.arange(share)


def scaling_of(
    stream: Stream, mesh: Mesh, *, num_datasets: int, batch_size: int
) -> Scaling:
    """Return the scaling that pilot datasets suggest."""
    steps = stream.num_steps(-(-num_datasets // batch_size), batch_size)
    stream = stream.opened(PILOT, range(steps), batch_size)
    sizes = (batch_size, steps)
    found = on_cores(_unit_moments, mesh, ((SHARED,), SHARED), sizes, stream)
    near, first, second, top, target_mean, squares = map(np.asarray, found)
    with jax.enable_x64(True):
        states = jax.eval_shape(stream.source, _shapes(stream))
    deviation = np.sqrt(np.maximum(second - first**2, 0))
    varies = deviation > 100 * float(jnp.finfo(states.dtype).eps) * top
    used = np.arange(target_mean.shape[-1]) < np.array(stream.sizes)[:, None]
    spread = np.sum(np.where(used, squares - target_mean**2, 0), axis=-1)
    spread = np.sqrt(np.maximum(spread / used.sum(axis=-1), 0))
    blank = np.zeros((len(deviation), len(stream.prefix_of), 1), np.float32)
    scaling = Scaling(
        near + first,
        np.where(varies, 1 / np.where(varies, deviation, 1), 0),
        blank,
        blank[..., None],
        target_mean,
        np.where(spread > 0, spread, 1),
    )
    specs = ((SHARED, SCALING), (BY_COLUMN, BY_COLUMN))
    found = on_cores(_reading_moments, mesh, specs, sizes, stream, scaling)
    mean, squares = map(np.asarray, found)
    whitening = _whitening(squares - mean[..., :, None] * mean[..., None, :])
    return scaling._replace(
        mean=mean.astype(np.float32), whitening=whitening.astype(np.float32)
    )


def _unit_moments(batch_size: int, steps: int, stream: Stream) -> tuple[Array, ...]:
    """Return a point near the states, their moments around it, and their largest.

    Also the first and second moments of the targets.
    """

    def states_of(data: Dataset) -> States:
        return stream.source(data).astype(jnp.float64)

    def drawn(step: Int[Array, ""]) -> Dataset:
        return stream.draw(PILOT, step, own_places(batch_size))

    about = jnp.mean(states_of(drawn(jnp.asarray(0))), axis=(0, 2))
    near = jax.lax.pmean(about, CORES)  # subtracted first, for precision

    def moments(step: Int[Array, ""]) -> tuple[Array, ...]:
        data = drawn(step)
        states, wanted = states_of(data), stream.wanted(data)
        apart = states - near[None, :, None]
        return (
            jnp.mean(apart, axis=(0, 2)),
            jnp.mean(apart**2, axis=(0, 2)),
            jnp.mean(wanted, axis=0),
            jnp.mean(wanted**2, axis=0),
            jnp.max(jnp.abs(states), axis=(0, 2)),
        )

    *found, largest = jax.lax.map(moments, jnp.arange(steps))
    first, second, *of_targets = (
        jax.lax.pmean(jnp.mean(each, axis=0), CORES) for each in found
    )
    top = jax.lax.pmax(jnp.max(largest, axis=0), CORES)
    return near, first, second, top, *of_targets


def _reading_moments(
    batch_size: int, steps: int, stream: Stream, scaling: Scaling
) -> tuple[Array, Array]:
    """Return the first and second moments of readings of scaled states."""

    def moments(step: Int[Array, ""]) -> tuple[Array, Array]:
        data = stream.draw(PILOT, step, own_places(batch_size))
        read = stream.readings(data, scaling).astype(jnp.float64)
        squares = jnp.einsum("lcbh,lcbk->lchk", read, read)
        return jnp.mean(read, axis=2), squares / read.shape[2]

    mean, squares = jax.lax.map(moments, jnp.arange(steps))
    return jnp.mean(mean, axis=0), jnp.mean(squares, axis=0)


def _shapes(stream: Stream) -> Dataset:
    """Return the shapes of a batch with one dataset."""
    return jax.eval_shape(lambda: stream.draw(PILOT, jnp.asarray(0), jnp.asarray([0])))


def _whitening(
    covariance: Float[np.ndarray, "layers columns hidden hidden"],
) -> Float[np.ndarray, "layers columns hidden hidden"]:
    """Return W with Wᵀ C W = I on all directions that vary, and 0 on the others."""
    values, vectors = np.linalg.eigh(covariance)
    mean = np.maximum(values.mean(axis=-1, keepdims=True), np.finfo(float).tiny)
    varies = values > NO_VARIANCE * mean
    scale = np.where(varies, 1 / np.sqrt(np.where(varies, values, 1)), 0)
    return vectors * scale[..., None, :]
