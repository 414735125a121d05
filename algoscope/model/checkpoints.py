"""Transformers on disk: config.json, model.safetensors and README.md, the model card.

config.json holds the choices that are not weights and facts about the model (how it was
trained, with which versions). Loading reads arrays and JSON and executes nothing. Where
MLPs differ in width, config.json lists their `inner_sizes` (see `stack`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from algoscope.foundation.files import (
    DamagedFileError,
    load_arrays,
    read_json,
    reading,
    save_arrays,
    write_atomically,
    write_json,
)
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.model.layer import Block, TransformerLayer
from algoscope.model.stack import INNER_AXES, LAYER_WEIGHTS
from algoscope.model.transformer import Transformer

Tree = TypeVar("Tree")

MODELS = Path(__file__).parents[1] / "models"
FORMAT = "algoscope"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
INNER_SIZES = "inner_sizes"  # the field of config.json, where widths of MLPs differ
EVALUATION = "evaluation.json"  # a saved `Comparison`: the numbers of the card's table


def shipped_models() -> list[str]:
    """Return the names of the models that come with the package.

    Example:
        >>> shipped_models()[-2:]
        ['linear-d8', 'linear-d8-broad']
    """
    return sorted(path.parent.name for path in MODELS.glob(f"*/{WEIGHTS}"))


def locate(name: str | Path) -> Path:
    """Return the directory of a shipped model, given by name, or of a saved one."""
    directory = Path(name)
    if not directory.is_dir():
        if isinstance(name, Path) or len(directory.parts) != 1:
            rule = "be a directory that holds a saved learner"
            raise InvalidValueError("name", rule, f"'{name}'")
        require_choice("name", name, shipped_models())
        directory = MODELS / name
    for part in (CONFIG, WEIGHTS):
        if not (directory / part).is_file():
            raise InvalidValueError(
                "name",
                f"be a directory with {CONFIG} and {WEIGHTS}",
                f"'{directory}' without {part}",
                "A training run has them once it is finished.",
            )
    return directory


def save_transformer(
    directory: Path, transformer: Transformer, *, name: str, card: str, about: dict
) -> None:
    """Write the weights, config.json with the facts `about` it, and the model card.

    The card is written last: where there is a card, the model is complete.
    """
    save_arrays(directory / WEIGHTS, named_leaves(transformer), {"format": FORMAT})
    config = {"format": FORMAT, "name": name, **shape_facts(transformer)}
    write_json(directory / CONFIG, {**config, **about})
    write_atomically(directory / CARD, card.encode())


def shape_facts(transformer: Transformer) -> dict[str, Any]:
    """Return what a configuration has to say, so that the weights can be read.

    Widths of MLPs are given only where they differ.
    """
    sizes = transformer.layers.inner_sizes
    differing = {} if sizes is None else {INNER_SIZES: list(sizes)}
    return {"block": asdict(transformer.block), **differing}


def load_transformer(
    directory: Path, *, signed: bool = True
) -> tuple[Transformer, dict]:
    """Return the transformer in a directory and its config.json.

    Everything is checked first: the digest (unless not `signed`), names, shapes and
    dtypes of the weights, that they are finite, and that they fit the configuration.
    """
    config = read_json(directory / CONFIG)
    arrays, _ = load_arrays(directory / WEIGHTS, signed=signed)
    if config.get("format") != FORMAT:
        problem = "is not the configuration of a saved transformer"
        raise DamagedFileError(directory / CONFIG, problem)
    with reading(directory, "does not hold a saved transformer"):
        block = Block(**{"pre_norm": None, **config["block"]})
        inner_sizes = _inner_sizes_in(config)
        sizes = _sizes_of(arrays, inner_sizes)
    training = config.get("training")
    for name, axis in CONFIGURED.items():
        told = training.get(name) if isinstance(training, dict) else None
        found = sizes[axis] - (name == "dim")
        if told not in (None, found):
            problem = f"says {name} = {told!r}, but the weights have {found}"
            raise DamagedFileError(directory / CONFIG, problem)
    with jax.enable_x64(True):  # so that float64 is not rounded to float32
        weights = {name: jnp.asarray(arrays[name]) for name in AXES}
    layers = {
        name.removeprefix(STACK): weights.pop(name)
        for name in AXES
        if name.startswith(STACK)
    }
    stack = TransformerLayer(**layers, inner_sizes=inner_sizes)
    return Transformer(layers=stack, block=block, **weights), config


def _inner_sizes_in(config: dict) -> tuple[int, ...] | None:
    """Return the widths of the MLPs, if a configuration says that they differ."""
    found = config.get(INNER_SIZES)
    if found is None:
        return None
    if isinstance(found, list) and all(
        type(each) is int and each > 0 for each in found
    ):
        return tuple(found)
    raise ValueError(f"its {INNER_SIZES} are no list of widths")


def _sizes_of(
    arrays: Mapping[str, np.ndarray], inner_sizes: tuple[int, ...] | None
) -> dict[str, int]:
    """Return the size of each axis; reject weights that do not fit together."""
    for name in AXES:
        arrays[name]  # a KeyError names it
    odd = sorted(set(arrays) - set(AXES))
    if odd:
        raise ValueError(f"it has other arrays: {', '.join(odd[:3])}")
    kind, sizes = arrays["w_e"].dtype, {}
    if kind not in ("float32", "float64"):
        raise ValueError(f"its weights are {kind}")
    if inner_sizes is not None:
        sizes |= {"stack": len(inner_sizes), "inner": sum(inner_sizes)}
    for name, axes in AXES.items():
        if inner_sizes is not None and name.removeprefix(STACK) in INNER_AXES:
            axes = axes[1:]  # the units of all layers, one after the other
        array = arrays[name]
        shown = f"{name} is {array.dtype}{list(array.shape)}"
        if array.dtype != kind or array.ndim != len(axes):
            raise ValueError(f"{shown}, not {kind}[{', '.join(axes)}]")
        for axis, size in zip(axes, array.shape, strict=True):
            if sizes.setdefault(axis, size) != size or not size:
                raise ValueError(f"{shown}, but {axis} is {sizes[axis]}")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} holds NaN or infinity")
    return sizes


def _axes_of(kind: type, names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the axes of the weights, as the annotations of a class name them."""
    every = ((name, kind.__annotations__[name].dim_str) for name in names)
    plain = ((name, axes.replace("*mlps", "stack")) for name, axes in every)
    return {name: tuple(axes.replace("*", "").split()) for name, axes in plain}


