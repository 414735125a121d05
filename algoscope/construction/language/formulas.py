"""Formulas: what an event computes, written for a reader.

A listing names what an event depends on; a formula also says how: with the numbers of
scaled registers, and with `at` for what attention reads elsewhere.

    w2 = w1 − 0.1 · x2 ⊙ (w·x2 − y2)
"""

import numpy as np
from jaxtyping import Float, Int

from algoscope.construction.language.timesteps import (
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
    Multiply,
    Read,
    Register,
    Value,
)

Matrix = Float[np.ndarray, "out inputs"]


def formula(event: Event) -> str:
    """Return the right side of what an event writes.

    Example:
        >>> from algoscope.construction.algorithms import SGD
        >>> for event in SGD(0.05).program(2, 2).events[:5]:
        ...     print(event.out.name, "=", formula(event))
        x1 = x at x1
        y1 = y at y1
        w1 = 0.1 · x1 ⊙ y1
        x2 = x at x2
        y2 = y at y2
    """
    added = "" if event.into is None else event.into.name
    if isinstance(event, Read):
        place = _place(event.at)
        return f"{_grouped(event.source)}{place}" if place else text(event.source)
    if isinstance(event, Attend):
        heads = (
            f"softmax({_grouped(h.query)}ᵀ {_grouped(h.key)}) {_grouped(h.value)}"
            for h in event.heads
        )
        return _sum([added, " + ".join(heads) + _place(event.at)])
    if isinstance(event, Divide):
        return f"{_grouped(event.value)} / {_norm(event.norm)}"
    return _sum(
        [added, _product(event), "" if _is_zero(event.plus) else text(event.plus)]
    )


def _product(event: Multiply) -> str:
    """Return the products; those of different scales one after the other."""
    if not event.p.size:
        return ""
    scales = np.array([column[np.argmax(np.abs(column))] for column in event.mix.T])
    same = np.where(event.mix != 0, event.mix, scales) == scales
    every = np.arange(event.p.size)
    groups = [every[scales == each] for each in dict.fromkeys(scales.tolist())]
    parts = [_products(event, at) for at in (groups if same.all() else [every])]
    return _sum(parts)


def _products(event: Multiply, at: Int[np.ndarray, " products"]) -> str:
    scale, how = _mixing(event.mix[:, at])
    p, q = event.p.take(at), event.q.take(at)
    shown, turned = _grouped(q), _grouped(-1.0 * q)
    if scale is not None and scale < 0 and len(turned) < len(shown):
        scale, shown = -scale, turned
    shown = f"{_grouped(p)}{how}{shown}"
    if event.norm is not None:
        shown += f" / {_norm(event.norm)}²"
    return _scaled(scale, shown)


def _mixing(mix: Matrix) -> tuple[float | None, str]:
    """Return the common factor of all products, and how they are put together."""
    scales = np.unique(mix[mix != 0])
    scale = float(scales[0]) if len(scales) == 1 else None
    one_each = mix.shape[0] == mix.shape[1] and np.count_nonzero(mix) == len(mix)
    if mix.shape == (1, 1):
        return scale, " · "
    if len(mix) == 1:
        return scale, "ᵀ "
    return scale, " ⊙ " if one_each else " × "


def text(value: Value) -> str:
    """Return a linear form as text, such as `w·x2 − y2`.

    Values that were joined are in brackets: `(x2, w1)`. A matrix that does more than
    select, repeat and scale is written `[r]`: a linear map of r.
    """
    parts = [
        (block.any(axis=1), _term(name, block))
        for register, matrix in value.terms.items()
        for name, block in _blocks(register, matrix)
        if block.any()
    ]
    if np.any(value.constant):
        rows = value.constant != 0
        whole = not value.terms  # then zeros among them are part of it
        parts.append((rows, _number(value.constant[rows | whole])))
    sums: dict[bytes, list[str]] = {}  # of what is in the same components
    for rows, part in parts:
        sums.setdefault(rows.tobytes(), []).append(part)
    joined = [_sum(each) for each in sums.values()]
    covered = sum(np.frombuffer(rows, bool).astype(int) for rows in sums)
    if len(sums) > 1 and np.max(covered) == 1:
        return f"({', '.join(joined)})"
    return _sum([part for _, part in parts]) or "0"


def _blocks(
    register: Register, matrix: Matrix
) -> list[tuple[str, Float[np.ndarray, "out _"]]]:
    """Return the named parts of a register: the token holds y and x."""
    if register.name == "token":
        return [("y", matrix[:, :1]), ("x", matrix[:, 1:])]
    return [(register.name, matrix)]


def _term(name: str, matrix: Matrix) -> str:
    used = matrix[np.any(matrix, axis=1)]
    scales = np.unique(used[used != 0])
    shown = f"({name})" if any(sign in name for sign in ",+") else name
    if len(scales) != 1 or np.count_nonzero(used, axis=1).max() > 1:
        alone = len(matrix) == 1
        return f"{_number(matrix[0])}ᵀ {shown}" if alone else f"[{name}]"
    columns = np.flatnonzero(used.any(axis=0)) + 1
    if len(columns) < matrix.shape[1]:
        first, last = columns[0], columns[-1]
        shown += f"[{first}]" if first == last else f"[{first}–{last}]"
    return _scaled(float(scales[0]), shown)


def _grouped(value: Value) -> str:
    shown = text(value)
    is_sum = " + " in shown or " − " in shown or shown.startswith("−")
    return f"({shown})" if is_sum and not shown.startswith("(") else shown


def _scaled(scale: float | None, shown: str) -> str:
    if scale is None:
        return f"[{shown}]"
    if abs(scale) == 1:
        return shown if scale > 0 else f"−{shown}"
    return f"{'−' if scale < 0 else ''}{abs(scale):.6g} · {shown}"


def _sum(parts: list[str]) -> str:
    """Return a sum; a part that begins with a minus is subtracted."""
    total = ""
    for part in filter(None, parts):
        if not total:
            total = part
        elif part.startswith("−"):
            total += f" − {part[1:]}"
        else:
            total += f" + {part}"
    return total


def _number(constant: Float[np.ndarray, " size"]) -> str:
    """Return a vector as text; as one number if all of its components are that."""
    numbers = [f"{'−' if v < 0 else ''}{abs(v):.6g}" for v in constant]
    return numbers[0] if len(set(numbers)) == 1 else f"({', '.join(numbers)})"


def _norm(value: Value) -> str:
    return f"|{text(value)}|" if value.size == 1 else f"‖{text(value)}‖"


def _is_zero(value: Value) -> bool:
    return not value.terms and not np.any(value.constant)


def _place(at: Timesteps) -> str:
    """Return where attention reads, in the names of tokens."""
    if isinstance(at, Earlier):
        return {0: "", 1: " one token before"}.get(
            at.steps, f" {at.steps} tokens before"
        )
    if isinstance(at, Single):
        return f" at {token_name(at.token)}"
    if isinstance(at, Labels):
        return " averaged over the labels"
    assert isinstance(at, Sets)
    moved = [
        f"{token_name(i)} takes it from {' '.join(map(token_name, js)) or 'nowhere'}"
        for i, js in enumerate(at.sets)
        if js != (i,)
    ]
    return f" ({'; '.join(moved)})" if moved else ""


def token_name(token: int) -> str:
    """Return the name of a token by its number from 0: x1, y1, x2, …."""
    return f"{'xy'[token % 2]}{token // 2 + 1}"
