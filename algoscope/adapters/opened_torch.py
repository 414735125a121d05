"""PyTorch modules as opened learners: hidden states and edits through forward hooks.

`OpenedModule` fulfils `OpenedLearner` for any module whose blocks return the residual
stream, a tensor [batch, time, hidden] or a tuple that starts with it. H⁽⁰⁾ is the input
of the first block, H⁽ˡ⁾ the output of block l. The stream must hold the tokens
x₁ y₁ x₂ y₂ …, 2N − 1 or 2N of them; with 2N, the last label's token is not shown, and
edits leave it unchanged.

It also answers questions, like any causal model in PyTorch.
"""

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.batched import BATCH, CausalPredictor, as_numpy
from algoscope.adapters.black_box import TIMEOUT, Failures
from algoscope.adapters.residual_stream import ResidualStream, find_blocks
from algoscope.adapters.torch import TorchCall, import_torch
from algoscope.adapters.torch_parts import Means, find_parts, name_parts, without
from algoscope.foundation.files import digest_of_arrays
from algoscope.foundation.user_code import describe
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
)
from algoscope.model.opened import (
    MEAN_DATASETS,
    HiddenStates,
    Inputs,
    Labels,
    Part,
    StateEdit,
    apply_edit,
    name_layers,
    name_tokens,
    require_datasets,
    require_layer,
)
from algoscope.predictors import PredictorFailedError, Question
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Task

MAX_EXAMPLES = 40  # as many as the paper's longest sequences have


