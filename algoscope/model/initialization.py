"""Random transformers to start training from (paper app. D).

Drawn with NumPy: the numbers do not depend on the device, and nothing is compiled.
"""

from typing import get_args

import jax.numpy as jnp
import numpy as np

from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)
from algoscope.model import Initialization
from algoscope.model.layer import Block, TransformerLayer
from algoscope.model.transformer import Transformer


def random_transformer(
    seed: int,
    *,
    token_size: int,
    max_time: int,
    num_layers: int,
    hidden_size: int,
    num_heads: int,
    inner_size: int | None = None,
    block: Block | None = None,
    initialization: Initialization = "uniform_scaling",
    dtype: str = "float32",
) -> Transformer:
    """Return a transformer with random weights and zero biases.

    `uniform_scaling` draws matrices from U(±1/√fan_in), `normal` from N(0, 1/fan_in).
    The two projections that write to the residual stream, W^F and W₁, are divided by
    √(2L), so that the sum over layers starts at the scale of one of them.

    Example:
        >>> random_transformer(
        ...     0, token_size=3, max_time=9, num_layers=2, hidden_size=8, num_heads=2
        ... ).num_parameters
        1785
    """
    sizes = {
        "token_size": token_size,
        "max_time": max_time,
        "num_layers": num_layers,
        "hidden_size": hidden_size,
        "num_heads": num_heads,
    }
    for name, size in sizes.items():
        require_at_least(name, size, 1)
    require_at_least("seed", seed, 0)
    require_choice("dtype", dtype, ("float32", "float64"))
    require_choice("initialization", initialization, get_args(Initialization))
    if hidden_size % num_heads:
        raise InvalidValueError(
            "num_heads",
            "divide `hidden_size`",
            f"num_heads={num_heads} and hidden_size={hidden_size}",
        )
    if inner_size is not None:
        require_at_least("inner_size", inner_size, 1)
    rng = np.random.default_rng(seed)
    key = hidden_size // num_heads
    inner = 4 * hidden_size if inner_size is None else inner_size

    def draw(*shape: int, fan_in: int, gain: float = 1.0):
        if initialization == "uniform_scaling":
            values = rng.uniform(-1, 1, shape)
        else:
            values = rng.standard_normal(shape)
        return jnp.asarray(gain / np.sqrt(fan_in) * values, dtype)

    def zeros(*shape: int):
        return jnp.asarray(np.zeros(shape), dtype)

    residual = 1 / np.sqrt(2 * num_layers)
    stack = (num_layers, num_heads)
    layers = TransformerLayer(
        w_q=draw(*stack, key, hidden_size, fan_in=hidden_size),
        w_k=draw(*stack, key, hidden_size, fan_in=hidden_size),
        w_v=draw(*stack, key, hidden_size, fan_in=hidden_size),
        w_f=draw(*stack, hidden_size, key, fan_in=hidden_size, gain=residual),
        w_2=draw(num_layers, inner, hidden_size, fan_in=hidden_size),
        w_1=draw(num_layers, hidden_size, inner, fan_in=inner, gain=residual),
        b_q=zeros(*stack, key),
        b_k=zeros(*stack, key),
        b_v=zeros(*stack, key),
        b_f=zeros(num_layers, hidden_size),
        b_2=zeros(num_layers, inner),
        b_1=zeros(num_layers, hidden_size),
    )
    return Transformer(
        w_e=draw(hidden_size, token_size, fan_in=token_size),
        positions=draw(max_time, hidden_size, fan_in=max_time),
        layers=layers,
        w_o=draw(hidden_size, fan_in=hidden_size),
        b_o=zeros(),
        block=Block() if block is None else block,
    )
