"""A compiled transformer does what the interpreter says, layer by layer.

Random programs are compiled and run; after every layer, all registers that are still
needed hold what the interpreter has for them, and what a layer does not write is the
same to the last bit.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.forward import hidden_states, outputs
from support.refusals import refuses

from algoscope.construction.compiler.calibrate import calibrate
from algoscope.construction.compiler.codes import Code, Compact, OneHot
from algoscope.construction.compiler.compile import Compiled, code_of, compile_program
from algoscope.construction.compiler.layer_weights import stack
from algoscope.construction.compiler.numerics import Numerics, numerics, paper_numerics
from algoscope.construction.compiler.schedule import schedule
from algoscope.construction.language.events import Event, FeedForwardEvent, Head, Read
from algoscope.construction.language.interpreter import interpret, predictions
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import (
    PREVIOUS,
    SELF,
    Earlier,
    Labels,
    Sets,
    Single,
    Timesteps,
)
from algoscope.construction.language.values import Register, Value, join
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.tokens import example_tokens

pytestmark = pytest.mark.optimized  # Rounding is the matter.

WIDE, NARROW = numerics("float64"), numerics("float32")
ONE = Value.constantly(1.0)
# Largest error of any register over the largest register. Of 1500 programs the worst
# had 2e-13 and 5e-6, but for one whose softmax of large scores had 1e-4 in float32.
TOLERANCE = {"float64": 1e-10, "float32": 1e-3}


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

    def form(self, size: int, constant: bool = True) -> Value:
        """Return a linear form of one or two registers, as large as they are."""
        total = Value.constantly(np.zeros(size))
        for _ in range(self.rng.integers(1, 3)):
            # What is new is used more often: chains are longer.
            last = min(self.rng.geometric(0.4), len(self.pool))
            value = self.pool[-last]
            matrix = self.rng.uniform(-1, 1, (size, value.size))
            total = total + matrix / np.abs(matrix).sum(axis=1, keepdims=True) @ value
        if constant and self.rng.random() < 0.3:
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
            if any(value.terms.keys() == {e.out} for e in self.program.events):
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
            plus = Value.constantly(self.rng.uniform(-1, 1, size))
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


law = settings(max_examples=60)
brief = settings(max_examples=25)


@law
@given(recipes())
def test_every_layer_of_a_random_program_holds_what_the_interpreter_says(recipe):
    check_program(recipe.program())


@brief
@given(recipes())
def test_random_programs_run_in_float32(recipe):
    check_program(recipe.program(), NARROW)


@brief
@given(recipes())
def test_random_programs_run_with_the_other_gelu(recipe):
    check_program(recipe.program(), numerics("float64", "gelu_tanh"))


@brief
@given(recipes(), st.sampled_from([WIDE, NARROW]))
def test_random_programs_run_with_a_layer_norm_that_adds_an_epsilon(recipe, options):
    check_program(recipe.program(), replace(options, layer_norm_epsilon=1e-5))


@brief
@given(recipes(PLAIN + BY_CONTENT))
def test_random_programs_run_where_attention_reads_through_layer_norm(recipe):
    check_program(
        recipe.program(), replace(WIDE, pre_norm=True, layer_norm_epsilon=1e-5)
    )


@brief
@given(recipes(PLAIN + DIVISIONS, any_map=False))
def test_both_position_codes_lead_to_the_same_output(recipe):
    program = recipe.program()
    tokens = make_tokens(program.dim, program.num_examples)
    found = []
    for code in (Compact(program.time), OneHot(program.time)):
        compiled = check_program(program, code=code)
        assert compiled.allocation.frame.code.stop == program.dim + 1 + (
            3 if isinstance(code, Compact) else program.time
        )
        found.append(outputs(compiled.transformer, tokens))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-10, atol=1e-10)


@brief
@given(recipes())
def test_the_output_is_the_prediction_at_every_prefix(recipe):
    program = recipe.program()
    tokens = make_tokens(program.dim, program.num_examples)
    model = compile_for(program, tokens).transformer
    expected = predictions(program, tokens)
    largest = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(
        outputs(model, tokens)[:, ::2], expected, rtol=0, atol=1e-9 * largest
    )
    for time in (1, 2):
        prefix = predictions(program, tokens[:, :time])
        np.testing.assert_allclose(
            prefix, expected[:, :1], rtol=1e-12, atol=1e-12 * largest
        )


@pytest.mark.parametrize("options", [WIDE, NARROW], ids=lambda each: each.dtype)
def test_the_transformer_itself_computes_what_these_tests_do(options):
    builder = Builder.start(2, 2, seed=5)
    for add in (Builder.multiply, Builder.divide_by_norm, Builder.attend):
        add(builder)
    program, tokens = builder.predict(), make_tokens(2, 2)
    tokens = tokens.astype(options.dtype).astype(np.float64)
    compiled = compile_for(program, tokens, options)
    run = jax.jit(lambda model, tokens: model(tokens))
    found = run(compiled.transformer, jnp.asarray(tokens, options.dtype))
    assert found.hidden.dtype == options.dtype
    error = check(compiled, tokens, np.asarray(found.hidden))
    assert error < TOLERANCE[options.dtype]
    expected = outputs(compiled.transformer, tokens)
    rounding = 1000 * np.finfo(options.dtype).eps
    np.testing.assert_allclose(found.output, expected, atol=rounding, rtol=0)


# Schedules.


def norm_of(event: Event) -> Value | None:
    return event.norm if isinstance(event, FeedForwardEvent) else None


def registers(*values: Value | None) -> set[Register]:
    return {register for v in values if v is not None for register in v.terms}


def needed(program: Program) -> set[Register]:
    """Return all registers that the output depends on."""
    makers = {event.out: event for event in program.events}
    found, open_ones = set(), registers(program.output)
    while open_ones:
        register = open_ones.pop()
        found.add(register)
        if register in makers:
            event = makers[register]
            into = set() if event.into is None else {event.into}
            uses = registers(*event.inputs, norm_of(event)) | into
            open_ones |= uses - found
    return found


@law
@given(recipes())
def test_schedules_keep_the_order_that_values_need(recipe):
    program = recipe.program()
    plan = schedule(program)
    makers = {event.out: event for event in plan.layers}
    for event in plan.layers:
        when, attention = plan.phase(event), 2 * plan.layers[event]
        for register in registers(*event.inputs):
            assert register not in makers or plan.phase(makers[register]) < when
        if event.into in makers:
            assert plan.phase(makers[event.into]) < when
        for register in registers(norm_of(event)):
            maker = makers.get(register)
            # The pads are written in the attention part; a read of the same layer is
            # made from what it reads.
            soonest = attention if isinstance(maker, Read) else attention - 1
            assert maker is None or plan.phase(maker) <= soonest
        for other in plan.layers:
            if event.into is not None and other is not event:
                if event.into in registers(*other.inputs):
                    assert plan.phase(other) <= when
                if event.into in registers(norm_of(other)):
                    assert 2 * plan.layers[other] <= when


@law
@given(recipes())
def test_a_layer_has_one_norm_and_no_layer_is_empty(recipe):
    program = recipe.program()
    plan = schedule(program)
    for layer in range(plan.num_layers):
        events = plan.events(layer)
        norms = [norm_of(e) for e in events if isinstance(e, FeedForwardEvent)]
        assert len({id(norm) for norm in norms}) <= 1
        assert events or plan.num_layers == 1


@law
@given(recipes())
def test_what_the_output_does_not_depend_on_is_dropped(recipe):
    program = recipe.program()
    alive = needed(program)
    assert set(schedule(program).layers) == {
        e for e in program.events if e.out in alive
    }
    compiled = compile_for(program, make_tokens(program.dim, program.num_examples))
    held = set(compiled.allocation.rows)
    assert held == (alive | {program.token})


def test_an_update_after_the_prediction_is_dead():
    program = Program(2, 2)
    w = program.store(program.x)
    program.predict(w[:1])
    program.multiply(w, w, into=w)
    compiled = check_program(program)
    assert compiled.num_layers == 1
    assert [event.out.name for event in compiled.schedule.layers] == ["stored"]


def test_reads_wait_for_their_first_use():
    program = Program(1, 3)
    late = program.read(program.x, Single(0), "late")
    total = program.x
    for k in range(4):
        total = program.multiply(total, total, name=f"power{k}")
    program.predict(program.multiply(total, late))
    compiled = check_program(program)
    layers = {event.out.name: at for event, at in compiled.schedule.layers.items()}
    assert layers["late"] == 4
    assert compiled.num_layers == 5


def test_a_delayed_read_comes_before_its_source_is_overwritten():
    program = Program(1, 3)
    w = program.store(program.x, "w0")
    old = program.read(w, PREVIOUS, "old")
    total = w
    for k in range(3):
        total = program.multiply(total, total, name=f"power{k}")
    changed = program.multiply(w, total, into=w, name="w1")
    for k in range(3):
        total = program.multiply(total, changed, name=f"later{k}")
    program.predict(total + program.multiply(old, changed))
    compiled = check_program(program)
    layers = {event.out.name: at for event, at in compiled.schedule.layers.items()}
    assert layers["old"] <= layers["w1"]


def test_attention_adds_in_place_after_all_that_read_the_old_value():
    program = Program(2, 3)
    w = program.store(program.x, "w0")
    before = program.read(w, PREVIOUS, "before")
    square = program.multiply(w, w, name="square")
    head = Head(query=w, key=before, value=program.x)
    w1 = program.attend([head, head], Labels(), into=w, name="w1")
    after = program.read(w1, PREVIOUS, "after")
    w2 = program.attend([Head(w1, after, square)], SELF, into=w1, name="w2")
    w3 = program.multiply(w2, after, into=w2, plus=w2, name="w3")
    program.predict(program.dot(w3, before) + program.dot(square, after))
    compiled = check_program(program)
    plan = compiled.schedule
    phase = {event.out.name: plan.phase(event) for event in plan.layers}
    assert phase["square"] < phase["w1"] < phase["w2"] < phase["w3"]
    rows = {r.name: places.tolist() for r, places in compiled.allocation.rows.items()}
    assert rows["w0"] == rows["w1"] == rows["w2"] == rows["w3"]


@pytest.mark.parametrize("options", [WIDE, NARROW], ids=lambda each: each.dtype)
def test_a_norm_of_what_its_own_layer_reads(options):
    program = Program(2, 3)
    source = program.store(program.x + 0.5, "source")
    x = program.read(source, Labels(), "x")
    seen = program.read(ONE, Labels(), "seen")
    norm = join([3 * x, 1 - seen, x[:1] + program.y + 0.25])
    unit = program.divide(x, norm, "unit")
    product = program.multiply(x, x, norm=norm, name="product")
    changed = program.multiply(source, x, into=source, name="changed")
    program.predict(program.dot(unit, product) + changed[:1])
    compiled = check_program(program, options)
    layers = {event.out.name: at for event, at in compiled.schedule.layers.items()}
    assert layers["unit"] == layers["product"] == layers["x"] == layers["seen"]
    assert layers["changed"] > layers["unit"]


def test_a_norm_of_a_register_that_is_overwritten_next():
    program = Program(2, 2)
    w = program.store(program.x + 1.0, "w0")
    for k in range(3):
        norm = join([w, ONE])
        w = program.multiply(w, w, into=w, norm=norm, name=f"w{k + 1}")
    program.predict(w[:1])
    assert check_program(program).num_layers == 3


def test_norms_that_differ_take_a_layer_each_and_the_same_one_shares_it():
    program = Program(2, 1)
    v, c = join([program.x, ONE]), join([program.y, ONE])
    parts = [program.divide(program.x, norm) for norm in (v, v, c)]
    plain = program.multiply(program.x, program.x)
    total = sum(parts[1:], parts[0]) + plain
    program.predict(total[:1])
    compiled = check_program(program)
    layers = list(compiled.schedule.layers.values())
    assert layers == [0, 0, 1, 2]


def test_a_read_can_be_added_to_in_the_layer_that_reads_it():
    program = Program(1, 2)
    x = program.read(program.x, PREVIOUS, "x")
    program.predict(program.multiply(x, program.y, into=x))
    assert check_program(program).num_layers == 1


def test_rows_of_the_dead_are_given_to_the_born():
    program = Program(3, 2)
    total = program.x
    for _ in range(6):
        total = program.multiply(total, total)
    program.predict(total[:1])
    compiled = check_program(program)
    # token 4, code 3, pads 2, reference 1; products take turns with the token
    assert compiled.hidden_size == 10 + 3
    assert compiled.allocation.erased


def test_a_program_without_events_predicts_from_the_token():
    program = Program(2, 1)
    program.predict(program.x[1:] - 2.0)
    compiled = check_program(program)
    tokens = make_tokens(2, 1)
    found = outputs(compiled.transformer, tokens)
    np.testing.assert_array_equal(found, tokens[..., 2] - 2)


def test_apply_multiplies_a_matrix_by_a_vector():
    program = Program(2, 1)
    matrix = program.position("M", np.arange(18.0).reshape(3, 6) / 18)
    program.predict(program.apply(matrix, program.x)[2:])
    tokens = make_tokens(2, 1)
    expected = np.einsum(
        "te,bte->bt", np.arange(18.0).reshape(3, 3, 2)[:, 2] / 18, tokens[..., 1:]
    )
    np.testing.assert_allclose(
        predictions(program, tokens), expected[:, ::2], rtol=1e-14
    )
    check_program(program)


def test_products_with_a_constant_take_no_layer():
    program = Program(2, 1)
    three = Value.constantly([3.0, 3.0])
    scaled = program.multiply(three, program.x, np.ones((1, 2)), plus=program.y)
    assert program.events == []
    assert scaled.terms[program.token].tolist() == [[1.0, 3.0, 3.0]]
    assert program.multiply(program.x, three, into=three).constant.tolist() == [3, 3]
    assert program.read(Value.constantly(0.0), PREVIOUS).constant.tolist() == [0]


def test_zero_over_zero_is_zero_for_the_interpreter():
    program = Program(1, 1)
    program.predict(program.divide(program.x, program.y))
    tokens = np.array([[[0.0, 2.0], [4.0, 0.0], [0.0, 3.0]]])
    assert interpret(program, tokens)[program.events[0].out].ravel().tolist() == [0] * 3


# Ranges.


def test_ranges_are_the_largest_operands_with_safety():
    program = Program(1, 1)
    over = program.multiply(program.x, 2 * program.x, norm=program.y + 4.0)
    program.predict(program.multiply(program.x, over))
    tokens = np.array([[[0.0, -3.0], [1.0, 0.0], [0.0, 2.0]]])
    found = calibrate(program, tokens, replace(WIDE, safety=2.0))
    first, second = program.events
    assert found.p[first].tolist() == [2 * 3 / 4]
    assert found.q[first].tolist() == [2 * 6 / 4]
    assert found.q[second].tolist() == [2 * 18 / 16]
    assert found.registers[program.token] == 3
    # An operand that is always zero has any range.
    zero = calibrate(program, 0 * tokens, WIDE)
    assert zero.p[second].tolist() == [WIDE.safety]


def test_operands_up_to_the_safety_factor_are_as_precise():
    program = Program(2, 2)
    program.predict(program.dot(program.x, program.x))
    tokens = make_tokens(2, 2)
    model = compile_for(program, tokens).transformer
    larger = WIDE.safety * tokens
    np.testing.assert_allclose(
        outputs(model, larger)[:, ::2], predictions(program, larger), rtol=1e-11
    )


def test_the_code_has_three_units_where_they_are_exact():
    def code(at: Timesteps, num_examples: int = 2, options: Numerics = NARROW) -> Code:
        program = Program(1, num_examples)
        program.predict(program.read(program.x, at)[:1])
        return code_of(program, options)

    assert isinstance(code(Single(0, later=True)), Compact)
    assert isinstance(code(Sets(((),) * 5)), OneHot)
    assert isinstance(code(SELF, 63), Compact)
    assert isinstance(code(SELF, 64), OneHot)
    assert isinstance(code(SELF, 64, WIDE), Compact)
    program = Program(1, 2)
    program.predict(program.attend([Head(program.x, program.x, program.x)], SELF))
    assert isinstance(code_of(program, NARROW), OneHot)
    program.predict(program.y)
    assert isinstance(code_of(program, NARROW), OneHot)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_formulas_of_the_paper_run_programs_too(dtype):
    program = Program(2, 2)
    x, y = program.read(program.x, Earlier(2)), program.read(program.y, PREVIOUS)
    w = program.multiply(x, y.repeat(2), plus=0.5 * x + 1.0)
    unit = program.divide(w, program.dot(w, w) + 1)
    program.predict(program.dot(unit, program.x))
    tokens = make_tokens(2, 2)
    compiled = compile_for(program, tokens, paper_numerics(dtype))
    error = np.abs(
        outputs(compiled.transformer, tokens)[:, ::2] - predictions(program, tokens)
    ).max()
    # Measured: 8e-8 and 3e-3.
    assert error < {"float64": 4e-7, "float32": 2e-2}[dtype]
    assert compiled.allocation.frame.reference is None


# Refusals.


def empty(num_examples: int = 1) -> Program:
    return Program(2, num_examples)


REFUSED_PROGRAMS: dict[str, tuple[Callable[[], object], str]] = {
    "dim": (lambda: Program(0, 1), "`dim` must be at least 1, got 0."),
    "examples": (
        lambda: Program(1, 0),
        "`num_examples` must be at least 1, got 0.",
    ),
    "positions": (
        lambda: empty().position("p", np.zeros((2, 1))),
        "`values` must have one row for each of the 3 timesteps, got shape (2, 1).",
    ),
    "factors": (
        lambda: empty().multiply(empty().x, empty().y),
        "`q` must have 2 components, as the other factor of `product` has, "
        "got token with 1.",
    ),
    "mix": (
        lambda: empty().multiply(empty().x, empty().x, np.ones((1, 3))),
        "`result` must have 1 components, as `product` has, from 2 products, "
        "got 1 in `plus`, a mix of shape (1, 3).",
    ),
    "plus": (
        lambda: empty().multiply(empty().x, empty().x, plus=empty().y, name="w"),
        "`result` must have 2 components, as `w` has, from 2 products, "
        "got 1 in `plus`, a mix of shape (2, 2).",
    ),
    "prediction": (
        lambda: empty().predict(empty().x),
        "`prediction` must be one number, got 2.",
    ),
    "heads": (
        lambda: empty().attend([], SELF),
        "`heads` must hold at least one head for `attended`, got none.",
    ),
    "key": (
        lambda: empty().attend([Head(ONE, empty().x, ONE)], SELF, name="w"),
        "`key` must have 1 components, as the query of `w`, got 2.",
    ),
    "value": (
        lambda: empty().attend([Head(ONE, ONE, ONE), Head(ONE, ONE, empty().x)], SELF),
        "`value` must have 1 components, as the first head of `attended` has, got 2.",
    ),
    "read": (
        lambda: empty().read(ONE, Sets(((), ()))),
        "`sets` must say what each of the 3 timesteps reads, got 2 sets.",
    ),
    "attend": (
        lambda: empty().attend([Head(ONE, ONE, ONE)], Sets(((), ()))),
        "`sets` must say what each of the 3 timesteps reads, got 2 sets.",
    ),
}


@pytest.mark.parametrize("case", REFUSED_PROGRAMS)
def test_programs_refuse(case):
    act, message = REFUSED_PROGRAMS[case]
    with refuses(InvalidValueError, message):
        act()


def test_programs_refuse_a_variable_beside_a_norm():
    program = empty()
    with refuses(
        InvalidValueError,
        "`plus` must be constant beside a norm, got token. LayerNorm would divide it "
        "as well; add it in another layer.",
    ):
        program.multiply(program.y, program.y, plus=program.y, norm=ONE)


def test_programs_refuse_registers_of_others():
    program, other = empty(), empty()
    message = "`value` must be made of registers of this program, got register `token`."
    for act in (
        lambda: program.predict(other.y),
        lambda: program.store(other.y),
        lambda: program.divide(program.y, other.y),
        lambda: program.multiply(program.y, program.y, norm=other.y),
        lambda: program.attend([Head(ONE, ONE, other.y)], SELF),
    ):
        with refuses(InvalidValueError, message):
            act()


def test_programs_refuse_what_is_overwritten():
    program = empty()
    w = program.store(program.y, "w")
    program.multiply(w, w, into=w, name="w2")
    message = (
        "`value` must be read before it is overwritten, got register `w`, now `w2`. "
        "Store it under another name first."
    )
    for act in (
        lambda: program.predict(w),
        lambda: program.store(2 * w),
        lambda: program.divide(program.y, w),
        lambda: program.multiply(program.y, program.y, into=w),
        lambda: program.attend([Head(ONE, ONE, ONE)], SELF, into=w),
    ):
        with refuses(InvalidValueError, message):
            act()


def test_programs_add_in_place_to_whole_registers_only():
    program = empty()
    w = program.store(program.x, "w")
    cases = {"w": w[:1], "w+1": (w + 1.0)[:1], "w+token": (w + program.x)[:1]}
    for shown, into in cases.items():
        with refuses(
            InvalidValueError,
            "`into` must be a whole register of 1 rows for `w1` to add to, "
            f"got {shown}. Store it first.",
        ):
            program.multiply(program.y, program.y, into=into, name="w1")
    token = Value.of(program.token)
    with refuses(
        InvalidValueError,
        "`into` must be a register of the program, got the token.",
    ):
        program.multiply(token, token, into=token)


def test_a_program_has_to_predict():
    message = "`program` must say what it predicts, got none. Call `program.predict`."
    with refuses(InvalidValueError, message):
        compile_program(empty())
    with refuses(InvalidValueError, message):
        predictions(empty(), make_tokens(2, 1))


@pytest.mark.parametrize("shape", [(1, 4, 3), (1, 3, 2)])
def test_the_interpreter_refuses_tokens_that_do_not_fit(shape):
    with refuses(
        InvalidValueError,
        f"`tokens` must hold up to 3 tokens of size 3, got shape {shape}.",
    ):
        interpret(empty(), np.zeros(shape))


def test_float64_needs_a_jax_that_holds_it():
    program = empty()
    program.predict(program.y)
    with (
        jax.enable_x64(False),
        refuses(
            InvalidValueError,
            "`dtype` must be what JAX can hold, got float64. Call "
            "jax.config.update('jax_enable_x64', True) first, or use float32.",
        ),
    ):
        compile_program(program)


def test_a_stack_has_a_layer():
    with refuses(InvalidValueError, "`layers` must hold at least one layer, got none."):
        stack([], WIDE)


def test_registers_that_compete_with_the_pads_are_refused():
    program = empty()
    program.predict(program.store(1e6 * program.y, "huge"))
    tokens = np.ones((1, 3, 3))
    compile_program(program, WIDE, tokens=tokens)
    with refuses(
        InvalidValueError,
        "`register huge` must stay below 2e+05 in float32, got 1e+06 on the "
        "calibration's datasets. The algorithm may diverge: use a smaller learning "
        "rate or a larger penalty, or float64.",
    ):
        compile_program(program, NARROW, tokens=tokens)
    with refuses(
        InvalidValueError,
        "`register token` must stay below 4e+08 in float64, got inf on the "
        "calibration's datasets. The algorithm may diverge: use a smaller learning "
        "rate or a larger penalty, or float64.",
    ):
        compile_program(program, WIDE, tokens=np.inf * tokens)


def test_scores_that_exceed_the_gap_are_refused():
    program = Program(1, 1)
    head = Head(query=ONE, key=program.y, value=program.y)
    program.predict(program.attend([head], Single(0), name="found"))
    tokens = np.array([[[0.0, 1.0], [1.0, 0.0], [0.0, 1.0]]])
    check_scores = partial(compile_program, program, NARROW)
    check_scores(tokens=239 * tokens)
    with refuses(
        InvalidValueError,
        "`scores of found` must exceed those inside by at most 239 in float32, got "
        "240 on the calibration's datasets. Use smaller queries or keys, or float64.",
    ):
        check_scores(tokens=240 * tokens)
    # What a timestep cannot see has no score.
    own = Program(1, 1)
    own.predict(own.attend([Head(own.y, own.y, own.y)], SELF))
    compile_program(own, NARROW, tokens=1e3 * tokens)


def divided(size: int) -> Program:
    program = empty()
    v = Value.constantly(np.ones(size))
    program.predict(program.divide(program.y, join([program.y, v])[:size]))
    return program


def test_norms_need_a_layer_norm_of_their_own():
    with refuses(
        InvalidValueError,
        "`pre_norm` must be off for an algorithm that divides, got True. "
        "The attention after a division would read everything divided.",
    ):
        compile_program(divided(1), replace(WIDE, pre_norm=True))
    compile_program(divided(1), paper_numerics())
    with refuses(
        InvalidValueError,
        "`norm` must be a number with the paper's pads, got 2 of them. "
        "Use pads='reference'.",
    ):
        compile_program(divided(2), paper_numerics())


REFUSED_NUMERICS = {
    "dtype": (
        dict(dtype="float16"),
        "`dtype` must be one of float64, float32, got 'float16'. "
        "Did you mean 'float64'?",
    ),
    "pads": (
        dict(pads="none"),
        "`pads` must be one of reference, paper, got 'none'.",
    ),
    "pad": (dict(pad=0.0), "`pad` must be positive, got 0.0."),
    "gap": (dict(gap=-1.0), "`gap` must be positive, got -1.0."),
    "safety": (dict(safety=0.5), "`safety` must be at least 1, got 0.5."),
    "epsilon": (
        dict(layer_norm_epsilon=-1e-5),
        "`layer_norm_epsilon` must not be negative, got -1e-05.",
    ),
    "pre_norm": (
        dict(pre_norm=True, pads="paper"),
        "`pads` must be 'reference' where attention reads through LayerNorm, "
        "got paper.",
    ),
}


@pytest.mark.parametrize("case", REFUSED_NUMERICS)
def test_numerics_refuse(case):
    options, message = REFUSED_NUMERICS[case]
    with refuses(InvalidValueError, message):
        replace(WIDE, **options)


def test_numerics_know_their_digits():
    assert (WIDE.digits, NARROW.digits) == (53, 24)
    assert numerics("float32", "silu").activation == "silu"
