"""A chain's matrices after every step, exact and computed (paper appendix A)."""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from algoscope.construction.chain import Chain
from algoscope.construction.layout import Layout
from algoscope.construction.numerics import Numerics
from algoscope.construction.tokens import context_tokens
from algoscope.construction.traced import TracedRegister, TracedStep
from algoscope.transformer import run_compiled


def trace(
    chain: Chain,
    numerics: Numerics,
    x: Float[np.ndarray, "longer dim"],
    y: Float[np.ndarray, " examples"],
) -> list[TracedStep]:
    """Return the registers before the first step and after every one."""
    tokens = context_tokens(x, y).astype(numerics.dtype)
    states = chain.exact(tokens.astype(np.float64))
    transformer = chain.compile(numerics)
    run = run_compiled(transformer, jnp.asarray(tokens))
    hidden = np.asarray(run.hidden, np.float64)
    layout = Layout(chain.registers)
    labels = ("input", *chain.labels)
    operations = ("", *map(str, chain.steps))
    writes = (("y", "x"), *(step.writes for step in chain.steps))

    def register(name: str, depth: int) -> TracedRegister:
        rows = layout.rows(name)
        counts = [(name, i) in chain.live[depth] for i in range(chain.time)]
        return TracedRegister(
            states[depth][:, rows], hidden[depth][:, rows], np.array(counts)
        )

    return [
        TracedStep(
            labels[depth],
            operations[depth],
            writes[depth],
            {name: register(name, depth) for name in chain.registers},
        )
        for depth in range(len(states))
    ]
