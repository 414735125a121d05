"""RAW: a layer with its weights does what its equation says (paper app. C)."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.primitives import (
    DATASETS,
    TIME,
    compute,
    every_numerics,
    largest_error,
    law,
    reference_or_paper,
    seeds,
)
from support.refusals import refuses

from algoscope.construction.compiler.numerics import Numerics, numerics
from algoscope.construction.language.timesteps import (
    PREVIOUS,
    SELF,
    Earlier,
    Labels,
    Sets,
    Single,
)
from algoscope.construction.paper.primitives import Aff, Div, Mul
from algoscope.construction.paper.raw import Mov, Only, Raw
from algoscope.construction.paper.steps import Layout, Parallel
from algoscope.foundation.validation import InvalidValueError

REGISTERS = {"r": 3, "s": 2, "w": 2, "v": 3}


def draw_sets(rng: np.random.Generator) -> Sets:
    chosen = [np.flatnonzero(rng.random(i + 1) < 0.5) for i in range(TIME)]
    return Sets(tuple(tuple(map(int, members)) for members in chosen))


MAPS = [
    *(SELF, PREVIOUS, Earlier(2), Labels(), Only(1, 3), Only(2, 2)),
    *(Single(token, later) for token in (0, 2, 4) for later in (False, True)),
    *(draw_sets(np.random.default_rng(seed)) for seed in range(8)),
]
maps = st.sampled_from(MAPS)


def matrix(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """Return a matrix that takes numbers up to 1 to numbers up to 1."""
    return rng.uniform(-1, 1, (rows, columns)) / columns


def draw_raw(draw: Any, rng: np.random.Generator) -> Raw:
    """Draw a RAW over REGISTERS, which may write what it reads."""
    kind = draw(st.sampled_from(["+", "⊙"]))
    r, s, w = (draw(st.sampled_from(list(REGISTERS))) for _ in "rsw")
    if kind == "+":
        r, s = draw(st.sampled_from([(r, s), (None, s), (r, None), (None, None)]))
    inner = draw(st.integers(1, 4))
    layout = Layout(REGISTERS)
    return Raw(
        kind,
        r,
        s,
        w,
        draw(maps),
        w_a=matrix(rng, inner, layout.size(r)) if r else None,
        w_s=matrix(rng, inner, layout.size(s)) if s else None,
        w_o=matrix(rng, layout.size(w), inner),
        b=rng.uniform(-1, 1, layout.size(w)) if draw(st.booleans()) else None,
    )


def shuffled(draw: Any) -> dict[str, int]:
    return dict(draw(st.permutations(list(REGISTERS.items()))))


def draw_state(rng: np.random.Generator) -> np.ndarray:
    return rng.uniform(-1, 1, (DATASETS, TIME, sum(REGISTERS.values())))


@every_numerics
@law
@given(data=st.data(), seed=seeds)
def test_a_layer_does_what_the_equation_says(
    data: st.DataObject, seed: int, chosen: Numerics, bound: float
):
    rng = np.random.default_rng(seed)
    raw = draw_raw(data.draw, rng)
    registers = shuffled(data.draw)
    assert largest_error(raw, registers, draw_state(rng), chosen) <= bound


@law
@given(data=st.data(), seed=seeds)
def test_the_exact_meaning_is_the_papers_equation(data: st.DataObject, seed: int):
    rng = np.random.default_rng(seed)
    layout = Layout(shuffled(data.draw))
    raw, state = draw_raw(data.draw, rng), draw_state(rng)
    w_a, w_s, w_o, b = raw.matrices(layout)
    expected = state.copy()
    for h, after in zip(state, expected, strict=True):
        for i in range(TIME):
            members = np.flatnonzero(raw.timesteps.average(TIME)[i])
            read = np.zeros(len(w_a))
            for k in members:
                read += w_a @ h[k, layout.rows(raw.r)] / len(members)
            own = w_s @ h[i, layout.rows(raw.s)]
            both = read + own if raw.kind == "+" else read * own
            after[i, layout.rows(raw.w)] = w_o @ both + b
    np.testing.assert_allclose(raw.exact(state, layout), expected, atol=1e-14)


@reference_or_paper
@law
@given(data=st.data(), seed=seeds)
def test_parallel_ones_share_a_layer(
    data: st.DataObject, seed: int, chosen: Numerics, bound: float
):
    """Heads may read what others write; each has its own timestep map."""
    rng = np.random.default_rng(seed)
    steps = (
        Raw("⊙", "w", "r", "w", data.draw(maps), w_s=matrix(rng, 2, 3)),
        Raw("+", "w", None, "s", data.draw(maps), b=rng.uniform(-1, 1, 2)),
        Mov(1, data.draw(st.integers(1, TIME - 1)), "r", "v"),
    )
    registers = shuffled(data.draw)
    parallel = Parallel(steps)
    assert largest_error(parallel, registers, draw_state(rng), chosen) <= bound
    layout, state = Layout(registers), draw_state(rng)
    for step in steps:
        (name,) = step.writes
        rows = layout.rows(name)
        alone, together = step.exact(state, layout), parallel.exact(state, layout)
        np.testing.assert_array_equal(alone[..., rows], together[..., rows])


def test_an_empty_map_reads_zero_through_the_imaginary_timestep(rng):
    """Erratum 29: without it, a softmax of low scores alone reads an average."""
    state, layout = draw_state(rng), Layout(REGISTERS)
    s, w = layout.rows("s"), layout.rows("w")
    raw = Raw("+", "s", None, "w", Single(3))
    after = compute(raw, REGISTERS, state, numerics())
    assert not after[:, :3, w].any()
    printed = compute(raw, REGISTERS, state, numerics(), imaginary_timestep=False)
    np.testing.assert_allclose(printed[:, 0, w], state[:, 0, s])


def test_a_step_may_read_its_own_column():
    """Erratum 10: K(i) may hold i, or aff and dot would read nothing."""
    layout, state = Layout(REGISTERS), np.ones((1, TIME, 10))
    after = Raw("+", "s", None, "w", SELF).exact(state, layout)
    np.testing.assert_array_equal(after[..., layout.rows("w")], 1)


def test_mov_as_the_paper_prints_it_erases_other_columns(rng):
    """Errata 7, 9: K = {(t, {s})} leaves K(i) empty, and every column writes w."""
    state, layout = draw_state(rng), Layout(REGISTERS)
    w, s = layout.rows("w"), layout.rows("s")
    printed = Raw("+", "s", None, "w", Only(1, 3)).exact(state, layout)
    assert not printed[:, [0, 1, 2, 4], w].any()
    moved = Mov(1, 3, "s", "w").exact(state, layout)
    np.testing.assert_array_equal(moved[:, [0, 1, 2, 4], w], state[:, [0, 1, 2, 4], w])
    np.testing.assert_array_equal(moved[:, 3, w], state[:, 1, s])
    swapped = Raw("+", "w", None, "s", Only(1, 3)).exact(state, layout)
    assert np.abs(swapped[:, 3, w] - state[:, 1, s]).min() > 0


def test_scratch_is_empty_again(rng):
    """What a head left for the feed-forward part is gone (erratum 50)."""
    state = draw_state(rng)
    raw = Raw("⊙", "s", "w", "w", PREVIOUS)
    plan = raw.plan(Layout(REGISTERS, scratch_size=2, code_size=3), numerics(), state)
    rows = slice(10, 12)
    np.testing.assert_array_equal(plan.linear[rows, rows], -np.eye(2))


def test_a_product_is_precise_for_the_operands_it_was_planned_for(rng):
    registers, raw = {"r": 2, "s": 2, "w": 2}, Raw("⊙", "r", "s", "w")
    layout = Layout(registers, code_size=3)
    state = 100 * rng.uniform(-1, 1, (DATASETS, TIME, 6))
    planned = raw.plan(layout, numerics(), state)
    seen = np.abs(state[..., :2]).max(axis=(0, 1))
    np.testing.assert_allclose(planned.p_range, seen * numerics().safety)
    only = raw.plan(layout, numerics(), state, columns=[0])
    assert (only.p_range <= planned.p_range).all()
    assert (raw.plan(layout, numerics(), 7.0).q_range == 7).all()


def test_an_unused_register_of_zeros_is_given_a_range():
    raw = Raw("⊙", "s", "w", "w")
    plan = raw.plan(Layout(REGISTERS, code_size=3), numerics(), np.zeros((1, TIME, 10)))
    assert (plan.p_range > 0).all()


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Raw("⊙", "r", None, "w"),
            "`s` must name a register to multiply, got None.",
        ),
        (
            lambda: Raw("*", "r", "s", "w"),  # pyright: ignore[reportArgumentType]
            "`kind` must be one of +, ⊙, got '*'.",
        ),
        (
            lambda: Raw("+", "q", "s", "w").check(Layout(REGISTERS)),
            "`register` must be one of r, s, w, v, got 'q'.",
        ),
        (
            lambda: Layout({"error": 1, "x": 2}).rows("eror"),
            "`register` must be one of error, x, got 'eror'. Did you mean 'error'?",
        ),
        (
            lambda: Layout({"x": 0}),
            "`size of x` must be at least 1, got 0.",
        ),
        (
            lambda: Raw("+", "r", "s", "w").check(Layout(REGISTERS)),
            "`r` must have size 2 for raw(+; s=s, r=r, w=w, K={i}), got 3.",
        ),
        (
            lambda: Raw("+", "r", None, "w", w_a=np.ones((2, 4))).check(
                Layout(REGISTERS)
            ),
            "`w_a` must have shape (2, 3) for `r` in raw(+; s=None, r=r, w=w, K={i}), "
            "got (2, 4).",
        ),
        (
            lambda: Raw("+", "s", "s", "w", b=np.ones(3)).check(Layout(REGISTERS)),
            "`b` must have shape (2,) for `w` in raw(+; s=s, r=s, w=w, K={i}), "
            "got (3,).",
        ),
        (
            lambda: Parallel((Aff("s", None, "w"), Mov(0, 1, "s", "w"))),
            "`steps` must write `w` at most once, got aff(s, (), w) and "
            "mov(0, 1, s, w).",
        ),
        (
            lambda: Parallel((Mul(2, 1, 1, "s", "c", "w"), Aff(None, None, "s"))),
            "`steps` must not write `s`, which mul(2, 1, 1, s, c, w) multiplies, got "
            "aff((), (), s). Put them into layers of their own.",
        ),
        (
            lambda: Parallel((Aff("s", None, "w"), Div("s", "c", "v"))),
            "`steps` must be steps that leave LayerNorm to the others, got "
            "div(s, c, v). Division needs a layer of its own.",
        ),
    ],
)
def test_refusals(make, message):
    with refuses(InvalidValueError, message):
        make()
