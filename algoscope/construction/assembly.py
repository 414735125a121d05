"""Steps as the layers of a transformer, one for each (paper lemma 1)."""

from collections.abc import Sequence
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.construction.codes import Code, choose_code
from algoscope.construction.division import write_pads
from algoscope.construction.layers import stack, write_layer
from algoscope.construction.layout import Layout
from algoscope.construction.numerics import Numerics
from algoscope.construction.steps import State, Step
from algoscope.construction.transformers import code_and_pads, require_supported
from algoscope.layer import TransformerLayer


@dataclass(frozen=True)
class Assembly:
    """Steps as layers, and the parts of the hidden state that they need."""

    layout: Layout
    code: Code
    layers: TransformerLayer
    numerics: Numerics

    @property
    def positions(self) -> Float[np.ndarray, "time hidden"]:
        """The code and the pads, all else zero."""
        return code_and_pads(self.layout.frame, self.code, self.numerics)


def assemble(
    registers: dict[str, int],
    steps: Sequence[Step],
    like: Sequence[State | float],
    time: int,
    numerics: Numerics,
    columns: Sequence[Sequence[int]] | None = None,
) -> Assembly:
    """Return one layer per step.

    `like` says for each how large its factors get, and `columns` where that counts.
    """
    require_supported(numerics, divides=any(step.scales_pads for step in steps))
    maps = [each for step in steps for each in step.maps]
    code = choose_code(maps, time, numerics.digits)
    bare = Layout(registers)
    layout = Layout(
        registers,
        scratch_size=max((s.scratch_size(bare, numerics) for s in steps), default=0),
        code_size=code.units.shape[1],
        has_reference=numerics.pads == "reference",
    )
    layers, scaled = [], False
    columns = [range(time)] * len(steps) if columns is None else columns
    for step, state, at in zip(steps, like, columns, strict=True):
        plan = step.plan(layout, numerics, state, at)
        if scaled and not step.scales_pads:
            write_pads(plan, layout, numerics)
        scaled = step.scales_pads
        layers.append(write_layer(plan, layout.frame, code, numerics))
    return Assembly(layout, code, stack(layers, numerics), numerics)


def run_step(
    step: Step, registers: dict[str, int], state: State, numerics: Numerics
) -> State:
    """Return the registers after a step, computed by a layer with its weights."""
    time = state.shape[-2]
    assembly = assemble(registers, [step], [state], time, numerics)
    layout = assembly.layout
    h = np.broadcast_to(assembly.positions, (*state.shape[:-1], layout.frame.hidden))
    h = h.reshape(-1, time, layout.frame.hidden).copy()
    h[..., : layout.num_rows] = state.reshape(len(h), time, -1)
    layer = jax.tree.map(lambda leaf: leaf[0], assembly.layers)
    after, _ = layer(jnp.asarray(h, numerics.dtype), numerics.block)
    return np.asarray(after[..., : layout.num_rows], np.float64).reshape(state.shape)
