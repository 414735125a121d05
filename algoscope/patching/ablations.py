"""Ablations: a learner without one of its heads or MLPs.

The part is replaced by its mean over datasets and positions. That is a change of
weights, for a head W_F ← 0 and b_F ← b_F + W_F E[b], for an MLP W₁ ← 0 and
b₁ ← b₁ + W₁ E[σ(…)], so the rest is a learner like any other.
"""

from collections.abc import Iterator

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from algoscope.comparison.predict import Inputs, Labels
from algoscope.model.layer import layer_norm
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import MEAN_DATASETS, Part
from algoscope.model.stack import layer_of, outer_place
from algoscope.model.tokens import encode_context
from algoscope.model.transformer import Transformer, run_compiled


def parts_of(learner: InContextLearner) -> list[Part]:
    """Return every head and every MLP, layer by layer."""
    num_heads = learner.transformer.layers.w_q.shape[1]
    return [
        Part(layer, head)
        for layer in range(1, learner.transformer.num_layers + 1)
        for head in [*range(num_heads), None]
    ]


def ablate(
    learner: InContextLearner, part: Part, x: Inputs, y: Labels
) -> InContextLearner:
    """Return the learner without a part, whose mean is taken over these datasets."""
    return _without(learner, part, _hidden(learner, x, y))


def ablate_each(
    learner: InContextLearner, x: Inputs, y: Labels
) -> Iterator[tuple[Part, InContextLearner]]:
    """Yield every part, and the learner without it."""
    hidden = _hidden(learner, x, y)
    for part in parts_of(learner):
        yield part, _without(learner, part, hidden)


def _hidden(
    learner: InContextLearner, x: Inputs, y: Labels
) -> Float[Array, "batch depth time hidden"]:
    some = slice(MEAN_DATASETS)
    tokens = encode_context(jnp.asarray(x[some]), jnp.asarray(y[some]))
    return run_compiled(learner.transformer, tokens).hidden


def _without(
    learner: InContextLearner,
    part: Part,
    hidden: Float[Array, "batch depth time hidden"],
) -> InContextLearner:
    index = part.layer - 1
    mean = _mean_of(learner.transformer, hidden[:, index], index, part.head)
    layers = learner.transformer.layers
    if part.head is None:
        layers = eqx.tree_at(
            lambda each: (each.w_1, each.b_1),
            layers,
            (
                layers.w_1.at[outer_place(layers, index)].set(0),
                layers.b_1.at[index].set(mean),
            ),
        )
    else:
        layers = eqx.tree_at(
            lambda each: (each.w_f, each.b_f),
            layers,
            (layers.w_f.at[index, part.head].set(0), layers.b_f.at[index].add(mean)),
        )
    transformer = eqx.tree_at(lambda each: each.layers, learner.transformer, layers)
    # The same name for all: names are static, so a new name would compile again.
    return InContextLearner(transformer, f"{learner.name}, ablated", task=learner.task)


def _mean_of(
    transformer: Transformer,
    h: Float[Array, "batch time hidden"],
    index: int,
    head: int | None,
) -> Float[Array, " hidden"]:
    """Return the mean of what a part of layer `index` adds to its input `h`."""
    layer = layer_of(transformer.layers, index)
    block = transformer.block
    read = layer_norm(h, block.layer_norm_epsilon) if block.pre_norm else h
    if head is None:
        attended = layer.attention(read, block)[0] + h
        added = layer.feed_forward(attended, block) - attended
    else:
        others = np.arange(layer.w_f.shape[0]) != head
        alone = eqx.tree_at(
            lambda each: (each.w_f, each.b_f),
            layer,
            (
                jnp.where(others[:, None, None], 0, layer.w_f),
                jnp.zeros_like(layer.b_f),
            ),
        )
        added = alone.attention(read, block)[0]
    return jnp.mean(added, axis=(0, 1))
