"""Checks of values, with errors of one form: `name` must <rule>, got <value>. <remedy>

Checks run where a value enters (a constructor, a public function, a command), before
anything is compiled or written. They look at plain numbers, never at traced ones.
"""

import difflib
import math
import numbers
from collections.abc import Iterable
from typing import Any

LARGEST = 2**31 - 1  # counts, sizes and seeds are 32-bit integers in XLA
MOST_DIMENSIONS = 10_000  # XᵀX has d² entries
MOST_STEPS = 1_000_000  # of an iterative predictor, per prediction


class InvalidValueError(ValueError):
    """A value that breaks a rule.

    Example:
        >>> print(InvalidValueError("dim", "be at least 1", 0, "Use 1."))
        `dim` must be at least 1, got 0. Use 1.
    """

    def __init__(self, name: str, rule: str, value: Any, remedy: str = ""):
        super().__init__(_message(name, rule, value, remedy))


class InvalidTypeError(TypeError):
    """A value of the wrong type, with a message of the same form."""

    def __init__(self, name: str, rule: str, value: Any, remedy: str = ""):
        super().__init__(_message(name, rule, value, remedy))


def _message(name: str, rule: str, value: Any, remedy: str) -> str:
    return f"`{name}` must {rule}, got {value}.{' ' + remedy if remedy else ''}"


def _require_number(name: str, value: Any, kind: type, word: str) -> None:
    if isinstance(value, bool) or not isinstance(value, kind):
        raise InvalidTypeError(name, f"be {word}", repr(value))


def require_at_least(
    name: str, value: Any, least: int, remedy: str = "", *, most: int = LARGEST
) -> None:
    """Reject anything but an integer ≥ `least`, and numbers too large to compute with.

    Example:
        >>> try:
        ...     require_at_least("steps", 10**20, 1)
        ... except ValueError as error:
        ...     print(error)
        `steps` must be at most 2147483647, got 100000000000000000000.
    """
    _require_number(name, value, numbers.Integral, "an integer")
    if value < least:
        raise InvalidValueError(name, f"be at least {least}", value, remedy)
    if value > most:
        raise InvalidValueError(name, f"be at most {most}", value, remedy)


def require_positive(name: str, value: Any, remedy: str = "") -> None:
    """Reject anything but a finite number > 0."""
    _require_number(name, value, numbers.Real, "a number")
    if not (value > 0 and math.isfinite(value)):
        rule = "be finite" if value == math.inf else "be positive"
        raise InvalidValueError(name, rule, value, remedy)


def require_not_negative(name: str, value: Any, remedy: str = "") -> None:
    """Reject anything but a finite number ≥ 0."""
    _require_number(name, value, numbers.Real, "a number")
    if not (value >= 0 and math.isfinite(value)):
        rule = "be finite" if value == math.inf else "not be negative"
        raise InvalidValueError(name, rule, value, remedy)


def require_examples(x: Any, y: Any, dim: int | None = None) -> None:
    """Reject x and y unless they are n inputs of `dim` coordinates and n labels."""
    if x.ndim != 2 or dim not in (None, x.shape[1]):
        wanted = "dim" if dim is None else dim
        rule = f"have shape (examples, {wanted})"
        remedy = "For a batch, use `jax.vmap`."
        raise InvalidValueError("x", rule, f"shape {x.shape}", remedy)
    if y.shape != x.shape[:1]:
        rule = f"have shape ({x.shape[0]},), one label per example"
        raise InvalidValueError("y", rule, f"shape {y.shape}")


def require_query(query: Any, dim: int) -> None:
    """Reject a query that is not one input of `dim` coordinates."""
    if query.shape != (dim,):
        rule = f"be one input of {dim} coordinates"
        raise InvalidValueError("query", rule, f"shape {query.shape}")


def require_choice(name: str, value: Any, choices: Iterable[str]) -> None:
    """Reject a name that is not among `choices`, and suggest the nearest one.

    Example:
        >>> try:
        ...     require_choice("preset", "dmeo", ["demo", "d8"])
        ... except ValueError as error:
        ...     print(error)
        `preset` must be one of demo, d8, got 'dmeo'. Did you mean 'demo'?
    """
    choices = list(choices)
    if value not in choices:
        near = difflib.get_close_matches(str(value), choices, n=1)
        remedy = f"Did you mean '{near[0]}'?" if near else ""
        rule = f"be one of {', '.join(choices)}"
        raise InvalidValueError(name, rule, repr(value), remedy)
