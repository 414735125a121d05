"""One step of the paper in one layer, for tests of RAW and of the primitives."""

from dataclasses import replace
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from support.forward import layer_weights

from algoscope.construction.compiler.numerics import Numerics, numerics, paper_numerics
from algoscope.construction.paper.chain import assemble
from algoscope.construction.paper.steps import Layout, Step
from algoscope.model.layer import Block, TransformerLayer

TIME, DATASETS = 5, 2

law = settings(max_examples=25)
seeds = st.integers(0, 2**32)

NUMERICS = {
    "float64": (numerics(), 1e-12),
    "float32": (numerics("float32"), 5e-5),
    "tanh": (numerics("float64", "gelu_tanh"), 1e-12),
    "epsilon": (replace(numerics(), layer_norm_epsilon=1e-5), 1e-12),
    "float32 tanh epsilon": (
        replace(numerics("float32", "gelu_tanh"), layer_norm_epsilon=1e-5),
        5e-5,
    ),
    # The paper's formulas: first order in 1/N, and eps·N.
    "paper": (paper_numerics(), 1e-6),
    "paper float32": (paper_numerics("float32"), 2e-2),
}
every_numerics = pytest.mark.parametrize(
    ("chosen", "bound"), NUMERICS.values(), ids=list(NUMERICS)
)
reference_or_paper = pytest.mark.parametrize(
    ("chosen", "bound"), [NUMERICS["float64"], NUMERICS["paper"]], ids=["ours", "paper"]
)

# Whatever a layer does, it has these sizes here, so that JAX compiles it only once.
SIZES = {"heads": 5, "key": 6, "value": 24, "inner": 600, "hidden": 64}
SHAPES = {
    "w_q": ("heads", "key", "hidden"),
    "w_k": ("heads", "key", "hidden"),
    "w_v": ("heads", "value", "hidden"),
    "w_f": ("heads", "hidden", "value"),
    "w_2": ("inner", "hidden"),
    "w_1": ("hidden", "inner"),
    "b_q": ("heads", "key"),
    "b_k": ("heads", "key"),
    "b_v": ("heads", "value"),
    "b_f": ("hidden",),
    "b_2": ("inner",),
    "b_1": ("hidden",),
}


@eqx.filter_jit
def apply(layer: TransformerLayer, h: jax.Array, block: Block) -> jax.Array:
    return layer(h, block)[0]


def padded(name: str, leaf: np.ndarray) -> jax.Array:
    whole = np.zeros([SIZES[axis] for axis in SHAPES[name]], leaf.dtype)
    whole[tuple(slice(size) for size in leaf.shape)] = leaf
    return jnp.asarray(whole)


def compute(
    step: Step,
    registers: dict[str, int],
    state: np.ndarray,
    numerics: Numerics,
    **changes: Any,
) -> np.ndarray:
    """Return the registers after one layer; all others of the column are idle."""
    datasets, time, rows = state.shape
    small = assemble(registers, [step], [state], time, numerics).layout.frame.hidden
    registers = {**registers, "idle": SIZES["hidden"] - small}
    state = np.pad(state, ((0, 0), (0, 0), (0, registers["idle"])))
    assembly = assemble(registers, [step], [state], time, numerics)
    h = np.repeat(assembly.positions[None], datasets, axis=0)
    h[..., : state.shape[-1]] = state
    own = layer_weights(assembly.layers, 0)
    weights = {name: padded(name, own[name]) for name in SHAPES}
    layer = TransformerLayer(**weights, inner_sizes=None)
    block = replace(assembly.numerics.block, **changes)
    after = apply(layer, jnp.asarray(h, numerics.dtype), block)
    return np.asarray(after, np.float64)[..., :rows]


def largest_error(
    step: Step, registers: dict[str, int], state: np.ndarray, numerics: Numerics
) -> float:
    """Return how far a layer is from the step's exact meaning.

    What the step does not write has to come out bit by bit.
    """
    state = state.astype(numerics.dtype).astype(np.float64)
    layout = Layout(registers)
    computed = compute(step, registers, state, numerics)
    for name in set(registers) - set(step.writes):
        rows = layout.rows(name)
        np.testing.assert_array_equal(computed[..., rows], state[..., rows])
    return float(np.max(np.abs(computed - step.exact(state, layout))))
