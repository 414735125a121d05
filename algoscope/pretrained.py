"""Transformers on disk: config.json, model.safetensors and README.md, the model card.

config.json holds the choices that are not weights and facts about the model (how it was
trained, with which versions). Loading reads arrays and JSON and executes nothing.
"""

from dataclasses import asdict
from pathlib import Path

import jax
import jax.numpy as jnp

from algoscope.checkpoints import (
    DamagedFileError,
    load_arrays,
    named_leaves,
    read_json,
    save_arrays,
    write_atomically,
    write_json,
)
from algoscope.layer import Block, TransformerLayer
from algoscope.transformer import Transformer
from algoscope.validation import InvalidValueError, require_choice

MODELS = Path(__file__).parent / "models"
CONFIG, WEIGHTS, CARD = "config.json", "model.safetensors", "README.md"
EVALUATION = "evaluation.json"  # a saved `Comparison`: the numbers of the card's table


def shipped_models() -> list[str]:
    """Return the names of the models that come with the package."""
    return sorted(path.parent.name for path in MODELS.glob(f"*/{WEIGHTS}"))


def locate(name: str | Path) -> Path:
    """Return the directory of a shipped model or of a saved one."""
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

    The card comes last: where it is, all the rest is.
    """
    save_arrays(directory / WEIGHTS, named_leaves(transformer), {"format": "algoscope"})
    config = {"format": "algoscope", "name": name, "block": asdict(transformer.block)}
    write_json(directory / CONFIG, {**config, **about})
    write_atomically(directory / CARD, card.encode())


def load_transformer(directory: Path) -> tuple[Transformer, dict]:
    """Return the transformer in a directory and its config.json."""
    config = read_json(directory / CONFIG)
    arrays, _ = load_arrays(directory / WEIGHTS)
    try:
        block = Block(**config["block"])
        with jax.enable_x64(True):  # float64 stays what it is
            layers = {
                field: jnp.asarray(arrays.pop(f"layers.{field}"))
                for field in TransformerLayer.__dataclass_fields__
            }
            rest = {field: jnp.asarray(array) for field, array in arrays.items()}
        return (
            Transformer(layers=TransformerLayer(**layers), block=block, **rest),
            config,
        )
    except (KeyError, TypeError) as error:
        raise DamagedFileError(
            str(directory), "hold a saved transformer", f"an error in {error}"
        ) from error
