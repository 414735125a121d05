"""The residual stream of a PyTorch module, watched and edited by forward hooks.

A `ResidualStream` belongs to one forward pass. It checks that every block runs once, in
order, and that all of them pass on states of one shape. It keeps the states; or, with
an edit, it replaces those of one layer.
"""

import difflib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.adapters.batched import as_numpy
from algoscope.adapters.torch import import_torch
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.model.opened import StateEdit, apply_edit

Blocks = Mapping[str, Any]  # modules by their paths
EXAMPLE = "For example: layers='transformer.h'."


def find_blocks(module: Any, layers: str | Sequence[str]) -> Blocks:
    """Return the blocks that `layers` names, by their paths."""
    torch = import_torch()

    if isinstance(layers, str):
        within = _part(module, layers)
        if not isinstance(within, (torch.nn.ModuleList, torch.nn.Sequential)):
            rule = "be the path of a ModuleList or Sequential, or a list of paths"
            got = f"'{layers}', which is a {type(within).__name__}"
            raise InvalidValueError("layers", rule, got, _suggestion(module, layers))
        found = {f"{layers}.{name}": block for name, block in within.named_children()}
    elif all(isinstance(each, str) for each in layers):
        found = {each: _part(module, each) for each in layers}
    else:
        raise InvalidTypeError("layers", "be text or a list of texts", repr(layers))
    if not found:
        raise InvalidValueError("layers", "name at least one block", repr(layers))
    repeated = len({id(block) for block in found.values()}) < len(found)
    if repeated or len(found) < (0 if isinstance(layers, str) else len(layers)):
        raise InvalidValueError("layers", "name no block twice", ", ".join(found))
    return found


def only_blocks(module: Any) -> str:
    """Return the path of a module's only ModuleList, not counting those within one."""
    torch = import_torch()

    lists = (torch.nn.ModuleList,)
    found: list[str] = []
    for name, part in module.named_modules():
        inner = any(name.startswith(f"{outer}.") for outer in found)
        if isinstance(part, lists) and not inner:
            found.append(name)
    if len(found) != 1:
        rule = "be the path of the blocks of a module that has not one list of them"
        shown = ", ".join(f"'{name}'" for name in found[:5])
        remedy = f"It has {shown}." if found else EXAMPLE
        raise InvalidValueError("blocks", rule, "none", remedy)
    return found[0]


def _part(module: Any, path: str) -> Any:
    try:
        return module.get_submodule(path)
    except AttributeError:
        rule = f"be the path of a part of {type(module).__name__}"
        suggestion = _suggestion(module, path)
        raise InvalidValueError("layers", rule, f"'{path}'", suggestion) from None


def _suggestion(module: Any, path: str) -> str:
    """Return the list of blocks whose path is nearest, or that there is none."""
    torch = import_torch()

    kinds = (torch.nn.ModuleList, torch.nn.Sequential)
    known = [name for name, part in module.named_modules() if isinstance(part, kinds)]
    known = [name for name in known if name]
    near = difflib.get_close_matches(path, known, n=1, cutoff=0.3) or known[:1]
    return f"Did you mean '{near[0]}'?" if near else EXAMPLE


class ResidualStream:
    """What flows through the blocks in one forward pass on a batch of datasets."""

    def __init__(
        self,
        blocks: Blocks,
        batch: tuple[int, ...],  # datasets, examples
        layer: int | None = None,
        edit: StateEdit | None = None,
    ):
        self.blocks, self.batch, self.layer, self.edit = blocks, batch, layer, edit
        self._names = ["input", *blocks]
        self._seen = 0  # layers that have passed
        self._shape: tuple[int, ...] | None = None
        self._kept: list[np.ndarray] = []
        self._hooks: list[Any] = []

    def __enter__(self) -> "ResidualStream":
        first, *_ = self.blocks.values()
        self._hooks.append(
            first.register_forward_pre_hook(self._enter_first, with_kwargs=True)
        )
        for layer, block in enumerate(self.blocks.values(), start=1):

            def passed(module, given, output, layer=layer):
                return self._leave(layer, output)

            self._hooks.append(block.register_forward_hook(passed))
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self._hooks:
            hook.remove()
        self._hooks.clear()

    def states(self) -> Float[np.ndarray, "batch depth time hidden"]:
        """Return all states at the tokens up to the last x; reject NaN."""
        self.require_complete()
        for name, states in zip(self._names, self._kept, strict=True):
            if not np.all(np.isfinite(states)):
                what = f"hidden states after '{name}'"
                raise InvalidValueError(what, "be finite", "NaN or infinity")
        return np.stack(self._kept, axis=1)

    def require_complete(self) -> None:
        """Reject a forward pass that left out a block."""
        if self._seen < len(self._names):
            missing = self._names[self._seen]
            rule = "name blocks that every prediction runs through, in their order"
            raise InvalidValueError("layers", rule, f"'{missing}', which did not run")

    def _enter_first(self, module: Any, args: tuple, kwargs: dict) -> Any:
        torch = import_torch()

        if args:
            return (self._pass(0, args[0]), *args[1:]), kwargs
        named = [name for name, v in kwargs.items() if isinstance(v, torch.Tensor)]
        name = "hidden_states" if "hidden_states" in named else (named or [""])[0]
        return args, kwargs | {name: self._pass(0, kwargs.get(name))}

    def _leave(self, layer: int, output: Any) -> Any:
        if isinstance(output, tuple) and output:
            return (self._pass(layer, output[0]), *output[1:])
        return self._pass(layer, output)

    def _pass(self, layer: int, h: Any) -> Any:
        """Return the states to continue with; reject what is no residual stream."""
        torch = import_torch()

        name = self._names[layer]
        if layer != self._seen:
            rule = "name blocks that run once per prediction, in their order"
            got = f"'{name}', which ran out of turn"
            raise InvalidValueError("layers", rule, got)
        self._seen += 1
        num_datasets, num_examples = self.batch
        rule = (
            "name blocks that return a residual stream, a tensor [batch, time, hidden] "
            f"with time {2 * num_examples - 1} or {2 * num_examples} for "
            f"{num_examples} examples, or a tuple that starts with it"
        )
        if not isinstance(h, torch.Tensor) or not h.is_floating_point():
            raise InvalidValueError("layers", rule, f"{type(h).__name__} at '{name}'")
        shape, times = tuple(h.shape), (2 * num_examples - 1, 2 * num_examples)
        if h.ndim != 3 or shape[0] != num_datasets or shape[1] not in times:
            remedy = "Tokens must be interleaved: x1 y1 x2 y2 …"
            raise InvalidValueError(
                "layers", rule, f"shape {shape} at '{name}'", remedy
            )
        if self._shape not in (None, shape):
            rule = f"name blocks that all keep the shape {self._shape}"
            raise InvalidValueError("layers", rule, f"shape {shape} at '{name}'")
        self._shape = shape
        shown = 2 * num_examples - 1
        if self.edit is None:
            self._kept.append(as_numpy(h[:, :shown]))
            return h
        if layer != self.layer:
            return h
        edited = np.array(apply_edit(self.edit, as_numpy(h[:, :shown])))
        put = torch.as_tensor(edited, dtype=h.dtype, device=h.device)
        return torch.cat([put, h[:, shown:]], dim=1)
