"""Learners whose work attention does: kernels, and gradients from a softmax."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from jaxtyping import Float

from algoscope import predictors
from algoscope.construction.algorithms.algorithm import Algorithm, zeros
from algoscope.construction.compiler.numerics import DType
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, SELF, Labels
from algoscope.construction.language.values import Head, Value, constant, join
from algoscope.foundation.validation import require_at_least, require_positive
from algoscope.model.tokens import example_tokens

ONE = constant(1.0)


@dataclass(frozen=True)
class NadarayaWatson(Algorithm):
    """Kernel regression: softmax over the examples of −‖x − xⱼ‖²/2h², in two layers."""

    bandwidth: float = 1.0
    name: ClassVar[str] = "nadaraya_watson"

    def __post_init__(self):
        require_positive("bandwidth", self.bandwidth)

    @property
    def reference(self):
        """The textbook kernel regression."""
        return predictors.nadaraya_watson(self.bandwidth)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return one layer for ‖xⱼ‖², one for the softmax.

        −‖x − xⱼ‖²/2h² is xᵀxⱼ/h² − ‖xⱼ‖²/2h² up to a term that softmax cancels. A
        constant lifts all scores far above the imaginary zero, so that it takes no
        weight.
        """
        program = Program(dim, num_examples)
        inverse = 1 / self.bandwidth**2
        x = program.read(program.x, PREVIOUS, "xⱼ")
        square = program.dot(x, x, "‖xⱼ‖²")
        lift = 60 + 8 * dim * inverse
        head = Head(
            query=join([inverse * program.x, ONE]),
            key=join([x, -inverse / 2 * square + lift]),
            value=program.y,
        )
        program.predict(program.attend([head], Labels(), name="prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2."""
        return 2

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 2d + 2n + 6.

        Token, pads and reference are d + 4, the one-hot code 2n + 1; then xⱼ and ‖xⱼ‖².
        """
        return 2 * dim + 2 * num_examples + 6


@dataclass(frozen=True)
class AttentionGD(Algorithm):
    """Batch gradient descent inside attention: one layer per step, O(d) rows.

    With scores ±e/S − B, e = wᵀxⱼ − yⱼ, far below the imaginary zero, softmax is e⁻ᴮ
    times exp(±e/S), and the difference of two heads 2e⁻ᴮ sinh(e/S). A second pair at 2S
    removes the cubic term: what is left is off by (e/S)⁴/30.
    """

    learning_rate: float = 0.01
    steps: int = 8
    scale: float = 2.0**12
    name: ClassVar[str] = "gd_attention"

    def __post_init__(self):
        require_positive("learning_rate", self.learning_rate)
        require_at_least("steps", self.steps, 1)
        require_positive("scale", self.scale)

    @property
    def reference(self):
        """The textbook gradient descent."""
        return predictors.gd(self.learning_rate, self.steps)

    def suited(self, dtype: DType) -> "AttentionGD":
        """Return it with a smaller scale for float32, where differences lose more."""
        narrow = dtype == "float32" and self.scale == AttentionGD.scale
        return replace(self, scale=2.0**6) if narrow else self

    def program(self, dim: int, num_examples: int) -> Program:
        """Return K + 1 layers."""
        program = Program(dim, num_examples)
        x = program.read(program.x, PREVIOUS, "xⱼ")
        w = program.zeros("w0", dim)
        depth = 40.0
        # s sinh(e/s) = e + e³/6s² + …: (4·(2S's) − S's)/3 has no cubic term.
        shares = ((self.scale, -1 / 3), (2 * self.scale, 4 / 3))
        for k in range(self.steps):
            heads = [
                Head(
                    query=join([sign / scale * w, constant([sign / scale, 1])]),
                    key=join([x, -program.y, constant(-depth)]),
                    value=-sign
                    * share
                    * scale
                    * self.learning_rate
                    * math.exp(depth)
                    * x,
                )
                for scale, share in shares
                for sign in (1.0, -1.0)
            ]
            w = program.attend(heads, Labels(), into=w, name=f"w{k + 1}")
        program.predict(program.dot(w, program.x, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return K + 1."""
        return self.steps + 1

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 3d + 2n + 5.

        Token, pads and reference are d + 4, the one-hot code 2n + 1; then xⱼ and w.
        """
        return 3 * dim + 2 * num_examples + 5


@dataclass(frozen=True)
class LogisticSGD(Algorithm):
    """One-pass logistic regression on labels 0 and 1: w ← w + αx (y − σ(wᵀx)).

    The logistic function is exact: a head that sees its own column with score z and the
    imaginary zero gives it the weight σ(z).
    """

    learning_rate: float = 0.5
    name: ClassVar[str] = "logistic_sgd"

    def __post_init__(self):
        require_positive("learning_rate", self.learning_rate)

    def program(self, dim: int, num_examples: int) -> Program:
        """Return 2n + 1 layers; the prediction is the probability of the label 1."""
        program = Program(dim, num_examples)
        w, rate = zeros(dim), self.learning_rate * np.eye(dim)
        half = constant(0.5)
        for k in range(num_examples):
            x, y = program.example(k)
            logit = program.dot(w, x, f"z{k + 1}")
            chance = _logistic(program, logit, f"σ{k + 1}") if k else half
            error = (y - chance).repeat(dim)
            w = program.multiply(x, error, rate, into=w, name=f"w{k + 1}")
        logit = program.dot(w, program.x, "z")
        program.predict(_logistic(program, logit, "prediction"))
        return program

    def num_layers(self, dim: int, num_examples: int) -> int:
        """Return 2n + 1."""
        return 2 * num_examples + 1

    def hidden_size(self, dim: int, num_examples: int) -> int:
        """Return 3d + 2n + 7, and 3d + 8 for one step, from w = 0, which needs no wᵀx.

        Token, pads and reference are d + 4, the one-hot code 2n + 1; then x, w, wᵀx or
        its σ, and y.
        """
        return 3 * dim + 2 * num_examples + 6 + (num_examples > 1)

    def examples(
        self,
        dim: int,
        num_examples: int,
        num_datasets: int | None = None,
        seed: int = 0,
    ) -> Float[np.ndarray, "datasets time token"]:
        """Return datasets with the labels 0 and 1."""
        tokens = example_tokens(dim, num_examples, num_datasets, seed)
        tokens[:, 1::2, 0] = tokens[:, 1::2, 0] > 0
        return tokens


def _logistic(program: Program, logit: Value, name: str) -> Value:
    return program.attend([Head(logit, ONE, ONE)], SELF, name=name)