class OpenedModule:
    """A `torch.nn.Module` that is opened at its blocks.

    `layers` is the path of a ModuleList or Sequential such as `transformer.h`, or a
    list of the blocks' own paths. `forward` maps the module and tensors x [B, N, d] and
    y [B, N] to predictions [B, N], each from the examples before it; by default it is
    `module.predict_prefixes(x, y)` if there is one, or else `module(x, y)`.
    `max_examples` is how many examples fit before a query. The other options are those
    of `from_torch`, which returns such a learner where it is given `layers`.

    Example:
        >>> import pytest
        >>> torch = pytest.importorskip("torch")
        >>> class Mean(torch.nn.Module):  # guesses 0, but holds Σy in its stream
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
        ...     def forward(self, x, y):
        ...         tokens = torch.stack([x[..., 0], y], -1).repeat_interleave(2, 1)
        ...         return self.blocks[0](tokens.cumsum(1) - tokens)[:, ::2, 0]
        >>> opened = OpenedModule(Mean(), dim=1, layers="blocks")
        >>> x, y = np.ones((3, 4, 1), np.float32), np.ones((3, 4), np.float32)
        >>> opened.hidden_states(x, y).shape, opened.predict(x, y).shape
        ((3, 2, 7, 2), (3, 4))
    """

    def __init__(
        self,
        module: Any,
        dim: int,
        layers: str | Sequence[str],
        *,
        forward: Callable[..., Any] | None = None,
        name: str | None = None,
        task: Task | None = None,
        max_examples: int = MAX_EXAMPLES,
        device: str | None = None,
        dtype: str | None = None,
        batch_size: int = BATCH,
        timeout: float = TIMEOUT,
    ):
        require_at_least("dim", dim, 1)
        self._call = TorchCall(module, forward=forward, device=device, dtype=dtype)
        self.module, self.dim, self.max_examples = self._call.module, dim, max_examples
        self.name = name or type(module).__name__
        self.task: Task = LinearRegression(dim) if task is None else task
        self.batch_size, self._timeout = batch_size, timeout
        self.blocks = find_blocks(self.module, layers)
        self._hidden_size = 0  # not known yet
        self._causal = self._answering()

    def _answering(self) -> CausalPredictor:
        return CausalPredictor(
            self._call,
            self.dim,
            name=self.name,
            max_examples=self.max_examples,
            task=self.task,
            batch_size=self.batch_size,
            timeout=self._timeout,
        )

    @property
    def failures(self) -> Failures:
        """The questions that the module did not answer."""
        return self._causal.failures

    @property
    def num_layers(self) -> int:
        """The number of blocks."""
        return len(self.blocks)

    @property
    def layer_names(self) -> tuple[str, ...]:
        """The names of H⁽⁰⁾, …, H⁽ᴸ⁾."""
        return name_layers(self.num_layers)

    @property
    def hidden_size(self) -> int:
        """The number of units of the residual stream, as a first run shows it."""
        if not self._hidden_size:
            x, y = np.zeros((1, 2, self.dim)), np.zeros((1, 2))
            self._hidden_size = self.hidden_states(x, y).shape[-1]
        return self._hidden_size

    @property
    def digest(self) -> str:
        """A text that differs between modules with other weights or another form."""
        torch = import_torch()

        weights = {
            f"{name} {value.dtype} {tuple(value.shape)}": _bytes_of(value)
            for name, value in self.module.state_dict().items()
            if isinstance(value, torch.Tensor)
        }
        return f"{self.module!r} {', '.join(self.blocks)} {digest_of_arrays(weights)}"

    def token_names(self, num_examples: int) -> list[str]:
        """Return the names of the tokens of some examples and of the query."""
        return name_tokens(num_examples)

    def predict(self, x: Inputs, y: Labels, /) -> Float[np.ndarray, "batch examples"]:
        """Return the prediction at every x from the examples before it."""
        return np.concatenate(list(self.batches(x, y)))

    def batches(
        self, x: Inputs, y: Labels, /
    ) -> Iterator[Float[np.ndarray, "some examples"]]:
        """Yield the same, some datasets at a time, NaN where it fails."""
        return self._causal.batches(np.asarray(x), np.asarray(y))

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question."""
        return self._causal.answers(questions)

    def hidden_states(self, x: Inputs, y: Labels, /) -> HiddenStates:
        """Return H⁽⁰⁾, …, H⁽ᴸ⁾ of every dataset, at the tokens up to its last x."""
        x, y = self._checked(x, y)
        found = []
        for some in self._parts(x):
            stream = ResidualStream(self.blocks, x[some].shape[:2])
            self._run(x[some], y[some], stream)
            found.append(stream.states())
        return np.concatenate(found)

    def predict_edited(
        self, x: Inputs, y: Labels, layer: int, edit: StateEdit, /
    ) -> Float[np.ndarray, "batch examples"]:
        """Return the prediction at every x when H⁽ˡ⁾ is replaced by edit(H⁽ˡ⁾)."""
        x, y = self._checked(x, y)
        require_layer(layer, self.num_layers)
        if len(x) <= self.batch_size:
            return self._run_edited(x, y, layer, edit)
        # An edit is about all datasets, so it is applied before they are divided.
        whole = apply_edit(edit, self.hidden_states(x, y)[:, layer])
        parts = [
            self._run_edited(x[i], y[i], layer, lambda _, i=i: whole[i])
            for i in self._parts(x)
        ]
        return np.concatenate(parts)

    @property
    def parts(self) -> tuple[Part, ...]:
        """The heads and MLPs of all blocks; none if they are not known."""
        return name_parts(find_parts(self.blocks))

    def predict_without_each(
        self, x: Inputs, y: Labels, /
    ) -> Iterator[tuple[Part, Float[np.ndarray, "batch examples"]]]:
        """Yield every part, and the predictions at every x without it."""
        x, y = self._checked(x, y)
        known = find_parts(self.blocks)
        means = Means(known, 2 * x.shape[1] - 1)
        with means.watching():
            for some in self._parts(x[:MEAN_DATASETS]):
                self._run(x[:MEAN_DATASETS][some], y[:MEAN_DATASETS][some])
        for part in name_parts(known):
            with without(known[part.layer - 1], part.head, means.of(part)):
                found = [self._run(x[some], y[some]) for some in self._parts(x)]
            yield part, np.concatenate(found)

    def shuffled(self, seed: int = 0) -> "OpenedModule":
        """Return a control: a copy with the entries of each weight tensor shuffled."""
        torch = import_torch()

        other = copy.copy(self)
        other._call = self._call.of_copy()
        other.module = other._call.module
        other.blocks = find_blocks(other.module, list(self.blocks))
        other.name = f"{self.name}, shuffled"
        other._causal = other._answering()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for value in other.module.parameters():
                order = torch.randperm(value.numel(), generator=generator)
                value.copy_(value.flatten()[order.to(value.device)].view_as(value))
        return other

    def _checked(self, x: Any, y: Any) -> tuple[np.ndarray, np.ndarray]:
        x, y = np.asarray(x), np.asarray(y)
        require_datasets(x, y, self.dim, self.max_examples)
        return x, y

    def _parts(self, x: np.ndarray) -> list[slice]:
        starts = range(0, len(x), self.batch_size)
        return [slice(start, start + self.batch_size) for start in starts]

    def _run_edited(
        self, x: np.ndarray, y: np.ndarray, layer: int, edit: StateEdit
    ) -> np.ndarray:
        stream = ResidualStream(self.blocks, x.shape[:2], layer, edit)
        found = self._run(x, y, stream)
        stream.require_complete()
        return found

    def _run(
        self, x: np.ndarray, y: np.ndarray, stream: ResidualStream | None = None
    ) -> np.ndarray:
        """Return the predictions of one forward pass, watched by a stream."""
        torch = import_torch()

        with self._call.evaluating():
            try:
                with stream or nullcontext():
                    found = self._call(x, y)
            except (InvalidValueError, InvalidTypeError):
                raise
            except Exception as error:
                event = f"failed on {x.shape[1] - 1} examples with {describe(error)}"
                remedy = "Try it by hand; `max_examples` says how many examples fit."
                raise PredictorFailedError(self.name, event, remedy) from error
        if not isinstance(found, torch.Tensor) or found.shape[:2] != y.shape:
            rule = f"return a tensor of shape {y.shape}, a prediction for every x"
            shape = getattr(found, "shape", None)
            got = type(found).__name__ if shape is None else f"shape {tuple(shape)}"
            raise InvalidValueError("forward", rule, got)
        return as_numpy(found).reshape(y.shape)


def _bytes_of(value: Any) -> np.ndarray:
    """Return the bytes of a tensor, whatever its dtype."""
    torch = import_torch()

    flat = value.detach().to("cpu").contiguous().flatten()
    return flat.view(torch.uint8).numpy()
