"""Calibration: how large the operands of every product get.

Products are precise for operands between −1 and 1. The interpreter runs the program on
example datasets; each product divides its operands by the largest seen, times a safety
factor. Without this, float32 is 10 to 1000 times less precise.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from algoscope.construction.compiler.numerics import Numerics
from algoscope.construction.language.program import (
    Program,
    State,
    Tokens,
    evaluate,
    interpret,
)
from algoscope.construction.language.values import Attend, Event, Multiply, Register
from algoscope.foundation.validation import InvalidValueError

Range = Float[np.ndarray, " products"]


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
        for ranges, factor in ((p, event.p), (q, event.q)):
            seen = np.abs(evaluate(factor, state) / length).max(axis=(0, 1), initial=0)
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
