"""Formulas say what events compute: computing what is printed gives their numbers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.formula_reader import agrees
from support.programs import brief, make_tokens, recipes

from algoscope.construction.algorithms import ALGORITHMS, SGD, Newton
from algoscope.construction.language import factors
from algoscope.construction.language.bilinear import triangle_places
from algoscope.construction.language.formulas import distinct_names, formula, text
from algoscope.construction.language.notation import Notation, legend
from algoscope.construction.language.program import Program
from algoscope.construction.language.timesteps import PREVIOUS, Sets
from algoscope.construction.language.values import (
    Head,
    Register,
    Value,
    constant,
    join,
)
from algoscope.construction.paper.as_program import program_of_chain
from algoscope.construction.paper.chain import (
    ridge_chain,
    sgd_chain,
    theorem_1,
    theorem_2,
)
from algoscope.model.tokens import example_tokens

U, W = Value.of(Register("u", 2)), Value.of(Register("w", 2))
P = Value.of(Register("P", 3))

FORMS = {
    "0": 0 * U,
    "u": U,
    "−u": -U,
    "0.5 · u − w": 0.5 * U - W,
    "w − 0.5 · u": W - 0.5 * U,
    "u[2]": U[1:],
    "(u, w)": join([U, W]),
    "(u, 2 · w[1])": join([U, 2 * W[:1]]),
    "(1, −2)ᵀ u": np.array([[1.0, -2.0]]) @ U,
    "sum(u)": np.ones((1, 2)) @ U,
    "(1, −2) ⊙ u": np.diag([1.0, -2.0]) @ U,
    "[1 −2; 3 4] × u + 1": np.array([[1.0, -2.0], [3.0, 4.0]]) @ U + 1.0,
    "(10, 0)": constant([10.0, 0.0]),
    "sym(P)": P.take(triangle_places(2).ravel()),
    "P[1, 3]": P.take(np.array([0, 2])),
    "⟨a + b⟩": Value.of(Register("a + b", 1)),
}


@pytest.mark.parametrize("expected", FORMS)
def test_linear_forms(expected):
    assert text(FORMS[expected]) == expected


def test_long_constants_are_counted_instead_of_written():
    wide = Value.of(Register("v", 5))
    assert text(np.arange(20.0).reshape(4, 5) @ wide) == "[4×5 constants] × v"
    assert text(wide + np.arange(5.0)) == "v + (0, 1, 2, 3, 4)"
    assert text(constant(np.arange(20.0))) == "(20 constants)"


def shown(program) -> list[str]:
    return [f"{each.out.name} = {formula(each)}" for each in program.events]


def test_sgd_is_written_as_in_a_textbook():
    assert shown(SGD(0.05).program(2, 2)) == [
        "x1 = x at x₁ for later tokens",
        "y1 = y at y₁",
        "w1 = 0.1 · x1 · y1",
        "x2 = x at x₂ for later tokens",
        "y2 = y at y₂",
        "w·x2 = w1ᵀ x2",
        "w2 = w1 − 0.1 · x2 · (w·x2 − y2)",
        "prediction = w2ᵀ x",
    ]
    decaying = shown(SGD(0.05, 0.1).program(2, 2))[-2]
    assert decaying == "w2 = w1 − 0.1 · x2 · (w·x2 − y2) − 0.01 · w1 · seen2"


def test_the_theorems_are_written_line_by_line():
    assert shown(
        program_of_chain(theorem_1(1, np.array([0.5]), 0.05, 0.1)).program
    ) == [
        "x = x (y₁ takes it from x₁)",
        "wx = 0.5 · x",
        "e = wx − y",
        "xe = x · e",
        "w = 0.5",
        "g = xe + 0.1 · w",
        "w = w − 0.1 · g",
        "w = w (query takes it from y₁)",
        "prediction = w · x",
    ]
    second = shown(program_of_chain(theorem_2(2, 0.1)).program)
    assert second[2:7] == [
        "A = (10, 0, 0, 10)",
        "Au = A[2×2] × x",
        "vA = xᵀ × A[2×2]",
        "AuvA = Au vAᵀ",
        "c = vAᵀ x",
    ]
    assert second[7:10] == ["c = c + 1", "right = AuvA / |c|", "A = A − right"]


def test_second_order_methods_are_written_with_matrices():
    names = Notation(
        names=distinct_names((rls := ALGORITHMS["rls"]()).program(2, 2).events)
    )
    program = rls.program(2, 2)
    written = {e.out.name: formula(e, names) for e in program.events}
    assert written["P1"] == (
        "0.0526316 · (1, 0, 1) · seen1 + (1, 0, 1) − 1.05263 · upper(g1 x1ᵀ)"
    )
    assert written["u2, w·x2"] == "(sym(P1) × x2, w1ᵀ x2)"
    newton = Newton(steps=2).program(3, 2)
    written = {e.out.name: formula(e) for e in newton.events}
    assert written["S²"] == "upper(sym(mean[1–6]) × sym(mean[1–6]))"
    assert written["Mx"].startswith("sym(")


def test_names_that_would_mean_two_things_are_told_apart():
    program = Program(1, 1)
    first = program.read(program.x, PREVIOUS, "x")
    program.store(program.y + first, "x")
    last = program.store(first + program.x, "token")
    program.predict(last)
    notation = Notation(names=distinct_names(program.events))
    assert [
        f"{notation.name(e.out)} = {formula(e, notation)}" for e in program.events
    ] == [
        "x = token.x one token before",
        "⟨x (2)⟩ = token.y + x",
        "⟨token (2)⟩ = x + token.x",
    ]


def test_a_legend_explains_what_is_there_and_nothing_else():
    assert list(legend(["x at x₁", "w1ᵀ x2 − ⟨a, b⟩[2]"])) == [
        "x, y",
        "v at x₂",
        "uᵀ v",
        "v[2–3]",
        "⟨u, v⟩",
    ]
    assert legend(["w1 − 2"]) == {}


@pytest.mark.parametrize(("dim", "num_examples"), [(1, 2), (2, 1), (3, 3)])
@pytest.mark.parametrize("name", ALGORITHMS)
def test_formulas_of_every_algorithm_are_right(name, dim, num_examples):
    if name == "ridge_one":
        num_examples = 1
    if name == "ols":
        num_examples = min(num_examples, dim)
    algorithm = ALGORITHMS[name]()
    program = algorithm.program(dim, num_examples)
    agrees(program, algorithm.examples(dim, num_examples, 2, 5))


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_formulas_of_the_paper_s_chains_are_right(dim, rng):
    w = rng.normal(size=dim)
    for chain in (
        theorem_1(dim, w, 0.05, 0.1),
        theorem_2(dim, 0.1),
        sgd_chain(dim, 3, w, 0.05, 0.1),
        ridge_chain(dim, 2, 0.3),
    ):
        tokens = example_tokens(dim, chain.num_examples, 2, seed=3)
        agrees(program_of_chain(chain).program, tokens)


@brief
@given(recipes())
def test_formulas_of_random_programs_are_right(recipe):
    agrees(recipe.program(), make_tokens(recipe.dim, recipe.num_examples))


def some_form(rng: np.random.Generator, sources: list[Value], size: int) -> Value:
    """Return a form that selects, repeats and scales, as algorithms do."""
    total = constant(np.zeros(size))
    for _ in range(rng.integers(1, 3)):
        value = sources[rng.integers(len(sources))]
        matrix = np.zeros((size, value.size))
        matrix[np.arange(size), rng.integers(value.size, size=size)] = rng.choice(
            [1.0, 1.0, -1.0, 0.5, 0.0]
        )
        if rng.random() < 0.3:
            matrix *= rng.integers(1, 3, size=(size, 1))
        total = total + matrix @ value
    if rng.random() < 0.3:
        total = total + rng.integers(-1, 2, size=size).astype(float)
    return total


@brief
@given(st.integers(0, 2**32 - 1))
def test_formulas_of_products_of_selected_components_are_right(seed):
    rng = np.random.default_rng(seed)
    program = Program(int(rng.integers(1, 4)), 2)
    sources = [program.x, program.y, program.store(program.x + 1.0, "u")]
    for _ in range(3):
        size, count = int(rng.integers(1, 7)), int(rng.integers(1, 7))
        p, q = (some_form(rng, sources, count) for _ in "pq")
        mix = rng.choice([0.0, 0.0, 1.0, 1.0, -0.3], size=(size, count))
        made = program.multiply(p, q, mix, plus=some_form(rng, sources, size))
        if rng.random() < 0.3:
            norm = join([some_form(rng, sources, 2), constant(1.0)])
            made = program.multiply(made, made, norm=norm)
        sources.append(made)
    agrees(program, make_tokens(program.dim, 2, seed % 100))


def matrix_products(program: Program, rng: np.random.Generator) -> None:
    """Write products of matrices of all kinds of shapes."""
    a, b, c = (int(n) for n in rng.integers(1, 4, size=3))
    left = program.store(some_form(rng, [program.x, program.y], a * b), "A")
    right = program.store(some_form(rng, [program.x, program.y], b * c), "B")
    i, k, j = np.indices((a, c, b)).reshape(3, -1)
    mix = rng.choice([1.0, -2.0]) * np.kron(np.eye(a * c), np.ones((1, b)))
    scales = rng.choice([1.0, 3.0], size=a * c)
    program.multiply(
        left.take(i * b + j), right.take(j * c + k), scales[:, None] * mix, name="AB"
    )


@brief
@given(st.integers(0, 2**32 - 1))
def test_formulas_of_matrix_products_are_right(seed):
    rng = np.random.default_rng(seed)
    program = Program(2, 2)
    matrix_products(program, rng)
    agrees(program, make_tokens(2, 2, seed % 100))


def test_attention_by_content_is_written_out():
    program = Program(2, 2)
    one = constant(1.0)
    gates = [Head(program.x[k], one, constant(np.eye(2)[k])) for k in range(2)]
    gate = program.attend(gates, PREVIOUS, name="gate")
    own = program.attend(
        [Head(2 * program.y, one, program.x)],
        Sets(tuple((i,) for i in range(5))),
        name="own",
    )
    assert formula(program.events[0]) == (
        "softmax(x[1] · 1) (1, 0) + softmax(x[2] · 1) (0, 1) one token before"
    )
    assert formula(program.events[1]) == "softmax((2 · y) · 1) x"
    program.predict(program.dot(gate, own))
    agrees(program, make_tokens(2, 2))


def test_products_that_are_like_nothing_are_written_as_they_are(monkeypatch):
    monkeypatch.setattr(factors, "MOST_COEFFICIENTS", 0)  # so that none are looked at
    for name in ("sgd_scan", "rls", "newton"):
        agrees(ALGORITHMS[name]().program(2, 2), example_tokens(2, 2, 2, seed=1))
    dot = factors.ShownProducts(U, W, np.array([[2.0, 3.0]]))
    written = factors.Factoring(Notation()).shortest(dot)
    assert written == "[2 3] × (u ⊙ w)"
