"""The numerical constants of one precision, and how it is reached (paper app. C.4).

The paper writes one N for four unrelated constants; here each has its own name. The
default choices replace the approximations that need a large N by identities that do
not: a reference row for LayerNorm, pairs of units for linear maps, even parts for
products. `paper_numerics` is the paper's own choice, with tuned constants, and
`trainable_numerics` trades precision for weights that training can change.

Products are precise for operands between −1 and 1. `calibrate` runs the program exactly
on example datasets; each product divides its operands by the largest seen, times a
safety factor. Without this, float32 is 10 to 1000 times less precise.
"""

import math
from dataclasses import dataclass, replace
from functools import cache
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.products import (
    Product,
    fitted,
    paper_product,
    richardson,
)
from algoscope.construction.language.interpreter import (
    State,
    Tokens,
    evaluate,
    interpret,
)
from algoscope.construction.language.program import Program
from algoscope.construction.language.values import (
    Attend,
    Divide,
    Event,
    Multiply,
    Register,
)
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
Range = Float[np.ndarray, " products"]


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
    equal_widths: bool = False  # of MLPs, padded with zeros, as training needs them

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

    @property
    def tolerance(self) -> float:
        """How far a prediction may be off, over the largest or 1, without a warning."""
        return 1e-10 if self.dtype == "float64" else 1e-3

    def require_bounded(self, name: str, numbers: Float[np.ndarray, "..."]) -> float:
        """Return the largest; reject one that would compete with LayerNorm's pads.

        At a fifth of N, a column is off by 1 %.
        """
        largest, size = 0.2 * self.pad, float(np.max(np.abs(numbers), initial=0))
        if not size < largest:
            wider = "" if self.dtype == "float64" else ", or float64"
            raise InvalidValueError(
                name,
                f"stay below {largest:.1g} in {self.dtype}",
                f"{size:.3g} on the calibration's datasets",
                "The algorithm may diverge: use a smaller learning rate or a larger "
                f"penalty, `tokens` of smaller numbers{wider}.",
            )
        return size


@cache
def numerics(dtype: DType = "float64", activation: Activation = "gelu") -> Numerics:
    """Return the constants that serve a precision best."""
    if dtype == "float64":
        product = richardson(activation, 3, 2.0**6)
        return Numerics("float64", product, pad=2.0**31, gap=2.0**11)
    return Numerics(dtype, fitted(activation), pad=2.0**20, gap=2.0**8)


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


@cache
def trainable_numerics(activation: Activation = "gelu") -> Numerics:
    """Return constants that keep weights and gradients moderate, to start training.

    Predictions are off by about 1e-2. Scores differ by 16 only, so that attention has
    gradients too, where 2⁸ would saturate the softmax.
    """
    product = richardson(activation, 2, 1.0)
    moderate = Numerics("float32", product, pad=2.0**8, gap=2.0**4)
    return replace(moderate, layer_norm_epsilon=1e-5, equal_widths=True)


@dataclass(frozen=True)
class Calibration:
    """The largest operands of every product, the largest number in every register."""

    p: dict[Event, Range]
    q: dict[Event, Range]
    registers: dict[Register, float]


def calibrate(program: Program, tokens: Tokens, numerics: Numerics) -> Calibration:
    """Return how large everything gets, with safety, on the given datasets."""
    with np.errstate(over="ignore", invalid="ignore"):
        state = interpret(program, tokens)
    for event in program.events:
        if event.norm is not None:
            _require_divisor(event, state)
    registers = {
        register: numerics.require_bounded(f"register {register.name}", columns)
        for register, columns in state.items()
    }
    # Smaller operands are rounding errors, which a smaller range would amplify.
    least = 2.0**-numerics.digits * max(registers.values())
    p, q = {}, {}
    for event in program.events:
        if isinstance(event, Attend):
            _require_no_leaks(event, state, numerics)
        if not isinstance(event, Multiply):
            continue
        length = 1.0
        if event.norm is not None:
            norm = evaluate(event.norm, state)
            length = np.linalg.norm(norm, axis=-1, keepdims=True)
            length = np.where(length == 0, 1, length)
        factors = [
            np.abs(evaluate(each, state) / length) for each in (event.p, event.q)
        ]
        # Where a factor is zero, as in columns that do not see an example, the other
        # may be of any size.
        counts = (factors[0] > 0) & (factors[1] > 0)
        for ranges, factor in zip((p, q), factors, strict=True):
            seen = factor.max(axis=(0, 1), initial=0, where=counts)
            ranges[event] = numerics.safety * np.where(
                seen == 0, 1, np.maximum(seen, least)
            )
    for group in program.alike:
        alike = [event for event in p if event.out in group]
        if not alike:
            continue  # all were products with a constant
        for ranges in (p, q):
            shared = np.max([ranges[event] for event in alike], axis=0)
            ranges.update(dict.fromkeys(alike, shared))
    return Calibration(p, q, registers)


def _require_divisor(event: Multiply | Divide, state: State) -> None:
    """Reject a division by zero, and say in which columns."""
    assert event.norm is not None
    zero = np.any(np.all(evaluate(event.norm, state) == 0, axis=-1), axis=0)
    if zero.any():
        first = int(np.argmax(zero))
        token = f"{'xy'[first % 2]}{first // 2 + 1}"
        raise InvalidValueError(
            f"norm of {event.out.name}",
            "not be zero in any column",
            f"0 at {token} on the calibration's datasets",
            "Add a component that is not zero there, as "
            "`join([x, 1 - program.seen(k)])`.",
        )


def _require_no_leaks(event: Attend, state: State, numerics: Numerics) -> None:
    """Reject scores outside K(i) that are so high that they would get weight.

    A timestep outside K(i) scores −gap plus the content's score. Its weight is lost in
    rounding if that is at least ln 2 per digit below the highest score inside, or below
    the imaginary zero.
    """
    allowed = numerics.gap - numerics.digits * math.log(2)
    for head in event.heads:
        query, key = evaluate(head.query, state), evaluate(head.key, state)
        scores = query @ key.swapaxes(1, 2)
        causal = np.tri(scores.shape[1], dtype=bool)
        inside = event.at.average(scores.shape[1]) > 0
        top = np.max(scores, axis=-1, where=inside, initial=0)[..., None]
        excess = np.max(scores - top, where=causal & ~inside, initial=-np.inf)
        if excess > allowed:
            raise InvalidValueError(
                f"scores of {event.out.name}",
                f"exceed those inside by at most {allowed:.0f} in {numerics.dtype}",
                f"{excess:.3g} on the calibration's datasets",
                "Use smaller queries or keys, or float64.",
            )
