"""How large the numbers may be that a constructed transformer computes with.

A feed-forward layer multiplies through a non-linearity, which is precise for operands
up to a few times those that the weights were calibrated for. LayerNorm divides by its
pads, which have to outweigh everything else in a column. And where numbers cancel, or
are far smaller than the range, the rounding of large units is all that is left. Nothing
in a prediction shows any of this, so `OperandRange.warn` looks for it.

The error of predictions is measured by further runs beside the first. There every unit
and every attention weight is off by as much as rounding can make it, with random signs;
products lack the first term of the series that they do not cancel; and LayerNorm
divides by the pads alone. What changes in the predictions is their error.

Under `jax.jit`, `jax.vmap` and `jax.grad` the warning is a callback of the compiled
program; `range_warnings(False)` leaves it out of what is traced.
"""

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from algoscope.foundation.files import DamagedFileError
from algoscope.model.layer import (
    ACTIVATIONS,
    Block,
    TransformerLayer,
    layer_norm,
)
from algoscope.model.stack import inner_sizes_of, scan_layers
from algoscope.model.tokens import QUERIES
from algoscope.model.transformer import Transformer

DATASETS_AT_ONCE = 32
RUNS = 3  # as it is, and twice with errors
NO_PADS = 1e-30  # of a variance, that the pads are taken to have at least
HUGE = 1e3  # inputs beyond which nothing is promised
TINY = 1e-3  # examples whose own size is what errors are compared with
LARGE = 16.0  # a unit whose series says nothing any more

_SWITCH: ContextVar[bool] = ContextVar("range_warnings", default=True)


class OutsideRangeWarning(UserWarning):
    """A constructed transformer is asked for what it cannot compute precisely.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.build("sgd", 1, 2, dtype="float32")
        >>> with warnings.catch_warnings(record=True) as caught:
        ...     warnings.simplefilter("always")
        ...     _ = learner.predict_prefixes(jnp.full((2, 1), 1e3), jnp.full(2, 1e3))
        >>> caught[0].category is asc.OutsideRangeWarning
        True
    """


@contextmanager
def range_warnings(on: bool) -> Iterator[None]:
    """Switch the warnings of what is traced in a block on or off.

    A compiled program keeps what was chosen when it was traced. Learners that are
    called outside of JAX's transformations warn in any case.

    Example:
        >>> import algoscope as asc
        >>> learner = asc.build("sgd", 1, 2, dtype="float32")
        >>> with asc.range_warnings(False):
        ...     predict = jax.jit(learner.predict_prefixes)
        ...     predict(jnp.full((2, 1), 1e3), jnp.full(2, 1e3)).shape
        (2,)
    """
    token = _SWITCH.set(on)
    try:
        yield
    finally:
        _SWITCH.reset(token)


class Check(NamedTuple):
    """What `OperandRange.check` measures; each is over the largest allowed."""

    ratios: Float[Array, " layers"]  # the largest operand of every layer
    shares: Float[Array, " layers"]  # of other rows than the pads in LayerNorm
    error: Float[Array, ""]  # of predictions


@dataclass(frozen=True)
class OperandRange:
    """How large the operands of products may be in a constructed transformer.

    Products of `units` units are made of even parts; `truncation`·uᵖ for `power` p is
    the first term of a unit u that does not cancel. Without a `tolerance`, as learners
    have that were saved before it was known, only the ranges are checked.
    """

    largest: float
    products: tuple[int, ...]  # per layer: how many inner units, the first, multiply
    pads: tuple[int, ...] = ()  # rows that alone should decide LayerNorm's variance
    share: float = 1.0  # of the others in that variance, at most, relative to the pads
    tolerance: float | None = None  # of predictions, over the largest or 1
    units: int = 0
    truncation: float = 0.0
    power: int = 2

    @classmethod
    def from_config(cls, saved: Any, directory: Path) -> "OperandRange | None":
        """Return the range in a config.json, if it has one."""
        if saved is None:
            return None
        try:
            tolerance = saved.get("tolerance")
            return cls(
                float(saved["largest"]),
                tuple(map(int, saved["products"])),
                tuple(map(int, saved.get("pads", ()))),
                float(saved.get("share", 1.0)),
                None if tolerance is None else float(tolerance),
                int(saved.get("units", 0)),
                float(saved.get("truncation", 0.0)),
                int(saved.get("power", 2)),
            )
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            problem = f"has a damaged range of operands in its configuration: {saved!r}"
            raise DamagedFileError(directory, problem) from error

    def warn(
        self,
        transformer: Transformer,
        tokens: Float[Array, "datasets time token"],
        name: str,
    ) -> None:
        """Warn of predictions that are not precise, now or when the program runs."""
        if isinstance(tokens, Tracer) and not _SWITCH.get():
            return
        found = self.check(transformer, jax.lax.stop_gradient(tokens))
        report = partial(_report, name, self.tolerance)
        if not isinstance(found.error, Tracer):
            report(*found)
        elif _SWITCH.get():
            jax.debug.callback(report, *found)

    def check(
        self, transformer: Transformer, tokens: Float[Array, "datasets time token"]
    ) -> Check:
        """Return how near a run on these datasets comes to the limits."""
        return _check(transformer, tokens, self)

    def partners(self, inner_size: int) -> Int[np.ndarray, "layers inner"]:
        """Return for every unit the one of the same product with −q in place of q.

        Where q is zero both are equal, and nothing is multiplied.
        """
        own = np.tile(np.arange(inner_size), (len(self.products), 1))
        for row, count in zip(own, self.products, strict=True):
            if self.units and count:
                block = (
                    count // self.units
                )  # the first unit of all products comes first
                number = row[:count] // block
                row[:count] += np.where(number % 4 < 2, 2, -2) * block
        return own


