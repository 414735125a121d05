"""A chain and its program mean the same, after every line and in every column."""

import numpy as np
import pytest
from support.refusals import refuses

from algoscope.construction.language.interpreter import evaluate, interpret
from algoscope.construction.language.storage import load_program, save_program
from algoscope.construction.paper.as_program import program_of_chain
from algoscope.construction.paper.chain import (
    Chain,
    ridge_chain,
    sgd_chain,
    theorem_1,
    theorem_2,
)
from algoscope.construction.paper.primitives import Dot
from algoscope.construction.paper.steps import Layout
from algoscope.foundation.validation import InvalidTypeError
from algoscope.model.tokens import example_tokens

CHAINS = {
    "theorem 1": theorem_1(2, np.array([0.5, -1.0]), 0.05, 0.1),
    "theorem 2": theorem_2(2, 0.1),
    "sgd": sgd_chain(3, 3, np.zeros(3), 0.05, 0.1),
    "ridge": ridge_chain(2, 3, 0.1),
}


@pytest.mark.parametrize("name", CHAINS)
def test_a_program_holds_what_its_chain_holds(name):
    chain = CHAINS[name]
    tokens = example_tokens(chain.dim, chain.num_examples, 5, seed=1)
    written, states = program_of_chain(chain), chain.exact(tokens)
    state, layout = interpret(written.program, tokens), Layout(chain.registers)
    assert len(written.lines) == len(chain.steps)
    assert len(written.holds) == len(states)
    for held, expected in zip(written.holds, states, strict=True):
        for register, value in held.items():
            rows = layout.rows(register)
            np.testing.assert_allclose(
                evaluate(value, state), expected[..., rows], rtol=1e-12, atol=1e-12
            )


def test_it_can_be_saved(tmp_path):
    program = program_of_chain(CHAINS["theorem 2"]).program
    save_program(program, tmp_path / "program.safetensors")
    loaded = load_program(tmp_path / "program.safetensors")
    assert [each.out.name for each in loaded.events] == [
        each.out.name for each in program.events
    ]


def test_steps_in_parallel_are_several_events_of_one_line():
    first = CHAINS["theorem 1"]
    (_, write), rest = first.lines[4], first.lines[5:]
    merged = [*first.lines[:3], ("both", [first.lines[3][1], write]), *rest]
    chain = Chain(2, 1, first.registers, merged)
    written = program_of_chain(chain)
    assert [each.out.name for each in written.lines[3]] == ["xe", "w"]
    tokens = example_tokens(2, 1, 4, seed=2)
    found = evaluate(written.program.prediction, interpret(written.program, tokens))
    np.testing.assert_allclose(found[:, -1, 0], chain.predict(tokens), rtol=1e-12)


def test_other_steps_are_refused():
    registers = {"y": 1, "x": 2, "prediction": 1}
    chain = Chain(2, 1, registers, [("xᵀx", Dot("x", "x", "prediction"))])
    with refuses(InvalidTypeError, "`step` must be a mov, aff, mul or div, got Dot."):
        program_of_chain(chain)
