"""Programs in the page mean and compute what they do in Python."""

import jax.numpy as jnp
import numpy as np
import pytest
from support.browser import opened

from algoscope.construction.algorithms import ALGORITHMS, SGD, Ridge
from algoscope.construction.build import Construction
from algoscope.construction.compiler.numerics import numerics
from algoscope.construction.language.interpreter import interpret
from algoscope.construction.paper.chain import theorem_1, theorem_2
from algoscope.construction.trace import TracedStep, trace_chain, trace_program
from algoscope.model import stack
from algoscope.model.tokens import encode_context, example_tokens
from algoscope.playground.constructions import EXAMPLES, START, constructions
from algoscope.playground.programs import program_data

pytestmark = pytest.mark.optimized  # Rounding is the matter.

INTERPRET = '([data, tokens]) => modules["interpreter.js"].interpret(data, tokens)'
TRACE = """async ([index, x, y]) => {
  const prepared = JSON.parse(document.getElementById("constructions").textContent);
  const model = await modules["models.js"].loadEmbedded(prepared[index]);
  const trace = modules["trace.js"].traceModel(model, x, y);
  return trace.steps.map(({ label, entries }) => ({
    label,
    registers: entries.map(({ name, exact, computed, counts, isWritten }) => (
      { name, exact, computed, counts: counts && [...counts], isWritten })),
  }));
}"""


@pytest.fixture(autouse=True)
def _one_compiled_body(monkeypatch: pytest.MonkeyPatch):
    """Share one body among the layers: it runs slower, but compiles at once."""
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", 0)


@pytest.fixture(scope="module")
def page(default_file, browser):
    with opened(browser, default_file, width=800) as watched:
        watched.page.evaluate("window.algoscope.ready.then(() => 1)")
        yield watched.page
        assert watched.logged == []


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_interpreter_agrees_on_every_algorithm(page, name):
    examples = 1 if name == "ridge_one" else 2
    construction = Construction(ALGORITHMS[name](), 2, examples)
    program = construction.arrange().program
    tokens = example_tokens(2, examples, 1, seed=3)
    expected = interpret(program, tokens)
    data = program_data(construction.arrange())
    found = page.evaluate(INTERPRET, [data, tokens[0].tolist()])
    registers = [program.token, *program.positions, *(e.out for e in program.events)]
    assert [r.name for r in registers] == [n for n, _ in data["program"]["registers"]]
    for register, columns in zip(registers, found, strict=True):
        wanted = expected[register][0]
        scale = max(1.0, float(np.max(np.abs(wanted))))
        np.testing.assert_allclose(
            np.reshape(columns, wanted.shape), wanted, atol=1e-9 * scale
        )


def traced(family: str, dim: int, x, y, penalty: float = 0.1) -> list[TracedStep]:
    """Return the trace in Python of a construction with its usual learning rate."""
    if family == "theorem 1":
        chain = theorem_1(dim, np.full(dim, START), 0.05, 0.1)
        return trace_chain(chain, numerics(), x, y[:-1])
    if family == "theorem 2":
        return trace_chain(theorem_2(dim, 0.1), numerics(), x, y[:-1])
    algorithm = SGD(0.05, 0.0) if family == "sgd" else Ridge(penalty)
    compiled = Construction(algorithm, dim, EXAMPLES).compile()
    tokens = np.asarray(encode_context(jnp.asarray(x), jnp.asarray(y)))[None]
    return trace_program(compiled, compiled.transformer, tokens)


@pytest.mark.parametrize(
    ("family", "dim", "changed"),
    [
        ("theorem 1", 1, {}),
        ("theorem 2", 2, {}),
        ("sgd", 2, {}),
        ("ridge", 1, {}),
        ("ridge", 1, {"λ": 0.01}),  # which has a program of its own
    ],
)
def test_a_trace_in_the_page_is_that_of_python(page, rng, family, dim, changed):
    prepared = [each for d in (1, 2) for each in constructions(d)]
    (index,) = (
        place
        for place, each in enumerate(prepared)
        if (each["family"], each["dim"]) == (family, dim)
        and all(
            (each["usual"] | changed)[k] == v for k, v in each["parameters"].items()
        )
    )
    examples = 1 if family.startswith("theorem") else EXAMPLES - 1
    x = rng.normal(size=(examples + 1, dim))
    y = np.append(x[:-1] @ rng.normal(size=dim), 0.0)
    steps = page.evaluate(TRACE, [index, x.tolist(), y.tolist()])
    expected = traced(family, dim, x, y, *changed.values())
    assert [each["label"] for each in steps] == [each.label for each in expected]
    for found, wanted in zip(steps, expected, strict=True):
        names = [each["name"] for each in found["registers"]]
        assert len(set(names)) == len(names)
        for each in found["registers"]:
            exact = np.array(each["exact"])
            np.testing.assert_allclose(each["computed"], exact, atol=1e-8)
            register = wanted.registers.get(each["name"])
            if register is None:  # y and x of the token, or what was just read
                continue
            np.testing.assert_allclose(exact, register.exact, atol=1e-12)
            np.testing.assert_allclose(each["computed"], register.computed, atol=1e-9)
            if each["counts"] is not None:
                assert each["counts"] == np.flatnonzero(register.counts).tolist()
        shown = {"token" if n in "xy" and examples > 1 else n for n in names}
        held = {n for n, r in wanted.registers.items() if r.exact.any()}
        assert held <= shown
        lit = {each["name"] for each in found["registers"] if each["isWritten"]}
        if found is not steps[0]:
            assert lit == set(wanted.writes)
