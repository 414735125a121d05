"""Solvers on the statistics of a prefix: XᵀX and XᵀY, then steps of any method.

Every label column computes xxᵀ and xy, one head averages them over all labels so far,
and each column solves its own problem. Depth does not depend on n.
"""

from dataclasses import dataclass
from typing import ClassVar

from algoscope import predictors
from algoscope.construction.algorithms.algorithm import Algorithm, zeros
from algoscope.construction.language.matrices import symmetric, triangle_moments
from algoscope.construction.language.program import Program
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_not_negative,
    require_positive,
)


def _width(dim: int, num_weights: int, *, counts: bool) -> int:
    """Return the rows of token, code, pads, reference, S, b and the weights.

    The layer of the means has x in the place of weights, and n − 1 beside it.
    """
    before = dim * (dim + 1) // 2 + 2 * dim + 7
    return before + max(num_weights * dim, dim + counts)


@dataclass(frozen=True)
class GD(Algorithm):
    """Batch gradient descent: w ← w − 2α (Sw − b + λw), from 0, K times."""

    learning_rate: float = 0.01
    steps: int = 8
    penalty: float = 0.0
    name: ClassVar[str] = "gd"

    def __post_init__(self):
        require_positive("learning_rate", self.learning_rate)
        require_not_negative("penalty", self.penalty)
        require_at_least("steps", self.steps, 1)

    @property
    def reference(self):
        """The textbook gradient descent."""
        return predictors.gd(self.learning_rate, self.steps, self.penalty)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return K + 2 layers; the first step, from 0, is 2αb and takes none."""
        program = Program(dim, num_examples)
        triangle, moment = triangle_moments(program, mean=False)
        gram = symmetric(dim) @ triangle
        rate = 2 * self.learning_rate
        w = zeros(dim)
        for k in range(self.steps):
            plus = (1 - rate * self.penalty) * w + rate * moment
            w = program.apply(gram, w, -rate, plus=plus, name=f"w{k + 1}")
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return K + 2."""
        return self.steps + 2

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 4d + 7.

        Token, code, pads and reference are d + 7; then S, b and two weights, the old
        and the new. Up to two steps, the layer before is the widest, which holds
        xxᵀ, xy, x and n − 1: d(d + 1)/2 + 3d + 8.
        """
        return _width(dim, num_weights=1 if self.steps < 3 else 2, counts=True)


@dataclass(frozen=True)
class HeavyBall(Algorithm):
    """Gradient descent with momentum: v ← βv − 2α (Sw − b), w ← w + v."""

    learning_rate: float = 0.01
    momentum: float = 0.5
    steps: int = 8
    name: ClassVar[str] = "heavy_ball"

    def __post_init__(self):
        require_positive("learning_rate", self.learning_rate)
        require_not_negative("momentum", self.momentum)
        if self.momentum >= 1:
            raise InvalidValueError("momentum", "be below 1", self.momentum)
        require_at_least("steps", self.steps, 1)

    @property
    def reference(self):
        """The textbook heavy ball."""
        return predictors.heavy_ball(self.learning_rate, self.momentum, self.steps)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return K + 2 layers. v is the difference of the last two weights."""
        program = Program(dim, num_examples)
        triangle, moment = triangle_moments(program, mean=False)
        gram = symmetric(dim) @ triangle
        rate = 2 * self.learning_rate
        before, w = zeros(dim), zeros(dim)
        for k in range(self.steps):
            plus = w + self.momentum * (w - before) + rate * moment
            following = program.apply(gram, w, -rate, plus=plus, name=f"w{k + 1}")
            before, w = w, following
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return K + 2."""
        return self.steps + 2

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 5d + 7: as `GD`, with three weights from step 4 on."""
        remembered = 3 if self.momentum else 2
        return _width(dim, min(max(self.steps - 1, 1), remembered), counts=True)


@dataclass(frozen=True)
class Chebyshev(Algorithm):
    """The Chebyshev semi-iteration for eigenvalues of XᵀX/n between two bounds."""

    steps: int = 8
    low: float = 0.5
    high: float = 30.0
    name: ClassVar[str] = "chebyshev"

    def __post_init__(self):
        require_at_least("steps", self.steps, 1)
        require_positive("low", self.low)
        require_positive("high", self.high)
        if self.low > self.high:
            rule = f"be at most `high`, which is {self.high}"
            raise InvalidValueError("low", rule, self.low)

    @property
    def reference(self):
        """The textbook Chebyshev semi-iteration."""
        return predictors.chebyshev(self.steps, self.low, self.high)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return K + 1 layers: means are enough, and the first step is b/θ."""
        program = Program(dim, num_examples)
        triangle, moment = triangle_moments(program, mean=True)
        gram = symmetric(dim) @ triangle
        middle, half_square = (
            (self.low + self.high) / 2,
            ((self.high - self.low) / 2) ** 2,
        )
        q = 1 / middle
        before, w = zeros(dim), q * moment
        for k in range(1, self.steps):
            following_q = 1 / (2 * middle - half_square * q)
            memory, rate = q * following_q * half_square, 2 * following_q
            plus = w + memory * (w - before) + rate * moment
            following = program.apply(gram, w, -rate, plus=plus, name=f"w{k + 1}")
            before, w, q = w, following, following_q
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return K + 1."""
        return self.steps + 1

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 5d + 7: as `HeavyBall`, but without n − 1."""
        remembered = 3 if self.low < self.high else 2
        return _width(dim, min(max(self.steps - 1, 1), remembered), counts=False)
