"""Constructions: learners that run an algorithm, built, saved and loaded.

A saved construction is an ordinary learner with its program beside it, so that it can
be listed, and `trace` can compare what the program means with what the weights compute.
Its config.json names the algorithm and its parameters; one's own algorithm, a learning
rule or a program, is named `written`, and known by its program only.
"""

import inspect
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_args

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.construction.algorithms import ALGORITHMS, Algorithm
from algoscope.construction.algorithms.algorithm import WrittenAlgorithm
from algoscope.construction.compiler.compile import (
    Arrangement,
    Compiled,
    arrange,
    compile_program,
)
from algoscope.construction.compiler.numerics import (
    DType,
    Numerics,
    numerics,
    trainable_numerics,
)
from algoscope.construction.language.interpreter import Tokens
from algoscope.construction.language.notation import as_lines, legend
from algoscope.construction.language.program import Program
from algoscope.construction.language.storage import (
    PROGRAM,
    load_program,
    save_program,
)
from algoscope.construction.language.timesteps import Code, OneHot
from algoscope.foundation.files import DamagedFileError, read_json
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.model import Activation
from algoscope.model.checkpoints import CONFIG, locate
from algoscope.model.learner import InContextLearner

WRITTEN = "written"  # stands for the name of an algorithm that is not in `ALGORITHMS`

TRAINABLE_CALIBRATION = 256  # datasets: rare large numbers would make products coarse

# Activations with σ(0) = 0 and σ(u) − σ(−u) = u: precise products, exact linear maps.
COMPILED_ACTIVATIONS = ("gelu", "gelu_tanh", "silu")


@dataclass(frozen=True)
class Construction:
    """An algorithm to build, the size of its data, and how it computes."""

    algorithm: Algorithm
    dim: int = 4
    num_examples: int = 20
    dtype: DType = "float64"
    activation: Activation = "gelu"
    layer_norm_epsilon: float = 0.0
    pre_norm: bool = False
    trainable: bool = False  # moderate weights, about 1e-2 off: a start for training
    # What was compiled, if it was loaded: another version may write another program.
    saved: Program | None = field(default=None, compare=False, repr=False)

    def __post_init__(self):
        require_choice("dtype", self.dtype, get_args(DType))
        if self.trainable and self.dtype != "float32":
            raise InvalidValueError("dtype", "be float32 to be trained", self.dtype)
        require_choice("activation", self.activation, COMPILED_ACTIVATIONS)

    @property
    def numerics(self) -> Numerics:
        """The numerical constants of its precision."""
        chosen = numerics(self.dtype, self.activation)
        epsilon = self.layer_norm_epsilon
        if self.trainable:
            chosen = trainable_numerics(self.activation)
            epsilon = epsilon or chosen.layer_norm_epsilon
        return replace(chosen, layer_norm_epsilon=epsilon, pre_norm=self.pre_norm)

    @property
    def suited(self) -> Algorithm:
        """The algorithm, with constants that suit the precision."""
        return self.algorithm.suited(self.dtype)

    @property
    def name(self) -> str:
        """For example `sgd(0.05, 0.1), compiled`."""
        if isinstance(self.algorithm, WrittenAlgorithm):
            return f"{self.algorithm.name}, compiled"
        parameters = ", ".join(f"{value:g}" for value in self.parameters.values())
        return f"{self.algorithm.name}({parameters}), compiled"

    @property
    def parameters(self) -> dict[str, Any]:
        """The parameters of the algorithm."""
        return self.algorithm.parameters

    @property
    def program(self) -> Program:
        """The saved program, or the one that this version writes."""
        written = self.suited
        if self.saved is not None:
            written = WrittenAlgorithm(self.algorithm.name, self.saved)
        return written.program(self.dim, self.num_examples)

    def arrange(self) -> Arrangement:
        """Return the program with its layers and rows, without weights."""
        program = self.program
        return arrange(program, self.numerics, self._code(program))

    def compile(self, tokens: Tokens | None = None) -> Compiled:
        """Return the transformer, calibrated on `tokens` or on the usual task."""
        program = self.program
        if tokens is None:
            count = TRAINABLE_CALIBRATION if self.trainable else None
            tokens = self.suited.examples(self.dim, self.num_examples, count)
        code = self._code(program)
        compiled = compile_program(program, self.numerics, tokens=tokens, code=code)
        # Training leaves the range that would be watched, and the weights with it.
        return replace(compiled, operands=None) if self.trainable else compiled

    def _code(self, program: Program) -> Code | None:
        """Return the one-hot code to be trained: scores of the other are too large."""
        return OneHot(program.time) if self.trainable else None

    def as_dict(self) -> dict[str, Any]:
        """Return the plain values that `from_dict` reads."""
        rest = {f.name: getattr(self, f.name) for f in fields(self)[1:] if f.compare}
        name, parameters = self.algorithm.name, self.parameters
        if isinstance(self.algorithm, WrittenAlgorithm):
            name, parameters = WRITTEN, {"name": name}
        return {"algorithm": name, "parameters": parameters, **rest}

    @classmethod
    def from_dict(
        cls, saved: dict[str, Any], program: Program | None = None
    ) -> "Construction":
        """Return the construction that `as_dict` wrote, with the program beside it."""
        rest = dict(saved)
        name, parameters = rest.pop("algorithm"), rest.pop("parameters")
        if name == WRITTEN and program is not None:
            return cls(WrittenAlgorithm(str(parameters["name"]), program), **rest)
        return cls(ALGORITHMS[name](**parameters), **rest, saved=program)


