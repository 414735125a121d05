"""Interchange: swap hidden states between datasets; which of them carry the weights?

H⁽ˡ⁾ at one position of a run on D is replaced by that of a run on D′ with the same
query. If the state carries what was learned, the answers become those of D′. The
implied weights (eq. 16) measure how far:

    moved = Σ ⟨ŵ_patched − ŵ(D), ŵ(D′) − ŵ(D)⟩ / Σ ‖ŵ(D′) − ŵ(D)‖²
    causal ILWD = ‖ŵ_patched − ŵ(D′)‖² / d

`moved` is 0 without any effect and 1 if the learner now answers from D′; sums are over
pairs.
"""

from typing import NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from algoscope.comparison.linearization import implied_weights
from algoscope.foundation.progress import Progress, silent
from algoscope.model.learner import InContextLearner
from algoscope.model.tokens import encode_context
from algoscope.model.transformer import Transformer, run_compiled
from algoscope.tasks.task import Dataset

SEQUENCES_PER_CALL = 1024


class Interchange(NamedTuple):
    """Per pair of datasets, layer and set of positions; all over d."""

    shift: Float[np.ndarray, "pairs depth places"]  # ⟨ŵ_patched − ŵ(D), ŵ(D′) − ŵ(D)⟩
    ilwd: Float[np.ndarray, "pairs depth places"]  # ‖ŵ_patched − ŵ(D′)‖²
    apart: Float[np.ndarray, " pairs"]  # ‖ŵ(D′) − ŵ(D)‖²


def places(num_examples: int) -> dict[str, Bool[np.ndarray, " time"]]:
    """Return what is swapped: each position up to the query, and all before it.

    Example:
        >>> list(places(2))
        ['x1', 'y1', 'x2', 'y2', 'query', 'examples']
    """
    time = 2 * num_examples + 1
    names = [f"{token}{i}" for i in range(1, num_examples + 1) for token in "xy"]
    single = np.eye(time, dtype=bool)
    found = dict(zip([*names, "query"], single, strict=True))
    return found | {"examples": np.arange(time) < time - 1}


def interchange(
    learner: InContextLearner,
    data: Dataset,
    donors: Dataset,
    queries: Float[np.ndarray, "pairs queries dim"],
    progress: Progress = silent,
) -> Interchange:
    """Swap states of every layer and place from `donors` into `data`, pair by pair."""
    pairs, count, dim = queries.shape
    where = places(data.x.shape[1])
    depths = learner.transformer.num_layers + 1
    tokens, others = (_with_queries(each, queries) for each in (data, donors))
    own, target = (np.empty(len(tokens)) for _ in range(2))
    found = np.empty((depths, len(where), len(tokens)))
    for start in range(0, len(tokens), SEQUENCES_PER_CALL):
        some = slice(start, start + SEQUENCES_PER_CALL)
        donor = run_compiled(learner.transformer, others[some])
        target[some] = donor.output[:, -1]
        own[some] = run_compiled(learner.transformer, tokens[some]).output[:, -1]
        for layer in range(depths):
            for index, swapped in enumerate(where.values()):
                found[layer, index, some] = _answer_after_swap(
                    learner.transformer,
                    tokens[some],
                    donor.hidden,
                    jnp.asarray(layer),
                    jnp.asarray(swapped),
                )
            done = start * depths + (layer + 1) * len(tokens[some])
            progress("interchange", done, len(tokens) * depths)

    def implied(answers: Float[np.ndarray, "cells sequences"]) -> np.ndarray:
        """Return ŵ of each pair and cell."""
        by_pair = answers.reshape(-1, pairs, count).transpose(1, 0, 2)
        return implied_weights(queries, by_pair)

    before, after = implied(own[None]), implied(target[None])
    patched = implied(found.reshape(-1, len(tokens)))
    wanted = after - before
    cells = (pairs, depths, len(where))
    shift = np.sum((patched - before) * wanted, axis=-1) / dim
    ilwd = np.sum((patched - after) ** 2, axis=-1) / dim
    apart = np.sum(wanted**2, axis=-1)[:, 0] / dim
    return Interchange(shift.reshape(cells), ilwd.reshape(cells), apart)


def _with_queries(
    data: Dataset, queries: Float[np.ndarray, "pairs queries dim"]
) -> Float[Array, "sequences time token"]:
    """Return one sequence per query: the examples of its dataset, and the query."""
    pairs, count, dim = queries.shape
    x = np.repeat(np.asarray(data.x), count, axis=0)
    y = np.repeat(np.asarray(data.y), count, axis=0)
    x = np.concatenate([x, queries.reshape(-1, 1, dim).astype(x.dtype)], axis=1)
    y = np.concatenate([y, np.zeros((pairs * count, 1), y.dtype)], axis=1)
    return encode_context(jnp.asarray(x), jnp.asarray(y))


@eqx.filter_jit
def _answer_after_swap(
    transformer: Transformer,
    tokens: Float[Array, "batch time token"],
    donated: Float[Array, "batch depth time hidden"],
    layer: Int[Array, ""],
    swapped: Bool[Array, " time"],
) -> Float[Array, " batch"]:
    """Return the last output of `tokens` with donated states in one layer."""

    def edit(depth: Array, h: Array) -> Array:
        here = swapped & (depth == layer)
        return jnp.where(here[None, :, None], donated[:, depth], h)

    return transformer.edited(tokens, edit)[:, -1]
