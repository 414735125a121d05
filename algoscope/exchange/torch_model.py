"""An in-context learner that algoscope exported, in PyTorch. This file needs no other.

model = load("directory")          # of config.json and model.safetensors
model.predict_prefixes(x, y)       # [B, N]: each yᵢ from the examples before it
model(tokens)                      # output, hidden states and attention weights
model.layers[i], .attention.heads  # hooks see hidden states there, and heads
"""

import json
from pathlib import Path
from typing import NamedTuple

import torch  # pyright: ignore[reportMissingImports]
from torch import Tensor, nn  # pyright: ignore[reportMissingImports]
from torch.nn import functional as F  # pyright: ignore[reportMissingImports]

ACTIVATIONS = {f.__name__: f for f in (F.gelu, F.relu, F.silu, F.sigmoid, F.tanh)} | {
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "softplus": lambda x: torch.logaddexp(x, torch.zeros_like(x)),
    "squared_relu": lambda x: torch.relu(x).square(),
}


class ForwardPass(NamedTuple):
    """What a forward pass on B datasets of T tokens computes, with H hidden units."""

    output: Tensor  # [B, T]
    hidden: Tensor  # [B, L + 1, T, H]: of the embedding and behind each layer
    attention: Tensor  # [B, L, heads, T, T]


class Weighted(nn.Module):
    """A module with some of the weights, under their names in the file; λ is `norm`."""

    def __init__(self, block: dict, weights: dict[str, Tensor], names: str):
        super().__init__()
        self.block = block  # what is computed, apart from the weights
        self.weights = nn.ParameterDict({n: weights[n].clone() for n in names.split()})

    def norm(self, h: Tensor) -> Tensor:
        if self.block["precision"] == "any":  # else the order of additions matters
            return F.layer_norm(h, h.shape[-1:], eps=self.block["layer_norm_epsilon"])
        centered = h - h.mean(-1, keepdim=True)
        variance = (centered * centered).mean(-1, keepdim=True)
        return centered * torch.rsqrt(variance + self.block["layer_norm_epsilon"])


class Attention(Weighted):
    """What the heads write [B, T, H]; their weights [B, heads, T, T] go to `kept`."""

    def forward(self, h: Tensor, kept: list | None = None) -> Tensor:
        h = self.norm(h) if self.block["pre_norm"] else h
        w, imaginary = self.weights, self.block["imaginary_timestep"]
        b_k = w["b_k"] * imaginary  # without a zero among the scores softmax cancels it
        pairs = (w["w_q"], w["b_q"]), (w["w_k"], b_k), (w["w_v"], w["b_v"])
        flat = (F.linear(h, m.flatten(0, 1), b.flatten()) for m, b in pairs)
        q, k, v = (each.unflatten(-1, (len(b_k), -1)).transpose(1, 2) for each in flat)
        scale, exact = self.block["attention_scale"], self.block["precision"] != "any"
        if kept is None and not (imaginary or exact):  # the same in one operation
            z = F.scaled_dot_product_attention(q, k, v, is_causal=True, scale=scale)
        else:
            scores = (q * scale) @ k.transpose(-1, -2)
            scores = scores + torch.full_like(scores[0, 0], float("-inf")).triu(1)
            alpha = F.pad(scores, (0, int(imaginary))).softmax(-1)[..., : h.shape[1]]
            z = alpha @ v
            if kept is not None:
                kept.append(alpha)
        z = self.heads(z).transpose(1, 2).flatten(2)  # pyright: ignore
        return F.linear(z, w["w_f"].transpose(0, 1).flatten(1), w["b_f"])


class FeedForward(Weighted):
    """W₁ σ(W₂ λ(h) + b₂) + b₁."""

    def forward(self, h: Tensor) -> Tensor:
        w, activate = self.weights, ACTIVATIONS[self.block["activation"]]
        inner = activate(F.linear(self.norm(h), w["w_2"], w["b_2"]))
        return F.linear(inner, w["w_1"], w["b_1"])


