"""Traces hold what every register should hold and what it holds, step by step."""

import json
import re

import numpy as np
import pytest

from algoscope.construction.algorithms import SGD, LoopedSGD
from algoscope.construction.build import Construction
from algoscope.construction.compiler.compile import compile_program
from algoscope.construction.compiler.numerics import numerics
from algoscope.construction.language.interpreter import predictions
from algoscope.construction.language.program import Program
from algoscope.construction.paper.chain import theorem_1, theorem_2
from algoscope.construction.trace import (
    as_records,
    as_text,
    explanation,
    meanings,
    significant,
    trace_chain,
    trace_program,
)
from algoscope.model import stack
from algoscope.model.tokens import encode_context, example_tokens


@pytest.fixture(autouse=True)
def _one_compiled_body(monkeypatch: pytest.MonkeyPatch):
    """Share one body among the layers: it runs slower, but compiles at once."""
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", 0)


def test_the_trace_of_a_chain_holds_both_meanings():
    chain = theorem_2(4, 0.1)
    tokens = example_tokens(4, 1, 1, seed=1)[0]
    x, y = tokens[::2, 1:], tokens[1::2, 0]
    np.testing.assert_array_equal(encode_context(x, np.append(y, 0.0)), tokens)
    steps = trace_chain(chain, numerics(), x, y)
    assert [step.label for step in steps] == ["input", *chain.labels]
    states = chain.exact(tokens)
    assert len(steps) == len(states) == 14 + 1
    for step, state in zip(steps, states, strict=True):
        exact = [register.exact for register in step.registers.values()]
        np.testing.assert_array_equal(np.concatenate(exact, axis=1), state)
        assert step.largest_difference < 1e-10
    records = json.loads(json.dumps(as_records(steps)))
    assert records[14]["registers"]["prediction"]["counts"] == [False, False, True]


def test_a_trace_is_written_as_the_appendix_does():
    x, y = np.array([[0.5], [2.0]]), np.array([1.0])
    chain = theorem_1(1, np.array([1.0]), 0.25, 0.5)
    text = as_text(trace_chain(chain, numerics("float32"), x, y))
    blocks = text.split("\n\n")
    assert len(blocks) == 10
    assert blocks[1].splitlines() == [
        "1. move x: mov(0, 1, x, x)",
        "   attention  x = x (y₁ takes it from x₁)",
        "       x₁     y₁    query",
        "  y    (0)     1       (0)",
        "→ x  (0.5)   0.5        2",
        "largest difference 0.0e+00",
    ]


def test_the_trace_of_a_program_shows_registers_as_long_as_they_are_needed():
    construction = Construction(SGD(0.05), dim=2, num_examples=2)
    compiled = construction.compile()
    tokens = example_tokens(2, 2, 1, seed=1)
    steps = trace_program(compiled, compiled.transformer, tokens)
    assert [step.label for step in steps] == ["input", *map("layer {}".format, "1234")]
    assert max(step.largest_difference for step in steps) < 1e-12
    first, last = steps[1], steps[-1]
    assert first.writes == ("x1", "y1", "w1")
    assert "w1 = 0.1 · x1 · y1" in first.operation
    assert [line.part for line in first.lines] == ["attention", "attention", "MLP"]
    assert first.tokens == ["x₁", "y₁", "x₂", "y₂", "query"]
    assert {"w1", "token"} <= set(first.registers)
    assert list(last.registers) == ["prediction"]
    found = last.registers["prediction"].computed[::2, 0]
    np.testing.assert_allclose(
        found, predictions(compiled.program, tokens)[0], atol=1e-12
    )


def test_a_trace_shows_exact_numbers_or_differences_on_request():
    compiled = Construction(SGD(0.05), dim=1, num_examples=1).compile()
    tokens = np.array([[[0.0, 2.0], [3.0, 0.0], [0.0, 1.0]]])
    steps = trace_program(compiled, compiled.transformer, tokens)
    exact = as_text(steps[1:2], "exact", first=1)
    assert exact.startswith("1. layer 1\n   attention  x1 = x at x₁")
    (w,) = (line for line in exact.splitlines() if line.startswith("→ w1"))
    assert w.split()[2:] == ["0", "0.6", "0.6"]  # 2αxy, after the label
    difference = as_text(steps[1:2], "difference", first=1)
    assert "→ w1" in difference
    assert "0.6" not in difference


def test_rounding_errors_of_zeros_are_shown_as_zeros():
    compiled = Construction(SGD(0.05, 0.1), dim=2, num_examples=2).compile()
    steps = trace_program(compiled, compiled.transformer, example_tokens(2, 2, 1))
    last = steps[-1].registers["prediction"]
    assert last.exact[0] == 0
    assert last.computed[0] != 0  # what a product leaves of it
    (row,) = (line for line in as_text(steps).splitlines() if "→ prediction" in line)
    assert row.split()[2:4] == ["0", "0"]
    (row,) = (r for r in steps[-1].rows() if r.name == "prediction")
    assert steps[-1].text(row, 0, "difference") != "0"  # asked for, it is shown
    assert significant(-3.4e-35, least=2.2e-16) == "0"
    assert significant(float("nan"), least=1.0) == "nan"


def test_a_trace_tells_x_of_the_token_from_a_register_of_this_name():
    compiled = Construction(LoopedSGD(0.05), dim=1, num_examples=2).compile()
    steps = trace_program(compiled, compiled.transformer, example_tokens(1, 2, 1))
    assert str(steps[1].lines[0]) == "x = token.x one token before"
    names = [row.name for row in steps[1].rows()]
    assert names[:2] == ["token.y", "token.x"]
    assert "x" in names


def test_a_trace_explains_what_it_shows():
    x, y = np.array([[0.5], [2.0]]), np.array([1.0])
    steps = trace_chain(theorem_2(1, 0.5), numerics(), x, y)
    text = explanation(steps, "difference")
    assert text.startswith("How to read it. Shown is what the weights compute minus")
    for sign in ("→", "( )", "columns", "rows", "difference", "u · v", "/ ‖v‖"):
        assert f"\n  {sign} " in text
    compiled = Construction(SGD(0.05), dim=1, num_examples=1).compile()
    steps = trace_program(compiled, compiled.transformer, example_tokens(1, 1, 1))
    assert "( )" not in meanings(steps)  # everything counts


def test_a_read_out_that_computes_has_a_line_of_its_own():
    program = Program(1, 1)
    z = program.dot(program.x, program.x, "z")
    program.predict(0.5 * z + 1)
    last = compile_program(program).listing[-1]
    assert re.sub(" +", " ", str(last)) == "L1 read-out output = 0.5 · z + 1"
