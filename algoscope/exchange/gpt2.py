"""GPT-2 of `transformers`, weight by weight, in both directions.

Its block is our modern one (`pre_norm`) with three differences that fold away exactly:

* λ has a gain g and a shift s. The matrix behind takes them: W(g⊙λ + s) + b is
  (W diag g) λ + (W s + b). The last λ stands before the read-out.
* Scores are always divided by √key. Any other scale is a factor of W_q.
* Matrices act on rows, as `Conv1D` does, and those of q, k and v are one.

Sums are taken in float64 and rounded once. A key bias moves all scores of a query
alike, so softmax cancels it; it is carried along and changes nothing.

`transformers` is not needed: a state is a dictionary of arrays.
"""

import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from algoscope.foundation.validation import InvalidValueError
from algoscope.model import Activation
from algoscope.model.checkpoints import named_leaves
from algoscope.model.layer import Block, TransformerLayer
from algoscope.model.stack import LAYER_WEIGHTS
from algoscope.model.transformer import Transformer

Arrays = Mapping[str, np.ndarray]

READS = "reads.safetensors"  # beside a `GPT2Model`: the read-in and the read-out
# Our names and those of `transformers`; it has no others of ours.
ACTIVATIONS: dict[Activation, str] = {
    "gelu": "gelu",
    "gelu_tanh": "gelu_new",
    "relu": "relu",
    "tanh": "tanh",
    "silu": "silu",
    "sigmoid": "sigmoid",
    "squared_relu": "relu2",
}


class WrongWeightsError(ValueError):
    """A state that lacks a weight of GPT-2, or has one of another shape."""


def require_gpt2(transformer: Transformer) -> None:
    """Reject a transformer that no GPT-2 computes exactly."""
    block, layers = transformer.block, transformer.layers
    _, heads, key, hidden = layers.w_q.shape
    problems = {
        "the paper's block, where attention reads h itself": not block.pre_norm,
        "an imaginary timestep": block.imaginary_timestep,
        "MLPs of different widths": layers.inner_sizes is not None,
        f"the activation {block.activation}": block.activation not in ACTIVATIONS,
        "weights written by hand, which rely on the order of additions": (
            block.precision != "any"
        ),
        f"{heads} heads of key size {key} and value size {layers.w_v.shape[2]} "
        f"beside {hidden} hidden units": (
            (key, layers.w_v.shape[2]) != (hidden / heads, hidden / heads)
        ),
    }
    for problem, is_found in problems.items():
        if is_found:
            rule = "be a pre-norm learner that GPT-2 computes exactly"
            remedy = "Export it to torch, which computes every learner."
            raise InvalidValueError("model", rule, f"one with {problem}", remedy)


def gpt2_config(transformer: Transformer) -> dict[str, Any]:
    """Return the config.json of a `GPT2Model` that computes the same."""
    _, heads, _, hidden = transformer.layers.w_q.shape
    return {
        "model_type": "gpt2",
        "architectures": ["GPT2Model"],
        "n_embd": hidden,
        "n_layer": transformer.num_layers,
        "n_head": heads,
        "n_inner": transformer.layers.w_2.shape[1],
        "n_positions": transformer.max_time,
        "activation_function": ACTIVATIONS[transformer.block.activation],
        "layer_norm_epsilon": transformer.block.layer_norm_epsilon,
        "vocab_size": 1,  # it is given `inputs_embeds`, never words
        "bos_token_id": 0,
        "eos_token_id": 0,
        "attn_pdrop": 0.0,
        "embd_pdrop": 0.0,
        "resid_pdrop": 0.0,
        "use_cache": False,
        "dtype": str(transformer.w_e.dtype),
    }


def to_gpt2(transformer: Transformer) -> dict[str, np.ndarray]:
    """Return the state of a `GPT2Model`, whose inputs are W_E tokens."""
    require_gpt2(transformer)
    stacks = named_leaves(transformer.layers)
    key, hidden = stacks["w_q"].shape[2:]
    factor = transformer.block.attention_scale * math.sqrt(key)
    if not math.isclose(factor, 1, rel_tol=1e-15):
        stacks |= {name: stacks[name] * factor for name in ("w_q", "b_q")}
    ones = np.ones(hidden, stacks["w_q"].dtype)
    zeros = np.zeros_like(ones)
    state = {
        "wte.weight": zeros[None],
        "wpe.weight": np.asarray(transformer.positions),
        "ln_f.weight": ones,
        "ln_f.bias": zeros,
    }
    for index in range(transformer.num_layers):
        layer = {name: stack[index] for name, stack in stacks.items()}
        w = [layer[name].reshape(hidden, hidden) for name in ("w_q", "w_k", "w_v")]
        b = [layer[name].reshape(hidden) for name in ("b_q", "b_k", "b_v")]
        w_f = layer["w_f"].transpose(0, 2, 1).reshape(hidden, hidden)
        parts = {
            "ln_1.weight": ones,
            "ln_1.bias": zeros,
            "attn.c_attn.weight": np.concatenate(w).T,
            "attn.c_attn.bias": np.concatenate(b),
            "attn.c_proj.weight": w_f,
            "attn.c_proj.bias": layer["b_f"],
            "ln_2.weight": ones,
            "ln_2.bias": zeros,
            "mlp.c_fc.weight": layer["w_2"].T,
            "mlp.c_fc.bias": layer["b_2"],
            "mlp.c_proj.weight": layer["w_1"].T,
            "mlp.c_proj.bias": layer["b_1"],
        }
        state |= {f"h.{index}.{name}": array for name, array in parts.items()}
    return state


