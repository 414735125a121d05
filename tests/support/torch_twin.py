"""The pre-norm transformer of `algoscope.model` once more, in PyTorch."""

import jax
import numpy as np
from support.torch_present import require

from algoscope.model.learner import InContextLearner
from algoscope.model.stack import LAYER_WEIGHTS

torch = require()
torch.set_num_threads(1)  # as XLA and BLAS: test workers share the cores


def tensor(values):
    return torch.nn.Parameter(torch.tensor(np.asarray(values, np.float64)))


def norm(h, epsilon: float):
    return torch.nn.functional.layer_norm(h, h.shape[-1:], eps=epsilon)


class TwinLayer(torch.nn.Module):
    """One layer, with the weights of a `TransformerLayer`."""

    def __init__(self, layer, block):
        super().__init__()
        self.scale, self.epsilon = block.attention_scale, block.layer_norm_epsilon
        for name in LAYER_WEIGHTS:
            setattr(self, name, tensor(getattr(layer, name)))

    def project(self, h, w, b):
        return torch.einsum("bth,mkh->bmtk", h, w) + b[None, :, None]

    def forward(self, h):
        read = norm(h, self.epsilon)
        q, k, v = (
            self.project(read, w, b)
            for w, b in (
                (self.w_q, self.b_q),
                (self.w_k, torch.zeros_like(self.b_k)),
                (self.w_v, self.b_v),
            )
        )
        scores = self.scale * torch.einsum("bmtk,bmsk->bmts", q, k)
        future = torch.full(scores.shape[-2:], -torch.inf, dtype=h.dtype).triu(1)
        alpha = torch.softmax(scores + future, dim=-1)
        a = torch.einsum("bmts,bmsv,mhv->bth", alpha, v, self.w_f) + self.b_f
        x = a + h
        inner = torch.nn.functional.gelu(norm(x, self.epsilon) @ self.w_2.T + self.b_2)
        return x + inner @ self.w_1.T + self.b_1


class Twin(torch.nn.Module):
    """A learner with the same weights, in float64.

    With `all_tokens` its stream holds the last label too; with `tuples` its layers
    return tuples, as those of older libraries do.
    """

    def __init__(self, learner: InContextLearner, all_tokens=False, tuples=False):
        super().__init__()
        model = learner.transformer
        assert model.block.pre_norm
        assert not model.block.imaginary_timestep
        self.epsilon, self.all_tokens = model.block.layer_norm_epsilon, all_tokens
        self.w_e, self.positions = tensor(model.w_e), tensor(model.positions)
        self.w_o, self.b_o = tensor(model.w_o), tensor(model.b_o)
        self.layers = torch.nn.ModuleList(
            TwinLayer(
                jax.tree.map(lambda leaf, i=i: leaf[i], model.layers), model.block
            )
            for i in range(model.num_layers)
        )
        if tuples:
            for layer in self.layers:
                layer.forward = lambda h, run=layer.forward: (run(h), None)

    def forward(self, x, y):
        zero, zeros = torch.zeros_like(y[..., None]), torch.zeros_like(x)
        pairs = torch.cat([zero, x], -1), torch.cat([y[..., None], zeros], -1)
        tokens = torch.stack(pairs, 2).flatten(1, 2)
        tokens = tokens if self.all_tokens else tokens[:, :-1]
        h = tokens @ self.w_e.T + self.positions[: tokens.shape[1]]
        for layer in self.layers:
            h = layer(h)
            h = h[0] if isinstance(h, tuple) else h
        return (norm(h, self.epsilon) @ self.w_o + self.b_o)[:, ::2]
