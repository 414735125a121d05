"""The theorems as transformers: closed forms, layer counts and errata."""

from dataclasses import replace
from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest
from equinox import filter_jit
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope.construction.compiler.numerics import Numerics, numerics, paper_numerics
from algoscope.construction.paper.chain import (
    Chain,
    ridge_chain,
    sgd_chain,
    theorem_1,
    theorem_2,
)
from algoscope.construction.paper.primitives import Aff, Mul
from algoscope.construction.paper.raw import Mov
from algoscope.construction.paper.steps import Layout
from algoscope.foundation.validation import InvalidValueError
from algoscope.model import stack
from algoscope.model.tokens import example_tokens
from algoscope.model.transformer import Transformer

DIM, LEARNING_RATE, PENALTY = 4, 1 / 12, 0.1
W = np.array([0.5, -1.0, 0.25, 1.5])
NUM_DATASETS = 8

law = settings(max_examples=25)


@pytest.fixture(autouse=True)
def _one_compiled_body(monkeypatch: pytest.MonkeyPatch):
    """Share one body among the layers: it runs slower, but compiles at once."""
    monkeypatch.setattr(stack, "UNROLLED_LAYERS", 0)


@filter_jit
def run(model: Transformer, tokens):
    return model(tokens).output[..., -1]


def sgd(tokens: np.ndarray, *, decays_start: bool = False) -> np.ndarray:
    """Return wᵀx after one pass of w ← w − 2α(x(wᵀx − y) + λw), written in loops."""
    predictions = []
    for dataset in tokens:
        x, y, w = dataset[::2, 1:], dataset[1::2, 0], W
        for x_i, y_i in zip(x, y, strict=False):
            decay = PENALTY * (W if decays_start else w)
            w = w - 2 * LEARNING_RATE * (x_i * (w @ x_i - y_i) + decay)
        predictions.append(w @ x[-1])
    return np.array(predictions)


def ridge(tokens: np.ndarray) -> np.ndarray:
    """Return wᵀx for w = (XᵀX + λI)⁻¹Xᵀy."""
    predictions = []
    for dataset in tokens:
        x, y = dataset[:-1:2, 1:], dataset[1::2, 0]
        w = np.linalg.solve(x.T @ x + PENALTY * np.eye(DIM), x.T @ y)
        predictions.append(w @ dataset[-1, 1:])
    return np.array(predictions)


@cache
def compiled(chain: Chain, chosen: Numerics) -> Transformer:
    return chain.compile(chosen)


def errors(chain: Chain, chosen: Numerics, reference, seed: int = 1) -> np.ndarray:
    """Return how far the transformer's predictions are from the closed form."""
    tokens = example_tokens(DIM, chain.num_examples, NUM_DATASETS, seed)
    tokens = tokens.astype(chosen.dtype).astype(np.float64)
    predicted = run(compiled(chain, chosen), jnp.asarray(tokens, chosen.dtype))
    return np.abs(np.asarray(predicted, np.float64) - reference(tokens))


CHAINS = {
    "theorem 1": (theorem_1(DIM, W, LEARNING_RATE, PENALTY), sgd, 9),
    "theorem 2": (theorem_2(DIM, PENALTY), ridge, 14),
    "sgd 1": (sgd_chain(DIM, 1, W, LEARNING_RATE, PENALTY), sgd, 9),
    "sgd 4": (sgd_chain(DIM, 4, W, LEARNING_RATE, PENALTY), sgd, 33),
    "sgd 9": (sgd_chain(DIM, 9, W, LEARNING_RATE, PENALTY), sgd, 73),
    "ridge 1": (ridge_chain(DIM, 1, PENALTY), ridge, 15),
    "ridge 4": (ridge_chain(DIM, 4, PENALTY), ridge, 57),
    "ridge 9": (ridge_chain(DIM, 9, PENALTY), ridge, 127),
}
every_chain = pytest.mark.parametrize(
    ("chain", "reference", "depth"), CHAINS.values(), ids=list(CHAINS)
)


@every_chain
def test_the_exact_meaning_is_the_closed_form(chain, reference, depth):
    tokens = example_tokens(DIM, chain.num_examples, NUM_DATASETS, seed=1)
    np.testing.assert_allclose(chain.predict(tokens), reference(tokens), atol=1e-12)


@every_chain
def test_there_is_a_layer_for_every_line(chain, reference, depth):
    assert len(chain.lines) == depth
    if chain.num_examples < 9:
        assert compiled(chain, numerics("float32")).num_layers == depth


