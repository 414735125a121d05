"""Heads and MLPs of PyTorch blocks, where they are known: ablated through hooks.

They are known in the blocks that `export` writes, and in those of GPT-2 in
`transformers`. What a head reads stands at the input of a module: of `attention.heads`,
[batch, heads, time, value], and of `attn.c_proj`, [batch, time, heads · value].

A part is ablated by putting its mean over datasets and positions in its place.
"""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from algoscope.adapters.torch import import_torch
from algoscope.model.opened import Part


class BlockParts(NamedTuple):
    """Where the heads and the MLP of one block are."""

    heads: Any  # the module whose input they write
    num_heads: int
    apart: bool  # [batch, heads, time, value], not [batch, time, heads · value]
    mlp: Any

    def by_head(self, written: Any) -> Any:
        """Return what the heads wrote as [batch, time, heads, value]."""
        if self.apart:
            return written.transpose(1, 2)
        return written.unflatten(-1, (self.num_heads, -1))

    def as_written(self, by_head: Any) -> Any:
        """Return the inverse of `by_head`."""
        return by_head.transpose(1, 2) if self.apart else by_head.flatten(-2)


def find_parts(blocks: Mapping[str, Any]) -> list[BlockParts]:
    """Return the parts of every block; none if those of one are not known."""
    found = [_parts_of(block) for block in blocks.values()]
    known = [parts for parts in found if parts is not None]
    return known if len(known) == len(found) else []


def _parts_of(block: Any) -> BlockParts | None:
    attention: Any = getattr(block, "attention", None)
    if hasattr(attention, "heads") and hasattr(block, "feed_forward"):  # our export
        num_heads = attention.weights["w_f"].shape[0]
        return BlockParts(attention.heads, num_heads, True, block.feed_forward)
    attention = getattr(block, "attn", None)
    if hasattr(attention, "c_proj") and hasattr(block, "mlp"):  # GPT-2
        num_heads = getattr(attention, "num_heads", None)
        if isinstance(num_heads, int):
            return BlockParts(attention.c_proj, num_heads, False, block.mlp)
    return None


def name_parts(known: list[BlockParts]) -> tuple[Part, ...]:
    """Return every head and every MLP, layer by layer."""
    return tuple(
        Part(layer, head)
        for layer, parts in enumerate(known, start=1)
        for head in [*range(parts.num_heads), None]
    )


class Means:
    """The mean of what each part writes, over all forward passes that it watches."""

    def __init__(self, known: list[BlockParts], num_tokens: int):
        self.known, self.num_tokens = known, num_tokens
        self._sums: dict[Part, Any] = {}
        self._counts: dict[Part, int] = {}

    def of(self, part: Part) -> Any:
        """Return the mean of a part, a tensor [value] of a head or [hidden]."""
        return self._sums[part] / self._counts[part]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Add what the parts write in the forward passes inside."""
        with ExitStack() as stack:
            for layer, parts in enumerate(self.known, start=1):
                stack.enter_context(self._block(layer, parts))
            yield

    @contextmanager
    def _block(self, layer: int, parts: BlockParts) -> Iterator[None]:
        def heads(module, given):
            written = parts.by_head(given[0])
            for head in range(parts.num_heads):
                self._add(Part(layer, head), written[:, :, head])

        def mlp(module, given, output):
            self._add(Part(layer), output)

        hooks = [
            parts.heads.register_forward_pre_hook(heads),
            parts.mlp.register_forward_hook(mlp),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def _add(self, part: Part, written: Any) -> None:
        shown = written[:, : self.num_tokens]
        self._sums[part] = self._sums.get(part, 0) + shown.sum(dim=(0, 1))
        self._counts[part] = self._counts.get(part, 0) + shown[..., 0].numel()


@contextmanager
def without(parts: BlockParts, head: int | None, mean: Any) -> Iterator[None]:
    """Put the mean in the place of a head, or of the MLP if `head` is None."""
    torch = import_torch()

    def heads(module, given):
        written = parts.by_head(given[0]).clone()
        written[:, :, head] = mean
        return (parts.as_written(written), *given[1:])

    def mlp(module, given, output):
        return mean.expand_as(output)

    with torch.no_grad():
        if head is None:
            hook = parts.mlp.register_forward_hook(mlp)
        else:
            hook = parts.heads.register_forward_pre_hook(heads)
        try:
            yield
        finally:
            hook.remove()