# The weights in a file, by name: `w_e` has the axes hidden and token.
STACK = "layers."
AXES = {
    **_axes_of(Transformer, ("w_e", "positions", "w_o", "b_o")),
    **{
        STACK + name: axes
        for name, axes in _axes_of(TransformerLayer, LAYER_WEIGHTS).items()
    },
}
CONFIGURED = {  # what config.json says of training: the axis that has this size
    "dim": "token",
    "num_layers": "stack",
    "hidden_size": "hidden",
    "num_heads": "heads",
}


def named_leaves(tree: object) -> dict[str, np.ndarray]:
    """Return the arrays of a pytree, named by their paths in it."""
    leaves, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {
        jax.tree_util.keystr(path, simple=True, separator="."): np.asarray(leaf)
        for path, leaf in leaves
    }


def restore_leaves(like: Tree, arrays: Mapping[str, np.ndarray], source: Path) -> Tree:
    """Return a pytree like `like` that holds `arrays`, read from `source`."""
    wanted = named_leaves(like)
    if set(wanted) != set(arrays):
        odd = sorted(set(wanted) ^ set(arrays))
        shown = ", ".join(odd[:3]) + (", …" if len(odd) > 3 else "")
        raise DamagedFileError(source, f"has other arrays than expected: {shown}")
    for name, leaf in wanted.items():
        if (leaf.shape, leaf.dtype) != (arrays[name].shape, arrays[name].dtype):
            found = f"{arrays[name].dtype}{list(arrays[name].shape)}"
            problem = f"has {name} as {found}, not {leaf.dtype}{list(leaf.shape)}"
            raise DamagedFileError(source, problem)
    treedef = jax.tree.structure(like)
    return jax.tree.unflatten(treedef, [arrays[name] for name in wanted])
