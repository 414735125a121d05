"""PyTorch models as predictors.

`from_torch` wraps a module whose forward pass is `module(x[B, N, d], y[B, N])`, with
one prediction per position, or `module(x, y, queries)`. It is run in evaluation mode,
without gradients, in batches, on its own device and in its own precision unless told
otherwise.

PyTorch is imported only when a module is wrapped, so nothing else needs it.
"""

import copy
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any, Literal

import numpy as np

from algoscope.adapters.batched import (
    BatchedPredictor,
    CausalPredictor,
    ContextPredictor,
)
from algoscope.foundation.text import one_line
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_choice,
)

Form = Literal["causal", "context"]
FORMS: dict[str, type[BatchedPredictor]] = {
    "causal": CausalPredictor,
    "context": ContextPredictor,
}
PRECISIONS = ("float32", "float64", "bfloat16", "float16")
LARGE_BLOCK = 31 * 2**20  # bytes; of larger ones glibc learns nothing


class TorchCall:
    """A module as a function of NumPy arrays.

    `forward(module, *tensors)` says how it is called. By default that is
    `module.predict_prefixes(x, y)` for a module that has it, as exported ones do, and
    `module(x, y)` or `module(x, y, queries)` for all others.
    """

    def __init__(
        self,
        module: Any,
        *,
        forward: Callable[..., Any] | None = None,
        device: str | None = None,
        dtype: str | None = None,
    ):
        torch = import_torch()
        if not isinstance(module, torch.nn.Module):
            rule = "be a torch.nn.Module"
            remedy = "Create one first, if this is a class." * isinstance(module, type)
            shown = one_line(repr(module), 60)
            raise InvalidTypeError("module", rule, shown, remedy)
        if dtype is not None:
            require_choice("dtype", dtype, PRECISIONS)
        if forward is not None and not callable(forward):
            rule = "be a function of the module and tensors"
            raise InvalidTypeError("forward", rule, one_line(repr(forward), 60))
        weights = [value for value in module.parameters() if value.is_floating_point()]
        places = {value.device for value in weights} or {torch.device("cpu")}
        if device is None and len(places) > 1:
            rule, shown = "be on one device", ", ".join(sorted(map(str, places)))
            remedy = "Say where inputs go: `device`."
            raise InvalidValueError("module", rule, shown, remedy)
        if any(place.type == "meta" for place in places):
            rule = "hold weights, on a device that computes"
            raise InvalidValueError("module", rule, "weights on the device meta")
        kept = weights[0].dtype if weights else torch.get_default_dtype()
        self.dtype = kept if dtype is None else getattr(torch, dtype)
        self._forward = forward or _own_forward
        try:
            self.device = torch.device(device) if device else places.pop()
            moves = any(value.device != self.device for value in weights)
            if moves or self.dtype != kept:  # the user's own module stays as it is
                module = copy.deepcopy(module).to(self.device, self.dtype)
        except (RuntimeError, AssertionError, NotImplementedError) as error:
            rule, shown = "name a device that can hold the weights", f"'{device}'"
            remedy = f"{one_line(str(error), 120)}."
            raise InvalidValueError("device", rule, shown, remedy) from None
        self.module = module
        # glibc keeps freed memory up to twice the largest block that was ever freed,
        # and gives back the rest, which each batch would have to map and clear anew.
        torch.empty(LARGE_BLOCK, dtype=torch.uint8, device="cpu")  # never touched
        self._lock = threading.RLock()  # hooks belong to one forward pass at a time

    def tensors(self, *arrays: np.ndarray) -> list[Any]:
        """Return arrays as tensors of the module's device and precision."""
        torch = import_torch()
        return [
            torch.as_tensor(np.array(array), dtype=self.dtype, device=self.device)
            for array in arrays
        ]

    @contextmanager
    def evaluating(self) -> Iterator[None]:
        """Run in evaluation mode and without gradients; restore both afterwards.

        One thread at a time may do so.
        """
        torch = import_torch()
        with self._lock:
            training = [each for each in self.module.modules() if each.training]
            if training:  # `eval` takes as long as a small layer
                self.module.eval()
            try:
                with torch.no_grad():
                    yield
            finally:
                for each in training:
                    each.training = True

    def of_copy(self) -> "TorchCall":
        """Return the same of a copy of the module."""
        other = copy.copy(self)
        other.module, other._lock = copy.deepcopy(self.module), threading.RLock()
        return other

    def __call__(self, *arrays: np.ndarray) -> Any:
        """Return what the module returns."""
        with self.evaluating():
            return self._forward(self.module, *self.tensors(*arrays))


