"""From layers to a transformer: what is around them (paper app. C.4).

The token embedding puts every token into its rows, the position embedding holds the
code, the pads and what else an algorithm starts from, the output reads one number.
"""

import jax.numpy as jnp
import numpy as np
from jaxtyping import Float, Int

from algoscope.construction.codes import Code
from algoscope.construction.layers import Form, Frame, require_precision, through_norm
from algoscope.construction.numerics import Numerics
from algoscope.layer import TransformerLayer
from algoscope.transformer import Transformer
from algoscope.validation import InvalidValueError


def require_supported(numerics: Numerics, *, divides: bool) -> None:
    """Refuse a precision that JAX has off, and divisions in a pre-norm block."""
    require_precision(numerics)
    if numerics.pre_norm and divides:
        rule = "be off for an algorithm that divides"
        remedy = "The attention after a division would read everything divided."
        raise InvalidValueError("pre_norm", rule, True, remedy)


def code_and_pads(
    frame: Frame, code: Code, numerics: Numerics
) -> Float[np.ndarray, "time hidden"]:
    """Return positions with the code and the first pair of pads, all else zero."""
    positions = np.zeros((len(code.units), frame.hidden))
    positions[:, frame.code] = code.units
    positions[:, frame.pads[0]] = numerics.pad, -numerics.pad
    return positions


def assemble_transformer(
    layers: TransformerLayer,
    numerics: Numerics,
    frame: Frame,
    *,
    token_rows: Int[np.ndarray, " token"],
    positions: Float[np.ndarray, "time hidden"],
    output: Form,
) -> Transformer:
    """Return a transformer of layers; `output` is the form that it predicts."""
    embedding = np.zeros((frame.hidden, len(token_rows)))
    embedding[token_rows, np.arange(len(token_rows))] = 1
    w_o, b_o = output[:, :-1], output[:, -1]
    if numerics.pre_norm:
        w_o, b_o = through_norm(output, frame, numerics)
    return Transformer(
        w_e=jnp.asarray(embedding, numerics.dtype),
        positions=jnp.asarray(positions, numerics.dtype),
        layers=layers,
        w_o=jnp.asarray(w_o[0], numerics.dtype),
        b_o=jnp.asarray(b_o[0], numerics.dtype),
        block=numerics.block,
    )
