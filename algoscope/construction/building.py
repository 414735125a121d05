"""Learners from algorithms: build one, save it so that it knows what it is, load it.

A saved construction is an ordinary learner. config.json also says which algorithm it
runs, with which parameters, so that the program can be made again and put beside the
weights (`trace`).
"""

from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

from algoscope.checkpoints import DamagedFileError, read_json
from algoscope.configuration import Activation
from algoscope.construction.algorithms import ALGORITHMS, Algorithm
from algoscope.construction.compiler import (
    Arrangement,
    Compiled,
    arrange,
    compile_program,
)
from algoscope.construction.interpreter import Tokens
from algoscope.construction.listing import listing
from algoscope.construction.numerics import DType, Numerics, numerics
from algoscope.learner import InContextLearner
from algoscope.pretrained import CONFIG, locate
from algoscope.validation import InvalidValueError, require_choice

# Those with σ(0) = 0 and σ(u) − σ(−u) = u: precise products, exact linear maps.
COMPILED_ACTIVATIONS = ("gelu", "gelu_tanh", "silu")


@dataclass(frozen=True)
class Construction:
    """What is built: an algorithm, for which data, and how it computes."""

    algorithm: Algorithm
    dim: int = 4
    num_examples: int = 20
    dtype: DType = "float64"
    activation: Activation = "gelu"
    layer_norm_epsilon: float = 0.0
    pre_norm: bool = False

    def __post_init__(self):
        require_choice("dtype", self.dtype, get_args(DType))
        require_choice("activation", self.activation, COMPILED_ACTIVATIONS)

    @property
    def numerics(self) -> Numerics:
        """The constants of its precision."""
        return replace(
            numerics(self.dtype, self.activation),
            layer_norm_epsilon=self.layer_norm_epsilon,
            pre_norm=self.pre_norm,
        )

    @property
    def suited(self) -> Algorithm:
        """The algorithm, with constants that suit the precision."""
        return self.algorithm.suited(self.dtype)

    @property
    def name(self) -> str:
        """For example `sgd(0.05, 0.1), compiled`."""
        parameters = ", ".join(f"{value:g}" for value in self.parameters.values())
        return f"{self.algorithm.name}({parameters}), compiled"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the algorithm."""
        return asdict(self.algorithm)

    def arrange(self) -> Arrangement:
        """Return the program with its layers and rows, without weights."""
        program = self.suited.program(self.dim, self.num_examples)
        return arrange(program, self.numerics)

    def compile(self, tokens: Tokens | None = None) -> Compiled:
        """Return the transformer, calibrated on `tokens`, or on usual datasets."""
        program = self.suited.program(self.dim, self.num_examples)
        if tokens is None:
            tokens = self.suited.examples(self.dim, self.num_examples)
        return compile_program(program, self.numerics, tokens=tokens)

    def as_dict(self) -> dict[str, Any]:
        """Return what `from_dict` makes it again from."""
        rest = {f.name: getattr(self, f.name) for f in fields(self)[1:]}
        parameters = self.parameters
        return {"algorithm": self.algorithm.name, "parameters": parameters, **rest}

    @classmethod
    def from_dict(cls, saved: dict[str, Any]) -> "Construction":
        """Return the construction that `as_dict` wrote."""
        rest = dict(saved)
        kind = ALGORITHMS[rest.pop("algorithm")]
        return cls(kind(**rest.pop("parameters")), **rest)


def build(
    algorithm: Algorithm, dim: int, num_examples: int, **choices: Any
) -> InContextLearner:
    """Return a learner that runs an algorithm, as weights written by hand.

    `choices` are dtype, activation, layer_norm_epsilon and pre_norm, and `tokens`, the
    datasets to calibrate on.
    """
    tokens = choices.pop("tokens", None)
    construction = Construction(algorithm, dim, num_examples, **choices)
    return construction.compile(tokens).learner(construction.name)


def save_construction(
    construction: Construction, compiled: Compiled, directory: Path
) -> None:
    """Write the learner, with what it is and a card that lists what each layer does."""
    lines = "\n".join(map(str, listing(compiled)))
    learner = compiled.learner(construction.name)
    about = {"construction": construction.as_dict()}
    size = f"{compiled.num_layers} layers of width {compiled.hidden_size}"
    card = (
        f"# {construction.name}\n\nWeights written by hand: {size}, d = "
        f"{construction.dim}, up to {construction.num_examples} examples, "
        f"{construction.dtype}.\n\n```text\n{lines}\n```\n"
    )
    learner.save_pretrained(directory, card=card, about=about)


def read_construction(directory: Path) -> Construction:
    """Return what a saved construction is, without its weights."""
    saved = read_json(directory / CONFIG).get("construction")
    if saved is None:
        rule = "be a directory that `algoscope build` wrote"
        raise InvalidValueError("directory", rule, f"'{directory}'")
    try:
        return Construction.from_dict(saved)
    except (KeyError, TypeError, ValueError) as error:
        rule = "say which algorithm it holds"
        raise DamagedFileError(str(directory / CONFIG), rule, repr(error)) from error


def load_construction(directory: str | Path) -> tuple[InContextLearner, Construction]:
    """Return a saved construction: its learner, and what it is."""
    place = locate(directory)
    construction = read_construction(place)
    return InContextLearner.from_pretrained(place), construction
