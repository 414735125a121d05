"""When and where programs compute: the order of events, and the rows of registers."""

import pytest
from hypothesis import given
from support.programs import (
    NARROW,
    ONE,
    WIDE,
    check_program,
    compile_for,
    law,
    make_tokens,
    recipes,
)

from algoscope.construction.compiler.schedule import schedule
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, SELF, Labels, Single
from algoscope.construction.language.values import (
    FeedForwardEvent,
    Head,
    Read,
    Register,
    Value,
    join,
)


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
            uses = registers(*event.inputs, event.norm) | into
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
        for register in registers(event.norm):
            maker = makers.get(register)
            # The pads are written in the attention part; a read of the same layer is
            # made from what it reads.
            soonest = attention if isinstance(maker, Read) else attention - 1
            assert maker is None or plan.phase(maker) <= soonest
        for other in plan.layers:
            if event.into is not None and other is not event:
                if event.into in registers(*other.inputs):
                    assert plan.phase(other) <= when
                if event.into in registers(other.norm):
                    assert 2 * plan.layers[other] <= when


@law
@given(recipes())
def test_a_layer_has_one_norm_and_no_layer_is_empty(recipe):
    program = recipe.program()
    plan = schedule(program)
    for layer in range(plan.num_layers):
        events = plan.events(layer)
        norms = [e.norm for e in events if isinstance(e, FeedForwardEvent)]
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


def test_rows_of_registers_no_longer_needed_are_reused():
    program = Program(3, 2)
    total = program.x
    for _ in range(6):
        total = program.multiply(total, total)
    program.predict(total[:1])
    compiled = check_program(program)
    # token 4, code 3, pads 2, reference 1; products take turns with the token
    assert compiled.hidden_size == 10 + 3
    assert compiled.allocation.erased
