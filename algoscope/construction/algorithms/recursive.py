"""Second-order learners that take in one example after the other (Theorem 2).

All of them keep a symmetric matrix in the triangle of its entries, so its update takes
half the products.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from algoscope import predictors
from algoscope.construction.algorithms.algorithm import Algorithm, zeros
from algoscope.construction.compiler.numerics import DType
from algoscope.construction.language.matrices import (
    symmetric,
    symmetric_products,
    upper,
)
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, SELF
from algoscope.construction.language.values import Head, Value, constant, join
from algoscope.foundation.validation import InvalidValueError, require_positive


def _times(program: Program, triangle: Value, w: Value, x: Value, name: str) -> Value:
    """Return Px and wᵀx, for a symmetric P, from d(d + 3)/2 products."""
    p, q, mix = symmetric_products(triangle, x)
    whole = np.zeros((x.size + 1, p.size + x.size))
    whole[:-1, : p.size] = mix
    whole[-1, p.size :] = 1
    return program.multiply(join([p, w]), join([q, x]), whole, name=name)


@dataclass(frozen=True)
class RLS(Algorithm):
    """Recursive least squares that forgets: what came before counts β times as much.

    u = Px,  g = u / (βλ + xᵀu),  w ← w + g (y − wᵀx),  P ← (P − guᵀ) / β,  P₀ = I

    P is λA⁻¹ of the paper, so that its entries stay below 1.
    """

    penalty: float = 0.1
    forgetting: float = 0.95
    name: ClassVar[str] = "rls"

    def __post_init__(self):
        require_positive("penalty", self.penalty)
        require_positive("forgetting", self.forgetting)
        if self.forgetting > 1:
            raise InvalidValueError("forgetting", "be at most 1", self.forgetting)

    @property
    def reference(self):
        """The textbook RLS."""
        return predictors.rls(self.forgetting, self.penalty)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return the recursion, four layers per example: u and wᵀx; xᵀu; g; P and w."""
        program = Program(dim, num_examples)
        d, keep = dim, 1 / self.forgetting
        w, matrix = zeros(d), constant(np.eye(d)[np.triu_indices(d)])
        for k in range(num_examples):
            x, y = program.example(k)
            both = _times(program, matrix, w, x, f"u{k + 1}, w·x{k + 1}")
            u, error = both[:d], y - both[d:]
            scale = program.dot(x, u, f"x·u{k + 1}") + self.forgetting * self.penalty
            gain = program.divide(u, scale, f"g{k + 1}")
            p, q = upper(d) @ gain.stretch(d), upper(d) @ u.repeat(d)
            mix = -keep * np.eye(p.size)
            if k + 1 < num_examples:
                if keep != 1:
                    # A column that does not see the example has nothing to forget.
                    p, q = join([p, matrix]), join([q, program.seen(k).repeat(p.size)])
                    mix = np.hstack([mix, (keep - 1) * np.eye(len(mix))])
                matrix = program.multiply(p, q, mix, into=matrix, name=f"P{k + 1}")
            w = program.multiply(gain, error.repeat(d), into=w, name=f"w{k + 1}")
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 4n."""
        return 4 * num_examples

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 4d + 9, and one more for `seen` if it forgets.

        Token, code, pads and reference are d + 7; then P, w, u, wᵀx, x or g, and xᵀu
        or y. Nothing reads P after the last example: two need one row less, and one
        needs no P at all, 3d + 8.
        """
        if num_examples == 1:
            return 3 * dim + 8
        triangle = dim * (dim + 1) // 2
        return triangle + 4 * dim + 8 + (num_examples > 2) + (self.forgetting < 1)


@dataclass(frozen=True)
class Ridge(RLS):
    """Ridge regression by the Sherman-Morrison formula, in the form of a gain.

    Nothing is forgotten: w is (XᵀX + λI)⁻¹XᵀY after every example. For a small λ it is
    compiled in another form, `SquareRootRidge`.
    """

    forgetting: ClassVar[float] = 1.0  # pyright: ignore[reportIncompatibleVariableOverride]
    small: ClassVar[float] = 0.1  # penalties below it take the square root
    name: ClassVar[str] = "ridge"

    @property
    def reference(self):
        """The textbook ridge regression."""
        return predictors.ridge(self.penalty)

    def suited(self, dtype: DType) -> "Ridge":
        """Return the form that is precise with its penalty."""
        return SquareRootRidge(self.penalty) if self.penalty < self.small else self


