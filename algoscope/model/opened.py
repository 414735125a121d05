"""Opened learners: they show their hidden states and predict from edited ones.

Whoever fulfils `OpenedLearner` can be probed, patched and read layer by layer by the
same code: `InContextLearner`, and PyTorch modules behind `OpenedModule` of `adapters`.

A sequence holds the tokens x₁ y₁ x₂ y₂ … x_N, one pair per example, and no other
layout. H⁽⁰⁾ is the input of the first layer, H⁽ˡ⁾ the output of layer l.

An edit is a function of H⁽ˡ⁾ [batch, time, hidden] that keeps its shape and dtype. One
that is an `eqx.Module` may be compiled: learners in JAX trace it, with its arrays as
arguments, so that other numbers do not compile again. Any other function receives and
returns NumPy arrays.

Axes: `batch` datasets, `depth` = L + 1 layers, `time` = 2N − 1 tokens, `hidden` units.
"""

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Bool, Float, Int

# That of Python 3.11 computes properties, such as the digest of all weights, to see
# whether they exist.
from typing_extensions import Protocol, runtime_checkable

from algoscope.foundation.validation import InvalidValueError, require_at_least
from algoscope.model.tokens import QUERIES, encode_context
from algoscope.model.transformer import Transformer
from algoscope.tasks.task import Task

AnyKind = Array | np.ndarray
Inputs = Float[AnyKind, "batch examples dim"]
Labels = Float[AnyKind, "batch examples"]
HiddenStates = Float[AnyKind, "batch depth time hidden"]
MEAN_DATASETS = 256  # over which the mean of a part is taken
StateEdit = Callable[[Any], Any]  # from H⁽ˡ⁾ [batch, time, hidden] to the same shape


@runtime_checkable
class OpenedLearner(Protocol):
    """A learner that gives hidden states, and predicts while they are edited.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.InContextLearner.from_pretrained("linear-d2")
        >>> isinstance(learner, asc.OpenedLearner), learner.num_layers
        (True, 4)
        >>> learner.layer_names[:2], learner.token_names(1)
        (('input', 'layer 1'), ['x1', 'y1', 'query'])
        >>> x, y = np.ones((8, 3, 2), np.float32), np.ones((8, 3), np.float32)
        >>> learner.hidden_states(x, y).shape  # 5 tokens: x₁ y₁ x₂ y₂ x₃
        (8, 5, 5, 64)
        >>> learner.predict_edited(x, y, 1, lambda h: 0 * h).shape
        (8, 3)
    """

    @property
    def name(self) -> str: ...

    @property
    def dim(self) -> int: ...

    @property
    def max_examples(self) -> int: ...  # before a query

    @property
    def task(self) -> Task: ...

    @property
    def digest(self) -> str: ...  # differs where weights differ; caches use it

    @property
    def num_layers(self) -> int: ...

    @property
    def hidden_size(self) -> int: ...

    @property
    def layer_names(self) -> tuple[str, ...]: ...  # of H⁽⁰⁾, …, H⁽ᴸ⁾

    def token_names(self, num_examples: int) -> list[str]: ...

    def hidden_states(self, x: Inputs, y: Labels, /) -> HiddenStates:
        """Return H⁽⁰⁾, …, H⁽ᴸ⁾ of every dataset, at the tokens up to its last x."""
        ...

    def predict_edited(
        self, x: Inputs, y: Labels, layer: int, edit: StateEdit, /
    ) -> Labels:
        """Return the prediction at every x when H⁽ˡ⁾ is replaced by edit(H⁽ˡ⁾)."""
        ...


class Part(NamedTuple):
    """A head of a layer or, if `head` is None, its MLP. Layers are counted from 1."""

    layer: int
    head: int | None = None

    def __str__(self) -> str:
        what = "MLP" if self.head is None else f"head {self.head + 1}"
        return f"layer {self.layer}, {what}"


@runtime_checkable
class PartedLearner(OpenedLearner, Protocol):
    """An opened learner that can be asked without one of its heads or MLPs.

    The part is replaced by its mean over the first `MEAN_DATASETS` and all positions.
    """

    @property
    def parts(self) -> tuple[Part, ...]: ...  # none if they are not known

    def predict_without_each(
        self, x: Inputs, y: Labels, /
    ) -> Iterator[tuple[Part, Labels]]:
        """Yield every part, and the predictions at every x without it."""
        ...


class Unchanged(eqx.Module):
    """The edit that changes nothing."""

    def __call__(
        self, h: Float[AnyKind, "batch time hidden"]
    ) -> Float[AnyKind, "batch time hidden"]:
        return h


