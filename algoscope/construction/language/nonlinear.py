"""What is not linear, written with a recorder: products, quotients, thresholds, σ.

LayerNorm divides by a norm, so it gives quotients and roots of sums of squares, one of
them per layer. Attention to the own column against the imaginary zero gives σ(a), all
components in one layer. From it follow tanh, exp and, with a large factor, thresholds.

    product        exact up to the error of a product, see `compiler.products`
    quotient       a/b with the sign of b, as (a b)/b²
    root           √(Σ vᵢ²) = Σ vᵢ (vᵢ / ‖v‖)
    logistic       exact; tanh a = 2σ(2a) − 1
    exponential    e^B σ(a − B): off by a factor of 1 + exp(a − B)
    threshold      σ(βa): exact for |a| above 40/β, 6e-10 in float64 and 1e-4 in float32
    rectified      a·[a > 0], off by at most 0.28/β: 4e-12 and 1e-6
"""

from dataclasses import replace
from typing import Literal

import numpy as np
from jaxtyping import Bool

from algoscope.construction.language.expressions import (
    Expression,
    Products,
    Scene,
    collected,
    squares,
)
from algoscope.construction.language.interpreter import evaluate
from algoscope.construction.language.recorder import Recorder
from algoscope.construction.language.timesteps import SELF
from algoscope.construction.language.values import Head, Value, constant, join

ONE = constant(1.0)
Tie = Literal["above", "below", "between"]  # what a threshold says at zero


class Refused(Exception):
    """Something that no layer computes, and what to write instead."""

    def __init__(self, what: str, remedy: str):
        super().__init__(what)
        self.what, self.remedy = what, remedy


def product(recorder: Recorder, a: Expression, b: Expression) -> Expression:
    """Return a ⊙ b, for expressions of one shape."""
    p, q = recorder.settle(a), recorder.settle(b)
    zero = constant(np.zeros(a.size))
    return Expression(a.shape, zero, a.scene, [Products(p, q, np.eye(a.size))])


def quotient(recorder: Recorder, a: Expression, b: Expression) -> Expression:
    """Return a / b, for expressions of one shape, with the sign of b."""
    kept, place = recorder.distinct(b)
    if (place < 0).any():
        raise Refused("a division by zero", "Divide by something else.")
    parts, order = [], []
    for number, row in enumerate(kept):
        rows = np.flatnonzero(place == number)
        divisor = b.taken(np.array([row]), (1,))
        parts.append(_over(recorder, a.taken(rows, (len(rows),)), divisor))
        order += rows.tolist()
    linear = join(parts).take(np.argsort(order))
    return Expression(a.shape, linear, a.scene)


def _over(recorder: Recorder, a: Expression, b: Expression) -> Value:
    """Return a vector over one number."""
    norm = squares(b) if a.products else None
    if norm is None:
        norm = recorder.settle(b, _name(recorder, "divisor", a))
        p, q, mix = recorder.settle(a), norm.repeat(a.size), np.eye(a.size)
    else:  # a sum of squares: a/‖v‖², all products of a included
        whole = collected(a)
        p = join([whole.p, a.linear])
        q = join([whole.q, ONE.repeat(a.size)])
        mix = np.hstack([whole.mix, np.eye(a.size)])
        used = ~(_zero(p) | _zero(q))
        p, q, mix = p[used], q[used], mix[:, used]
    if not p.size:
        return constant(np.zeros(a.size))
    norm = _guarded(recorder, norm, a.scene)
    out = recorder.program.multiply(
        p, q, mix, norm=norm, name=_name(recorder, "quotient", a)
    )
    recorder.observe()
    return out


def _zero(value: Value) -> Bool[np.ndarray, " size"]:
    return value.is_constant & (value.constant == 0)