def _report(
    name: str, tolerance: float | None, ratios: Any, shares: Any, error: Any
) -> None:
    """Warn of predictions that are off by too much, and say why."""
    if tolerance is not None and error <= 1:
        return
    weakest, worst = int(np.argmax(shares)), int(np.argmax(ratios))
    reasons = []
    if not shares[weakest] <= 1:
        reasons.append(
            f"layer {weakest + 1} divides by a number so near to zero, or holds "
            "numbers so large, that predictions may be wrong."
        )
    if not ratios[worst] <= 1:
        reasons.append(
            f"operands in layer {worst + 1} are {float(ratios[worst]):.2g} times the "
            "largest that it multiplies well; predictions may be wrong. Calibrate on "
            "data like these: `build(..., tokens=...)`."
        )
    if tolerance is not None and not reasons:
        reasons.append(
            f"predictions may be off by {float(error) * tolerance:.2g}, since numbers "
            "are large or cancel. Calibrate on data like these: `build(..., "
            "tokens=...)`, or use float64."
        )
    for reason in reasons:
        warnings.warn(f"{name}: {reason}", OutsideRangeWarning, stacklevel=5)


@eqx.filter_jit
def _check(
    transformer: Transformer,
    tokens: Float[Array, "datasets time token"],
    limits: OperandRange,
) -> Check:
    with jax.default_matmul_precision("highest"):
        found = jax.lax.map(
            lambda each: _check_one(transformer, each, limits),
            tokens,
            batch_size=DATASETS_AT_ONCE,
        )
    return Check(*(jnp.max(each, axis=0) for each in found))


def _check_one(
    transformer: Transformer, tokens: Float[Array, "time token"], limits: OperandRange
) -> Check:
    """Return the check of one dataset, on which all runs start alike."""
    h = transformer.embedded(jnp.stack([tokens] * RUNS))
    layers, time, hidden = transformer.layers, h.shape[1], h.shape[2]
    inner_size = max(inner_sizes_of(layers))
    heads = layers.w_q.shape[1]
    rng, width = np.random.default_rng(0), max(inner_size, hidden, heads * time)
    signs = rng.choice([-1, 1], (RUNS, time * width + 7 * len(limits.products)))
    signs[0] = 0  # the first run is as it is
    runs = _Runs(transformer.block, limits, jnp.asarray(signs, jnp.int8))
    each = (jnp.asarray(limits.products), limits.partners(inner_size))
    numbered = (*each, jnp.arange(len(limits.products)))
    h, (largest, shares) = scan_layers(runs.step, h, layers, numbered)
    exact, *others = transformer.read_out(h)[:, QUERIES]
    # Of examples that are tiny altogether, no digit may be left.
    seen = jnp.max(jnp.abs(tokens[:-1]), initial=0)
    unit = jnp.where((seen > 0) & (seen < TINY), seen, 1)
    size = jnp.maximum(jnp.max(jnp.abs(exact)), unit)
    error = jnp.max(jnp.abs(jnp.stack(others) - exact[None])) / size
    # Scores of attention may be so far apart that it looks where nothing is.
    huge = jnp.max(jnp.abs(tokens[:, 1:]), initial=0) > HUGE
    error = jnp.where(huge, jnp.inf, error)
    # Predictions that are not finite are seen by everybody.
    error = jnp.where(jnp.isfinite(exact).all(), error, 0) / (limits.tolerance or 1.0)
    return Check(largest / limits.largest, shares / limits.share, error)


