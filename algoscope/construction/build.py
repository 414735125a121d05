"""Learners from algorithms: build one, save it so that it knows what it is, load it.

A saved construction is an ordinary learner. config.json also says which algorithm it
runs, with which parameters, so that the program can be made again and put beside the
weights (`trace`).
"""

import inspect
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, get_args

from algoscope.construction.algorithms import ALGORITHMS, Algorithm
from algoscope.construction.compiler.compile import (
    Arrangement,
    Compiled,
    arrange,
    compile_program,
)
from algoscope.construction.compiler.numerics import DType, Numerics, numerics
from algoscope.construction.language.events import (
    Attend,
    Divide,
    Event,
    FeedForwardEvent,
    Read,
)
from algoscope.construction.language.interpreter import Tokens
from algoscope.foundation.files import DamagedFileError, read_json
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.model.architecture import Activation
from algoscope.model.checkpoints import CONFIG, locate
from algoscope.model.learner import InContextLearner

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
    algorithm: Algorithm | str,
    dim: int = 4,
    num_examples: int = 20,
    *,
    tokens: Tokens | None = None,
    dtype: DType = "float64",
    activation: Activation = "gelu",
    layer_norm_epsilon: float = 0.0,
    pre_norm: bool = False,
    **parameters: Any,
) -> InContextLearner:
    """Return a learner that runs an algorithm, as weights written by hand.

    The algorithm is one of `ALGORITHMS`, or its name with its `parameters`. `tokens` are
    datasets to calibrate on, by default draws from the algorithm's usual task.

    Example:
        >>> import jax
        >>> import algoscope as asc
        >>> learner = asc.build("sgd", dim=2, num_examples=3, dtype="float32")
        >>> learner.name
        'sgd(0.05, 0), compiled'
    """
    construction = Construction(
        find_algorithm(algorithm, parameters),
        dim,
        num_examples,
        dtype,
        activation,
        layer_norm_epsilon,
        pre_norm,
    )
    return construction.compile(tokens).learner(construction.name)


def find_algorithm(algorithm: Algorithm | str, parameters: dict[str, Any]) -> Algorithm:
    """Return an algorithm by its name, with its parameters."""
    if isinstance(algorithm, Algorithm):
        if parameters:
            rule = "be given to the algorithm itself"
            raise InvalidValueError("parameters", rule, ", ".join(parameters))
        return algorithm
    require_choice("algorithm", algorithm, ALGORITHMS)
    kind = ALGORITHMS[algorithm]
    known = inspect.signature(kind).parameters
    for name, value in parameters.items():
        if name not in known:
            rule = f"be left out for {algorithm}"
            has = ", ".join(f"`{each}`" for each in known) or "no parameters"
            raise InvalidValueError(name, rule, value, f"It has {has}.")
    return kind(**parameters)


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
        problem = f"does not say which algorithm it holds ({error!r})"
        raise DamagedFileError(directory / CONFIG, problem) from error


def load_construction(directory: str | Path) -> tuple[InContextLearner, Construction]:
    """Return a saved construction: its learner, and what it is."""
    place = locate(directory)
    construction = read_construction(place)
    return InContextLearner.from_pretrained(place), construction


@dataclass(frozen=True)
class Line:
    """One event: `L3 MLP w2 rows 9..12 = (x2,w1)·(w·x2+y2,seen2) into w1`."""

    layer: int  # from 1
    part: str  # attention or MLP
    register: str
    rows: str
    operation: str

    def __str__(self) -> str:
        where = f"L{self.layer} {self.part:<9}"
        return f"{where} {self.register:<12} rows {self.rows:<9} = {self.operation}"


def listing(arrangement: Arrangement) -> list[Line]:
    """Return what each layer does, in the order in which it happens."""
    events = sorted(arrangement.schedule.layers, key=arrangement.schedule.phase)
    return [
        Line(
            layer=arrangement.schedule.layers[event] + 1,
            part="MLP" if isinstance(event, FeedForwardEvent) else "attention",
            register=event.out.name,
            rows=_ranges(arrangement.allocation.rows[event.out].tolist()),
            operation=_operation(event),
        )
        for event in events
    ]


def _operation(event: Event) -> str:
    if isinstance(event, Read):
        return f"{event.source!r} over K(i)={event.at}"
    if isinstance(event, Attend):
        heads = ", ".join(f"{h.value!r} by {h.query!r}·{h.key!r}" for h in event.heads)
        text = f"softmax over K(i)={event.at}: {heads}"
    elif isinstance(event, Divide):
        return f"{event.value!r} / ‖{event.norm!r}‖"
    else:
        text = f"({event.p!r})·({event.q!r})"
        text += f" / ‖{event.norm!r}‖²" if event.norm is not None else ""
        text += f" + {event.plus!r}" if repr(event.plus) != "0" else ""
    return text + (f" into {event.into.name}" if event.into is not None else "")


def _ranges(rows: list[int]) -> str:
    """Return rows in short.

    Example:
        >>> _ranges([3, 4, 5, 9])
        '3..5,9'
    """
    runs: list[list[int]] = []
    for row in rows:
        if runs and row == runs[-1][-1] + 1:
            runs[-1].append(row)
        else:
            runs.append([row])
    return ",".join(
        str(run[0]) if len(run) == 1 else f"{run[0]}..{run[-1]}" for run in runs
    )
