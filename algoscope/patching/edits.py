"""Edits of hidden states: swaps between datasets, and changes of what a probe reads.

**Interchange: which states carry the weights?** H⁽ˡ⁾ at one position of a run on D is
replaced by that of a run on D′ with the same query. If the state carries what was
learned, the answers become those of D′. The implied weights (eq. 16) measure how far:

    moved = Σ ⟨ŵ_patched − ŵ(D), ŵ(D′) − ŵ(D)⟩ / Σ ‖ŵ(D′) − ŵ(D)‖²
    causal ILWD = ‖ŵ_patched − ŵ(D′)‖² / d

`moved` is 0 without any effect and 1 if the learner now answers from D′; sums are over
pairs.

**Readings: does the answer follow them?** At one layer and place a linear probe reads
v = A h + b, fitted by least squares, where h is the state of one position or the mean
over all examples. The states are changed so that the probe reads v + Δ. A learner that
answers with these weights then answers Δᵀx more for the query x. The slope of the
change δŷ of its answer,

    slope = Σ δŷ · Δᵀx / Σ (Δᵀx)²,

is 1 if it uses the reading and 0 if it does not. Many changes give the same reading:

    weights   h + A⁺ Δ, the smallest one, in units of the states' spread
    pattern   h + Σ Aᵀ (A Σ Aᵀ)⁻¹ Δ, the most likely one, for states with covariance Σ
    random    as large as `weights`, in a random direction: a control

The first may lead to states that never occur; the second also changes what is
correlated with v.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float

from algoscope.comparison.linearization import implied_weights
from algoscope.foundation.progress import Progress, silent
from algoscope.model.opened import (
    Add,
    OpenedLearner,
    Swap,
    name_tokens,
    predict_intact,
)
from algoscope.probing.states import hidden_states, spread
from algoscope.tasks.task import Dataset

DIRECTIONS = ("weights", "pattern", "random")
READ = 0.9  # nothing is edited where the probe's relative error is larger
SWAPS_PER_CALL = 1024
EDITS_PER_CALL = 512


def places(num_examples: int) -> dict[str, Bool[np.ndarray, " time"]]:
    """Return what is edited: each position up to the query, and all before it.

    Example:
        >>> list(places(2))
        ['x1', 'y1', 'x2', 'y2', 'query', 'examples']
    """
    time = 2 * num_examples + 1
    single = np.eye(time, dtype=bool)
    found = dict(zip(name_tokens(num_examples), single, strict=True))
    return found | {"examples": np.arange(time) < time - 1}


class Interchange(NamedTuple):
    """Per pair of datasets, layer and set of positions; all over d."""

    shift: Float[np.ndarray, "pairs depth places"]  # ⟨ŵ_patched − ŵ(D), ŵ(D′) − ŵ(D)⟩
    ilwd: Float[np.ndarray, "pairs depth places"]  # ‖ŵ_patched − ŵ(D′)‖²
    apart: Float[np.ndarray, " pairs"]  # ‖ŵ(D′) − ŵ(D)‖²


def interchange(
    learner: OpenedLearner,
    data: Dataset,
    donors: Dataset,
    queries: Float[np.ndarray, "pairs queries dim"],
    progress: Progress = silent,
) -> Interchange:
    """Swap states of every layer and place from `donors` into `data`, pair by pair."""
    pairs, count, dim = queries.shape
    where = places(data.x.shape[1])
    depths = learner.num_layers + 1
    (x, y), (x_other, y_other) = (
        _with_queries(each, queries) for each in (data, donors)
    )
    own, target = (np.empty(len(x)) for _ in range(2))
    found = np.empty((depths, len(where), len(x)))
    for start in range(0, len(x), SWAPS_PER_CALL):
        some = slice(start, start + SWAPS_PER_CALL)
        donated = learner.hidden_states(x_other[some], y_other[some])
        target[some] = predict_intact(learner, x_other[some], y_other[some])[:, -1]
        own[some] = predict_intact(learner, x[some], y[some])[:, -1]
        for layer in range(depths):
            for index, swapped in enumerate(where.values()):
                edit = Swap(donated[:, layer], swapped)
                answers = learner.predict_edited(x[some], y[some], layer, edit)
                found[layer, index, some] = answers[:, -1]
            done = start * depths + (layer + 1) * len(x[some])
            progress("interchange", done, len(x) * depths)

    def implied(answers: Float[np.ndarray, "cells sequences"]) -> np.ndarray:
        """Return ŵ of each pair and cell."""
        by_pair = answers.reshape(-1, pairs, count).transpose(1, 0, 2)
        return implied_weights(queries, by_pair)

    before, after = implied(own[None]), implied(target[None])
    patched = implied(found.reshape(-1, len(x)))
    wanted = after - before
    cells = (pairs, depths, len(where))
    shift = np.sum((patched - before) * wanted, axis=-1) / dim
    ilwd = np.sum((patched - after) ** 2, axis=-1) / dim
    apart = np.sum(wanted**2, axis=-1)[:, 0] / dim
    return Interchange(shift.reshape(cells), ilwd.reshape(cells), apart)


def _with_queries(
    data: Dataset, queries: Float[np.ndarray, "pairs queries dim"]
) -> tuple[
    Float[np.ndarray, "sequences examples dim"],
    Float[np.ndarray, "sequences examples"],
]:
    """Return one sequence per query: the examples of its dataset, and the query."""
    pairs, count, dim = queries.shape
    x = np.repeat(np.asarray(data.x), count, axis=0)
    y = np.repeat(np.asarray(data.y), count, axis=0)
    x = np.concatenate([x, queries.reshape(-1, 1, dim).astype(x.dtype)], axis=1)
    return x, np.concatenate([y, np.zeros((pairs * count, 1), y.dtype)], axis=1)


class Edits(NamedTuple):
    """Per layer and place: the probe's error, and the effect of edits."""

    error: Float[np.ndarray, "depth places"]  # relative, on held-out datasets
    follows: dict[str, Float[np.ndarray, "datasets depth places"]]  # δŷ · Δᵀx
    expected: Float[np.ndarray, " datasets"]  # (Δᵀx)²


