"""Formulas say what events compute, as a reader would write it."""

import numpy as np
import pytest

from algoscope.construction.algorithms import ALGORITHMS, SGD
from algoscope.construction.language.formulas import formula, text
from algoscope.construction.language.values import Register, Value, constant, join
from algoscope.construction.paper.as_program import program_of_chain
from algoscope.construction.paper.chain import theorem_1, theorem_2

U, W = Value.of(Register("u", 2)), Value.of(Register("w", 2))

FORMS = {
    "0": 0 * U,
    "u": U,
    "−u": -U,
    "0.5 · u − w": 0.5 * U - W,
    "u[2]": U[1:],
    "(u, w)": join([U, W]),
    "(u, 2 · w[1])": join([U, 2 * W[:1]]),
    "(1, −2)ᵀ u": np.array([[1.0, -2.0]]) @ U,
    "[u] + 1": np.array([[1.0, -2.0], [3.0, 4.0]]) @ U + 1.0,
    "(10, 0)": constant([10.0, 0.0]),
}


@pytest.mark.parametrize("expected", FORMS)
def test_linear_forms(expected):
    assert text(FORMS[expected]) == expected


def shown(program) -> list[str]:
    return [f"{each.out.name} = {formula(each)}" for each in program.events]


def test_sgd_is_written_as_in_a_textbook():
    assert shown(SGD(0.05).program(2, 2)) == [
        "x1 = x at x1",
        "y1 = y at y1",
        "w1 = 0.1 · x1 ⊙ y1",
        "x2 = x at x2",
        "y2 = y at y2",
        "w·x2 = w1ᵀ x2",
        "w2 = w1 − 0.1 · x2 ⊙ (w·x2 − y2)",
        "prediction = w2ᵀ x",
    ]


def test_the_theorems_are_written_line_by_line():
    assert shown(
        program_of_chain(theorem_1(1, np.array([0.5]), 0.05, 0.1)).program
    ) == [
        "x = x (y1 takes it from x1)",
        "wx = 0.5 · x",
        "e = wx − y",
        "xe = x · e",
        "w = 0.5",
        "g = xe + 0.1 · w",
        "w = w − 0.1 · g",
        "w = w (x2 takes it from y1)",
        "prediction = w · x",
    ]
    second = shown(program_of_chain(theorem_2(2, 0.1)).program)
    assert second[2:4] == ["A = (10, 0, 0, 10)", "Au = A × x"]
    assert second[7:10] == ["c = c + 1", "right = AuvA / |c|", "A = A − right"]


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_event_of_every_algorithm_has_a_formula(name):
    for event in ALGORITHMS[name]().program(2, 1).events:
        found = formula(event)
        assert found
        sources = {each for value in event.inputs for each in value.terms}
        for register in sources:
            assert register.name in found or register.name == "token"
