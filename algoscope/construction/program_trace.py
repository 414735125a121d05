"""A compiled program's registers after every layer, exact and computed."""

import jax.numpy as jnp
import numpy as np

from algoscope.construction.compiler import Arrangement
from algoscope.construction.interpreter import Tokens, interpret
from algoscope.construction.listing import listing
from algoscope.construction.traced import TracedRegister, TracedStep
from algoscope.transformer import Transformer, run_compiled


def trace_program(
    arrangement: Arrangement, transformer: Transformer, tokens: Tokens
) -> list[TracedStep]:
    """Return the registers of one dataset before the first layer and after every one.

    A register is shown from the layer that writes it to the last that reads it.
    """
    tokens = tokens.astype(arrangement.numerics.dtype)
    state = interpret(arrangement.program, tokens.astype(np.float64))
    run = run_compiled(transformer, jnp.asarray(tokens))
    hidden = np.asarray(run.hidden, np.float64)[0]
    lines = listing(arrangement)
    steps = []
    for layer in range(-1, arrangement.num_layers):
        written = [event.out for event in arrangement.schedule.events(layer)]
        held = arrangement.allocation.live(layer)
        shown = {*held, *written} if layer + 1 < arrangement.num_layers else written
        ordered = [
            register for register in arrangement.allocation.rows if register in shown
        ]
        steps.append(
            TracedStep(
                label=f"layer {layer + 1}" if layer >= 0 else "input",
                operation="; ".join(
                    f"{line.register} = {line.operation}"
                    for line in lines
                    if line.layer == layer + 1
                ),
                writes=tuple(register.name for register in written),
                registers={
                    register.name: TracedRegister(
                        state[register][0],
                        hidden[layer + 1][:, arrangement.allocation.rows[register]],
                        np.ones(tokens.shape[1], bool),
                    )
                    for register in ordered
                },
            )
        )
    return steps