@pytest.mark.parametrize(
    ("name", "double", "single"),
    [
        ("theorem 1", 2e-12, 5e-5),
        ("theorem 2", 5e-11, 1e-3),
        ("sgd 4", 2e-12, 5e-5),
        ("ridge 4", 5e-10, 5e-3),
    ],
)
def test_the_transformer_predicts_the_closed_form(name, double, single):
    chain, reference, _ = CHAINS[name]
    assert errors(chain, numerics(), reference).max() < double
    assert errors(chain, numerics("float32"), reference).max() < single


@pytest.mark.parametrize(
    "chosen",
    [
        numerics("float64", "gelu_tanh"),
        replace(numerics(), layer_norm_epsilon=1e-5),
    ],
    ids=["tanh", "epsilon"],
)
def test_in_other_blocks(chosen: Numerics):
    chain, reference, _ = CHAINS["theorem 2"]
    assert errors(chain, chosen, reference).max() < 5e-11


def test_sgd_in_the_modern_block():
    """Where attention reads through LayerNorm as well."""
    chain, reference, _ = CHAINS["theorem 1"]
    chosen = replace(numerics(), pre_norm=True)
    assert errors(chain, chosen, reference).max() < 1e-10


@pytest.mark.parametrize(
    ("name", "dtype", "measured"),
    [
        ("theorem 1", "float64", 5.4e-8),
        ("theorem 1", "float32", 5.4e-4),
        ("theorem 2", "float64", 8.7e-7),
        ("theorem 2", "float32", 2.5e-2),
    ],
)
def test_the_papers_formulas_reach_what_they_can(name, dtype, measured):
    """And no more: thousands of times the error of the identities."""
    chain, reference, _ = CHAINS[name]
    found = np.median(errors(chain, paper_numerics(dtype), reference))
    assert measured / 30 < found < measured * 30
    assert found > 10 * np.median(errors(chain, numerics(dtype), reference))


@law
@given(
    w=st.lists(st.floats(-2, 2), min_size=DIM, max_size=DIM),
    learning_rate=st.floats(0, 0.5),
    penalty=st.floats(0, 2),
    seed=st.integers(0, 2**32),
)
def test_theorem_1_for_any_start_rate_and_penalty(w, learning_rate, penalty, seed):
    start = np.array(w)
    chain = theorem_1(DIM, start, learning_rate, penalty)

    def reference(tokens):
        x, y, query = tokens[:, 0, 1:], tokens[:, 1, :1], tokens[:, 2, 1:]
        slope = x * (x @ start[:, None] - y) + penalty * start
        return np.sum((start - 2 * learning_rate * slope) * query, axis=1)

    assert errors(chain, numerics(), reference, seed).max() < 2e-11


def test_sgd_of_one_step_is_theorem_1():
    chain, stacked = CHAINS["theorem 1"][0], CHAINS["sgd 1"][0]
    assert list(map(str, chain.steps)) == list(map(str, stacked.steps))


def test_the_hidden_size_does_not_grow_with_the_examples():
    """Erratum 19: one code of three units, where the paper takes 2T for every layer."""
    for kind in ("sgd", "ridge"):
        one, four = (CHAINS[f"{kind} {n}"][0] for n in (1, 4))
        models = [compiled(chain, numerics("float32")) for chain in (one, four)]
        assert models[0].w_e.shape == models[1].w_e.shape


def test_registers_take_the_papers_rows():
    first, second = CHAINS["theorem 1"][0], CHAINS["theorem 2"][0]
    # Erratum 16: the paper's prediction is in the first row of the gradient.
    assert sum(first.registers.values()) == 4 * DIM + 3 + 1
    assert sum(second.registers.values()) == 3 * DIM**2 + 5 * DIM + 3


def printed(chain: Chain, place: int, step, reference) -> float:
    """Return how far off a chain is with one line as the paper prints it."""
    label, _ = chain.lines[place]
    lines = [*chain.lines[:place], (label, step), *chain.lines[place + 1 :]]
    wrong = replace(chain, lines=lines)
    tokens = example_tokens(DIM, chain.num_examples, NUM_DATASETS, seed=1)
    return float(np.max(np.abs(wrong.predict(tokens) - reference(tokens))))


@pytest.mark.parametrize("factor", [-1, -2])
def test_the_penalty_is_added(factor: int):
    """Errata 13, 14: −λ and −2λ are printed."""
    chain = CHAINS["theorem 1"][0]
    assert chain.labels[5] == "x(wᵀx − y) + λw"
    step = Aff("xe", "w", "g", w_2=factor * PENALTY)
    assert printed(chain, 5, step, sgd) > 1e-2


def test_later_steps_read_w_from_its_register():
    """Erratum 18: with the constant w of line 2, "repeat this iteration" is not SGD."""
    chain = CHAINS["sgd 4"][0]
    place = 8 + 2
    assert chain.labels[place] == "wᵀx"
    assert printed(chain, place, Aff("x", None, "wx", w_1=W[None]), sgd) > 1e-2


