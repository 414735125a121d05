"""`algoscope build`: write a transformer that runs an algorithm."""

import inspect
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from algoscope.cli import UsageError, show
from algoscope.cli.console import given
from algoscope.cli.destinations import require_directory
from algoscope.foundation.files import json_text
from algoscope.foundation.validation import InvalidValueError, require_at_least

ALGORITHM_PARAMETERS = (
    "learning_rate",
    "penalty",
    "steps",
    "momentum",
    "forgetting",
    "low",
    "high",
    "bandwidth",
    "scale",
    "floor",
)

EXAMPLES = """
algoscope build --list                                   # sixteen algorithms
algoscope build sgd --dim 2 --num-examples 2 --learning-rate 0.05 --out my_sgd
algoscope build ridge --penalty 0.1 --dtype float32
algoscope build my_rules.py:step --dim 3 --out my_rule   # a rule of your own
"""


@dataclass(frozen=True)
class Build:
    """Write a transformer by hand that runs a learning algorithm.

    What each layer does is printed as a formula, with the rows of the hidden state that
    it writes. `algoscope trace` shows the numbers.
    """

    algorithm: Annotated[
        tyro.conf.Positional[str],
        tyro.conf.arg(
            metavar="ALGORITHM",
            help="Its name, --list shows all of them; or FILE.py:NAME, a learning rule "
            "or a program of your own, for which the file is run.",
        ),
    ] = ""
    dim: int = 4
    """d, the number of coordinates of x."""
    num_examples: int = 20
    """n, the most examples before a query."""
    learning_rate: float | None = None
    """α, the step size."""
    penalty: float | None = None
    """λ, the weight of ‖w‖²."""
    steps: int | None = None
    """K, the steps of a batch method."""
    momentum: float | None = None
    """β of the heavy ball."""
    forgetting: float | None = None
    """β of recursive least squares: what an example is worth one example later."""
    low: float | None = None
    """The smallest eigenvalue of XᵀX/n that Chebyshev's method is made for."""
    high: float | None = None
    """The largest of them."""
    bandwidth: float | None = None
    """h, the width of a kernel."""
    scale: float | None = None
    """S of gd_attention: residuals are divided by it where softmax reads them."""
    floor: float | None = None
    """What conjugate_gradients adds to divisors, so that none is zero."""
    dtype: Literal["float64", "float32"] = "float64"
    """The precision of the weights."""
    activation: Literal["gelu", "gelu_tanh", "silu"] = "gelu"
    """σ of the feed-forward part."""
    layer_norm_epsilon: float = 0.0
    """ε of LayerNorm."""
    pre_norm: bool = False
    """Use the modern block, for algorithms that do not divide."""
    trainable: bool = False
    """Moderate weights in float32, about 1e-2 off, that training can start from."""
    out: Path | None = None
    """The directory to write the learner to. By default only the listing is shown."""
    overwrite: bool = False
    """Replace another model in that directory."""
    list: bool = False
    """List the algorithms and stop."""
    json: bool = False
    """Print the result as JSON."""

    @property
    def parameters(self) -> dict[str, float | int]:
        """The parameters of the algorithm that were given."""
        return given(self, ALGORITHM_PARAMETERS)


def run_build(command: Build) -> None:
    """Write a transformer that runs an algorithm, and show what each layer does."""
    if command.list:
        _print_algorithms(command)
        return
    if not command.algorithm:
        raise UsageError("No algorithm given. `algoscope build --list` shows them.")
    require_at_least("dim", command.dim, 1)
    require_at_least("num_examples", command.num_examples, 1)
    import jax

    dtype = "float32" if command.trainable else command.dtype
    jax.config.update("jax_enable_x64", dtype == "float64")
    from algoscope.construction.build import (
        Construction,
        find_algorithm,
        listing_text,
        save_construction,
    )

    if ":" in command.algorithm:
        algorithm = _written(command)
    else:
        algorithm = find_algorithm(command.algorithm, command.parameters)
    construction = Construction(
        algorithm,
        command.dim,
        command.num_examples,
        dtype,
        command.activation,
        command.layer_norm_epsilon,
        command.pre_norm,
        command.trainable,
    )
    if command.out is not None:
        _require_free(command.out, construction, command.overwrite)
    compiled = construction.compile()
    if command.out is not None:
        save_construction(construction, compiled, command.out)
    if command.json:
        facts = {
            **construction.as_dict(),
            "num_layers": compiled.num_layers,
            "hidden_size": compiled.hidden_size,
            "num_parameters": compiled.transformer.num_parameters,
            "listing": [vars(line) for line in compiled.listing],
        }
        print(json_text(facts))
        return
    show(listing_text(compiled))
    show(
        f"\n{construction.name}: {compiled.num_layers} layers, "
        f"{compiled.hidden_size} rows, {compiled.transformer.num_parameters:,} numbers"
        + (f", in {command.out}" if command.out is not None else "")
    )


def _require_free(out: Path, construction: Any, overwrite: bool) -> None:
    """Reject a directory that cannot be written, or that holds another model."""
    from algoscope.foundation.files import read_json
    from algoscope.model.checkpoints import CONFIG

    require_directory("out", out)
    if overwrite or not os.path.lexists(out / CONFIG):
        return
    if read_json(out / CONFIG).get("construction") != construction.as_dict():
        rule, got = "be a new directory", f"'{out}', which holds another model"
        remedy = "Add --overwrite to replace it."
        raise InvalidValueError("out", rule, got, remedy)


def _written(command: Build) -> Any:
    """Return the learning rule or the program that FILE.py:NAME names."""
    from algoscope.construction.written import load_rule, written

    for name, value in command.parameters.items():
        rule = "be left out for a rule of your own"
        raise InvalidValueError(name, rule, value, "Set it in the file.")
    return written(
        load_rule(command.algorithm),
        dim=command.dim,
        num_examples=command.num_examples,
        dtype=command.dtype,
        activation=command.activation,
        name=command.algorithm.rpartition(":")[2],
    ).algorithm


def _print_algorithms(command: Build) -> None:
    from algoscope.construction.algorithms import ALGORITHMS

    entries: list[dict[str, Any]] = [
        {
            "name": name,
            "parameters": {
                each.name: each.default
                for each in inspect.signature(kind).parameters.values()
            },
            "about": (inspect.getdoc(kind) or "")
            .partition("\n\n")[0]
            .replace("\n", " "),
        }
        for name, kind in ALGORITHMS.items()
    ]
    if command.json:
        print(json_text(entries))
        return
    width = max(len(entry["name"]) for entry in entries)
    for entry in entries:
        print(f"{entry['name']:<{width}}  {entry['about']}")
        options = [
            f"--{name.replace('_', '-')} {value:g}"
            for name, value in entry["parameters"].items()
        ]
        if options:
            print(f"{'':<{width}}  {' '.join(options)}")
    print(f"{'FILE.py:NAME':<{width}}  A learning rule or a program of your own.")
