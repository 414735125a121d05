"""Chains of steps as transformers, one layer for each step (paper lemma 1).

`Chain` names the steps of a whole algorithm, runs them exactly and compiles them;
`assemble` writes the layers of any sequence of steps. `theorem_1` and `theorem_2` are
the chains of appendices A and B, line by line; `sgd_chain` and `ridge_chain` repeat
them for any number of examples.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.numerics import numerics as default_numerics
from algoscope.construction.compiler.weights import (
    assemble_transformer,
    code_and_pads,
    require_supported,
    stack,
    write_layer,
)
from algoscope.construction.language.timesteps import Code, choose_code
from algoscope.construction.paper.primitives import Aff, Div, Mul, write_pads
from algoscope.construction.paper.raw import Mov
from algoscope.construction.paper.steps import Entry, Layout, Parallel, State, Step
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_not_negative,
    require_positive,
)
from algoscope.model.layer import TransformerLayer
from algoscope.model.tokens import NumpyTokens, example_tokens
from algoscope.model.transformer import Transformer

# The paper's formulas divide all factors by this, besides the S of `paper_numerics`.
# Tuned at d = 4, n = 1.
PAPER_SCALE = 4.0


@dataclass(frozen=True, eq=False)
class Chain:
    """Primitives over named registers, each with the comment of its line.

    Steps given as a list run in parallel, in one layer. `prediction` is read out.
    """

    dim: int
    num_examples: int
    registers: dict[str, int]
    lines: Sequence[tuple[str, Step | Sequence[Step]]]

    def __post_init__(self):
        require_at_least("dim", self.dim, 1)
        require_at_least("num_examples", self.num_examples, 0)
        layout = Layout(self.registers)
        for name, size in (("y", 1), ("x", self.dim), ("prediction", 1)):
            layout.require_size(name, size, "a chain")
        for step in self.steps:
            step.check(layout)

    @cached_property
    def steps(self) -> tuple[Step, ...]:
        """What each layer does."""
        return tuple(
            step if isinstance(step, Step) else Parallel(tuple(step))
            for _, step in self.lines
        )

    @property
    def labels(self) -> tuple[str, ...]:
        """The comment of each line."""
        return tuple(label for label, _ in self.lines)

    @property
    def time(self) -> int:
        """T = 2n + 1 tokens: the examples and the query."""
        return 2 * self.num_examples + 1

    def exact(self, tokens: NumpyTokens) -> list[State]:
        """Return the registers before the first step and after every one."""
        if tokens.shape[-2:] != (self.time, self.dim + 1):
            rule = f"be {self.time} tokens of size {self.dim + 1}"
            raise InvalidValueError("tokens", rule, f"shape {tokens.shape}")
        layout = Layout(self.registers)
        state = np.zeros((*tokens.shape[:-1], layout.num_rows))
        state[..., layout.rows("y")] = tokens[..., :1]
        state[..., layout.rows("x")] = tokens[..., 1:]
        states = [state]
        with np.errstate(over="ignore", invalid="ignore"):
            for step in self.steps:
                states.append(step.exact(states[-1], layout))
        return states

    @cached_property
    def live(self) -> list[set[Entry]]:
        """What the prediction depends on: before the first step and after every one.

        Steps run in every column; what they compute in other columns is not used.
        """
        live = [{("prediction", self.time - 1)}]
        for step in reversed(self.steps):
            made = {entry for entry in live[-1] if entry[0] in step.writes}
            sources = [step.sources(*entry, self.time) for entry in made]
            live.append((live[-1] - made).union(*sources))
        return live[::-1]

    def predict(self, tokens: NumpyTokens) -> Float[np.ndarray, "*batch"]:
        """Return the exact prediction at the last column."""
        row = Layout(self.registers).start("prediction")
        return self.exact(tokens)[-1][..., -1, row]

    def compile(
        self, numerics: Numerics | None = None, tokens: NumpyTokens | None = None
    ) -> Transformer:
        """Return the transformer that runs the chain, one layer per step.

        Products are precise for factors as large as those that arise on `tokens`, by
        default datasets of the paper's task. The paper's formulas use one scale.
        """
        numerics = numerics or default_numerics()
        if tokens is None:
            tokens = example_tokens(self.dim, self.num_examples)
        states = self.exact(tokens)
        self._require_bounded(states, numerics)
        like = states[:-1]
        if numerics.bypass is not None:
            like = [PAPER_SCALE] * len(self.steps)
        columns = [
            sorted({column for name, column in live if name in step.writes})
            or range(self.time)
            for step, live in zip(self.steps, self.live[1:], strict=True)
        ]
        assembly = assemble(
            self.registers, self.steps, like, self.time, numerics, columns
        )
        layout = assembly.layout
        rows = np.arange(layout.num_rows)
        output = layout.frame.form(1)
        output[:, layout.rows("prediction")] = 1
        return assemble_transformer(
            assembly.layers,
            numerics,
            layout.frame,
            token_rows=np.concatenate([rows[layout.rows(name)] for name in "yx"]),
            positions=assembly.positions,
            output=output,
        )

    def _require_bounded(self, states: list[State], numerics: Numerics) -> None:
        layout = Layout(self.registers)
        for label, state, live in zip(
            ("the token", *self.labels), states, self.live, strict=True
        ):
            for name, column in live:
                numbers = state[..., column, layout.rows(name)]
                numerics.require_bounded(f"register {name} after {label}", numbers)


@dataclass(frozen=True)
class Assembly:
    """Steps as layers, and the parts of the hidden state that they need."""

    layout: Layout
    code: Code
    layers: TransformerLayer
    numerics: Numerics

    @property
    def positions(self) -> Float[np.ndarray, "time hidden"]:
        """The code and the pads, all else zero."""
        return code_and_pads(self.layout.frame, self.code, self.numerics)


def assemble(
    registers: dict[str, int],
    steps: Sequence[Step],
    like: Sequence[State | float],
    time: int,
    numerics: Numerics,
    columns: Sequence[Sequence[int]] | None = None,
) -> Assembly:
    """Return one layer per step.

    `like` holds for each step a state, or a number, that tells how large its factors
    get; `columns` are the columns of that state to look at, by default all.
    """
    require_supported(numerics, divides=any(step.scales_pads for step in steps))
    maps = [each for step in steps for each in step.maps]
    code = choose_code(maps, time, numerics.digits)
    bare = Layout(registers)
    layout = Layout(
        registers,
        scratch_size=max((s.scratch_size(bare, numerics) for s in steps), default=0),
        code_size=code.units.shape[1],
        has_reference=numerics.pads == "reference",
    )
    layers, scaled = [], False
    columns = [range(time)] * len(steps) if columns is None else columns
    for step, state, at in zip(steps, like, columns, strict=True):
        plan = step.plan(layout, numerics, state, at)
        if scaled and not step.scales_pads:
            write_pads(plan, layout, numerics)
        scaled = step.scales_pads
        layers.append(write_layer(plan, layout.frame, code, numerics))
    return Assembly(layout, code, stack(layers, numerics), numerics)


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
