"""The transformer of `algoscope.transformer` once more, in PyTorch.

The twin is what one would write in PyTorch for speed: one matrix for queries, keys and
values, the library's own layer norm, GeLU and softmax, and a tensor per weight, eager
or through `torch.compile`. It starts from the weights in a file, so both sides compute
the same function.

As a program it is the opponent in `training_step.py`: see there. It needs PyTorch and
NumPy alone.

Axes: B datasets, T tokens, M heads of size K, H = M·K hidden units.
"""

import json
import sys
import time
from importlib import import_module
from itertools import product
from typing import Any

import numpy as np

torch: Any = import_module("torch")  # no part of the locked environment
functional: Any = import_module("torch.nn.functional")

ATTENTIONS = ("manual softmax", "SDPA")
ADAMS = {"default Adam": {}, "fused Adam": {"fused": True}}
COMPILED = "torch.compile"
VARIANTS = [(*each, "eager") for each in product(ATTENTIONS, ADAMS)] + [
    (attention, "fused Adam", COMPILED) for attention in ATTENTIONS
]


class Twin:
    """A transformer with its Adam."""

    def __init__(self, arrays, config: dict, attention: str, adam: str, mode: str):
        self.config = config
        self.attention = attention
        self.outputs = torch.compile(self.run) if mode == COMPILED else self.run
        stacks = {
            name.removeprefix("layers."): torch.tensor(arrays[name])
            for name in arrays
            if name.startswith("layers.")
        }
        self.layers = [
            self.layer({name: stack[index] for name, stack in stacks.items()})
            for index in range(config["num_layers"])
        ]
        self.outer = {
            name: torch.tensor(arrays[name])
            for name in ("w_e", "positions", "w_o", "b_o")
        }
        time = len(self.outer["positions"])
        self.future = torch.triu(torch.full((time, time), -torch.inf), 1)
        self.weights = [w for part in (self.outer, *self.layers) for w in part.values()]
        for weight in self.weights:
            weight.requires_grad_(True)
        rate = config["learning_rate"]
        self.adam = torch.optim.Adam(self.weights, lr=rate, **ADAMS[adam])

    def layer(self, w: dict[str, Any]) -> dict[str, Any]:
        """Return one layer's weights as PyTorch wants them: [out, in], heads joined."""
        hidden = self.config["hidden_size"]
        return {
            "w_qkv": torch.cat(
                [w[n].reshape(-1, hidden) for n in ("w_q", "w_k", "w_v")]
            ),
            "b_qkv": torch.cat([w[n].reshape(-1) for n in ("b_q", "b_k", "b_v")]),
            "w_f": w["w_f"].permute(1, 0, 2).reshape(hidden, -1).contiguous(),
            **{n: w[n].clone() for n in ("b_f", "w_2", "b_2", "w_1", "b_1")},
        }

    def run(self, tokens):
        """Return the output [B, T]."""
        norm, norm_shape = functional.layer_norm, (self.config["hidden_size"],)
        h = functional.linear(tokens, self.outer["w_e"]) + self.outer["positions"]
        for w in self.layers:
            qkv = functional.linear(norm(h, norm_shape), w["w_qkv"], w["b_qkv"])
            h = h + functional.linear(self.heads(qkv), w["w_f"], w["b_f"])
            inner = functional.linear(norm(h, norm_shape), w["w_2"], w["b_2"])
            h = h + functional.linear(functional.gelu(inner), w["w_1"], w["b_1"])
        return norm(h, norm_shape) @ self.outer["w_o"] + self.outer["b_o"]

    def heads(self, qkv):
        """Return what all heads read [B, T, H]."""
        batch, time, _ = qkv.shape
        by_head = qkv.view(batch, time, 3, self.config["num_heads"], -1)
        q, k, v = by_head.permute(2, 0, 3, 1, 4)
        if self.attention == "SDPA":
            read = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5 + self.future
            read = torch.softmax(scores, dim=-1) @ v
        return read.transpose(1, 2).reshape(batch, time, -1)

    def step(self, x, y) -> float:
        """Take one step of Adam; return the loss before it."""
        batch, examples, dim = x.shape
        tokens = torch.zeros(batch, 2 * examples, dim + 1)
        tokens[:, ::2, 1:] = x
        tokens[:, 1::2, 0] = y
        predictions = self.outputs(tokens[:, :-1])[:, ::2]
        loss = functional.mse_loss(predictions, y)
        self.adam.zero_grad()
        loss.backward()
        self.adam.step()
        return loss.item()

    def sampled_step(self) -> float:
        """Take one step on fresh datasets: w ~ N(0, I), x ~ N(0, I), y = wᵀx."""
        batch, dim = self.config["batch_size"], self.config["dim"]
        x = torch.randn(batch, self.config["num_examples"], dim)
        w = torch.randn(batch, dim, 1)
        return self.step(x, (x @ w).squeeze(-1))


def main() -> None:
    """Check the twins against our losses, then take steps on request."""
    job = json.loads(sys.argv[1])
    torch.set_num_threads(job["cores"])
    torch.manual_seed(0)
    with np.load(job["file"]) as file:
        arrays = dict(file)
    x, y = torch.tensor(arrays.pop("x")), torch.tensor(arrays.pop("y"))

    twins, losses = {}, {}
    for variant in VARIANTS:
        name = ", ".join(variant)
        twins[name] = Twin(arrays, job["config"], *variant)
        losses[name] = [twins[name].step(*batch) for batch in zip(x, y, strict=True)]
    parameters = sum(w.numel() for w in next(iter(twins.values())).weights)
    answer = {"losses": losses, "parameters": parameters, "torch": torch.__version__}
    print(json.dumps(answer), flush=True)

    for line in sys.stdin:
        twin = twins[json.loads(line)]
        start = time.perf_counter()
        for _ in range(job["steps"]):
            twin.sampled_step()
        print(json.dumps(time.perf_counter() - start), flush=True)


if __name__ == "__main__":
    main()
