"""One pass of training over fresh datasets: steps, held-out errors, saved states.

The first pass trains MLPs at fixed places and sums up moments for linear probes; a pass
with learned attention trains both kinds. Every call of the compiled program takes a few
steps; each step draws its datasets and computes their states, which all probes share.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, UInt32

from algoscope.foundation import largest_divisor
from algoscope.foundation.files import load_arrays, reading, save_arrays
from algoscope.probing.config import MOMENTS, Kind
from algoscope.probing.probes import (
    AdamState,
    Moments,
    Probes,
    Weights,
    adam_step,
    learning_rate,
    squared_error,
)
from algoscope.probing.stream import (
    BY_COLUMN,
    CORES,
    SCALING,
    SHARED,
    Readings,
    Scaling,
    Stream,
    on_cores,
    own_places,
    whiten,
)
from algoscope.tasks.task import Dataset

STEPS_PER_CALL = 20  # of one program; between calls Python reports progress

Used = Bool[np.ndarray | Array, "kinds size"]  # components that a target has
History = tuple[dict[str, np.ndarray], ...]


class Carry(NamedTuple):
    """What training carries from step to step: moments for fixed places only."""

    probes: dict[str, Probes]
    adam: dict[str, AdamState]
    moments: Moments | None

    @classmethod
    def start(cls, probes: dict[str, Probes], moments: Moments | None) -> "Carry":
        """Return the state before the first step."""
        adam = {kind: AdamState.zeros(each) for kind, each in probes.items()}
        return cls(probes, adam, moments)


class PassState(NamedTuple):
    """The state of a pass: after how many steps, with the validation errors so far."""

    carry: Carry
    done: int = 0
    history: History = ()


class Errors(NamedTuple):
    """Squared errors of probes, in units of the scaled target."""

    blocks: Float[np.ndarray, "blocks layers columns kinds"]  # of test datasets
    history: Float[np.ndarray, "moments layers columns kinds"]  # on validation ones
    variance: Float[np.ndarray, "columns kinds"]  # of the target, on test datasets


@dataclass(frozen=True)
class Pass:
    """One pass: the data, its length and learning rate, and what is measured."""

    stream: Stream
    scaling: Scaling
    used: Used
    mesh: Mesh
    kinds: tuple[Kind, ...]
    fold: int  # of the datasets to train on
    batch_size: int
    block_size: int
    steps: int
    rate: float  # the highest
    validation: tuple[int, int]  # the fold, and how many datasets
    test_datasets: tuple[int, int]

    def train(
        self,
        state: PassState,
        saved: Path | None = None,
        report: Callable[[int], None] = lambda steps: None,
        moments: int = len(MOMENTS),
    ) -> PassState:
        """Train from a state up to one of `MOMENTS`, by default the last.

        Validation errors are taken at each of them on the way. The state is saved to,
        and resumed from, the file `saved`.
        """
        calls = self.steps / STEPS_PER_CALL
        stops = [
            min(self.steps, STEPS_PER_CALL * int(np.ceil(calls * share)))
            for share in MOMENTS
        ]
        before = state.done
        carry, done, history = _resume(saved, state)
        if done > before:
            report(done - before)
        fixed = (self.fold, self.batch_size, self.steps, self.rate)
        specs = ((SHARED, SCALING, SHARED, _CARRY, SHARED, SHARED), _CARRY)
        per_call = self.stream.num_steps(STEPS_PER_CALL, self.batch_size)
        for stop in stops[len(history) : moments]:
            while done < stop:
                end = min(done + per_call, stop)
                bounds = (np.int32(done), np.int32(end))
                steps = (range(done, end), self.batch_size, per_call)
                stream = self.stream.opened(self.fold, *steps)
                data = (stream, self.scaling, self.used)
                carry = on_cores(_train, self.mesh, specs, fixed, *data, carry, *bounds)
                report(end - done)
                done = end
            found, _ = self._measure(self.probes(carry), *self.validation)
            errors = {kind: each.mean(axis=0) for kind, each in found.items()}
            history = (*history, errors)
            if saved is not None:
                _save(saved, PassState(carry, done, history))
        return PassState(carry, done, history)

    def test(self, state: PassState) -> dict[str, Errors]:
        """Return the errors on test datasets, and those taken during training."""
        tested, variance = self._measure(self.probes(state.carry), *self.test_datasets)
        return {
            kind: Errors(
                blocks, np.stack([each[kind] for each in state.history]), variance
            )
            for kind, blocks in tested.items()
        }

    def probes(self, carry: Carry) -> dict[str, Probes]:
        """Return the trained probes, and linear ones that the moments give."""
        if carry.moments is None or "linear" not in self.kinds:
            return dict(carry.probes)
        hidden, num_targets = self.scaling.center.shape[-1], len(self.used)
        return {"linear": carry.moments.solve(hidden, num_targets), **carry.probes}

    def _measure(
        self, probes: dict[str, Probes], fold: int, count: int
    ) -> tuple[dict[str, np.ndarray], Float[np.ndarray, "columns kinds"]]:
        """Return errors [blocks, layers, columns, kinds], and variances of targets."""
        specs = ((SHARED, SCALING, SHARED, BY_COLUMN, SHARED, SHARED), _MEASURED)
        data = (self.scaling, self.used, probes, np.uint32(fold))
        sizes, size = (self.validation[1], self.test_datasets[1]), self.block_size
        common = math.gcd(*sizes) // size  # one program for both
        per_call = largest_divisor(common, self.stream.num_steps(common, size))
        parts = []
        for blocks in np.arange(count // size).reshape(-1, per_call):
            steps = range(int(blocks[0]), int(blocks[-1]) + 1)
            stream = self.stream.opened(fold, steps, size)
            parts.append(
                on_cores(_measure, self.mesh, specs, (size,), stream, *data, blocks)
            )
        errors = {
            kind: np.concatenate([np.asarray(p[0][kind], np.float64) for p in parts])
            for kind in probes
        }
        return errors, np.concatenate([p[1] for p in parts]).mean(axis=0)


_CARRY = Carry(*[BY_COLUMN] * 3)  # pyright: ignore[reportArgumentType]
_MEASURED = (PartitionSpec(None, None, CORES), BY_COLUMN)


class _Batch(NamedTuple):
    """What all probes share of a batch, on this device."""

    states: Float[Array, "layers time batch hidden"] | None  # if attention is learned
    read: Readings | None  # else: whitened readings of fixed places
    wanted: Float[Array, "columns kinds batch size"]


def _batch(stream: Stream, scaling: Scaling, data: Dataset, learned: bool) -> _Batch:
    wanted = stream.per_column(stream.scaled_targets(data, scaling))
    if not learned:
        return _Batch(None, whiten(stream.readings(data, scaling), scaling), wanted)
    states = stream.scaled_states(data, scaling)
    whole = jax.lax.all_gather(states, CORES, tiled=True)
    return _Batch(jnp.transpose(whole, (1, 2, 0, 3)), None, wanted)


def _attended(alpha: Array, batch: _Batch) -> Array:
    """Return αᵀH of every probe: [layers, columns, kinds, batch, hidden]."""
    return jnp.einsum("lcjt,ltbh->lcjbh", alpha, batch.states)


def _flat(tree: Any, axes: int = 3) -> Any:
    """Return the arrays with their first axes as one: a stack as a list of probes."""
    return jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[axes:]), tree)


def _at(tree: Any, index: Array) -> Any:
    """Return the entry of each array."""
    return jax.tree.map(
        lambda leaf: jax.lax.dynamic_index_in_dim(leaf, index, keepdims=False), tree
    )


class _Shown(NamedTuple):
    """What a stack of probes is shown and asked for, as lists that probes share."""

    read: Float[Array, "readings batch hidden"]
    wanted: Float[Array, "wanted batch size"]
    used: Bool[Array, "kinds size"]
    num_probes: int

    @classmethod
    def to(cls, probes: Probes, batch: _Batch, used: Used) -> "_Shown":
        """Return what this stack is shown."""
        shape = probes.b_out.shape[:3]
        if batch.read is None:
            read = _flat(_attended(probes.attention, batch))
        else:
            read = _flat(batch.read, 2)
        return cls(read, _flat(batch.wanted, 2), jnp.asarray(used), math.prod(shape))

    def of(self, index: Array) -> tuple[Array, Array, Array]:
        """Return what one probe is shown."""
        sharing = self.num_probes // len(self.read)  # probes of one reading
        return (
            _at(self.read, index // sharing),
            _at(self.wanted, index % len(self.wanted)),
            _at(self.used, index % len(self.used)),
        )


def _stepped(
    probes: Probes,
    adam: AdamState,
    batch: _Batch,
    used: Used,
    step: Int[Array, ""],
    rate: Float[Array, ""],
) -> tuple[Probes, AdamState]:
    """Return a stack of probes and their states after one step of Adam.

    They take it in turn: all that one of them computes fits into the cache of its core,
    while that of all together would be written to memory and read again.
    """
    shown = _Shown.to(probes, batch, used)
    weights, states = probes.trained, adam
    scores = weights.pop("scores", None)
    within = AdamState(*({name: each[name] for name in weights} for each in adam))

    def loss(weights: Weights, read: Array, probe: Probes, *about: Array) -> Array:
        return replace(probe, **weights).error(read, *about)

    def one_probe(own: tuple[Array, Probes, Weights, AdamState]) -> Any:
        index, probe, weights, adam = own
        read, *about = shown.of(index)
        gradient, change = jax.grad(loss, (0, 1))(weights, read, probe, *about)
        moved = adam_step(weights, adam, gradient, step, rate)
        return moved, None if scores is None else change

    stack = (jnp.arange(shown.num_probes), *_flat((probes, weights, within)))
    moved, changes = jax.lax.map(one_probe, stack)
    weights, (first, second) = jax.tree.map(
        lambda new, old: new.reshape(old.shape), moved, (weights, within)
    )
    if scores is not None:
        shape = (*scores.shape[:3], *changes.shape[1:])
        of_alpha = jnp.einsum("lcjbh,ltbh->lcjt", changes.reshape(shape), batch.states)
        (change,) = jax.vjp(jax.nn.softmax, scores)[1](of_alpha)
        named = AdamState(*({"scores": each["scores"]} for each in states))
        more, (one, two) = adam_step(
            {"scores": scores}, named, {"scores": change}, step, rate
        )
        weights, first, second = weights | more, first | one, second | two
    return replace(probes, **weights), AdamState(first, second)


def _train(
    fold: int,
    batch_size: int,
    steps: int,
    rate: float,
    stream: Stream,
    scaling: Scaling,
    used: Used,
    carry: Carry,
    start: Int[Array, ""],
    stop: Int[Array, ""],
) -> Carry:
    """Return the state after the steps from `start` to `stop`."""
    learned = carry.moments is None

    def one_step(step: Int[Array, ""], carry: Carry) -> Carry:
        data = stream.draw(fold, step, own_places(batch_size))
        batch = _batch(stream, scaling, data, learned)
        now = learning_rate(step, steps, rate)
        moved = {
            kind: _stepped(each, carry.adam[kind], batch, used, step, now)
            for kind, each in carry.probes.items()
        }
        moments = carry.moments
        if moments is not None and batch.read is not None:
            moments = moments.plus(batch.read, batch.wanted)
        probes = {kind: pair[0] for kind, pair in moved.items()}
        adam = {kind: pair[1] for kind, pair in moved.items()}
        return Carry(probes, adam, moments)

    return jax.lax.fori_loop(start, stop, one_step, carry)


def _measure(
    block_size: int,
    stream: Stream,
    scaling: Scaling,
    used: Used,
    probes: dict[str, Probes],
    fold: UInt32[Array, ""],
    blocks: Int[Array, " blocks"],
) -> tuple[dict[str, Array], Float[Array, "blocks columns kinds"]]:
    """Return the errors in each block of datasets, and those of the pilot's mean."""
    learned = any(each.scores is not None for each in probes.values())

    def errors(probes: Probes, batch: _Batch) -> Float[Array, "layers columns kinds"]:
        shown, own = _Shown.to(probes, batch, used), _flat(probes)
        found = jax.lax.map(
            lambda index: _at(own, index).error(*shown.of(index)),
            jnp.arange(shown.num_probes),
        )
        return found.reshape(probes.b_out.shape[:3])

    def of_block(block: Int[Array, ""]) -> tuple[dict[str, Array], Array]:
        data = stream.draw(fold, block, own_places(block_size))
        batch = _batch(stream, scaling, data, learned)
        of_kind = {kind: errors(each, batch) for kind, each in probes.items()}
        around_mean = jax.vmap(jax.vmap(squared_error), (0, 0, None))
        nothing = jnp.zeros_like(batch.wanted)
        return of_kind, around_mean(nothing, batch.wanted, jnp.asarray(used))

    return jax.lax.map(of_block, blocks)


def _named(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by their places in it."""
    pairs = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in pairs}


def _save(file: Path, state: PassState) -> None:
    arrays = _named(state.carry) | {"done": np.array(state.done)}
    for index, found in enumerate(state.history):
        arrays |= {f"{index} {kind}": each for kind, each in found.items()}
    save_arrays(file, arrays, {"moments": str(len(state.history))})


def _resume(file: Path | None, state: PassState) -> PassState:
    """Return what was saved, or the beginning."""
    if file is None or not file.exists():
        return state
    arrays, metadata = load_arrays(file)
    with reading(file, "does not hold the state of a pass"):
        leaves = [arrays[name] for name in _named(state.carry)]
        history: History = tuple(
            {
                kind: arrays[f"{index} {kind}"]
                for kind in ("linear", "mlp")
                if f"{index} {kind}" in arrays
            }
            for index in range(int(metadata["moments"]))
        )
        restored = jax.tree.unflatten(jax.tree.structure(state.carry), leaves)
        return PassState(restored, int(arrays["done"]), history)
