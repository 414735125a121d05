"""Chains of steps as transformers, one layer for each step (paper lemma 1).

`Chain` names the steps of a whole algorithm, runs them exactly and compiles them;
`assemble` writes the layers of any sequence of steps.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.codes import Code, choose_code
from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.compiler.numerics import numerics as default_numerics
from algoscope.construction.compiler.weights import (
    assemble_transformer,
    code_and_pads,
    require_supported,
    stack,
    write_layer,
)
from algoscope.construction.paper.primitives import write_pads
from algoscope.construction.paper.steps import Entry, Layout, Parallel, State, Step
from algoscope.foundation.validation import InvalidValueError, require_at_least
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