def from_gpt2(
    state: Arrays,
    reads: Arrays,
    *,
    num_layers: int,
    num_heads: int,
    activation: Activation = "gelu_tanh",
    epsilon: float = 1e-5,
) -> Transformer:
    """Return a `GPT2Model` between a read-in of tokens and a read-out of one number.

    `reads` has weight and bias of both: W_E token + b, and w_O λ + b_O.
    """
    w_e = _get(reads, "read_in.weight", None, None)
    hidden = len(w_e)
    b_e = _get(reads, "read_in.bias", hidden)
    (w_o,) = _get(reads, "read_out.weight", 1, hidden)
    (b_o,) = _get(reads, "read_out.bias", 1)
    if hidden % num_heads:
        raise WrongWeightsError(f"{num_heads} heads for {hidden} hidden units")
    folded = [
        _folded_layer(state, f"h.{index}.", hidden, num_heads)
        for index in range(num_layers)
    ]
    gain, shift = (_get(state, f"ln_f.{part}", hidden) for part in ("weight", "bias"))
    positions = _get(state, "wpe.weight", None, hidden) + b_e
    is_double = reads["read_in.weight"].dtype == np.float64

    def narrow(array: np.ndarray) -> jax.Array:
        return jnp.asarray(array.astype("float64" if is_double else "float32"))

    with jax.enable_x64(True):  # so that float64 is not rounded to float32
        stacks = {
            field: narrow(np.stack([layer[field] for layer in folded]))
            for field in LAYER_WEIGHTS
        }
        return Transformer(
            w_e=narrow(w_e),
            positions=narrow(positions),
            layers=TransformerLayer(**stacks, inner_sizes=None),
            w_o=narrow(w_o * gain),
            b_o=narrow(np.asarray(w_o @ shift + b_o)),
            block=Block(
                pre_norm=True,
                activation=activation,
                layer_norm_epsilon=epsilon,
                attention_scale=(hidden // num_heads) ** -0.5,
            ),
        )


def _folded_layer(
    state: Arrays, prefix: str, hidden: int, heads: int
) -> dict[str, np.ndarray]:
    """Return the fields of a `TransformerLayer`, gains and shifts folded in."""

    def behind(norm: str, name: str, outputs: int) -> tuple[np.ndarray, np.ndarray]:
        """Return W diag g and W s + b."""
        w = _get(state, f"{prefix}{name}.weight", hidden, outputs).T
        gain = _get(state, f"{prefix}{norm}.weight", hidden)
        shift = _get(state, f"{prefix}{norm}.bias", hidden)
        return w * gain, w @ shift + _get(state, f"{prefix}{name}.bias", outputs)

    inner = _get(state, f"{prefix}mlp.c_fc.bias", None).size
    w, b = behind("ln_1", "attn.c_attn", 3 * hidden)
    w_q, w_k, w_v = w.reshape(3, heads, -1, hidden)
    b_q, b_k, b_v = b.reshape(3, heads, -1)
    w_2, b_2 = behind("ln_2", "mlp.c_fc", inner)
    w_f = _get(state, f"{prefix}attn.c_proj.weight", hidden, hidden)
    return {
        **{"w_q": w_q, "w_k": w_k, "w_v": w_v, "b_q": b_q, "b_k": b_k, "b_v": b_v},
        "w_f": w_f.reshape(heads, -1, hidden).transpose(0, 2, 1),
        "b_f": _get(state, f"{prefix}attn.c_proj.bias", hidden),
        "w_2": w_2,
        "b_2": b_2,
        "w_1": _get(state, f"{prefix}mlp.c_proj.weight", inner, hidden).T,
        "b_1": _get(state, f"{prefix}mlp.c_proj.bias", hidden),
    }


def _get(state: Arrays, name: str, *shape: int | None) -> np.ndarray:
    """Return a weight in float64, of the shape asked; None stands for any size."""
    if name not in state:
        raise WrongWeightsError(f"it has no {name}")
    found = state[name].shape
    if len(found) != len(shape) or any(
        wanted not in (None, size) for size, wanted in zip(found, shape, strict=True)
    ):
        wanted = [size or "any" for size in shape]
        raise WrongWeightsError(f"{name} has shape {list(found)}, not {wanted}")
    return state[name].astype(np.float64)
