"""The primitives of §3.1: exact meanings, RAWs, layers, and errata of the paper."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.primitives import (
    DATASETS,
    TIME,
    apply,
    compute,
    every_numerics,
    largest_error,
    law,
    reference_or_paper,
    seeds,
)
from support.refusals import refuses

from algoscope.construction.compiler.numerics import Numerics, numerics, paper_numerics
from algoscope.construction.paper import chain as assembly_module
from algoscope.construction.paper.chain import assemble
from algoscope.construction.paper.primitives import Aff, Div, Dot, Mul
from algoscope.construction.paper.raw import Mov
from algoscope.construction.paper.steps import Layout, Step
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.stack import layer_of

sizes = st.integers(1, 3)


def placed(draw: Any, **registers: int) -> dict[str, int]:
    """Return registers in some order, among others."""
    everything = [*registers.items(), ("before", 1), ("after", 2)]
    return dict(draw(st.permutations(everything)))


def draw_mov(draw: Any, rng: np.random.Generator) -> tuple[Step, dict[str, int]]:
    target = draw(st.integers(0, TIME - 1))
    source, size = draw(st.integers(0, target)), draw(sizes)
    write = draw(st.sampled_from(["u", "v"]))
    return Mov(source, target, "u", write), placed(draw, u=size, v=size)


def draw_aff(draw: Any, rng: np.random.Generator) -> tuple[Step, dict[str, int]]:
    u, v, w = (draw(sizes) for _ in "uvw")
    read, other = draw(st.sampled_from([("u", "v"), ("u", None), (None, None)]))
    step = Aff(
        read,
        other,
        draw(st.sampled_from(["w", "v"])) if v == w else "w",
        rng.uniform(-1, 1, (w, u)) if read else 1.0,
        rng.uniform(-1, 1, (w, v)) if other else 1.0,
        rng.uniform(-1, 1, w) if draw(st.booleans()) else None,
    )
    return step, placed(draw, u=u, v=v, w=w)


def draw_mul(draw: Any, rng: np.random.Generator) -> tuple[Step, dict[str, int]]:
    a, b, c = (draw(sizes) for _ in "abc")
    write = "u" if b == c and draw(st.booleans()) else "w"  # in place, if it fits
    return Mul(a, b, c, "u", "v", write), placed(draw, u=a * b, v=b * c, w=a * c)


def draw_dot(draw: Any, rng: np.random.Generator) -> tuple[Step, dict[str, int]]:
    size = draw(st.integers(1, 6))
    return Dot("u", "v", "w"), placed(draw, u=size, v=size, w=1)


def draw_div(draw: Any, rng: np.random.Generator) -> tuple[Step, dict[str, int]]:
    size = draw(sizes)
    return Div("u", "c", "w"), placed(draw, u=size, c=1, w=size)


DRAWS = {
    "mov": draw_mov,
    "aff": draw_aff,
    "mul": draw_mul,
    "dot": draw_dot,
    "div": draw_div,
}


def draw_state(rng: np.random.Generator, registers: dict[str, int]) -> np.ndarray:
    """Return numbers up to 1; divisors are away from 0, of both signs."""
    state = rng.uniform(-1, 1, (DATASETS, TIME, sum(registers.values())))
    if "c" in registers:
        c = state[..., Layout(registers).rows("c")]
        c[...] = np.sign(c) * (0.5 + np.abs(c))
    return state


@every_numerics
@law
@given(data=st.data(), seed=seeds)
def test_one_layer_is_one_primitive(
    data: st.DataObject, seed: int, chosen: Numerics, bound: float
):
    """And registers that it does not write come out bit by bit."""
    rng = np.random.default_rng(seed)
    drawn = DRAWS[data.draw(st.sampled_from(list(DRAWS)))]
    step, registers = drawn(data.draw, rng)
    assert largest_error(step, registers, draw_state(rng, registers), chosen) <= bound


def test_mov_leaves_other_columns_bit_by_bit(rng):
    registers = {"u": 2, "v": 2}
    state = draw_state(rng, registers)
    after = compute(Mov(1, 3, "u", "v"), registers, state, numerics())
    others = [0, 1, 2, 4]
    np.testing.assert_array_equal(after[:, others], state[:, others])


@law
@given(data=st.data(), seed=seeds)
def test_aff_dot_and_mul_are_each_one_raw(data: st.DataObject, seed: int):
    rng = np.random.default_rng(seed)
    drawn = data.draw(st.sampled_from([draw_aff, draw_mul, draw_dot]))
    step, registers = drawn(data.draw, rng)
    assert isinstance(step, Aff | Mul | Dot)
    layout, state = Layout(registers), draw_state(rng, registers)
    np.testing.assert_allclose(
        step.raw(layout).exact(state, layout), step.exact(state, layout), atol=1e-14
    )


@law
@given(data=st.data(), seed=seeds)
def test_dot_is_a_mul(data: st.DataObject, seed: int):
    rng = np.random.default_rng(seed)
    step, registers = draw_dot(data.draw, rng)
    layout, state = Layout(registers), draw_state(rng, registers)
    mul = Mul(1, registers["u"], 1, "u", "v", "w")
    np.testing.assert_allclose(
        mul.exact(state, layout), step.exact(state, layout), atol=1e-14
    )


def test_matrices_are_stored_by_rows():
    layout = Layout({"u": 4, "v": 4, "w": 4})
    state = np.array([[1.0, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 0]])
    after = Mul(2, 2, 2, "u", "v", "w").exact(state, layout)
    expected = np.array([[1, 2], [3, 4]]) @ np.array([[5, 6], [7, 8]])
    np.testing.assert_array_equal(after[0, 8:], expected.ravel())


def test_aff_writes_all_of_its_register():
    """Erratum 12: w = (i″, j″), not its first row alone."""
    layout = Layout({"u": 3, "w": 3})
    after = Aff("u", None, "w", 2.0).exact(np.ones((1, 6)), layout)
    np.testing.assert_array_equal(after[0, 3:], 2)


@reference_or_paper
def test_division_is_by_the_absolute_value(rng, chosen: Numerics, bound: float):
    """Erratum 51: not y/c."""
    registers = {"y": 2, "c": 1, "w": 2}
    state = rng.uniform(0.5, 1, (DATASETS, TIME, 5))
    state[..., 2] = -2
    after = compute(Div("y", "c", "w"), registers, state, chosen)
    np.testing.assert_allclose(after[..., 3:], state[..., :2] / 2, atol=bound)


def test_division_by_zero_means_zero():
    layout = Layout({"y": 1, "c": 1, "w": 1})
    after = Div("y", "c", "w").exact(np.array([[3.0, 0.0, 5.0]]), layout)
    np.testing.assert_array_equal(after, [[3, 0, 0]])


@reference_or_paper
def test_the_next_layer_puts_the_pads_back(
    rng, monkeypatch, chosen: Numerics, bound: float
):
    """Erratum 40: left as they are, they would divide in the next layer as well."""
    registers = {"y": 2, "c": 1, "w": 2, "p": 2}
    state = rng.uniform(0.5, 1, (DATASETS, TIME, 7))
    state[..., 2] = 4
    steps = [Div("y", "c", "w"), Div("y", "c", "w"), Mul(2, 1, 1, "y", "c", "p")]
    after = state
    for step in steps:
        after = step.exact(after, Layout(registers))
    assert distance(steps, registers, state, chosen, after) <= 10 * bound
    monkeypatch.setattr(assembly_module, "write_pads", lambda *_: None)
    assert distance(steps, registers, state, chosen, after) > 0.1


def distance(
    steps: list[Step],
    registers: dict[str, int],
    state: np.ndarray,
    chosen: Numerics,
    expected: np.ndarray,
) -> float:
    assembly = assemble(registers, steps, [state] * len(steps), TIME, chosen)
    h = np.repeat(assembly.positions[None], DATASETS, axis=0)
    h[..., : state.shape[-1]] = state
    columns = jnp.asarray(h)
    for depth in range(len(steps)):
        layer = layer_of(assembly.layers, depth)
        columns = apply(layer, columns, assembly.numerics.block)
    after = np.asarray(columns)[..., : state.shape[-1]]
    return float(np.max(np.abs(after - expected)))


def test_a_bypass_fails_beyond_its_shift(rng):
    """Erratum 35: N ≫ 1 is not enough, N must exceed every |x|; pairs need no N."""
    registers = {"u": 2, "w": 2}
    state = rng.uniform(600, 700, (DATASETS, TIME, 4)) * [-1, -1, 1, 1]
    step = Aff("u", None, "w")
    assert paper_numerics().bypass == 512
    assert largest_error(step, registers, state, paper_numerics()) > 1
    wide = replace(paper_numerics(), bypass=1e4)
    assert largest_error(step, registers, state, wide) < 1e-2
    assert largest_error(step, registers, state, numerics()) < 1e-12


def test_the_papers_pads_err_to_first_order(rng):
    """Errata 36, 38: the error falls as 1/N; with a reference row, as 1/N²."""
    registers, step = {"u": 2, "v": 2, "w": 1}, Dot("u", "v", "w")
    state = rng.uniform(0.5, 1, (DATASETS, TIME, 5))

    def error(pads: Any, pad: float) -> float:
        chosen = replace(numerics(), pads=pads, pad=pad)
        return largest_error(step, registers, state, chosen)

    for pads, order in (("paper", 1), ("reference", 2)):
        steps = np.log10(error(pads, 1e3) / error(pads, 1e4))
        assert steps == pytest.approx(order, abs=0.05)


@pytest.mark.parametrize(("a", "b", "c"), [(1, 4, 1), (2, 2, 2), (3, 1, 3)])
def test_a_mul_takes_abc_products(a: int, b: int, c: int):
    """Erratum 61: three units each by the paper's formula, and ac to overwrite."""
    registers = {"u": a * b, "v": b * c, "w": a * c}
    mul = Mul(a, b, c, "u", "v", "w")
    inner = assemble(registers, [mul], [1.0], TIME, paper_numerics()).layers.w_2
    assert inner.shape[1] == 3 * a * b * c + a * c


