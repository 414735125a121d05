"""Scores of patching: does it say which states, readings and parts the answer needs?

The truth is what happens in the program when the same is done to its registers
(`ExactLearner`): a swap carries the weights if the program's answers move most of the
way to the other dataset's; a quantity is used if the program's answers follow a change
of the rows that hold it. A part works if its label says that it reads or writes
something, and is idle otherwise.
"""

from collections.abc import Iterator

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.ground_truth.collection import LabelledLearner
from algoscope.ground_truth.exact import ExactLearner
from algoscope.ground_truth.findings import Finding
from algoscope.ground_truth.labels import HeadLabel
from algoscope.ground_truth.reading import datasets
from algoscope.model.opened import Add, OpenedLearner
from algoscope.model.tokens import QUERIES, encode_context
from algoscope.model.transformer import Transformer
from algoscope.patching.ablations import Part, ablate_each
from algoscope.patching.edits import edit_readings, interchange, places
from algoscope.predictors import LinearPredictor
from algoscope.probing.targets import (
    ProbeTarget,
    find_targets,
    target_values,
    weights_of,
)
from algoscope.tasks.task import Dataset

SWAP, EDIT, LIKELY, ABLATION = "swap", "edit", "likely edit", "ablation"
DIRECTION_OF = {EDIT: "weights", LIKELY: "pattern"}
HALF = 0.5  # of the way, or of the expected change: more counts as an effect
EDIT_SIZE = 0.5  # standard deviation of a change over that of the target
SAME = 1e-9  # largest difference of two copies of a quantity
QUERIES_PER_DIM = 4
SEEDS = (4, 5, 6)
NEVER = "w_ols"


def swap_states(labelled: LabelledLearner, num_pairs: int) -> Iterator[Finding]:
    """Yield a finding for every layer and token whose state is swapped."""
    drawn = [datasets(labelled, num_pairs, seed) for seed in SEEDS[:2]]
    data, donors = (Dataset(d.x[:, :-1], d.y[:, :-1], d.w) for d in drawn)
    dim = labelled.construction.dim
    size = (num_pairs, QUERIES_PER_DIM * dim, dim)
    queries = np.random.default_rng(SEEDS[2]).normal(size=size)

    def moved(learner: OpenedLearner) -> Float[np.ndarray, "depth places"]:
        found = interchange(learner, data, donors, queries)
        return found.shift.sum(axis=0) / found.apart.sum()

    measured, exact = moved(labelled.learner), moved(labelled.exact)
    for layer, row in enumerate(exact):
        for index, place in enumerate(places(labelled.construction.num_examples)):
            truth = bool(row[index] > HALF)
            reason = "carries the weights" if truth else "does not carry them"
            says = float(measured[layer, index])
            yield Finding(
                labelled.name, SWAP, "weights", layer, truth, reason, says, place
            )


def edit_states(
    labelled: LabelledLearner, num_training: int, num_test: int
) -> Iterator[Finding]:
    """Yield findings for every layer and token that holds the learner's weights.

    And for every layer at the query, where a probe is edited that reads weights which
    the learner never computes.
    """
    reference = labelled.construction.algorithm.reference
    if not isinstance(reference, LinearPredictor):
        return
    splits = tuple(
        datasets(labelled, count, seed)
        for count, seed in zip((num_training, num_test), SEEDS, strict=False)
    )
    exact = labelled.exact
    own, other = weights_of(reference), find_targets([NEVER])[0]
    held, absent = (_values(target, splits) for target in (own, other))
    used = _used(labelled, splits[1], held[1])
    yield from _edited(labelled, own.name, splits, held, used, "held, not used")
    if not _same(absent[1], held[1]):
        query = 2 * exact.max_examples
        nowhere = {(layer, query): 0.0 for layer in range(exact.num_layers + 1)}
        yield from _edited(
            labelled, other.name, splits, absent, nowhere, "never computed"
        )


def _values(
    target: ProbeTarget, splits: tuple[Dataset, ...]
) -> list[Float[np.ndarray, "_ dim"]]:
    """Return a target's values after all examples, on each split."""
    n = splits[0].x.shape[1] - 1
    with jax.enable_x64(True):
        return [target_values(target, each, (n,))[:, 0] for each in splits]


