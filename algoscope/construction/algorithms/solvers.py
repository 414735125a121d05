"""Solvers that divide: Newton-Schulz inversion and conjugate gradients."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from algoscope import predictors
from algoscope.construction.algorithms.algorithm import Algorithm, zeros
from algoscope.construction.language.matrices import (
    symmetric,
    times_symmetric,
    triangle_moments,
)
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
        """Return 2K + 2 layers: means, S², M₀ with SM₀, then steps and the prediction.

        M₀, S and all M commute, so every product of two of them is symmetric. The last
        step makes no matrix, xᵀ(2M − MSM)b is Mx · (2b − SMb), nor does the one before
        it, where Mx is (2I − SM′)M′x.
        """
        program, d = Program(dim, num_examples), dim
        gram, moment = triangle_moments(program, mean=True)
        square = _symmetric_product(program, gram, gram, name="S²")
        # The Frobenius norm counts entries off the diagonal twice. Where there are no
        # examples it is zero: divide by one instead.
        weight = np.where(np.equal(*np.triu_indices(d)), 1, np.sqrt(2))
        any_seen = program.read(constant(1.0), Labels(), "seen")
        norm = join([np.diag(weight) @ square, 1 - any_seen])
        both = square if self.steps else square[:0]
        start = program.divide(join([gram, both]), norm, "M0, SM0")
        inverse, both = start[: gram.size], start[gram.size :]
        for k in range(self.steps - 2):
            if k:
                both = _symmetric_product(program, gram, inverse, name=f"SM{k}")
            inverse = _symmetric_product(
                program, inverse, both, -1.0, plus=2 * inverse, name=f"M{k + 1}"
            )
        program.predict(self._prediction(program, gram, moment, inverse, both))
        return program

    def _prediction(
        self, program: Program, gram: Value, moment: Value, inverse: Value, both: Value
    ) -> Value:
        """Return xᵀMb of the last M, from the one two steps before."""
        x, steps = program.x, self.steps

        def times(matrix: Value, vector: Value, **options: Any) -> Value:
            return times_symmetric(program, matrix, vector, **options)

        if steps == 0:
            return program.dot(times(inverse, moment, name="w"), x, "prediction")
        mx, mb = times(inverse, x, name="Mx"), times(inverse, moment, name="Mb")
        if steps == 1:
            rest = 2 * moment - times(both, moment, name="SMb")
            return program.dot(mx, rest, "prediction")
        if steps > 2:
            both = _symmetric_product(program, gram, inverse, name=f"SM{steps - 2}")
        mx = times(both, mx, scale=-1.0, plus=2 * mx, name="M′x")
        mb = times(both, mb, scale=-1.0, plus=2 * mb, name="M′b")
        rest = 2 * moment - times(gram, mb, name="SM′b")
        return program.dot(mx, rest, "prediction")

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2K + 2, and 5, 5, 7 for K < 3."""
        return max(2 * self.steps + 2, 5) + (self.steps == 2)

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 6t + 2d + 8 for t = d(d + 1)/2, and 4t + 3d + 7 without steps.

        Token, code and reference are d + 5, pads 2t + 2 for the norm's t + 1
        components; then S, b, S², M₀ and SM₀, and `seen`. With two steps and d < 5 the
        last layers are wider. Without steps: S, b, S² or M₀, and w.
        """
        d, t = dim, dim * (dim + 1) // 2
        if not self.steps:
            return 4 * t + 3 * d + 7
        return max(6 * t + 2 * d + 8, 5 * t + 5 * d + 6 if self.steps == 2 else 0)


@dataclass(frozen=True)
class ConjugateGradients(Algorithm):
    """Conjugate gradients on the means of a prefix, K steps along unit vectors.

    Products have an error that is the same for small operands as for large ones. So
    directions are normalized, in a layer of their own: with d = 8 and three steps, this
    is 3e-12 from the textbook instead of 2e-5.
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
        """Return 7K − 1 layers.

        v/‖v‖; Sv; vᵀSv and vᵀr; the length vᵀr/vᵀSv; w and r; rᵀSv; v. The turn
        rᵀSv/vᵀSv times v is rᵀSv times v/vᵀSv, which comes with the length. After
        min(n, d) steps n examples are solved, and the rest is rounding. So divisors c
        are replaced by √(c² + f²), the norm of two numbers: f is 1 for what is solved,
        where quotients have to be small, and else `floor`. The last step needs no w:
        what it adds to the prediction is the length times xᵀv.
        """
        program = Program(dim, num_examples)
        gram, moment = triangle_moments(program, mean=True)
        d, whole = dim, symmetric(dim) @ gram
        rank = np.minimum((np.arange(program.time) + 1) // 2, d)
        w, rest, v = zeros(d), moment, moment
        for k in range(self.steps):
            last = k + 1 == self.steps
            solved = np.where(rank <= k, 1, self.floor)
            floor = program.position(f"f{k}", solved[:, None])
            v = program.divide(v, join([v, floor]), f"v{k}/‖v{k}‖")
            moved = program.apply(whole, v, name=f"Sv{k}")
            rows, name = [moved, rest], f"v·Sv{k}, v·r{k}"
            if last:
                rows, name = [*rows, program.x], f"{name}, x·v{k}"
            products = program.apply(join(rows), v, name=name)
            divided = program.divide(
                join([products[1:2], *([] if last else [v])]),
                join([products[:1], floor]),
                f"length{k}" if last else f"length{k}, v/v·Sv",
            )
            length, shorter = divided[:1], divided[1:]
            if last:
                before = program.dot(w, program.x, f"x·w{k}") if k else constant(0.0)
                program.predict(
                    program.multiply(
                        length, products[2:], plus=before, name="prediction"
                    )
                )
                break
            w = program.multiply(v, length.repeat(d), into=w, name=f"w{k + 1}")
            # b is still needed where it is: its neighbour S is in use.
            old = {"into": rest} if k else {"plus": rest}
            rest = program.multiply(
                moved, length.repeat(d), -np.eye(d), **old, name=f"r{k + 1}"
            )
            across = program.dot(rest, moved, f"r{k + 1}·Sv{k}")
            v = program.multiply(
                shorter, across.repeat(d), -np.eye(d), plus=rest, name=f"v{k + 1}"
            )
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 7K − 1."""
        return 7 * self.steps - 1

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 9d + K + 8, and d(d + 1)/2 + 6d + 11 for one step.

        Token, code and reference are d + 5, pads 2d + 2 for the norm's d + 1
        components; then S, b, v, Sv, vᵀSv, vᵀr and K floors. From the second step on, w
        and r are there as well, and the length and v/vᵀSv; a single step has xᵀv
        instead. Two steps need one row less, unless d = 1.
        """
        triangle = dim * (dim + 1) // 2
        if self.steps == 1:
            return triangle + 6 * dim + 11
        return triangle + 9 * dim + 8 + self.steps - (self.steps == 2 and dim > 1)