def root(recorder: Recorder, a: Expression) -> Expression:
    """Return √a for sums of squares Σ vᵢ², as Σ vᵢ (vᵢ/‖v‖).

    Σ vᵢ² / ‖v‖ would lose digits where v is small: its error is that of the square.
    """
    name, products = _name(recorder, "direction", a), []
    for row, unit in enumerate(np.eye(a.size)):
        v = squares(a.taken(np.array([row]), (1,)))
        if v is None:
            raise Refused(
                "the root of something that is not written as a sum of squares",
                "Keep the root in the state, not its square, as "
                "root = jnp.sqrt(0.9 * root**2 + 0.1 * change**2).",
            )
        direction = recorder.program.divide(v, _guarded(recorder, v, a.scene), name)
        # √(v² + c²) is analytic; √v² is |v|, which is not.
        recorder.observe(rough=not (v.is_constant & (v.constant != 0)).any())
        products.append(Products(v, direction, np.tile(unit[:, None], v.size)))
    zero = constant(np.zeros(a.size))
    return Expression(a.shape, zero, a.scene, products, label="root")


def _guarded(recorder: Recorder, norm: Value, scene: Scene) -> Value:
    """Return a norm that is not zero in columns where there is nothing to divide.

    Such columns have not seen the example that is replayed, or are not of the scene.
    """
    zero = np.logical_not(np.any(evaluate(norm, recorder.numbers), axis=(0, 2)))
    if scene == "replay":
        idle = zero[: 2 * recorder.step + 1].any()
        return join([norm, 1 - recorder.seen()]) if idle else norm
    if not (zero[::2] if scene == "home" else zero[1::2]).any():
        return norm
    return join([norm, recorder.flag("query" if scene == "home" else "label")])


def threshold(recorder: Recorder, a: Expression, tie: Tie | None = None) -> Expression:
    """Return 1 where a > 0 and 0 where a < 0; −1 there if the tie is `between`.

    Numbers nearer to zero than `recorder.tie` are a tie. It counts as 1 (`above`) or 0
    (`below`, `between`); without a rule the result is σ(βa).
    """
    z = recorder.sharpness * recorder.settle(a)
    edge = recorder.sharpness * recorder.tie
    shift = {"above": edge, "below": -edge, "between": -edge}.get(tie or "", 0.0)
    heads = []
    for row, unit in enumerate(np.eye(a.size)):
        heads.append(Head(z[row] + shift, ONE, constant(unit)))
        if tie == "between":
            heads.append(Head(-z[row] + shift, ONE, constant(-unit)))
    gone = tie == "between" and recorder.formally_gone(z).all()
    name = _name(recorder, "sign" if tie == "between" else "above", a)
    out = _attend(recorder, heads, name, rough=True)
    if gone:
        recorder.absent |= out.terms.keys()
    return Expression(a.shape, out, a.scene)


def rectified(recorder: Recorder, a: Expression) -> Expression:
    """Return max(a, 0): a times the threshold, in the layer that computes it."""
    return product(recorder, a, threshold(recorder, a))


def logistic(recorder: Recorder, a: Expression) -> Expression:
    """Return σ(a): the weight of a score a beside the imaginary zero."""
    z = recorder.settle(a)
    heads = [Head(z[k], ONE, constant(e)) for k, e in enumerate(np.eye(a.size))]
    return Expression(
        a.shape, _attend(recorder, heads, _name(recorder, "σ", a)), a.scene
    )


def exponential(recorder: Recorder, a: Expression) -> Expression:
    """Return exp(a), as a score so low that the imaginary zero has all the weight."""
    z, lift = recorder.settle(a) - recorder.lift, np.exp(recorder.lift)
    units = lift * np.eye(a.size)
    heads = [Head(z[k], ONE, constant(e)) for k, e in enumerate(units)]
    return Expression(
        a.shape, _attend(recorder, heads, _name(recorder, "exp", a)), a.scene
    )


def _name(recorder: Recorder, word: str, a: Expression) -> str:
    return recorder.named(replace(a, label=word))


def _attend(
    recorder: Recorder, heads: list[Head], name: str, *, rough: bool = False
) -> Value:
    out = recorder.program.attend(heads, SELF, name=name)
    recorder.observe(rough=rough)
    return out
