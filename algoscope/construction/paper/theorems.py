"""The chains of Theorems 1 and 2, line by line as in appendices A and B.

`sgd_chain` and `ridge_chain` repeat them for any number of examples.
"""

import numpy as np
from jaxtyping import Float

from algoscope.construction.paper.chain import Chain
from algoscope.construction.paper.primitives import Aff, Div, Mul
from algoscope.construction.paper.raw import Mov
from algoscope.foundation.validation import (
    require_at_least,
    require_not_negative,
    require_positive,
)


def theorem_1(
    dim: int, w: Float[np.ndarray, " dim"], learning_rate: float, penalty: float = 0.0
) -> Chain:
    """Return w′ᵀx₂ for w′ = w − 2α(x₁(wᵀx₁ − y₁) + λw), in 9 layers (appendix A).

    Erratum 16: in the paper the prediction overwrites a row of g; here it has its own.
    """
    require_not_negative("learning_rate", learning_rate)
    require_not_negative("penalty", penalty)
    registers = {
        "y": 1,
        "x": dim,
        "wx": 1,
        "e": 1,
        "xe": dim,
        "w": dim,
        "g": dim,
        "prediction": 1,
    }
    return Chain(
        dim,
        1,
        registers,
        [
            ("move x", Mov(0, 1, "x", "x")),
            ("wᵀx", Aff("x", None, "wx", w_1=w[None])),
            ("wᵀx − y", Aff("wx", "y", "e", w_2=-1.0)),
            ("x(wᵀx − y)", Mul(dim, 1, 1, "x", "e", "xe")),
            ("write w", Aff(None, None, "w", b=w)),
            # Errata 13, 14: +λ, where the paper has −λ and −2λ.
            ("x(wᵀx − y) + λw", Aff("xe", "w", "g", w_2=penalty)),
            ("w′", Aff("w", "g", "w", w_2=-2 * learning_rate)),
            ("move w′", Mov(1, 2, "w", "w")),
            ("w′ᵀx₂", Mul(1, dim, 1, "w", "x", "prediction")),
        ],
    )


def sgd_chain(
    dim: int,
    num_examples: int,
    w: Float[np.ndarray, " dim"],
    learning_rate: float,
    penalty: float = 0.0,
) -> Chain:
    """Return one pass of SGD, in 8n + 1 layers (appendix A, "multiple steps").

    Erratum 18: from the second step on, w is in a register, so that wᵀx is a mul, and
    w′ has to be moved on from the column of x to that of y. Erratum 17: +λw′.
    """
    require_at_least("num_examples", num_examples, 1)
    first = theorem_1(dim, w, learning_rate, penalty)
    *one_step, prediction = first.lines
    lines = list(one_step)
    for k in range(1, num_examples):
        x, y = 2 * k, 2 * k + 1
        lines += [
            (f"move x{k + 1}", Mov(x, y, "x", "x")),
            (f"move w{k}", Mov(x, y, "w", "w")),
            ("wᵀx", Mul(1, dim, 1, "w", "x", "wx")),
            *one_step[2:4],
            *one_step[5:7],
            (f"move w{k + 1}", Mov(y, y + 1, "w", "w")),
        ]
    return Chain(dim, num_examples, first.registers, [*lines, prediction])


def theorem_2(dim: int, penalty: float) -> Chain:
    """Return w′ᵀx₂ for w′ = (λI + x₁x₁ᵀ)⁻¹x₁y₁, in 14 layers (appendix B)."""
    require_positive("penalty", penalty)
    d = dim
    registers = {
        "y": 1,
        "x": d,
        "xy": d,
        "A": d * d,
        "Au": d,
        "vA": d,
        "AuvA": d * d,
        "c": 1,
        "right": d * d,
        "w": d,
        "prediction": 1,
    }
    lines = [
        ("move x₁", Mov(0, 1, "x", "x")),
        ("x₁y", Mul(d, 1, 1, "x", "y", "xy")),  # erratum 20: of use for n > 1 only
        ("A₀⁻¹ = I/λ", Aff(None, None, "A", b=np.eye(d).ravel() / penalty)),
        ("A₀⁻¹u", Mul(d, d, 1, "A", "x", "Au")),
        ("vᵀA₀⁻¹", Mul(1, d, d, "x", "A", "vA")),
        ("A₀⁻¹uvᵀA₀⁻¹", Mul(d, 1, d, "Au", "vA", "AuvA")),
        ("vᵀA₀⁻¹u", Mul(1, d, 1, "vA", "x", "c")),
        ("1 + vᵀA₀⁻¹u", Aff("c", None, "c", b=np.ones(1))),
        ("right term", Div("AuvA", "c", "right")),
        ("A₁⁻¹", Aff("A", "right", "A", w_2=-1.0)),
        ("A₁⁻¹x₁", Mul(d, d, 1, "A", "x", "w")),
        ("A₁⁻¹x₁y₁", Mul(d, 1, 1, "w", "y", "w")),
        ("move w′", Mov(1, 2, "w", "w")),
        ("w′ᵀx₂", Mul(1, d, 1, "w", "x", "prediction")),  # erratum 21: not (d, 1, 1)
    ]
    return Chain(dim, 1, registers, lines)


def ridge_chain(dim: int, num_examples: int, penalty: float) -> Chain:
    """Return w′ᵀx for w′ = (λI + Σxxᵀ)⁻¹Σxy, in 14n + 1 layers (appendix B, repeated).

    Erratum 22: A⁻¹ and b = Σxy have to be moved to the column of the next label.
    """
    require_at_least("num_examples", num_examples, 1)
    first = theorem_2(dim, penalty)
    (_, xy, start, *update) = first.lines[:10]
    lines = []
    for k in range(num_examples):
        x, y = 2 * k, 2 * k + 1
        lines += [(f"move x{k + 1}", Mov(x, y, "x", "x")), xy]
        if k == 0:
            lines += [start, ("b₀ = 0", Aff(None, None, "b"))]
        else:
            lines += [
                (f"move A{k}⁻¹", Mov(y - 2, y, "A", "A")),
                (f"move b{k}", Mov(y - 2, y, "b", "b")),
            ]
        lines += [
            ("b + xy", Aff("b", "xy", "b")),
            *update,
            ("A⁻¹b", Mul(dim, dim, 1, "A", "b", "w")),
            ("move w′", Mov(y, y + 1, "w", "w")),
        ]
    registers = {**first.registers, "b": dim}
    return Chain(dim, num_examples, registers, [*lines, first.lines[-1]])
