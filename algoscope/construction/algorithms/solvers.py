"""Solvers that divide: Newton-Schulz inversion and conjugate gradients."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algoscope import predictors
from algoscope.construction.algorithms.algorithm import Algorithm, symmetric, zeros
from algoscope.construction.algorithms.statistics import mean_moments
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import Labels
from algoscope.construction.language.values import Value, constant, join
from algoscope.foundation.validation import require_at_least, require_positive


def _symmetric_product(
    program: Program, a: Value, b: Value, scale: float = 1.0, **options
) -> Value:
    """Return the triangle of scale · AB, for symmetric A and B that commute."""
    d = int(np.sqrt(2 * a.size))
    rows, columns = np.triu_indices(d)
    whole_a, whole_b = symmetric(d) @ a, symmetric(d) @ b
    pick_row = np.vstack([np.eye(d * d)[i * d : (i + 1) * d] for i in rows])
    pick_column = np.vstack([np.eye(d * d)[j * d : (j + 1) * d] for j in columns])
    sums = scale * np.kron(np.eye(len(rows)), np.ones((1, d)))
    return program.multiply(pick_row @ whole_a, pick_column @ whole_b, sums, **options)


@dataclass(frozen=True)
class Newton(Algorithm):
    """Iterative Newton: M ← 2M − MSM from S/‖S²‖, K times; w = Mb.

    The Frobenius norm is a norm: LayerNorm divides by it.
    """

    steps: int = 8
    name: ClassVar[str] = "newton"
    num_calibration: ClassVar[int | None] = 32

    def __post_init__(self):
        require_at_least("steps", self.steps, 0)

    @property
    def reference(self):
        """The textbook iterative Newton."""
        return predictors.newton(self.steps)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return 2K + 5 layers: means, S², M₀, two per step, w and the prediction.

        M₀, S and all M commute, so every product of two of them is symmetric.
        """
        program = Program(dim, num_examples)
        gram, moment = mean_moments(program)
        square = _symmetric_product(program, gram, gram, name="S²")
        # The Frobenius norm counts entries off the diagonal twice. Where there are no
        # examples it is zero: divide by one instead.
        weight = np.where(np.equal(*np.triu_indices(dim)), 1, np.sqrt(2))
        any_seen = program.read(constant(1.0), Labels(), "seen")
        norm = join([np.diag(weight) @ square, 1 - any_seen])
        inverse = program.divide(gram, norm, "M0")
        for k in range(self.steps):
            both = _symmetric_product(program, gram, inverse, name=f"SM{k}")
            inverse = _symmetric_product(
                program, inverse, both, -1.0, plus=2 * inverse, name=f"M{k + 1}"
            )
        w = program.apply(symmetric(dim) @ inverse, moment, name="w")
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2K + 5."""
        return 2 * self.steps + 5

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 6t + 2d + 7 for t = d(d + 1)/2, and 4t + 3d + 7 without steps.

        Token, code and reference are d + 5, pads 2t + 2 for the norm's t + 1
        components; then S, b, the old M, SM and the new M. Without steps, the first
        layers are the widest: S, b, S² or M₀, and w.
        """
        triangle = dim * (dim + 1) // 2
        return 4 * triangle + 2 * dim + 7 + (2 * triangle if self.steps else dim)


@dataclass(frozen=True)
class ConjugateGradients(Algorithm):
    """Conjugate gradients on the means of a prefix, K steps along unit vectors.

    Products have an error that is the same for small operands as for large ones. So
    directions are normalized, at one layer more per step than the textbook's 7K − 1:
    with d = 8 and three steps, this is 2e-11 from the textbook instead of 2e-5.
    """

    steps: int = 3
    floor: float = 1e-10
    name: ClassVar[str] = "conjugate_gradients"
    num_calibration: ClassVar[int | None] = 32

    def __post_init__(self):
        require_at_least("steps", self.steps, 1)
        require_positive("floor", self.floor)

    @property
    def reference(self):
        """The textbook conjugate gradients."""
        return predictors.conjugate_gradients(self.steps)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return 8K − 1 layers.

        v/‖v‖; Sv; vᵀSv and vᵀr; the length vᵀr/vᵀSv; w and r; rᵀSv; the turn
        rᵀSv/vᵀSv; v. After min(n, d) steps n examples are solved, and the rest is
        rounding. So divisors c are replaced by √(c² + f²), the norm of two numbers: f
        is 1 for what is solved, where quotients have to be small, and else `floor`.
        """
        program = Program(dim, num_examples)
        gram, moment = mean_moments(program)
        d, whole = dim, symmetric(dim) @ gram
        rank = np.minimum((np.arange(program.time) + 1) // 2, d)
        w, rest, v = zeros(d), moment, moment
        for k in range(self.steps):
            solved = np.where(rank <= k, 1, self.floor)
            floor = program.position(f"f{k}", solved[:, None])
            v = program.divide(v, join([v, floor]), f"v{k}/‖v{k}‖")
            moved = program.apply(whole, v, name=f"Sv{k}")
            products = program.apply(join([moved, rest]), v, name=f"v·Sv{k}, v·r{k}")
            divisor = join([products[:1], floor])
            length = program.divide(products[1:], divisor, f"length{k}")
            w = program.multiply(v, length.repeat(d), into=w, name=f"w{k + 1}")
            if k + 1 < self.steps:
                # b is still needed where it is: its neighbour S is in use.
                old = {"into": rest} if k else {"plus": rest}
                rest = program.multiply(
                    moved, length.repeat(d), -np.eye(d), **old, name=f"r{k + 1}"
                )
                across = program.dot(rest, moved, f"r{k + 1}·Sv{k}")
                turn = program.divide(across, divisor, f"turn{k + 1}")
                v = program.multiply(
                    v, turn.repeat(d), -np.eye(d), plus=rest, name=f"v{k + 1}"
                )
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 8K − 1."""
        return 8 * self.steps - 1

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 8d + K + 10, and d(d + 1)/2 + 6d + 10 for one step.

        Token, code and reference are d + 5, pads 2d + 2 for the norm's d + 1
        components; then S, b, v, Sv, vᵀSv, vᵀr and K floors. From the second step on, w
        and r are there as well, and the length beside those of the next step.
        """
        rows = dim * (dim + 1) // 2 + 6 * dim + 9 + self.steps
        return rows + (2 * dim + 1 if self.steps > 1 else 0)
