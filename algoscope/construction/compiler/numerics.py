"""The numerical constants of one precision, and how it is reached (paper app. C.4).

The paper writes one N for four unrelated constants; here each has its own name. The
default choices replace the approximations that need a large N by identities that do
not: a reference row for LayerNorm, pairs of units for linear maps, even parts for
products. `paper_numerics` is the paper's own choice, with tuned constants.
"""

from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.products import Product, paper_product, richardson
from algoscope.foundation.validation import (
    InvalidValueError,
    require_choice,
    require_not_negative,
    require_positive,
)
from algoscope.model import Activation
from algoscope.model.layer import Block

DType = Literal["float64", "float32"]
Pads = Literal["reference", "paper"]


@dataclass(frozen=True)
class Numerics:
    """The precision of a construction and how it reaches it."""

    dtype: DType
    product: Product  # of operands between −1 and 1; its activation is the block's
    pad: float  # N of LayerNorm: two rows ±N dominate its variance
    gap: float  # by how much the scores of a head differ; a power of two
    safety: float = 2.0  # by how much operands may exceed those of the calibration
    pads: Pads = "reference"  # how LayerNorm's mean is removed
    bypass: float | None = None  # N of σ(N + u) − N; None: σ(u) − σ(−u), exact
    layer_norm_epsilon: float = 0.0
    pre_norm: bool = False

    def __post_init__(self):
        require_choice("dtype", self.dtype, get_args(DType))
        require_choice("pads", self.pads, get_args(Pads))
        require_positive("pad", self.pad)
        require_positive("gap", self.gap)
        if not self.safety >= 1:
            raise InvalidValueError("safety", "be at least 1", self.safety)
        if self.pre_norm and self.pads != "reference":
            rule = "be 'reference' where attention reads through LayerNorm"
            raise InvalidValueError("pads", rule, self.pads)
        require_not_negative("layer_norm_epsilon", self.layer_norm_epsilon)

    @property
    def activation(self) -> Activation:
        """σ of the block."""
        return self.product.activation

    @property
    def block(self) -> Block:
        """What layers compute, apart from their weights."""
        return Block(
            pre_norm=self.pre_norm,
            activation=self.activation,
            layer_norm_epsilon=self.layer_norm_epsilon,
            imaginary_timestep=True,
            precision=self.dtype,
        )

    @property
    def digits(self) -> int:
        """Binary digits of the precision."""
        return 53 if self.dtype == "float64" else 24

    def require_bounded(self, name: str, numbers: Float[np.ndarray, "..."]) -> float:
        """Return the largest; reject one that would compete with LayerNorm's pads.

        At a fifth of N, a column is off by 1 %.
        """
        largest, size = 0.2 * self.pad, float(np.max(np.abs(numbers), initial=0))
        if not size < largest:
            raise InvalidValueError(
                name,
                f"stay below {largest:.1g} in {self.dtype}",
                f"{size:.3g} on the calibration's datasets",
                "The algorithm may diverge: use a smaller learning rate or a larger "
                "penalty, or float64.",
            )
        return size


@cache
def numerics(dtype: DType = "float64", activation: Activation = "gelu") -> Numerics:
    """Return the constants that serve a precision best."""
    if dtype == "float64":
        product = richardson(activation, 3, 2.0**6)
        return Numerics("float64", product, pad=2.0**31, gap=2.0**11)
    product = richardson(activation, 3, 4.0)
    return Numerics(dtype, product, pad=2.0**20, gap=2.0**8)


@cache
def paper_numerics(dtype: DType = "float64") -> Numerics:
    """Return the paper's own formulas, with constants tuned for the precision."""
    wide = dtype == "float64"
    return replace(
        numerics(dtype),
        product=paper_product(2.0**18 if wide else 2.0**8),
        pad=1e9 if wide else 1e5,
        pads="paper",
        bypass=512.0 if wide else 128.0,
    )
