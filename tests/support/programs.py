"""Random programs, and a check of what they compile to against the interpreter."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from hypothesis import settings
from hypothesis import strategies as st
from support.forward import hidden_states

from algoscope.construction.compiler.compile import Compiled, compile_program
from algoscope.construction.compiler.numerics import Numerics, numerics
from algoscope.construction.language.expressions import form_of
from algoscope.construction.language.interpreter import interpret
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import (
    PREVIOUS,
    SELF,
    Code,
    Earlier,
    Labels,
    Sets,
    Single,
    Timesteps,
)
from algoscope.construction.language.values import Head, Value, constant, join
from algoscope.model.tokens import example_tokens

WIDE, NARROW = numerics("float64"), numerics("float32")
ONE = constant(1.0)
# Largest error of any register over the largest register. Of 1500 programs the worst
# had 2e-13 and 5e-6, but for one whose softmax of large scores had 1e-4 in float32.
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}

law = settings(max_examples=60)
brief = settings(max_examples=25)


def make_tokens(dim: int, num_examples: int, seed: int = 0) -> np.ndarray:
    """Return two datasets between −1 and 1."""
    tokens = example_tokens(dim, num_examples, 2, seed)
    return np.tanh(tokens)


@dataclass
class Builder:
    """Makes valid programs at random."""

    program: Program
    rng: np.random.Generator
    pool: list[Value]  # registers that can be read
    in_place: list[Value]  # registers that can be added to
    any_map: bool  # whether to write maps out, which three units cannot follow

    @classmethod
    def start(
        cls, dim: int, num_examples: int, seed: int, any_map: bool = True
    ) -> "Builder":
        program = Program(dim, num_examples)
        pool = [program.x, program.y, ONE]
        return cls(program, np.random.default_rng(seed), pool, [], any_map)

    def form(self, size: int) -> Value:
        """Return a linear form of one or two registers, as large as they are."""
        total = constant(np.zeros(size))
        for _ in range(self.rng.integers(1, 3)):
            # What is new is used more often: chains are longer.
            last = min(self.rng.geometric(0.4), len(self.pool))
            value = self.pool[-last]
            matrix = self.rng.uniform(-1, 1, (size, value.size))
            total = total + matrix / np.abs(matrix).sum(axis=1, keepdims=True) @ value
        if self.rng.random() < 0.3:
            total = total + float(self.rng.uniform(-1, 1))
        return total

    def timesteps(self) -> Timesteps:
        time = self.program.time
        sets = tuple(
            tuple(np.flatnonzero(self.rng.random(i + 1) < 0.4).tolist())
            for i in range(time)
        )
        maps = (
            SELF,
            PREVIOUS,
            Earlier(int(self.rng.integers(2, 4))),
            Labels(),
            Single(int(self.rng.integers(time))),
            Single(int(self.rng.integers(time)), later=True),
            Sets(sets),
        )
        return maps[self.rng.integers(len(maps) - (not self.any_map))]

    def size(self) -> int:
        return int(self.rng.integers(1, 4))

    def target(self) -> Value | None:
        """Return a register to add to, or nothing."""
        if not self.in_place or self.rng.random() < 0.4:
            return None
        return self.in_place[self.rng.integers(len(self.in_place))]

    def keep(self, value: Value, into: Value | None = None) -> Value:
        if into is not None:
            (gone,) = into.terms
            self.pool = [each for each in self.pool if gone not in each.terms]
            self.in_place = [each for each in self.in_place if gone not in each.terms]
        if value.terms:
            self.pool.append(value)
            whole = [form_of(Value.of(each.out)) for each in self.program.events]
            if form_of(value) in whole:
                self.in_place.append(value)
        return value

    def position(self) -> None:
        values = self.rng.uniform(-1, 1, (self.program.time, self.size()))
        self.keep(self.program.position("p", values))

    def read(self) -> None:
        self.keep(self.program.read(self.form(self.size()), self.timesteps()))

    def store(self) -> None:
        self.keep(self.program.store(self.form(self.size())))

    def multiply(self) -> None:
        into = self.target()
        p, q = self.form(3), self.form(3)
        size = self.size() if into is None else into.size
        mix = self.rng.uniform(-0.5, 0.5, (size, 3))
        if size == 3 and self.rng.random() < 0.5:
            mix = None
        plus = self.form(size) if self.rng.random() < 0.5 else None
        made = self.program.multiply(p, q, mix, into=into, plus=plus)
        self.keep(made, into)

    def multiply_over_norm(self) -> None:
        into = self.target()
        size = self.size() if into is None else into.size
        norm = join([self.form(self.size()), ONE])
        targets = (None, into)  # two that share a layer, or one
        for target in targets[self.rng.integers(2) :]:
            p, q = self.form(size), self.form(size)
            plus = constant(self.rng.uniform(-1, 1, size))
            made = self.program.multiply(p, q, into=target, plus=plus, norm=norm)
            self.keep(made, target)

    def divide_by_norm(self) -> None:
        norm = join([self.form(self.size()), ONE])
        self.keep(self.program.divide(self.form(self.size()), norm))

    def divide_by_number(self) -> None:
        v = self.form(self.size())
        square = self.keep(self.program.dot(v, v))
        sign = self.rng.choice([-1.0, 1.0])
        value = self.form(self.size())
        self.keep(self.program.divide(value, float(sign) * (square + 1)))

    def attend(self) -> None:
        into = self.target()
        size = self.size() if into is None else into.size
        heads = [
            Head(2 * self.form(2), self.form(2), self.form(size))
            for _ in range(self.rng.integers(1, 3))
        ]
        made = self.program.attend(heads, self.timesteps(), into=into)
        self.keep(made, into)

    def predict(self) -> Program:
        parts = [self.form(1) for _ in range(3)]
        self.program.predict(sum(parts[1:], parts[0]))
        return self.program


PLAIN: tuple[Callable[[Builder], None], ...] = (
    Builder.position,
    Builder.read,
    Builder.store,
    Builder.multiply,
)
BY_CONTENT = (Builder.attend,)
DIVISIONS = (
    Builder.multiply_over_norm,
    Builder.divide_by_norm,
    Builder.divide_by_number,
)


@dataclass(frozen=True)
class Recipe:
    """What a random program is made from; it is made outside the strategy."""

    dim: int
    num_examples: int
    seed: int
    any_map: bool
    kinds: tuple[Callable[[Builder], None], ...]

    def program(self) -> Program:
        builder = Builder.start(self.dim, self.num_examples, self.seed, self.any_map)
        for add in self.kinds:
            add(builder)
        return builder.predict()


def recipes(
    kinds=PLAIN + BY_CONTENT + DIVISIONS, any_map: bool = True
) -> st.SearchStrategy[Recipe]:
    return st.builds(
        Recipe,
        st.integers(1, 3),
        st.integers(1, 4),
        st.integers(0, 2**32 - 1),
        st.just(any_map),
        st.lists(st.sampled_from(kinds), min_size=1, max_size=6).map(tuple),
    )


def compile_for(
    program: Program, tokens: np.ndarray, options: Numerics = WIDE, code=None
) -> Compiled:
    return compile_program(program, options, tokens=tokens, code=code)


def check(compiled: Compiled, tokens: np.ndarray, hidden: np.ndarray) -> float:
    """Check every layer's registers; return the largest error over the largest size."""
    allocation, frame = compiled.allocation, compiled.allocation.frame
    state = interpret(compiled.program, tokens)
    largest = max(1.0, *(np.abs(columns).max() for columns in state.values()))
    pads = np.array(frame.pads).ravel()
    kept = [*range(frame.code.start, frame.code.stop), *pads]
    if frame.reference is not None:
        kept.append(frame.reference)
        assert not hidden[..., frame.reference].any()
    worst = 0.0
    for layer in range(-1, compiled.num_layers):
        live = allocation.live(layer)
        rows = np.concatenate([np.array(kept), *live.values()])
        assert len(set(rows.tolist())) == len(rows), "registers overlap"
        for register, places in live.items():
            difference = hidden[:, layer + 1][..., places] - state[register]
            worst = max(worst, float(np.abs(difference).max()) / largest)
    for layer in range(compiled.num_layers):
        events = compiled.schedule.events(layer)
        written = [allocation.rows[event.out] for event in events]
        others = np.setdiff1d(np.arange(frame.hidden), np.concatenate([*written, pads]))
        before, after = hidden[:, layer], hidden[:, layer + 1]
        np.testing.assert_array_equal(after[..., others], before[..., others])
    return worst


def check_program(
    program: Program, options: Numerics = WIDE, code: Code | None = None
) -> Compiled:
    tokens = make_tokens(program.dim, program.num_examples)
    tokens = tokens.astype(options.dtype).astype(np.float64)
    compiled = compile_for(program, tokens, options, code)
    hidden = hidden_states(compiled.transformer, tokens)
    assert check(compiled, tokens, hidden) < TOLERANCE[options.dtype]
    return compiled