LAYOUT = Layout({"u": 3, "v": 2, "c": 1, "w": 3})


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Mov(1, 0, "u", "u"),  # erratum 8: as printed in appendix A
            "`target` must be at least 1, got 0. Attention is causal: nothing later "
            "can be read.",
        ),
        (lambda: Mov(-1, 0, "u", "u"), "`source` must be at least 0, got -1."),
        (
            lambda: Mov(0, 1, "v", "u").check(LAYOUT),
            "`v` must have size 3 for mov(0, 1, v, u), got 2.",
        ),
        (
            lambda: Mov(0, 7, "u", "u").exact(np.zeros((5, 9)), LAYOUT),
            "`target` must be one of the 5 columns, got 7.",
        ),
        (
            lambda: Mov(0, 1, "u", "W").check(LAYOUT),
            "`register` must be one of u, v, c, w, got 'W'.",
        ),
        (
            lambda: Aff("v", None, "w").check(LAYOUT),
            "`v` must have size 3 for aff(v, (), w), got 2.",
        ),
        (
            lambda: Aff("u", "v", "w", w_2=np.ones((2, 3))).check(LAYOUT),
            "`w_2` must have shape (3, 2) for `v` in aff(u, v, w), got (2, 3).",
        ),
        (
            lambda: Aff("u", None, "w", b=np.ones(2)).check(LAYOUT),
            "`b` must have shape (3,) for `w` in aff(u, (), w), got (2,).",
        ),
        (
            lambda: Mul(3, 1, 2, "u", "v", "w").check(LAYOUT),
            "`w` must have size 6 for mul(3, 1, 2, u, v, w), got 3.",
        ),
        (
            # Erratum 21: the last line of appendix B, as printed
            lambda: Mul(3, 1, 1, "u", "w", "c").check(LAYOUT),
            "`w` must have size 1 for mul(3, 1, 1, u, w, c), got 3.",
        ),
        (lambda: Mul(0, 1, 1, "u", "v", "w"), "`a` must be at least 1, got 0."),
        (
            lambda: Dot("u", "v", "c").check(LAYOUT),
            "`v` must have size 3 for dot(u, v, c), got 2.",
        ),
        (
            lambda: Div("u", "v", "w").check(LAYOUT),
            "`v` must have size 1 for div(u, v, w), got 2.",
        ),
        (
            lambda: Div("u", "c", "u"),
            "`write` must differ from `read`, which is divided only after attention, "
            "got 'u'.",
        ),
        (
            lambda: assemble(
                {"u": 1, "c": 1, "w": 1},
                [Div("u", "c", "w")],
                [1.0],
                TIME,
                replace(numerics(), pre_norm=True),
            ),
            "`pre_norm` must be off for an algorithm that divides, got True. The "
            "attention after a division would read everything divided.",
        ),
    ],
)
def test_refusals(make, message):
    with refuses(InvalidValueError, message):
        make()