@dataclass(frozen=True, eq=False)
class _Runs:
    """Runs layers on several states: the first as they are, others with errors."""

    block: Block
    limits: OperandRange
    signs: Int[Array, "runs signs"]

    def step(
        self, h: Float[Array, "runs time hidden"], numbered: Any
    ) -> tuple[Any, Any]:
        """Return H⁽ˡ⁺¹⁾; and of the first run the largest operand, the pads' share."""
        layer, (count, partners, index) = numbered
        block, eps = self.block, jnp.finfo(h.dtype).eps / 2
        off = jnp.asarray(np.arange(RUNS) > 0, h.dtype)[:, None, None]

        def signs(units: int) -> Float[Array, "runs time units"]:
            shape = RUNS, h.shape[1], units
            size = (RUNS, shape[1] * units)
            part = jax.lax.dynamic_slice(self.signs, (0, 7 * index), size)
            return part.reshape(shape).astype(h.dtype)

        read = layer_norm(h, block.layer_norm_epsilon) if block.pre_norm else h
        a, alpha = layer.attention(read, block)
        # exp is off by as much as its argument, a sum of several numbers.
        lost = jnp.where(alpha > 0, alpha * (1 - jnp.log(alpha)), 0)
        _, heads, time, _ = alpha.shape
        by_head = signs(heads * time).reshape(RUNS, time, heads, time)
        lost = 4 * eps * lost * by_head.transpose(0, 2, 1, 3)
        z = a + h + _mixed(layer, read, lost)
        normed, share = self._normed(z, off)
        normed = normed * (1 + eps * signs(h.shape[2]))
        inner = normed @ layer.w_2.T + layer.b_2[None, None]
        rounding = jnp.sqrt(jnp.square(normed) @ jnp.square(eps * layer.w_2.T))
        size, series = self._operands(inner, count, partners)
        noise = rounding * signs(inner.shape[-1]) + off * series
        activated = ACTIVATIONS[block.activation](inner) + noise
        h = z + activated @ layer.w_1.T + layer.b_1[None, None]
        return h, (jnp.max(size[0], initial=0), share)

    def _normed(
        self, z: Float[Array, "runs time hidden"], off: Float[Array, "runs 1 1"]
    ) -> tuple[Float[Array, "runs time hidden"], Float[Array, ""]]:
        """Return λ(z), in further runs of the pads alone; and the others' share."""
        normed = layer_norm(z, self.block.layer_norm_epsilon)
        if not self.limits.pads:
            return normed, jnp.zeros((), z.dtype)
        is_pad = np.isin(np.arange(z.shape[-1]), self.limits.pads)[None, None]
        squares = jnp.square(z)
        whole = jnp.sum(squares, axis=-1, keepdims=True)
        pads = jnp.sum(jnp.where(is_pad, squares, 0), axis=-1, keepdims=True)
        others = jnp.sum(jnp.where(is_pad, 0, squares), axis=-1, keepdims=True)
        tiny = jnp.finfo(z.dtype).tiny
        share = jnp.max((others / jnp.maximum(pads, tiny))[0])
        alone = jnp.sqrt(1 + others / jnp.maximum(pads, NO_PADS * whole + tiny))
        return jnp.where(off > 0, normed * alone, normed), share

    def _operands(
        self, inner: Float[Array, "runs time inner"], count: Array, partners: Array
    ) -> tuple[Float[Array, "runs time inner"], Float[Array, "runs time inner"]]:
        """Return the size of units that multiply, and what their series lack.

        The size is (uᵖ − vᵖ)^(1/p) of a unit u and its partner v, which is zero where
        one of the factors is. Far outside, σ grows no more: all of u² − v² is lacking.
        """
        limits, size = self.limits, jnp.abs(inner)
        multiplies = (jnp.arange(inner.shape[-1]) < count)[None, None]
        if not limits.units:
            return jnp.where(multiplies, size, 0), jnp.zeros_like(size)
        other = size[..., partners[: size.shape[-1]]]
        larger = jnp.maximum(jnp.maximum(size, other), jnp.finfo(size.dtype).tiny)
        less = jnp.minimum(size, other) / larger
        series = limits.truncation * jnp.minimum(larger, LARGE) ** limits.power
        series = series * (1 - less**limits.power)
        series = jnp.minimum(series, larger**2 * (1 - less**2))
        series = jnp.where(multiplies & (size > other), series, 0)
        size = larger * (1 - less**limits.power) ** (1 / limits.power)
        return jnp.where(multiplies, size, 0), series


def _mixed(
    layer: TransformerLayer,
    read: Float[Array, "batch time hidden"],
    alpha: Float[Array, "batch heads time time"],
) -> Float[Array, "batch time hidden"]:
    """Return what attention with these weights would write, without its bias."""
    values = jnp.einsum("mvh,bth->bmtv", layer.w_v, read) + layer.b_v[None, :, None]
    mixed = jnp.einsum("bmts,bmsv->bmtv", alpha, values)
    return jnp.einsum("mhv,bmtv->bth", layer.w_f, mixed)
