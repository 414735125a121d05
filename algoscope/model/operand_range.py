"""How large the operands of products may be, in a transformer written by hand.

A feed-forward layer multiplies through a non-linearity (`construction.products`), which
is precise for operands up to a few times those that the weights were calibrated for.
Beyond, predictions are wrong; nothing in the output shows it, so it is looked for.
"""

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from algoscope.foundation.files import DamagedFileError
from algoscope.model.layer import layer_norm
from algoscope.model.transformer import Transformer


class OutsideRangeWarning(UserWarning):
    """Operands were larger than those a transformer was calibrated for."""


@dataclass(frozen=True)
class OperandRange:
    """The most that the first inner units of a layer, those of products, may see."""

    largest: float
    products: tuple[int, ...]  # units per layer

    @classmethod
    def from_config(cls, saved: Any, directory: Path) -> "OperandRange | None":
        """Return the range that a config.json holds, if any."""
        if saved is None:
            return None
        try:
            return cls(float(saved["largest"]), tuple(map(int, saved["products"])))
        except (KeyError, TypeError, ValueError) as error:
            problem = f"has a damaged range of operands in its configuration: {saved!r}"
            raise DamagedFileError(directory, problem) from error

    def warn(
        self,
        transformer: Transformer,
        tokens: Float[Array, "datasets time token"],
        name: str,
    ) -> None:
        """Warn if the tokens lead to operands outside the range."""
        shares = relative_operands(transformer, tokens, self)
        worst = int(jnp.argmax(shares))
        if shares[worst] > 1:
            warnings.warn(
                f"{name}: operands in layer {worst + 1} are {float(shares[worst]):.2g} "
                "times the largest that it multiplies well; predictions may be wrong. "
                "Calibrate on data like these: `build(..., tokens=...)`.",
                OutsideRangeWarning,
                stacklevel=4,
            )


@eqx.filter_jit
def relative_operands(
    transformer: Transformer,
    tokens: Float[Array, "datasets time token"],
    limits: OperandRange,
) -> Float[Array, " layers"]:
    """Return the largest operand of every layer, as a share of the largest allowed."""
    hidden = jnp.moveaxis(transformer(tokens).hidden, -3, 0)[:-1]
    counts = jnp.asarray(limits.products)
    block = transformer.block

    def largest(h, layer, count):
        read = layer_norm(h, block.layer_norm_epsilon) if block.pre_norm else h
        a, _ = layer.attention(read, block)
        normed = layer_norm(a + h, block.layer_norm_epsilon)
        rows = normed.reshape(-1, normed.shape[-1])
        inner = rows @ layer.w_2.T + layer.b_2[None]
        used = jnp.arange(inner.shape[1]) < count
        return jnp.max(jnp.where(used[None], jnp.abs(inner), 0))

    with jax.default_matmul_precision("highest"):
        seen = jax.lax.map(
            lambda args: largest(*args), (hidden, transformer.layers, counts)
        )
    return seen / limits.largest