def test_the_second_step_decays_the_second_w():
    """Erratum 17: w″ = w′ − 2α(… + λw) is printed."""
    chain, reference, _ = CHAINS["sgd 4"]
    tokens = example_tokens(DIM, 4, NUM_DATASETS, seed=1)
    wrong = reference(tokens, decays_start=True)
    assert np.abs(chain.predict(tokens) - wrong).max() > 1e-2


@pytest.mark.parametrize("moved", ["move A1⁻¹", "move b1"])
def test_the_inverse_and_the_sum_have_to_be_moved(moved: str):
    """Erratum 22."""
    chain = CHAINS["ridge 4"][0]
    idle = Mov(0, 0, "y", "y")
    assert printed(chain, chain.labels.index(moved), idle, ridge) > 1e-2


def test_the_first_product_of_theorem_2_is_dead():
    """Erratum 20: 13 lines suffice for one example."""
    chain = CHAINS["theorem 2"][0]
    assert printed(chain, 1, Mov(0, 0, "y", "y"), ridge) < 1e-12


def test_every_column_multiplies_its_own_x():
    """Erratum 15: x₂wᵀx₂ in the third column, where x₂wᵀx₁ is printed."""
    chain = CHAINS["theorem 1"][0]
    tokens = example_tokens(DIM, 1, 1, seed=1)[0]
    rows = Layout(chain.registers).rows("xe")
    x = tokens[2, 1:]
    np.testing.assert_allclose(chain.exact(tokens)[4][2, rows], x * (W @ x))


def test_without_the_imaginary_timestep_columns_read_what_they_should_not():
    """Erratum 29: mov keeps to its column only if the others can read nothing."""
    chain, reference, _ = CHAINS["theorem 1"]
    model = compiled(chain, numerics())
    block = replace(model.block, imaginary_timestep=False)
    tokens = example_tokens(DIM, 1, NUM_DATASETS, seed=1)
    wrong = Transformer(**{**vars(model), "block": block})
    assert np.abs(run(wrong, jnp.asarray(tokens)) - reference(tokens)).max() > 1e-2


def test_parallel_lines_share_a_layer():
    """Both moves of a later step at once: 7 layers for it."""
    chain, reference, _ = CHAINS["sgd 4"]
    lines = list(chain.lines)
    (label, x), (_, w) = lines[8:10]
    lines[8:10] = [(label, [x, w])]
    shorter = replace(chain, lines=lines)
    assert compiled(shorter, numerics()).num_layers == 32
    assert errors(shorter, numerics(), reference).max() < 2e-12


def test_what_the_prediction_depends_on():
    live = CHAINS["theorem 1"][0].live
    assert live[0] == {("x", 0), ("y", 1), ("x", 2)}
    assert live[7] == {("w", 1), ("x", 2)}
    assert live[-1] == {("prediction", 2)}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: theorem_2(DIM, 0.0), "`penalty` must be positive, got 0.0."),
        (
            lambda: theorem_1(DIM, W, LEARNING_RATE, -1.0),
            "`penalty` must not be negative, got -1.0.",
        ),
        (
            lambda: theorem_1(DIM, W[:2], LEARNING_RATE),
            "`w_1` must have shape (1, 4) for `x` in aff(x, (), wx), got (1, 2).",
        ),
        (
            lambda: sgd_chain(DIM, 0, W, LEARNING_RATE),
            "`num_examples` must be at least 1, got 0.",
        ),
        (
            lambda: Chain(2, 1, {"y": 1, "x": 3, "prediction": 1}, []),
            "`x` must have size 2 for a chain, got 3.",
        ),
        (
            lambda: Chain(2, 1, {"y": 1, "x": 2}, []),
            "`register` must be one of y, x, got 'prediction'.",
        ),
        (
            lambda: Chain(
                2,
                1,
                {"y": 1, "x": 2, "prediction": 1},
                [("wᵀx", Mul(1, 2, 1, "w", "x", "prediction"))],
            ),
            "`register` must be one of y, x, prediction, got 'w'.",
        ),
        (
            lambda: Chain(1, 1, {"y": 1, "x": 1, "prediction": 1}, []).compile(),
            "`layers` must hold at least one layer, got none.",
        ),
        (
            lambda: CHAINS["theorem 1"][0].exact(np.zeros((5, 4))),
            "`tokens` must be 3 tokens of size 5, got shape (5, 4).",
        ),
    ],
)
def test_refusals(make, message):
    with refuses(InvalidValueError, message):
        make()


def test_a_chain_that_diverges_is_refused():
    chain = sgd_chain(DIM, 6, W, 30.0)
    with pytest.raises(InvalidValueError, match="use a smaller learning rate"):
        chain.compile(numerics("float32"))
