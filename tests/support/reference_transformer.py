"""An independent transformer of paper §2.1: NumPy, float64, one position at a time.

It is written from eq. 1-7 alone, so that an agreement with `algoscope` is evidence. It
is slow on purpose: every loop of the paper's notation is a loop here.
"""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from support.forward import layer_weights

from algoscope.model.layer import Block
from algoscope.model.transformer import Transformer

Vector = np.ndarray
Matrix = np.ndarray

SIGMA = {
    "gelu": lambda x: x / 2 * (1 + math.erf(x / math.sqrt(2))),
    "gelu_tanh": lambda x: (
        x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "relu": lambda x: max(x, 0.0),
    "tanh": math.tanh,
    "silu": lambda x: x / (1 + math.exp(-x)),
    "softplus": lambda x: math.log1p(math.exp(x)),
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "squared_relu": lambda x: max(x, 0.0) ** 2,
}


@dataclass
class Run:
    """What the reference computes for tokens of shape [*batch, time, token]."""

    output: np.ndarray  # [*batch, time]
    hidden: np.ndarray  # [*batch, layers + 1, time, hidden]
    attention: np.ndarray  # [*batch, layers, heads, time, time]


def sigma(activation: str, x: Vector) -> Vector:
    """Return σ(x), one entry at a time."""
    return np.array([SIGMA[activation](float(entry)) for entry in x])


def normalize(x: Vector, epsilon: float) -> Vector:
    """Return λ(x) (eq. 7)."""
    mean = sum(x) / len(x)
    variance = sum((x - mean) ** 2) / len(x)
    return (x - mean) / math.sqrt(variance + epsilon)


def softmax(scores: list[float], imaginary: bool) -> list[float]:
    """Return the softmax; `imaginary` prepends a zero and drops its weight."""
    exponentials = [math.exp(score) for score in ([0.0] if imaginary else []) + scores]
    weights = [value / sum(exponentials) for value in exponentials]
    return weights[1:] if imaginary else weights


def run_layer(w: dict[str, Any], h: Matrix, block: Block) -> tuple[Matrix, np.ndarray]:
    """Return the next hidden states and the attention weights (eq. 1-5)."""
    time, heads = len(h), len(w["w_q"])
    attention = np.zeros((heads, time, time))
    after = np.zeros_like(h)
    seen = [
        normalize(row, block.layer_norm_epsilon) if block.pre_norm else row for row in h
    ]
    for i in range(time):
        responses = []
        for j in range(heads):
            query = w["w_q"][j] @ seen[i] + w["b_q"][j]
            scores, values = [], []
            for s in range(i + 1):
                key = w["w_k"][j] @ seen[s] + w["b_k"][j]
                values.append(w["w_v"][j] @ seen[s] + w["b_v"][j])
                scores.append(block.attention_scale * float(query @ key))
            weights = softmax(scores, block.imaginary_timestep)
            attention[j, i, : i + 1] = weights
            responses.append(sum(a * v for a, v in zip(weights, values, strict=True)))
        w_f = np.concatenate(list(w["w_f"]), axis=1)  # W^F acts on [b_1, ..., b_m]
        residual = w_f @ np.concatenate(responses) + w["b_f"] + h[i]
        inner = w["w_2"] @ normalize(residual, block.layer_norm_epsilon) + w["b_2"]
        after[i] = w["w_1"] @ sigma(block.activation, inner) + w["b_1"] + residual
    return after, attention


def run_sequence(model: Transformer, tokens: Matrix) -> Run:
    """Return the run for one sequence [time, token]."""
    block = model.block
    w_e, positions, w_o = (
        np.asarray(part, np.float64) for part in (model.w_e, model.positions, model.w_o)
    )
    h = np.stack([w_e @ token + positions[i] for i, token in enumerate(tokens)])
    hidden, attention = [h], []
    for layer in range(model.num_layers):
        w = layer_weights(model.layers, layer)
        exact = {name: leaf.astype(np.float64) for name, leaf in w.items()}
        h, weights = run_layer(exact, h, block)
        hidden.append(h)
        attention.append(weights)
    if block.pre_norm:
        h = np.stack([normalize(row, block.layer_norm_epsilon) for row in h])
    output = np.array([w_o @ row + float(model.b_o) for row in h])
    return Run(output, np.stack(hidden), np.stack(attention))


def run_reference(model: Transformer, tokens: Any) -> Run:
    """Return the run for sequences [*batch, time, token], one after the other."""
    tokens = np.asarray(tokens, np.float64)
    if tokens.ndim == 2:
        return run_sequence(model, tokens)
    runs = [run_reference(model, entry) for entry in tokens]
    return Run(
        np.stack([run.output for run in runs]),
        np.stack([run.hidden for run in runs]),
        np.stack([run.attention for run in runs]),
    )