class WrittenLearner(InContextLearner):
    """A learner whose weights were written, with the program that it runs.

    `save_pretrained` writes the program beside the weights. A rule may predict several
    numbers: a call returns the first, `outputs` all of them.
    """

    construction: Construction = eqx.field(static=True, repr=False)
    compiled: Compiled = eqx.field(static=True, repr=False)

    def __init__(self, construction: Construction, compiled: Compiled):
        """Hold the transformer of a compiled program."""
        super().__init__(compiled.transformer, construction.name, compiled.operands)
        self.construction = construction
        self.compiled = compiled

    def outputs(
        self,
        x: Float[Array, "examples dim"],
        y: Float[Array, " examples"],
        query: Float[Array, " dim"],
        /,
    ) -> Float[Array, " outputs"]:
        """Return all numbers that the rule predicts for `query`."""
        learners = (
            self.compiled.learner(self.name, output)
            for output in range(self.compiled.num_outputs)
        )
        return jnp.stack([learner(x, y, query) for learner in learners])

    def save_pretrained(
        self,
        directory: str | Path,
        *,
        card: str | None = None,
        about: dict | None = None,
    ) -> None:
        """Write the learner, its program, and by default a card with the listing."""
        save_construction(
            self.construction, self.compiled, Path(directory), card=card, about=about
        )


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
    trainable: bool = False,
    **parameters: Any,
) -> WrittenLearner:
    """Return a transformer whose weights are written to run a learning algorithm.

    `algorithm` is an instance of one of `ALGORITHMS`, or its name, with its parameters
    as keywords. The learner takes up to `num_examples` examples of `dim` coordinates.
    Operands are calibrated on the datasets `tokens`, by default draws of the
    algorithm's usual task. A `trainable` one has moderate weights, in float32: its
    predictions are about 1e-2 off, and `train` can start from it.

    Example:
        >>> import jax.numpy as jnp
        >>> import algoscope as asc
        >>> learner = asc.build("ridge", 1, 2, penalty=0.5, dtype="float32")
        >>> learner.name
        'ridge(0.5), compiled'
        >>> x, y, query = jnp.array([[2.0]]), jnp.array([1.8]), jnp.array([1.0])
        >>> round(float(learner(x, y, query)), 3)  # xy / (x² + λ)
        0.8
    """
    construction = Construction(
        find_algorithm(algorithm, parameters),
        dim,
        num_examples,
        "float32" if trainable else dtype,
        activation,
        layer_norm_epsilon,
        pre_norm,
        trainable,
    )
    return WrittenLearner(construction, construction.compile(tokens))


def find_algorithm(algorithm: Algorithm | str, parameters: dict[str, Any]) -> Algorithm:
    """Return the algorithm itself, or the one of this name with these parameters."""
    if isinstance(algorithm, Algorithm):
        if parameters:
            rule = "be given to the algorithm itself"
            names = ", ".join(f"`{name}`" for name in parameters)
            raise InvalidValueError("parameters", rule, names)
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


def listing_text(arrangement: Arrangement) -> str:
    """Return what each layer does, line by line, and how to read it.

    Example:
        >>> one_step = Construction(ALGORITHMS["sgd"](), 1, 1).arrange()
        >>> for line in listing_text(one_step).splitlines()[:4]:
        ...     print(line)
        L1 attention x1           rows 8         = x at x₁ for later tokens
        L1 attention y1           rows 9         = y at y₁
        L1 MLP       w1           rows 10        = 0.1 · x1 · y1
        L2 MLP       prediction   rows 8         = w1 · x
    """
    lines = arrangement.listing
    says = {
        "rows": "the rows of the hidden state that hold it, in every token",
    } | legend(line.operation for line in lines)
    return "\n".join([*map(str, lines), "", "How to read it:", as_lines(says)])


def save_construction(
    construction: Construction,
    compiled: Compiled,
    directory: Path,
    *,
    card: str | None = None,
    about: dict[str, Any] | None = None,
) -> None:
    """Write the learner, its construction, and by default a card with the listing."""
    learner = compiled.learner(construction.name)
    about = {"construction": construction.as_dict(), **(about or {})}
    size = f"{compiled.num_layers} layers of width {compiled.hidden_size}"
    card = card or (
        f"# {construction.name}\n\nWeights written by hand: {size}, d = "
        f"{construction.dim}, up to {construction.num_examples} examples, "
        f"{construction.dtype}.\n\n```text\n{listing_text(compiled)}\n```\n"
    )
    save_program(compiled.program, directory / PROGRAM)
    learner.save_pretrained(directory, card=card, about=about)


def read_construction(directory: Path) -> Construction:
    """Return a saved construction, without its weights."""
    saved = read_json(directory / CONFIG).get("construction")
    if saved is None:
        rule = "be a directory that `algoscope build` wrote"
        raise InvalidValueError("directory", rule, f"'{directory}'")
    try:
        program = None
        if saved["algorithm"] == WRITTEN or (directory / PROGRAM).exists():
            program = load_program(directory / PROGRAM)
        return Construction.from_dict(saved, program)
    except DamagedFileError:
        raise
    except (KeyError, TypeError, ValueError) as error:
        problem = f"does not say which algorithm it holds ({error!r})"
        raise DamagedFileError(directory / CONFIG, problem) from error


def load_construction(directory: str | Path) -> tuple[InContextLearner, Construction]:
    """Return the learner and the construction that `save_construction` wrote.

    Example:
        >>> import tempfile
        >>> written = Construction(ALGORITHMS["sgd"](), 1, 1, dtype="float32")
        >>> out = Path(tempfile.mkdtemp())
        >>> save_construction(written, written.compile(), out)
        >>> learner, construction = load_construction(out)
        >>> construction == written
        True
    """
    place = locate(directory)
    construction = read_construction(place)
    return InContextLearner.from_pretrained(place), construction
