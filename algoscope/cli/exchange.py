"""`algoscope export` and `algoscope import`: models for and from other programs."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from algoscope.cli import show
from algoscope.cli.console import Model
from algoscope.foundation.files import json_text

EXAMPLES = """
algoscope export linear-d8 --to torch --out linear-d8-torch
algoscope export linear-d8 --to gpt2 --out linear-d8-gpt2
algoscope import run_of_garg --out garg
algoscope import run_of_garg --state model_100000.pt --out garg-100000
"""


@dataclass(frozen=True)
class Export:
    """Write a model for PyTorch, for transformers (gpt2), or as ONNX."""

    target: Model
    out: Path
    """The directory to write to: a new or empty one, or an earlier export."""
    to: Literal["torch", "gpt2", "onnx"] = "torch"
    """torch: a standalone model.py; gpt2: a GPT2Model, for pre-norm models."""
    json: bool = False
    """Print the result as JSON."""


def run_export(command: Export) -> None:
    """Write a model in another format."""
    from algoscope.exchange.export import export_saved

    learner = export_saved(command.target, command.out, command.to)
    _print(learner, command, {"format": command.to})


@dataclass(frozen=True)
class Import:
    """Turn a run of dtsip/in-context-learning, or an export, into a saved model."""

    directory: Annotated[
        tyro.conf.Positional[Path],
        tyro.conf.arg(
            help="A run (config.yaml and state.pt), an export, or a saved model whose "
            "weights carry no digest.",
            metavar="DIR",
        ),
    ]
    out: Path
    """The directory to write to: a new or empty one, or an earlier import."""
    state: str = "state.pt"
    """The file of the run that holds the weights, such as model_100000.pt."""
    any_task: bool = False
    """Also import a run of another task than linear regression, and measure its
    learner on linear regression all the same."""
    json: bool = False
    """Print the result as JSON."""


def run_import(command: Import) -> None:
    """Write a model that came from elsewhere as an ordinary saved one."""
    from algoscope.exchange.imports import import_to

    learner = import_to(
        command.directory, command.out, command.state, any_task=command.any_task
    )
    _print(learner, command, {"directory": str(command.directory)})


def _print(learner: Any, command: Export | Import, about: dict[str, str]) -> None:
    transformer = learner.transformer
    _, heads, _, hidden = transformer.layers.w_q.shape
    facts = {
        "model": learner.name,
        "d": learner.dim,
        "examples": learner.max_examples,
        "L": transformer.num_layers,
        "H": hidden,
        "M": heads,
        "num_parameters": transformer.num_parameters,
        "out": str(command.out),
        **about,
    }
    if command.json:
        print(json_text(facts))
        return
    show(
        f"{learner.name}: d = {learner.dim}, up to {learner.max_examples} examples, "
        f"L = {transformer.num_layers}, H = {hidden}, M = {heads}, "
        f"{transformer.num_parameters:,} numbers, in {command.out}"
    )