def _own_forward(module: Any, *tensors: Any) -> Any:
    return getattr(module, "predict_prefixes", module)(*tensors)


def from_torch(
    module: Any,
    dim: int | None = None,
    *,
    form: Form = "causal",
    forward: Callable[..., Any] | None = None,
    device: str | None = None,
    dtype: str | None = None,
    name: str | None = None,
    max_examples: int | None = None,
    layers: str | Sequence[str] | None = None,
    **options: Any,
) -> Any:
    """Return a PyTorch model as a predictor that can be compared and identified.

    With `layers` it is opened (`OpenedModule`): it can be probed and patched too.

    Args:
        module: a `torch.nn.Module`.
        dim: d, by default the module's attribute `dim` or `n_dims`.
        form: "causal" for module(x[B, N, d], y[B, N]) -> [B, N], or "context" for
            module(x[B, n, d], y[B, n], queries[B, q, d]) -> [B, q].
        forward: a function of the module and these tensors, if it is called otherwise.
        device: where to run it, by default where its weights are.
        dtype: its precision, by default that of its weights.
        name: by default that of its class.
        max_examples: the most examples that fit before a query.
        layers: the path of its blocks, such as "transformer.h". They must return the
            residual stream, with the tokens x₁ y₁ x₂ y₂ ….
        options: `task`, `batch_size` and `timeout`, as for `causal`.

    Example:
        >>> import pytest
        >>> import algoscope as asc
        >>> torch = pytest.importorskip("torch")
        >>> class Zero(torch.nn.Module):
        ...     def forward(self, xs, ys):
        ...         return torch.zeros_like(ys)
        >>> model = asc.from_torch(Zero(), dim=2, name="mine")
        >>> asc.compare(model, ["zero", "ols"], num_datasets=20).nearest(1, 20)[0]
        ('Zero', 0.0)
    """
    require_choice("form", form, FORMS)
    run = {"forward": forward, "device": device, "dtype": dtype}
    if dim is None:
        dim = getattr(module, "dim", getattr(module, "n_dims", None))
    if max_examples is None:
        max_examples = getattr(module, "max_examples", None)
    options |= {"name": name or type(module).__name__}
    if max_examples is not None:
        options |= {"max_examples": max_examples}
    if layers is None:
        return FORMS[form](TorchCall(module, **run), dim, **options)
    from algoscope.adapters.opened_torch import OpenedModule

    if form != "causal":
        rule = "be causal for a model that is opened"
        raise InvalidValueError("form", rule, f"'{form}'", "Leave out `layers`.")
    if dim is None:
        remedy = "The module does not tell it."
        raise InvalidValueError("dim", "be given with `layers`", "None", remedy)
    return OpenedModule(module, dim, layers, **run, **options)


def is_torch_module(value: Any) -> bool:
    """Return whether a value is a module, without importing PyTorch for it."""
    return any(
        base.__module__.split(".")[0] == "torch" and base.__name__ == "Module"
        for base in type(value).__mro__
    )


def import_torch() -> Any:
    """Return PyTorch, or explain how to install it."""
    try:
        return import_module("torch")
    except ModuleNotFoundError:
        remedy = "Install it: pip install 'algoscope[torch]'."
        rule = "be used with PyTorch installed"
        raise InvalidValueError("module", rule, "no PyTorch", remedy) from None
