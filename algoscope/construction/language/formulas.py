"""Formulas: what an event computes, written for a reader.

A formula is derived from the data of an event, and says all of it: every coefficient
and sign, and with `at` where attention reads. Tests compute what is printed, and hold
it equal to what the interpreter computes.

    w2 = w1 − 0.1 · x2 · (w·x2 − y2)

`GRAMMAR` explains the notation. Of the ways to write an event the shortest is taken.
"""

from collections.abc import Iterable

import numpy as np

from algoscope.construction.language.expressions import form_of
from algoscope.construction.language.factors import Factoring, ShownProducts
from algoscope.construction.language.notation import (
    Notation,
    is_sum,
    is_token,
    summed,
)
from algoscope.construction.language.timesteps import (
    SELF,
    Earlier,
    Labels,
    Sets,
    Single,
    Timesteps,
)
from algoscope.construction.language.values import (
    Attend,
    Divide,
    Event,
    Head,
    Multiply,
    Read,
    Register,
    Value,
    join,
)

READABLE = Notation()
QUERY = "query"  # the name of the last token
SUBSCRIPTS = str.maketrans("0123456789", "₀₁₂₃₄₅₆₇₈₉")


def formula(event: Event, notation: Notation = READABLE) -> str:
    """Return the right side of what an event writes.

    Example:
        >>> from algoscope.construction.algorithms import SGD
        >>> for event in SGD(0.05).program(2, 2).events[:5]:
        ...     print(event.out.name, "=", formula(event))
        x1 = x at x₁ for later tokens
        y1 = y at y₁
        w1 = 0.1 · x1 · y1
        x2 = x at x₂ for later tokens
        y2 = y at y₂
    """
    if isinstance(event, Read):
        place = _place(event.at)
        shown = notation.grouped if place else notation.text
        return shown(event.source) + place
    if isinstance(event, Divide):
        above = notation.grouped(event.value)
        return f"{above} / {_length(event.norm, notation)}"
    added = "" if event.into is None else notation.name(event.into)
    if isinstance(event, Attend):
        shown, place = _heads(event, notation), _place(event.at)
        if added and place:
            shown = f"({shown})"
        return summed([added, shown + place])
    is_zero = form_of(event.plus) == form_of(0 * event.plus)
    plus = "" if is_zero else notation.text(event.plus)
    return summed([added, _products(event, notation), plus])


def text(value: Value) -> str:
    """Return a linear form as text, such as `w·x2 − y2`."""
    return READABLE.text(value)


def _products(event: Multiply, notation: Notation) -> str:
    """Return the products, divided by the norm if there is one."""
    if not event.p.size:
        return ""
    write, norm = Factoring(notation), event.norm
    if norm is None:
        return write.shortest(ShownProducts(event.p, event.q, event.mix))
    if norm.size == 1:
        for value, by in ((event.p, event.q), (event.q, event.p)):
            if form_of(by) == form_of(norm.repeat(by.size)):  # vc/c² is v/c
                above = notation.grouped(event.mix @ value)
                return f"{above} / {notation.grouped(norm)}"
    shown = write.shortest(ShownProducts(event.p, event.q, event.mix))
    shown = f"({shown})" if is_sum(shown) else shown
    return f"{shown} / {_length(norm, notation)}²"


def _length(value: Value, notation: Notation) -> str:
    shown = notation.text(value, whole=True)
    return f"|{shown}|" if value.size == 1 else f"‖{shown}‖"


def _heads(event: Attend, notation: Notation) -> str:
    """Return what heads read that score by content.

    A head that reads its own token, by a key that is constant, is σ(query·key).
    """
    gates: dict[float, list[tuple[Value, Value]]] = {}  # by what they are scaled with
    terms = []
    for head in event.heads:
        if event.at != SELF or not head.key.is_constant.all():
            terms.append(_softmax(head, notation))
            continue
        score = head.key.constant[None] @ head.query
        numbers = head.value.constant[head.value.constant != 0]
        if head.value.is_constant.all() and len(numbers) == 1:
            gates.setdefault(float(numbers[0]), []).append((score, head.value))
        else:
            shown = notation.grouped(head.value)
            terms.append(f"{shown} · σ({notation.text(score)})")
    for scale, pairs in gates.items():
        scores = join([score for score, _ in pairs])
        places = np.stack([value.constant for _, value in pairs], axis=1) / scale
        shown = f"σ({notation.text(scores, whole=True)})"
        inner, shown, _ = notation.mapped(shown, places)
        terms.append(notation.scaled(scale * inner, shown))
    return summed(terms)


def _softmax(head: Head, notation: Notation) -> str:
    dot = "ᵀ " if head.query.size > 1 else " · "
    query, key = (notation.grouped(v, whole=True) for v in (head.query, head.key))
    return f"softmax({query}{dot}{key}) {notation.grouped(head.value)}"


def _place(at: Timesteps) -> str:
    """Return where attention reads, in the names of tokens."""
    if isinstance(at, Earlier):
        return {0: "", 1: " one token before"}.get(
            at.steps, f" {at.steps} tokens before"
        )
    if isinstance(at, Single):
        later = " for later tokens" if at.later else ""
        return f" at {token_name(at.token)}{later}"
    if isinstance(at, Labels):
        return " over the labels"
    assert isinstance(at, Sets)
    names = [*map(token_name, range(len(at.sets) - 1)), QUERY]
    moved = [
        f"{name} takes it from {' '.join(names[j] for j in members) or 'nowhere'}"
        for i, (name, members) in enumerate(zip(names, at.sets, strict=True))
        if members != (i,)
    ]
    return f" ({'; '.join(moved)})" if moved else ""


def token_name(token: int) -> str:
    """Return the name of a token by its number from 0: x₁, y₁, x₂, …."""
    return "xy"[token % 2] + str(token // 2 + 1).translate(SUBSCRIPTS)


def distinct_names(events: Iterable[Event]) -> dict[Register, str]:
    """Return names for registers whose own name means something else when it is read.

    The events are in the order in which they are shown. Most programs need no such
    names. A second register of one name gets a number, as in `w (2)`; x and y of the
    token become token.x and token.y where a register has their name.
    """
    latest: dict[str, Register] = {}  # that has a name at this moment
    every: dict[str, list[Register]] = {}
    unclear: set[str] = set()
    tokens: set[Register] = set()
    for event in events:
        norm = () if event.norm is None else (event.norm,)
        values = [*event.inputs, *norm]
        if event.into is not None:
            values.append(Value.of(event.into))
        for register, name in (part for value in values for part in _parts(value)):
            if is_token(register):
                tokens.add(register)
            if latest.setdefault(name, register) is not register:
                unclear.add(name)
            if register not in every.setdefault(name, []):
                every[name].append(register)
        latest[event.out.name] = event.out
        every.setdefault(event.out.name, []).append(event.out)
    names = {
        register: f"{name} ({count})"
        for name in unclear
        for count, register in enumerate(
            [each for each in every[name] if not is_token(each)], 1
        )
        if count > 1
    }
    names |= {each: "token (2)" for each in every.get("token", [])}
    is_shared = unclear & {"x", "y"}
    return names | ({token: "token." for token in tokens} if is_shared else {})


def _parts(value: Value) -> list[tuple[Register, str]]:
    """Return the registers that a form depends on, by name; of the token, x and y."""
    parts = []
    for register, matrix in value.terms.items():
        if is_token(register):
            parts += [(register, "y")] if matrix[:, 0].any() else []
            parts += [(register, "x")] if matrix[:, 1:].any() else []
        else:
            parts.append((register, register.name))
    return parts
