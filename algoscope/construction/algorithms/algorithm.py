"""The base class of the algorithms that come with algoscope, and matrix helpers."""

from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.numerics import DType
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import Value, constant
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.tokens import example_tokens
from algoscope.predictors import Predictor


@dataclass(frozen=True)
class Algorithm:
    """A learning algorithm that can be compiled for any dimension and length."""

    name: ClassVar[str]
    # How many datasets to calibrate on, by default those of `example_tokens`. Few where
    # an algorithm divides by numbers that may be near zero: rare large quotients would
    # make the range too wide for all others.
    num_calibration: ClassVar[int | None] = None

    def program(self, dim: int, num_examples: int) -> Program:
        """Return the program that predicts at every x̃."""
        raise NotImplementedError

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return the depth that it compiles to."""
        raise NotImplementedError

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return the width that it compiles to in float64, everything included.

        In float32, sequences of more than 128 tokens need the one-hot position code:
        a unit per token where otherwise there are three.
        """
        raise NotImplementedError

    @property
    def parameters(self) -> dict[str, Any]:
        """Its parameters by name."""
        return asdict(self)

    @property
    def reference(self) -> Predictor | None:
        """The textbook predictor that it equals, if there is one."""
        return None

    def suited(self, dtype: DType) -> "Algorithm":
        """Return the algorithm with constants that suit a precision."""
        return self

    def examples(
        self,
        dim: int,
        num_examples: int,
        num_datasets: int | None = None,
        seed: int = 0,
    ) -> Float[np.ndarray, "datasets time token"]:
        """Return datasets of its kind, by default those to calibrate it on."""
        num_datasets = num_datasets or self.num_calibration
        return example_tokens(dim, num_examples, num_datasets, seed)


@dataclass(frozen=True, eq=False)
class WrittenAlgorithm(Algorithm):
    """An algorithm of one's own: a program, for one dimension and one length.

    Example:
        >>> program = Program(dim=1, num_examples=2)
        >>> WrittenAlgorithm("mine", program).program(1, 2) is program
        True
    """

    name: str  # pyright: ignore[reportIncompatibleVariableOverride]
    written: Program

    @property
    def parameters(self) -> dict[str, Any]:
        """None: they are part of the program."""
        return {}

    def program(self, dim: int, num_examples: int) -> Program:
        """Return the program, if it was written for this size."""
        size = (self.written.dim, self.written.num_examples)
        if (dim, num_examples) != size:
            rule = f"be d = {size[0]} and n = {size[1]}, which {self.name} is for"
            raise InvalidValueError("size", rule, f"d = {dim}, n = {num_examples}")
        return self.written


def zeros(size: int) -> Value:
    """Return 0: what weights start from."""
    return constant(np.zeros(size))