class Swap(eqx.Module):
    """Replaces the states of some positions by donated ones."""

    donated: Float[AnyKind, "batch time hidden"]
    mask: Bool[AnyKind, " time"]

    def __call__(
        self, h: Float[AnyKind, "batch time hidden"]
    ) -> Float[AnyKind, "batch time hidden"]:
        return _where(self.mask, self.donated, h)


class Add(eqx.Module):
    """Adds a change, one for each dataset, to the states of some positions."""

    change: Float[AnyKind, "batch hidden"]
    mask: Bool[AnyKind, " time"]

    def __call__(
        self, h: Float[AnyKind, "batch time hidden"]
    ) -> Float[AnyKind, "batch time hidden"]:
        return _where(self.mask, h + self.change[:, None], h)


def _where(mask: Any, then: Any, otherwise: Any) -> Any:
    xp: Any = np if isinstance(otherwise, np.ndarray) else jnp
    return xp.where(mask[None, :, None], then, otherwise)


def predict_intact(learner: OpenedLearner, x: Inputs, y: Labels) -> Labels:
    """Return the predictions of a learner without any edit."""
    return learner.predict_edited(x, y, 0, Unchanged())


def name_layers(num_layers: int) -> tuple[str, ...]:
    """Return the names of H⁽⁰⁾, …, H⁽ᴸ⁾.

    Example:
        >>> name_layers(2)
        ('input', 'layer 1', 'layer 2')
    """
    return ("input", *(f"layer {number}" for number in range(1, num_layers + 1)))


def name_tokens(num_examples: int) -> list[str]:
    """Return the names of the tokens of some examples and of the query after them.

    Example:
        >>> name_tokens(2)
        ['x1', 'y1', 'x2', 'y2', 'query']
    """
    numbers = range(1, num_examples + 1)
    return [*(f"{token}{i}" for i in numbers for token in "xy"), "query"]


def apply_edit(edit: StateEdit, h: Any) -> Any:
    """Return edit(H⁽ˡ⁾), and reject an edit that changes its shape or dtype."""
    edited = edit(h)
    if isinstance(h, np.ndarray):
        edited = np.asarray(edited)
    if edited.shape != h.shape or edited.dtype != h.dtype:
        rule = f"keep the shape {h.shape} and the dtype {h.dtype} of the states"
        got = f"shape {tuple(edited.shape)} and dtype {edited.dtype}"
        raise InvalidValueError("edit", rule, got)
    return edited


def edit_outside(edit: StateEdit, h: Any) -> Swap:
    """Return an edit that puts in place what a function of NumPy arrays returns."""
    states = np.asarray(h)
    return Swap(apply_edit(edit, states), np.ones(states.shape[1], bool))


@eqx.filter_jit
def run_edited(
    transformer: Transformer,
    x: Float[Array, "batch examples dim"],
    y: Float[Array, "batch examples"],
    layer: Int[Array, ""],
    edit: eqx.Module,
) -> Float[Array, "batch examples"]:
    """Return all predictions with edit(H⁽ˡ⁾) in one layer, compiled once per shape."""
    change: Any = edit

    def at_layer(depth: Array, h: Array) -> Array:
        return jnp.where(depth == layer, apply_edit(change, h), h)

    return transformer.edited(encode_context(x, y), at_layer)[:, QUERIES]


def require_layer(layer: int, num_layers: int) -> None:
    """Reject a layer that a learner does not have; 0 is its input."""
    require_at_least("layer", layer, 0)
    if layer > num_layers:
        raise InvalidValueError("layer", f"be at most {num_layers}, the depth", layer)


def require_datasets(x: Any, y: Any, dim: int, max_examples: int) -> None:
    """Reject anything but a batch of finite datasets that fit into the context.

    Traced values are unknown: of them, only shapes are checked.
    """
    if x.ndim != 3 or x.shape[2] != dim or 0 in x.shape:
        rule = f"have shape (datasets, examples, {dim}), none of them 0"
        raise InvalidValueError("x", rule, f"shape {x.shape}")
    if y.shape != x.shape[:2]:
        rule = f"have shape {x.shape[:2]}, one label per example"
        raise InvalidValueError("y", rule, f"shape {y.shape}")
    if x.shape[1] > max_examples + 1:
        rule = f"hold at most {max_examples} examples before a query"
        raise InvalidValueError("x", rule, x.shape[1] - 1)
    for name, values in (("x", x), ("y", y)):
        if isinstance(values, Tracer):
            continue
        if not np.all(np.isfinite(np.asarray(values))):
            raise InvalidValueError(name, "be finite", "NaN or infinity")
