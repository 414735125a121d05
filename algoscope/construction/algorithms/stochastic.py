"""One-pass SGD and its relatives: one step on each example in order (Theorem 1).

Three ways to predict at every prefix in one causal pass. Replay: every column runs all
steps whose example it can see. Looped: each column takes its predecessor's weights and
adds its own step; layers repeat. Scan: a step is an affine map of w, and maps compose
in a tree, so depth grows with log n.
"""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from algoscope import predictors
from algoscope.construction.algorithms.algorithm import Algorithm, zeros
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, Earlier
from algoscope.construction.language.values import constant, join
from algoscope.foundation.validation import require_not_negative, require_positive


@dataclass(frozen=True)
class SGD(Algorithm):
    """w ← w − 2α (x (wᵀx − y) + λw) for one example after the other (eq. 11)."""

    learning_rate: float = 0.05
    penalty: float = 0.0
    name: ClassVar[str] = "sgd"

    def __post_init__(self):
        require_positive("learning_rate", self.learning_rate)
        require_not_negative("penalty", self.penalty)

    @property
    def reference(self):
        """The textbook SGD."""
        return predictors.sgd(self.learning_rate, self.penalty)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return the replay: every column keeps weights of its own.

        An example that a column cannot see reads as x = 0, y = 0, seen = 0: no step.
        """
        program = Program(dim, num_examples)
        w, rate = zeros(dim), -2 * self.learning_rate * np.eye(dim)
        for k in range(num_examples):
            x, y = program.example(k)
            error = program.dot(w, x, f"w·x{k + 1}") - y
            p, q, mix = x, error.repeat(dim), rate
            if self.penalty:
                seen = program.seen(k)
                p, q = join([x, w]), join([q, seen.repeat(dim)])
                mix = np.hstack([rate, self.penalty * rate])
            w = program.multiply(p, q, mix, into=w, name=f"w{k + 1}")
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2n."""
        return 2 * num_examples

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 3d + 9: token, code, pads and reference d + 7, x, w, y and wᵀx.

        With a penalty one more, `seen`, which gates the decay. The first step, from
        w = 0, needs neither `seen` nor wᵀx.
        """
        more = num_examples > 1
        return 3 * dim + 8 + more + (more and self.penalty > 0)


@dataclass(frozen=True)
class LoopedSGD(SGD):
    """SGD in sweeps: after the first two layers, one pair of layers is repeated."""

    name: ClassVar[str] = "sgd_looped"

    def program(self, dim: int, num_examples: int) -> Program:
        """Return n sweeps, 2n layers: w(yⱼ) ← one step on (xⱼ, yⱼ) from w(yⱼ₋₁).

        After k sweeps the first k labels hold their weights, and keep them.
        """
        program = Program(dim, num_examples)
        x = program.read(program.x, PREVIOUS, "x")
        w, rate = zeros(dim), -2 * self.learning_rate
        dots, sweeps = [], []
        for _ in range(num_examples):
            w = program.read(w, Earlier(2), "w₋")
            dots.append(program.dot(w, x, "w₋·x"))
            error, decay = dots[-1] - program.y, rate * self.penalty * w
            mix = rate * np.eye(dim)
            w = program.multiply(
                x, error.repeat(dim), mix, into=w, plus=decay, name="w"
            )
            sweeps.append(w)
        program.share_ranges(dots)
        program.share_ranges(sweeps)
        learned = program.read(w, PREVIOUS, "learned")
        program.predict(program.dot(learned, program.x, "prediction"))
        return program

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 3d + 8: token, code, pads and reference d + 7, x, w, and w₋ᵀx.

        The first sweep, from w = 0, does not need w₋ᵀx.
        """
        return 3 * dim + 7 + (num_examples > 1)


@dataclass(frozen=True)
class ScanSGD(SGD):
    """SGD for all prefixes in ⌈log₂ n⌉ + 2 layers."""

    name: ClassVar[str] = "sgd_scan"

    def program(self, dim: int, num_examples: int) -> Program:
        """Return the scan: the step w ↦ (I + D) w + b, composed with ever earlier ones.

        Stage s reads the map of 2ˢ examples before: D ← D + D′ + DD′, b ← b + b′ + Db′.
        Where there is none it reads D′ = 0, b′ = 0: the identity. The register holds
        the d × (d + 1) matrix (D, b) by rows.
        """
        program = Program(dim, num_examples)
        rate, d = 2 * self.learning_rate, dim
        x = program.read(program.x, PREVIOUS, "x")
        step = program.multiply(
            x.stretch(d + 1),
            join([x, program.y]).repeat(d),
            np.diag(np.tile([*[-rate] * d, rate], d)),
            plus=constant(-rate * self.penalty * np.eye(d, d + 1).ravel()),
            name="D,b",
        )
        # (i, j) of D (D′, b′) is the sum over k of the entries (i, k) and (k, j).
        entries = np.eye(step.size)
        i, j, k = np.indices((d, d + 1, d)).reshape(3, -1)
        sums = np.kron(entries, np.ones((1, d)))
        for s in range((num_examples - 1).bit_length()):
            before = program.read(step, Earlier(2 ** (s + 1)), "D′,b′")
            step = program.multiply(
                entries[i * (d + 1) + k] @ step,
                entries[k * (d + 1) + j] @ before,
                sums,
                into=step,
                plus=before,
                name="D,b",
            )
        learned = program.read(step[d :: d + 1], PREVIOUS, "w")
        program.predict(program.dot(learned, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return ⌈log₂ n⌉ + 2."""
        return (num_examples - 1).bit_length() + 2

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 2d² + 3d + 7: token, code, pads and reference d + 7, two maps d² + d.

        Without a second map, that of one example, x takes its place: d² + 3d + 7.
        """
        maps = dim * (dim + 1)
        return dim + 7 + maps + (maps if num_examples > 1 else dim)


@dataclass(frozen=True)
class Kaczmarz(Algorithm):
    """w ← w + α x (y − wᵀx) / ‖x‖²: LayerNorm divides by the norm."""

    learning_rate: float = 1.0
    name: ClassVar[str] = "kaczmarz"
    num_calibration: ClassVar[int | None] = 32

    def __post_init__(self):
        require_positive("learning_rate", self.learning_rate)

    @property
    def reference(self):
        """The textbook Kaczmarz projections."""
        return predictors.kaczmarz(self.learning_rate)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return the replay with normalized steps: 2n layers."""
        program = Program(dim, num_examples)
        w = zeros(dim)
        for k in range(num_examples):
            x, y = program.example(k)
            error = y - program.dot(w, x, f"w·x{k + 1}")
            rate = self.learning_rate * np.eye(dim)
            # Where the example is not seen, x is zero: divide by one instead.
            norm = join([x, 1 - program.seen(k)])
            w = program.multiply(
                x, error.repeat(dim), rate, into=w, norm=norm, name=f"w{k + 1}"
            )
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2n."""
        return 2 * num_examples

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 5d + 10, and 5d + 9 for one step, from w = 0, which needs no wᵀx.

        Token, code and reference are d + 5, pads 2d + 2 for the norm's d + 1
        components; then x, w, y, `seen` and wᵀx.
        """
        return 5 * dim + 9 + (num_examples > 1)