class LinearReading(NamedTuple):
    """A probe on standardized states z = (h − mean)/spread, and their covariance."""

    mean: Float[np.ndarray, " hidden"]
    spread: Float[np.ndarray, " hidden"]
    weights: Float[np.ndarray, "size hidden"]  # A
    offset: Float[np.ndarray, " size"]  # b
    covariance: Float[np.ndarray, "hidden hidden"]  # of z

    def __call__(
        self, h: Float[np.ndarray, "datasets hidden"]
    ) -> Float[np.ndarray, "datasets size"]:
        """Return what the probe reads."""
        return self._scaled(h) @ self.weights.T + self.offset

    def changes(
        self, delta: Float[np.ndarray, "datasets size"], rng: np.random.Generator
    ) -> dict[str, Float[np.ndarray, "datasets hidden"]]:
        """Return, by direction, changes of h; all but the random ones read Δ more."""
        a = self.weights
        pattern = self.covariance @ a.T @ np.linalg.pinv(a @ self.covariance @ a.T)
        smallest = delta @ np.linalg.pinv(a).T
        random = rng.normal(size=smallest.shape) * (self.spread > 0)
        lengths = np.linalg.norm(smallest, axis=1) / np.linalg.norm(random, axis=1)
        found = (smallest, delta @ pattern.T, random * lengths[:, None])
        scaled = (change * self.spread for change in found)
        return dict(zip(DIRECTIONS, scaled, strict=True))

    def _scaled(self, h: np.ndarray) -> Float[np.ndarray, "datasets hidden"]:
        divisor = np.where(self.spread > 0, self.spread, 1)
        centered = h.astype(np.float64) - self.mean
        return np.where(self.spread > 0, centered / divisor, 0)

    @classmethod
    def fit(
        cls,
        h: Float[np.ndarray, "datasets hidden"],
        values: Float[np.ndarray, "datasets size"],
    ) -> "LinearReading":
        """Return the least-squares probe for `values`."""
        mean, deviation = spread(h[:, None])
        hidden, size = h.shape[1], values.shape[1]
        reading = cls(
            mean,
            deviation,
            np.zeros((size, hidden)),
            values.mean(axis=0),
            np.eye(hidden),
        )
        z = reading._scaled(h)
        solution = np.linalg.lstsq(z, values - reading.offset, rcond=1e-10)[0]
        return reading._replace(weights=solution.T, covariance=z.T @ z / len(z))


def edit_readings(
    learner: OpenedLearner,
    training: tuple[Dataset, Float[np.ndarray, "datasets size"]],
    test: tuple[Dataset, Float[np.ndarray, "others size"]],
    *,
    edit_size: float,
    seed: int,
    progress: Progress = silent,
) -> Edits:
    """Fit a probe at every layer and place, and edit what it reads.

    The last example of each dataset is its query; the arrays are the weights to read.
    """
    (fitting, known), (held_out, wanted) = training, test
    depths = learner.num_layers + 1
    every = tuple(range(depths))
    states, others = (
        hidden_states(learner, each, every) for each in (fitting, held_out)
    )
    x, y = np.asarray(held_out.x), np.asarray(held_out.y)
    before = np.asarray(predict_intact(learner, x, y))[:, -1]
    rng = np.random.default_rng(seed)
    delta = edit_size * known.std() * rng.normal(size=wanted.shape)
    expected = np.einsum("bd,bd->b", delta, x[:, -1])
    where = places(x.shape[1] - 1)
    error = np.full((depths, len(where)), np.nan)
    unknown = np.full((len(wanted), depths, len(where)), np.nan)
    follows = {name: unknown.copy() for name in DIRECTIONS}
    variance = np.mean((wanted - known.mean(axis=0)) ** 2)
    for layer in range(depths):
        for index, edited in enumerate(where.values()):
            h, held = (each[layer][:, edited].mean(axis=1) for each in (states, others))
            reading = LinearReading.fit(h, known)
            error[layer, index] = np.mean((reading(held) - wanted) ** 2) / variance
            if error[layer, index] < READ:
                for name, change in reading.changes(delta, rng).items():
                    exactly = change.astype(h.dtype)
                    answers = _run(learner, x, y, exactly, layer, edited)
                    follows[name][:, layer, index] = (answers - before) * expected
            done = layer * len(where) + index + 1
            progress("edits", done, depths * len(where))
    return Edits(error, follows, expected**2)


def _run(
    learner: OpenedLearner,
    x: Float[np.ndarray, "datasets examples dim"],
    y: Float[np.ndarray, "datasets examples"],
    change: Float[np.ndarray, "datasets hidden"],
    layer: int,
    edited: Bool[np.ndarray, " time"],
) -> Float[np.ndarray, " datasets"]:
    """Return the last answers with `change` added to the edited states of a layer."""
    starts = range(0, len(change), EDITS_PER_CALL)
    parts = [slice(start, start + EDITS_PER_CALL) for start in starts]
    answers = (
        learner.predict_edited(x[some], y[some], layer, Add(change[some], edited))
        for some in parts
    )
    return np.concatenate([np.asarray(each)[:, -1] for each in answers])