class Layer(nn.Module):
    """The residual stream [B, T, H] behind a layer; attention is added to `kept`."""

    def __init__(self, block: dict, weights: dict[str, Tensor]):
        super().__init__()
        self.attention = Attention(block, weights, "w_q w_k w_v w_f b_q b_k b_v b_f")
        self.attention.heads = nn.Identity()  # hooks see [B, heads, T, value] there
        self.feed_forward = FeedForward(block, weights, "w_2 w_1 b_2 b_1")

    def forward(self, h: Tensor, kept: list | None = None) -> Tensor:
        h = self.attention(h, kept) + h
        return h + self.feed_forward(h)


class Model(Weighted):
    """The whole transformer. Tokens are [B, T, d + 1]: see `encode`."""

    def __init__(self, block: dict, w: dict[str, Tensor], sizes: list | None = None):
        super().__init__(block, w, "w_e positions w_o b_o")
        self.dim = w["w_e"].shape[1] - 1
        self.max_examples = (len(w["positions"]) - 1) // 2  # before a query
        stacks: dict = {n[7:]: s for n, s in w.items() if n.startswith("layers.")}
        for n, axis in (("w_2", 0), ("w_1", 1), ("b_2", 0)) if sizes else ():
            stacks[n] = stacks[n].split(sizes, axis)  # MLPs of different widths
        each = ({n: s[i] for n, s in stacks.items()} for i in range(len(stacks["b_1"])))
        self.layers = nn.ModuleList(Layer(block, one) for one in each)

    def embed(self, tokens: Tensor) -> Tensor:
        w_e, positions = self.weights["w_e"], self.weights["positions"]
        if tokens.shape[1] > len(positions):
            raise ValueError(f"At most {len(positions)} tokens fit: {tokens.shape}.")
        return tokens.to(w_e) @ w_e.T + positions[: tokens.shape[1]]

    def read_out(self, h: Tensor) -> Tensor:
        h = self.norm(h) if self.block["pre_norm"] else h
        return h @ self.weights["w_o"] + self.weights["b_o"]

    def forward(self, tokens: Tensor) -> ForwardPass:
        h, a = [self.embed(tokens)], []
        for layer in self.layers:
            h.append(layer(h[-1], a))
        return ForwardPass(self.read_out(h[-1]), torch.stack(h, 1), torch.stack(a, 1))

    def predict_prefixes(self, x: Tensor, y: Tensor) -> Tensor:
        """Return predictions [B, N] of all yᵢ, for inputs [B, N, d] and labels."""
        h = self.embed(encode(x, y))
        for layer in self.layers:
            h = layer(h)
        return self.read_out(h[:, ::2])


def encode(x: Tensor, y: Tensor) -> Tensor:
    """Return the 2N − 1 tokens [0, x₁], [y₁, 0], [0, x₂], …, [0, x_N]."""
    labels = F.pad(y.to(x)[..., None], (0, x.shape[-1]))
    return torch.stack([F.pad(x, (1, 0)), labels], 2).flatten(1, 2)[:, :-1]


def load(directory: str | Path) -> Model:
    """Return the model in a directory: reads JSON and numbers, executes nothing."""
    config = json.loads((Path(directory) / "config.json").read_text())
    content = bytearray((Path(directory) / "model.safetensors").read_bytes())
    end, w = 8 + int.from_bytes(content[:8], "little"), {}
    header, data = json.loads(content[8:end]), content[end:]
    for name in header.keys() - {"__metadata__"}:
        entry, (first, last) = header[name], header[name]["data_offsets"]
        dtype = {"F32": torch.float32, "F64": torch.float64}[entry["dtype"]]
        if not 0 <= first < last <= len(data):
            raise ValueError(f"model.safetensors is damaged at {name}.")
        w[name] = torch.frombuffer(data[first:last], dtype=dtype).view(entry["shape"])
    return Model(config["block"], w, config.get("inner_sizes")).eval()