@dataclass(frozen=True)
class SquareRootRidge(Ridge):
    """Ridge regression that keeps a square root of P = RᵀR, for small penalties.

    P starts as I and shrinks to λ(XᵀX)⁻¹. Products near 1 are off by some eps, and the
    gain divides what is left of that in P by λ. In R it is divided by √λ only.

    v = Rx,  s = λ + ‖v‖²,  ν = 1 + √(λ/s),  t = Rᵀv / ν√s,
    R ← R − vtᵀ/√s,  w ← w + tν (y − wᵀx)/√s,  R₀ = I  (Potter and Stern 1963)
    """

    def suited(self, dtype: DType) -> "Ridge":
        """Return itself."""
        return self

    def examples(
        self,
        dim: int,
        num_examples: int,
        num_datasets: int | None = None,
        seed: int = 0,
    ) -> Float[np.ndarray, "datasets time token"]:
        """Return datasets; of those to calibrate on, half lack half of the examples.

        R then stays large for longer, as with inputs that are repeated or zero.
        """
        usual = super().examples(dim, num_examples, num_datasets, seed)
        if num_datasets is not None:
            return usual
        fewer = usual.copy()
        dropped = np.random.default_rng(seed).random((len(usual), num_examples)) < 0.5
        fewer[:, :-1] *= np.where(dropped, 0, 1).repeat(2, axis=1)[..., None]
        return np.concatenate([usual, fewer])

    def program(self, dim: int, num_examples: int) -> Program:
        """Return four layers per example: v and wᵀx; both over √s and s; t; R and w.

        The third divides products by ν², so one of their factors has ν already.
        """
        program = Program(dim, num_examples)
        d, root = dim, np.sqrt(self.penalty)
        one = program.position("1", np.ones((program.time, 1)))
        w, factor = zeros(d), constant(np.eye(d).ravel())
        for k in range(num_examples):
            x, y = program.example(k)
            both = program.apply(join([factor, w]), x, name=f"v{k + 1}, w·x{k + 1}")
            v, error = both[:d], y - both[d:]
            norm, parts = join([constant(root), v]), join([v, error])
            short = program.divide(join([parts, one]), norm, f"v{k + 1}/√s")
            shorter = program.multiply(
                parts, one.repeat(d + 1), norm=norm, name=f"v{k + 1}/s"
            )
            v, more = short[:d], short[:-1] + root * shorter  # more = ν (v, error)/√s
            scale = 1 + root * short[-1:]
            name = f"t{k + 1}"
            if k == 0:  # R is the identity
                gain = program.divide(v, scale, name)
            else:
                sums = np.kron(np.ones((1, d)), np.eye(d))
                gain = program.multiply(
                    factor, more[:d].stretch(d), sums, norm=scale, name=name
                )
            if k + 1 < num_examples:
                p, q = v.stretch(d), gain.repeat(d)
                mix = -np.eye(d * d)
                factor = program.multiply(p, q, mix, into=factor, name=f"R{k + 1}")
            w = program.multiply(gain, more[d:].repeat(d), into=w, name=f"w{k + 1}")
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d² + 7d + 13, and 7d + 10 for one example: it needs no R.

        Token, code, pads for the norm's d + 1 components and reference are 3d + 7; then
        R and w; 1; v and error over √s, and over s; t or x. For d = 1 y takes a row.
        """
        if num_examples == 1:
            return max(7 * dim + 10, 18)
        return dim**2 + 7 * dim + 13


@dataclass(frozen=True)
class OneExampleRidge(Algorithm):
    """Ridge regression on one example, w = xy / (λ + ‖x‖²), in two layers.

    LayerNorm of (√λ, x) is the Sherman-Morrison denominator: O(d) rows, not O(d²).
    """

    penalty: float = 0.1
    name: ClassVar[str] = "ridge_one"

    def __post_init__(self):
        require_positive("penalty", self.penalty)

    @property
    def reference(self):
        """The textbook ridge regression."""
        return predictors.ridge(self.penalty)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return Theorem 2 in two layers."""
        if num_examples != 1:
            remedy = "For more examples use ridge."
            raise InvalidValueError("num_examples", "be 1", num_examples, remedy)
        program = Program(dim, num_examples)
        x = program.read(program.x, PREVIOUS, "x1")
        norm = join([constant(np.sqrt(self.penalty)), x])
        w = program.multiply(x, program.y.repeat(dim), norm=norm, name="w1")
        learned = program.read(w, PREVIOUS, "w")
        program.predict(program.dot(learned, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2."""
        return 2

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 5d + 7.

        Token, code and reference are d + 5, pads 2d + 2 for the norm's d + 1
        components; then x and w.
        """
        return 5 * dim + 7


@dataclass(frozen=True)
class MinimumNorm(Algorithm):
    """Least squares of minimum norm by Greville's recursion, for n ≤ d.

    An example that depends on those before it has no residual u, up to rounding. It
    adds nothing where its label follows from theirs. Where it does not, least squares
    would have to average: the learner then divides by zero, and warns.
    """

    name: ClassVar[str] = "ols"
    num_calibration: ClassVar[int | None] = 32
    smallest: ClassVar[float] = 2.0**-18  # ‖u‖ that counts as a residual
    agreement: ClassVar[float] = 2.0**-36  # |y − wᵀx| up to which a label follows
    sharpness: ClassVar[float] = 2.0**42  # β of thresholds σ(βa)

    @property
    def reference(self):
        """The textbook OLS."""
        return predictors.ols

    def suited(self, dtype: DType) -> "MinimumNorm":
        """Return it with wider thresholds for float32."""
        return NarrowMinimumNorm() if dtype == "float32" else self

    def program(self, dim: int, num_examples: int) -> Program:
        """Return u = Qx, w ← w + u (y − wᵀx)/‖u‖², Q ← Q − uuᵀ/‖u‖²: 4n + 1 layers.

        Q projects on the directions not seen yet. Where ‖u‖² is below the threshold the
        norm is that of (u, 1), so that nothing is added; this includes columns that do
        not see the example.
        """
        if num_examples > dim:
            remedy = "For more examples use ridge with a small penalty."
            rule = f"be at most `dim`, which is {dim}"
            raise InvalidValueError("num_examples", rule, num_examples, remedy)
        program = Program(dim, num_examples)
        d = dim
        w, unseen = zeros(d), constant(np.eye(d)[np.triu_indices(d)])
        for k in range(num_examples):
            x, y = program.example(k)
            whole = symmetric(d) @ unseen
            both = program.apply(join([whole, w]), x, name=f"u{k + 1}, w·x{k + 1}")
            u, error = both[:d], y - both[d:]
            none = self._adds_nothing(program, u, error, k)
            norm = join([u, none])
            w = program.multiply(
                u, error.repeat(d), into=w, norm=norm, name=f"w{k + 1}"
            )
            if k + 1 < num_examples:
                unseen = program.multiply(
                    upper(d) @ u.stretch(d),
                    upper(d) @ u.repeat(d),
                    -np.eye(d * (d + 1) // 2),
                    into=unseen,
                    norm=norm,
                    name=f"Q{k + 1}",
                )
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def _adds_nothing(self, program: Program, u: Value, error: Value, k: int) -> Value:
        """Return 1 where ‖u‖² is below its threshold and the label follows, else 0."""
        one, sharp = constant(1.0), self.sharpness
        off = [
            Head(sharp * (sign * error - self.agreement), one, one)
            for sign in (1.0, -1.0)
        ]
        contradicts = program.attend(off, SELF, name=f"contradicts{k + 1}")
        square = program.dot(u, u, f"‖u{k + 1}‖²")
        score = sharp * (self.smallest**2 - square) - 64 * sharp * contradicts
        return program.attend([Head(score, one, one)], SELF, name=f"nothing{k + 1}")

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 4n + 1."""
        return 4 * num_examples + 1

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return d(d + 1)/2 + 6d + 2n + 7, and 5d + 8 for one example: it needs no Q.

        Token, pads and reference are 3d + 4, pads for the norm's d + 1 components; the
        one-hot code is 2n + 1; then Q, w, x, u and wᵀx. For d = 1 the flags take more.
        """
        if num_examples == 1:
            return max(5 * dim + 8, 4 * dim + 10)
        return dim * (dim + 1) // 2 + 6 * dim + 2 * num_examples + 7


@dataclass(frozen=True)
class NarrowMinimumNorm(MinimumNorm):
    """Least squares of minimum norm with the thresholds of float32."""

    smallest: ClassVar[float] = 2.0**-7
    agreement: ClassVar[float] = 2.0**-13
    sharpness: ClassVar[float] = 2.0**20
