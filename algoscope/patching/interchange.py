"""Swapping hidden states between datasets: which of them carry the weights?

H⁽ˡ⁾ at one position of a run on D is replaced by that of a run on D′ with the same
query. If the state carries what was learned, the answers become those of D′. The
implied weights (eq. 16) say how far:

    moved = Σ ⟨ŵ_patched − ŵ(D), ŵ(D′) − ŵ(D)⟩ / Σ ‖ŵ(D′) − ŵ(D)‖²
    causal ILWD = ‖ŵ_patched − ŵ(D′)‖² / d

0 moved is no effect and 1 a learner that now answers from D′; sums are over pairs.
"""

from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from algoscope.comparison import Progress
from algoscope.learner import InContextLearner
from algoscope.metrics import implied_weights
from algoscope.sequences import encode_context
from algoscope.tasks import Dataset
from algoscope.transformer import Transformer

SEQUENCES_PER_CALL = 1024


class Interchange(NamedTuple):
    """Per pair of datasets, layer and set of positions."""

    moved: Float[np.ndarray, "pairs depth places"]
    ilwd: Float[np.ndarray, "pairs depth places"]
    apart: Float[np.ndarray, " pairs"]  # ILWD of D and D′, when nothing is swapped


@eqx.filter_jit
def _answer(
    transformer: Transformer,
    tokens: Float[Array, "batch time token"],
    donors: Float[Array, "batch time token"],
    layer: Int[Array, ""],
    swapped: Bool[Array, " time"],
) -> Float[Array, " batch"]:
    """Return the last output of `tokens` with states of `donors` put into one layer."""
    states = transformer(donors).hidden

    def edit(depth: Array, h: Array) -> Array:
        here = swapped & (depth == layer)
        return jnp.where(here[None, :, None], states[:, depth], h)

    return transformer.edited(tokens, edit)[:, -1]


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
    progress: Progress | None = None,
) -> Interchange:
    """Swap states of every layer and place from `donors` into `data`, pair by pair."""
    pairs, count, dim = queries.shape
    num_examples = data.x.shape[1]
    tokens, others = (_with_queries(each, queries) for each in (data, donors))

    def implied(answers: np.ndarray) -> Float[np.ndarray, "pairs dim"]:
        by_pair = answers.reshape(pairs, 1, count)
        return implied_weights(queries, by_pair)[:, 0]

    def run(given: np.ndarray, donated: np.ndarray, layer: int, swapped: np.ndarray):
        parts = [
            np.asarray(
                _answer(
                    learner.transformer,
                    jnp.asarray(given[start : start + SEQUENCES_PER_CALL]),
                    jnp.asarray(donated[start : start + SEQUENCES_PER_CALL]),
                    jnp.asarray(layer),
                    jnp.asarray(swapped),
                )
            )
            for start in range(0, len(given), SEQUENCES_PER_CALL)
        ]
        return implied(np.concatenate(parts))

    where = places(num_examples)
    nowhere = np.zeros(2 * num_examples + 1, bool)
    own, target = run(tokens, others, 0, nowhere), run(others, tokens, 0, nowhere)
    wanted = target - own
    squared = np.sum(wanted**2, axis=-1)
    depths = learner.transformer.num_layers + 1
    moved, ilwd = (np.empty((pairs, depths, len(where))) for _ in range(2))
    for layer in range(depths):
        for index, swapped in enumerate(where.values()):
            found = run(tokens, others, layer, swapped)
            shift = np.sum((found - own) * wanted, axis=-1)
            moved[:, layer, index] = shift / squared.mean()
            ilwd[:, layer, index] = np.sum((found - target) ** 2, axis=-1) / dim
            if progress is not None:
                progress(layer * len(where) + index + 1, depths * len(where))
    return Interchange(moved, ilwd, squared / dim)


def _with_queries(
    data: Dataset, queries: Float[np.ndarray, "pairs queries dim"]
) -> Float[np.ndarray, "sequences time token"]:
    """Return one sequence per query: the examples of its dataset, and the query."""
    pairs, count, dim = queries.shape
    x = np.repeat(np.asarray(data.x), count, axis=0)
    y = np.repeat(np.asarray(data.y), count, axis=0)
    x = np.concatenate([x, queries.reshape(-1, 1, dim).astype(x.dtype)], axis=1)
    y = np.concatenate([y, np.zeros((pairs * count, 1), y.dtype)], axis=1)
    return np.asarray(encode_context(jax.numpy.asarray(x), jax.numpy.asarray(y)))
