"""PyTorch modules as opened learners: hidden states and edits through forward hooks.

`OpenedModule` fulfils `OpenedLearner` for any module whose blocks return the residual
stream, a tensor [batch, time, hidden] or a tuple that starts with it. H⁽⁰⁾ is the input
of the first block, H⁽ˡ⁾ the output of block l. The stream must hold the tokens
x₁ y₁ x₂ y₂ …, 2N − 1 or 2N of them; with 2N, the last label's token is not shown, and
edits leave it unchanged.

A module runs in evaluation mode and without gradients, one thread at a time; the mode
of each of its parts is restored afterwards. Arrays are NumPy's on this side.

PyTorch is imported on first use.
"""

import copy
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.black_box import describe
from algoscope.adapters.residual_stream import (
    ResidualStream,
    as_numpy,
    find_blocks,
    import_torch,
)
from algoscope.foundation.files import digest_of_arrays
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_at_least,
)
from algoscope.model.opened import (
    HiddenStates,
    Inputs,
    Labels,
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
BATCH = 256  # datasets per forward pass

Predict = Callable[[Any, Any, Any], Any]  # of the module, x [B, N, d] and y [B, N]


class OpenedModule:
    """A `torch.nn.Module` that is opened at its blocks.

    `layers` is the path of a ModuleList or Sequential such as `transformer.h`, or a
    list of the blocks' own paths. `predict` maps the module and tensors x [B, N, d] and
    y [B, N] to predictions [B, N], each from the examples before it; by default it is
    `module.predict_prefixes(x, y)` if there is one, or else `module(x, y)`.
    `max_examples` is how many examples fit before a query. Inputs are given on `device`
    and in `dtype`, by default those of the weights, `batch_size` datasets at a time.

    Example:
        >>> import pytest
        >>> torch = pytest.importorskip("torch")
        >>> class Mean(torch.nn.Module):  # guesses 0, but holds Σy in its stream
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.blocks = torch.nn.ModuleList([torch.nn.Linear(2, 2)])
        ...     def forward(self, x, y):
        ...         tokens = torch.stack([x[..., 0], y], -1).repeat_interleave(2, 1)
        ...         return self.blocks[0](tokens.cumsum(1))[:, ::2, 0]
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
        predict: Predict | None = None,
        name: str | None = None,
        task: Task | None = None,
        max_examples: int = MAX_EXAMPLES,
        device: str | None = None,
        dtype: Any = None,
        batch_size: int = BATCH,
    ):
        torch = import_torch()

        if not isinstance(module, torch.nn.Module):
            raise InvalidTypeError("module", "be a torch.nn.Module", repr(module))
        if predict is not None and not callable(predict):
            rule = "be a function of the module, x and y"
            raise InvalidTypeError("predict", rule, repr(predict))
        require_at_least("dim", dim, 1)
        require_at_least("max_examples", max_examples, 1)
        require_at_least("batch_size", batch_size, 1)
        if task is not None and task.dim != dim:
            raise InvalidValueError("task", f"have dimension {dim}", task.dim)
        self.module, self.dim, self.max_examples = module, dim, max_examples
        self.name = name or type(module).__name__
        self.task: Task = LinearRegression(dim) if task is None else task
        self.batch_size, self.blocks = batch_size, find_blocks(module, layers)
        self._device = _device_of(module, device)
        self._dtype = _dtype_of(module, dtype)
        self._predict = predict or _own_prediction
        self._lock = threading.RLock()  # hooks belong to one call at a time
        self._hidden_size = 0  # not known yet

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
        """Yield the same, some datasets at a time."""
        x, y = self._checked(x, y)
        yield from (self._run(x[some], y[some]) for some in self._parts(x))

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

    def answers(
        self, questions: Iterable[Question], /
    ) -> Iterator[Float[np.ndarray, " queries"]]:
        """Yield the predictions for each question, all its queries in one pass."""
        for x, y, queries in questions:
            count = len(queries)
            examples = np.repeat(x[None], count, axis=0)
            labels = np.repeat(np.append(y, 0.0)[None], count, axis=0)
            sequences = np.concatenate([examples, queries[:, None]], axis=1)
            yield self.predict(sequences, labels)[:, -1].astype(np.float64)

    def shuffled(self, seed: int = 0) -> "OpenedModule":
        """Return a control: a copy with the entries of each weight tensor shuffled."""
        torch = import_torch()

        other = copy.copy(self)
        other.module, other._lock = copy.deepcopy(self.module), threading.RLock()
        other.blocks = find_blocks(other.module, list(self.blocks))
        other.name = f"{self.name}, shuffled"
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
        self, x: np.ndarray, y: np.ndarray, stream: "ResidualStream | None" = None
    ) -> np.ndarray:
        """Return the predictions of one forward pass, watched by a stream."""
        torch = import_torch()

        given = [
            torch.as_tensor(np.array(values), dtype=self._dtype, device=self._device)
            for values in (x, y)
        ]
        with self._lock, _evaluating(self.module), torch.no_grad():
            try:
                with stream or nullcontext():
                    found = self._predict(self.module, *given)
            except (InvalidValueError, InvalidTypeError):
                raise
            except Exception as error:
                event = f"failed on {x.shape[1] - 1} examples with {describe(error)}"
                remedy = "Try it by hand; `max_examples` says how many examples fit."
                raise PredictorFailedError(self.name, event, remedy) from error
        if not isinstance(found, torch.Tensor) or found.shape != y.shape:
            rule = f"return a tensor of shape {y.shape}, a prediction for every x"
            shape = getattr(found, "shape", None)
            got = type(found).__name__ if shape is None else f"shape {tuple(shape)}"
            raise InvalidValueError("predict", rule, got)
        return as_numpy(found)


def _own_prediction(module: Any, x: Any, y: Any) -> Any:
    return getattr(module, "predict_prefixes", module)(x, y)


@contextmanager
def _evaluating(module: Any) -> Iterator[None]:
    """Switch to evaluation mode, and restore the mode of every part afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


def _device_of(module: Any, device: str | None) -> Any:
    """Return the device of the weights; reject another one, and more than one."""
    torch = import_torch()

    own = {value.device for value in module.parameters()}
    if any(each.type == "meta" for each in own):
        rule = "hold weights, on a device that computes"
        raise InvalidValueError("module", rule, "weights on the device meta")
    if device is None:
        if len(own) > 1:
            listed = ", ".join(sorted(map(str, own)))
            remedy = "Say where inputs go: `device`."
            raise InvalidValueError("module", "be on one device", listed, remedy)
        return own.pop() if own else torch.device("cpu")
    try:
        wanted = torch.device(device)
    except (RuntimeError, TypeError):
        rule = "be a device such as cpu or cuda:0"
        raise InvalidValueError("device", rule, repr(device)) from None
    if own and all(each.type != wanted.type for each in own):
        at = ", ".join(sorted(map(str, own)))
        remedy = f"Move the module first: module.to('{wanted}')."
        rule = f"be that of the weights, {at}"
        raise InvalidValueError("device", rule, f"'{wanted}'", remedy)
    return wanted


def _dtype_of(module: Any, dtype: Any) -> Any:
    """Return the dtype of inputs, by default that of the first weights."""
    torch = import_torch()

    if dtype is None:
        floating = (v.dtype for v in module.parameters() if v.is_floating_point())
        return next(floating, torch.get_default_dtype())
    found = getattr(torch, dtype, None) if isinstance(dtype, str) else dtype
    if not isinstance(found, torch.dtype) or not found.is_floating_point:
        rule = "be a floating dtype of torch such as float32"
        raise InvalidValueError("dtype", rule, repr(dtype))
    return found


def _bytes_of(value: Any) -> np.ndarray:
    """Return the bytes of a tensor, whatever its dtype."""
    torch = import_torch()

    flat = value.detach().to("cpu").contiguous().flatten()
    return flat.view(torch.uint8).numpy()
