"""Layers held together, and run one after the other.

Layers of equal sizes are one `TransformerLayer` whose arrays have a leading layer axis.
Where the MLPs differ in width (`inner_sizes`), as in constructions, their units stand
one after the other, as if they were one wide MLP, and nothing is padded: W₂ is
[Σ inner, hidden], W₁ [hidden, Σ inner] and b₂ [Σ inner]. Everything else has the axis.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Int

from algoscope.model.layer import TransformerLayer

# Up to this depth the layers are unrolled, which runs faster; deeper transformers scan
# over the layers, which compiles faster.
UNROLLED_LAYERS = 16

INNER_AXES = {"w_2": 0, "w_1": 1, "b_2": 0}  # the axis of the inner units, in one layer
LAYER_WEIGHTS = tuple(
    name for name in TransformerLayer.__dataclass_fields__ if name != "inner_sizes"
)

# From a carry and (layer, what else belongs to it) to a carry and what is kept.
Step = Callable[[Any, tuple[TransformerLayer, Any]], tuple[Any, Any]]


def depth_of(layers: TransformerLayer) -> int:
    """Return how many layers are held together."""
    return layers.b_1.shape[0]


def inner_sizes_of(layers: TransformerLayer) -> tuple[int, ...]:
    """Return the width of every layer's MLP."""
    if layers.inner_sizes is not None:
        return layers.inner_sizes
    return (layers.b_2.shape[1],) * depth_of(layers)


def outer_place(layers: TransformerLayer, index: int) -> Any:
    """Return the index of a layer's W₁ in that of all layers."""
    if layers.inner_sizes is None:
        return index
    start = sum(layers.inner_sizes[:index])
    return slice(None), slice(start, start + layers.inner_sizes[index])


def layer_of(layers: TransformerLayer, index: int) -> TransformerLayer:
    """Return one of the layers, counted from 0.

    Example:
        >>> import algoscope as asc
        >>> layers = asc.build("ridge", 2, 2, dtype="float32").transformer.layers
        >>> inner_sizes_of(layers)
        (16, 4, 40, 40, 16, 4, 16, 16)
        >>> layer_of(layers, 1).w_2.shape
        (4, 19)
    """
    index = range(depth_of(layers))[index]
    if layers.inner_sizes is None:
        return jax.tree.map(lambda leaf: leaf[index], layers)
    others = {name: leaf[index] for name, leaf in _others(layers).items()}
    return _joined(
        layers, others, sum(layers.inner_sizes[:index]), layers.inner_sizes[index]
    )


def scan_layers(
    step: Step,
    carry: Any,
    layers: TransformerLayer,
    inputs: Any = None,
    *,
    between: slice = slice(None),
    unroll: bool = False,
) -> tuple[Any, Any]:
    """Run `step` over some layers; return the last carry and all that was kept.

    As `jax.lax.scan` over pairs of a layer and its part of `inputs`, whose arrays have
    one row for each of the layers. Few layers are unrolled if `unroll`.
    """
    chosen = range(depth_of(layers))[between]
    if unroll and 0 < len(chosen) <= UNROLLED_LAYERS:
        kept = []
        for place, index in enumerate(chosen):
            own = jax.tree.map(lambda leaf, i=place: leaf[i], inputs)
            carry, states = step(carry, (layer_of(layers, index), own))
            kept.append(states)
        return carry, jax.tree.map(lambda *states: jnp.stack(states), *kept)
    if layers.inner_sizes is None:
        part = jax.tree.map(lambda leaf: leaf[between], layers)
        return jax.lax.scan(step, carry, (part, inputs))
    others = {name: leaf[between] for name, leaf in _others(layers).items()}
    starts = np.cumsum([0, *layers.inner_sizes])[:-1][between]
    sizes, kinds = np.unique(layers.inner_sizes, return_inverse=True)

    def choose(carry: Any, numbered: Any) -> tuple[Any, Any]:
        """Run a layer in the branch for its width: in each, shapes are static."""
        own, start, kind, more = numbered

        def of_size(size: int) -> Callable[[Any], tuple[Any, Any]]:
            return lambda carry: step(carry, (_joined(layers, own, start, size), more))

        return jax.lax.switch(kind, [of_size(size) for size in sizes.tolist()], carry)

    return jax.lax.scan(choose, carry, (others, starts, kinds[between], inputs))


def _others(layers: TransformerLayer) -> dict[str, Array]:
    """Return the weights that have an axis for the layers in any case."""
    names = (name for name in LAYER_WEIGHTS if name not in INNER_AXES)
    return {name: getattr(layers, name) for name in names}


def _joined(
    layers: TransformerLayer,
    others: dict[str, Array],
    start: int | Int[Array, ""],
    size: int,
) -> TransformerLayer:
    """Return a layer of these inner units and the `others` of its weights."""
    inner = {
        name: jax.lax.dynamic_slice_in_dim(getattr(layers, name), start, size, axis)
        for name, axis in INNER_AXES.items()
    }
    return TransformerLayer(**others, **inner, inner_sizes=None)
