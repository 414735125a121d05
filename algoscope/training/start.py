"""Where training starts: random weights, those of a learner, or some layers of each.

A run may start from any saved learner of moderate weights, such as a construction built
to be trained. Its sizes are then those of the learner. The run keeps a copy of it in
`start/`, and its configuration the digest of the weights, so that a run that is resumed
starts from the same.

`redraw` makes a partial construction: some layers stay as written, the others are
random. All layers redrawn is random initialization at equal size.
"""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algoscope.foundation.files import DamagedFileError, digest_of_arrays
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.checkpoints import load_transformer, named_leaves
from algoscope.model.layer import TransformerLayer
from algoscope.model.learner import InContextLearner
from algoscope.model.stack import LAYER_WEIGHTS
from algoscope.model.transformer import Transformer
from algoscope.training.config import TrainingConfig

START = "start"  # the folder of a run that holds what it started from
LARGEST = 2.0**14  # of the weights that training can change
QUIET = 0.01  # how much redrawn layers write at first, next to written ones
TRAINABLE = "Build it with `trainable=True`, or --trainable."


def load_start(start: InContextLearner | str | Path) -> InContextLearner:
    """Return a learner to start from; reject one that cannot be trained.

    Example:
        >>> load_start("linear-d2").name
        'linear-d2'
    """
    if not isinstance(start, InContextLearner):
        start = InContextLearner.from_pretrained(start)
    transformer = start.transformer
    held = transformer.w_e.dtype
    if held != jnp.float32:
        raise InvalidValueError("start", "hold float32 weights", held.name, TRAINABLE)
    leaves = named_leaves(transformer)
    largest = max(float(np.abs(leaf).max(initial=0)) for leaf in leaves.values())
    if not largest <= LARGEST:
        rule = f"hold weights of at most {LARGEST:.0f}"
        raise InvalidValueError("start", rule, f"{largest:.3g}", TRAINABLE)
    _require_equal_widths("start", transformer)
    return start


def _require_equal_widths(name: str, transformer: Transformer) -> None:
    """Reject MLPs of different widths, as exact constructions have."""
    sizes = transformer.layers.inner_sizes
    if sizes is not None:
        rule, got = "hold MLPs of equal widths", f"{min(sizes)} to {max(sizes)} units"
        raise InvalidValueError(name, rule, got, TRAINABLE)


def starting_from(config: TrainingConfig, start: InContextLearner) -> TrainingConfig:
    """Return the configuration with the sizes of a start, and its digest."""
    transformer = start.transformer
    block = transformer.block
    return replace(
        config,
        start=weights_digest(transformer),
        dim=start.dim,
        num_examples=start.max_examples + 1,
        num_layers=transformer.num_layers,
        hidden_size=start.hidden_size,
        num_heads=transformer.layers.w_q.shape[1],
        block="pre_norm" if block.pre_norm else "paper",
        activation=block.activation,
    )


def weights_digest(transformer: Transformer) -> str:
    """Return twelve hexadecimal digits that name the weights of a transformer."""
    return digest_of_arrays(named_leaves(transformer))[:12]


def saved_start(directory: Path, config: TrainingConfig) -> Transformer:
    """Return what a run in this directory started from."""
    place = directory / START
    try:
        transformer, _ = load_transformer(place)
    except FileNotFoundError as error:
        problem = "is missing, which the run started from"
        raise DamagedFileError(place, problem) from error
    if weights_digest(transformer) != config.start:
        problem = f"holds other weights than those the run started from, {config.start}"
        raise DamagedFileError(place, problem)
    return transformer


def redraw(
    learner: InContextLearner, layers: Sequence[int] | None = None, seed: int = 0
) -> InContextLearner:
    """Return a learner of the same size with some layers random, counted from 1.

    By default everything is redrawn, the embeddings and the read-out included. Redrawn
    layers write a hundredth of what they would in a random transformer, so that the
    layers which stay still work.

    Example:
        >>> import algoscope as asc
        >>> written = asc.build("gd", 2, 3, steps=1, trainable=True)
        >>> redraw(written, [3]).name
        'gd(0.01, 1, 0), compiled, layer 3 random'
    """
    transformer, rng = learner.transformer, np.random.default_rng(seed)
    _require_equal_widths("learner", transformer)
    depth = transformer.num_layers
    if layers is None:
        drawn = _drawn_layers(transformer.layers, rng, 1.0)
        whole = replace(
            transformer,
            w_e=_draw(transformer.w_e, rng, transformer.token_size),
            positions=_draw(transformer.positions, rng, transformer.max_time),
            w_o=_draw(transformer.w_o, rng, learner.hidden_size),
            b_o=jnp.zeros_like(transformer.b_o),
            layers=drawn,
        )
        return InContextLearner(whole, f"{learner.name}, random", task=learner.task)
    if not layers or any(not 1 <= layer <= depth for layer in layers):
        rule = f"name layers from 1 to {depth}"
        raise InvalidValueError("layers", rule, list(layers))
    chosen = np.isin(np.arange(1, depth + 1), layers)
    drawn = _drawn_layers(transformer.layers, rng, QUIET)

    def mixed(new: Any, old: Any) -> Any:
        mask = chosen.reshape(-1, *[1] * (old.ndim - 1))
        return jnp.where(mask, new, old)

    some = replace(transformer, layers=jax.tree.map(mixed, drawn, transformer.layers))
    plural = "s" if len(set(layers)) > 1 else ""
    numbers = ", ".join(map(str, sorted(set(layers))))
    name = f"{learner.name}, layer{plural} {numbers} random"
    return InContextLearner(some, name, task=learner.task)


def _drawn_layers(
    like: TransformerLayer, rng: np.random.Generator, gain: float
) -> TransformerLayer:
    """Return random layers of the same shapes, as `random_transformer` draws them."""
    depth, heads, value, hidden = like.w_v.shape
    inner = like.w_2.shape[1]
    residual = gain / np.sqrt(2 * depth)
    fans = {"w_f": heads * value, "w_1": inner}
    drawn = {}
    for name in LAYER_WEIGHTS:
        old = getattr(like, name)
        if name.startswith("b_"):
            drawn[name] = jnp.zeros_like(old)
        elif name in fans:
            drawn[name] = _draw(old, rng, fans[name], residual)
        else:
            drawn[name] = _draw(old, rng, hidden)
    return TransformerLayer(**drawn)


def _draw(like: Any, rng: np.random.Generator, fan_in: int, gain: float = 1.0) -> Any:
    values = rng.uniform(-1, 1, like.shape)
    return jnp.asarray(gain / np.sqrt(fan_in) * values, like.dtype)