def _edited(
    labelled: LabelledLearner,
    name: str,
    splits: tuple[Dataset, ...],
    values: list[Float[np.ndarray, "_ dim"]],
    effects: dict[tuple[int, int], float],
    otherwise: str,
) -> Iterator[Finding]:
    """Yield what edits of the learner say about cells with known effects."""
    found = edit_readings(
        labelled.learner,
        (splits[0], values[0]),
        (splits[1], values[1]),
        edit_size=EDIT_SIZE,
        seed=0,
    )
    tokens = labelled.exact.token_names(labelled.construction.num_examples)
    for (layer, token), effect in effects.items():
        truth = effect > HALF
        reason = "held and used" if truth else otherwise
        for method, direction in DIRECTION_OF.items():
            follows = found.follows[direction][:, layer, token]
            slope = float(follows.sum() / found.expected.sum())
            says = 0.0 if np.isnan(slope) else slope  # nothing to read, nothing edited
            place = tokens[token]
            yield Finding(
                labelled.name, method, name, layer, truth, reason, says, place
            )


def _used(
    labelled: LabelledLearner, data: Dataset, values: Float[np.ndarray, "datasets dim"]
) -> dict[tuple[int, int], float]:
    """Return where the weights are held, and how far the answer follows them there."""
    exact = labelled.exact
    state = exact.named(data.x, data.y)
    found = {}
    for token in range(len(exact.token_names(exact.max_examples))):
        copies = [
            each
            for each in labelled.labels.quantities
            if _same(state[each.name][:, token], values)
        ]
        for layer in range(exact.num_layers + 1):
            rows = [list(each.rows) for each in copies if each.is_held(layer)]
            if rows:
                found[layer, token] = _effect(exact, data, layer, token, rows)
    return found


def _effect(
    exact: ExactLearner, data: Dataset, layer: int, token: int, copies: list[list[int]]
) -> float:
    """Return the slope of the program's answer against a change of some rows."""
    x = np.asarray(data.x)
    rng = np.random.default_rng(SEEDS[2])
    delta = rng.normal(size=x[:, -1].shape)
    change = np.zeros((len(x), exact.hidden_size))
    for rows in copies:
        change[:, rows] = delta
    mask = np.arange(2 * exact.max_examples + 1) == token
    edited = exact.predict_edited(data.x, data.y, layer, Add(change, mask))[:, -1]
    before = exact.predict_edited(data.x, data.y, 0, lambda h: h)[:, -1]
    expected = np.sum(delta * x[:, -1], axis=1)
    return float(np.sum((edited - before) * expected) / np.sum(expected**2))


def _same(
    one: Float[np.ndarray, "datasets _"], other: Float[np.ndarray, "datasets _"]
) -> bool:
    return one.shape == other.shape and bool(np.abs(one - other).max() < SAME)


def ablate_parts(labelled: LabelledLearner, num_datasets: int) -> Iterator[Finding]:
    """Yield a finding for every head and MLP."""
    data = datasets(labelled, num_datasets, SEEDS[0])
    arrays = np.asarray(data.x), np.asarray(data.y)
    tokens = encode_context(data.x, data.y)
    before = _outputs(labelled.learner.transformer, tokens)
    spread = float(before.std())
    labels = labelled.labels
    working = {
        *(Part(each.layer, each.head) for each in labels.heads if _does(each)),
        *(Part(each.layer) for each in labels.units),
    }
    for part, left in ablate_each(labelled.learner, *arrays):
        change = float(jnp.abs(_outputs(left.transformer, tokens) - before).max())
        truth = part in working
        yield Finding(
            labelled.name,
            ABLATION,
            str(part),
            part.layer,
            truth,
            "works" if truth else "idle",
            change / spread,
        )


def _does(head: HeadLabel) -> bool:
    return bool(head.writes or head.clears)


@eqx.filter_jit
def _outputs(
    transformer: Transformer, tokens: Float[Array, "batch time token"]
) -> Float[Array, "batch queries"]:
    return transformer.outputs(tokens, QUERIES)
