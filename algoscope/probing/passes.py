"""One pass of training over fresh datasets: steps, held-out errors, saved states.

The first pass trains MLPs at fixed places and sums up moments for linear probes; a pass
with learned attention trains both kinds. Every call of the compiled program takes a few
steps; each step draws its datasets and computes their states, which all probes share.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec
from jaxtyping import Array, Bool, Float, Int, UInt32

from algoscope.foundation import largest_divisor
from algoscope.foundation.files import load_arrays, reading, save_arrays
from algoscope.probing.config import Kind
from algoscope.probing.probes import (
    AdamState,
    Moments,
    Probes,
    adam_step,
    learning_rate,
    squared_errors,
)
from algoscope.probing.stream import (
    BY_COLUMN,
    CORES,
    SCALING,
    SHARED,
    Scaling,
    Stream,
    on_cores,
    own_places,
    whiten,
)
from algoscope.tasks.task import Dataset

MOMENTS = (0.125, 0.25, 0.5, 0.75, 1.0)  # of a pass, when validation errors are taken
STEPS_PER_CALL = 20  # of one program; between calls Python reports progress

Used = Bool[np.ndarray | Array, "kinds size"]  # components that a target has
History = list[dict[str, np.ndarray]]


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

    def all_probes(self, kinds: tuple[Kind, ...]) -> dict[str, Probes]:
        """Return the trained probes, and linear ones that the moments give."""
        if self.moments is None or "linear" not in kinds:
            return dict(self.probes)
        return {"linear": self.moments.solve(), **self.probes}


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
    test: tuple[int, int]

    def run(
        self,
        carry: Carry,
        saved: Path | None = None,
        report: Callable[[int], None] = lambda steps: None,
    ) -> tuple[Carry, dict[str, Errors]]:
        """Train to the last step; return the state, and errors on held-out datasets.

        The state is saved to, and resumed from, the file `saved`.
        """
        calls = self.steps / STEPS_PER_CALL
        stops = [
            min(self.steps, STEPS_PER_CALL * int(np.ceil(calls * share)))
            for share in MOMENTS
        ]
        carry, done, history = _resume(saved, carry)
        if done:
            report(done)
        fixed = (self.fold, self.batch_size, self.steps, self.rate)
        specs = ((SHARED, SCALING, SHARED, _CARRY, SHARED, SHARED), _CARRY)
        per_call = self.stream.num_steps(STEPS_PER_CALL, self.batch_size)
        for stop in stops[len(history) :]:
            while done < stop:
                end = min(done + per_call, stop)
                bounds = (np.int32(done), np.int32(end))
                steps = (range(done, end), self.batch_size, per_call)
                stream = self.stream.opened(self.fold, *steps)
                data = (stream, self.scaling, self.used)
                carry = on_cores(_train, self.mesh, specs, fixed, *data, carry, *bounds)
                report(end - done)
                done = end
            found, _ = self._measure(carry, *self.validation)
            history.append({kind: each.mean(axis=0) for kind, each in found.items()})
            if saved is not None:
                _save(saved, carry, done, history)
        tested, variance = self._measure(carry, *self.test)
        return carry, {
            kind: Errors(blocks, np.stack([each[kind] for each in history]), variance)
            for kind, blocks in tested.items()
        }

    def _measure(
        self, carry: Carry, fold: int, count: int
    ) -> tuple[dict[str, np.ndarray], Float[np.ndarray, "columns kinds"]]:
        """Return errors [blocks, layers, columns, kinds], and variances of targets."""
        probes = carry.all_probes(self.kinds)
        specs = ((SHARED, SCALING, SHARED, BY_COLUMN, SHARED, SHARED), _MEASURED)
        data = (self.scaling, self.used, probes, np.uint32(fold))
        sizes, size = (self.validation[1], self.test[1]), self.block_size
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

    states: Array | None  # of all datasets, where attention is learned
    read: Array | None  # whitened readings of fixed places
    wanted: Array


def _batch(stream: Stream, scaling: Scaling, data: Dataset, learned: bool) -> _Batch:
    states = stream.scaled_states(data, scaling)
    wanted = stream.per_column(stream.scaled_targets(data, scaling))
    if learned:
        return _Batch(jax.lax.all_gather(states, CORES, tiled=True), None, wanted)
    return _Batch(None, whiten(stream.readings(states), scaling), wanted)


def _predictions(
    probes: Probes, batch: _Batch, scaling: Scaling
) -> Float[Array, "layers columns kinds batch size"]:
    """Return v̂ of every probe for every dataset."""
    if batch.states is not None:
        attend = probes.attention
        return probes(
            whiten(jnp.einsum("lcjt,blth->lcjbh", attend, batch.states), scaling)
        )
    read = batch.read
    assert read is not None
    layers, columns, size, hidden = read.shape
    shape = (layers, columns, probes.b_out.shape[2], size, hidden)
    return probes(jnp.broadcast_to(read[:, :, None], shape))


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

    def loss(probes: dict[str, Probes], batch: _Batch) -> Float[Array, ""]:
        errors = [
            squared_errors(_predictions(each, batch, scaling), batch.wanted, used)
            for each in probes.values()
        ]
        return sum(map(jnp.sum, errors), jnp.zeros((), jnp.float32))

    def one_step(step: Int[Array, ""], carry: Carry) -> Carry:
        data = stream.draw(fold, step, own_places(batch_size))
        batch = _batch(stream, scaling, data, learned)
        gradient = jax.grad(loss)(carry.probes, batch)
        now = learning_rate(step, steps, rate)
        moved = {
            kind: adam_step(each, carry.adam[kind], gradient[kind], step, now)
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

    def of_block(block: Int[Array, ""]) -> tuple[dict[str, Array], Array]:
        data = stream.draw(fold, block, own_places(block_size))
        batch = _batch(stream, scaling, data, learned)
        errors = {
            kind: squared_errors(_predictions(each, batch, scaling), batch.wanted, used)
            for kind, each in probes.items()
        }
        nothing = jnp.zeros_like(batch.wanted)[None]
        return errors, squared_errors(nothing, batch.wanted, used)[0]

    return jax.lax.map(of_block, blocks)


def _named(tree: Any) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by their places in it."""
    pairs = jax.tree_util.tree_leaves_with_path(tree)
    return {jax.tree_util.keystr(path): np.asarray(leaf) for path, leaf in pairs}


def _save(file: Path, carry: Carry, done: int, history: History) -> None:
    arrays = _named(carry) | {"done": np.array(done)}
    for index, found in enumerate(history):
        arrays |= {f"{index} {kind}": each for kind, each in found.items()}
    save_arrays(file, arrays, {"moments": str(len(history))})


def _resume(file: Path | None, carry: Carry) -> tuple[Carry, int, History]:
    """Return what was saved, or the beginning."""
    if file is None or not file.exists():
        return carry, 0, []
    arrays, metadata = load_arrays(file)
    with reading(file, "does not hold the state of a pass"):
        leaves = [arrays[name] for name in _named(carry)]
        history: History = [
            {
                kind: arrays[f"{index} {kind}"]
                for kind in ("linear", "mlp")
                if f"{index} {kind}" in arrays
            }
            for index in range(int(metadata["moments"]))
        ]
        restored = jax.tree.unflatten(jax.tree.structure(carry), leaves)
        return restored, int(arrays["done"]), history
