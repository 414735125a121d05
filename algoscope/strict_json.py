"""JSON that every parser reads: it has no number for NaN and for infinity.

NaN, which stands for what was not measured, is written as null, an infinite number as
the string "Infinity" or "-Infinity"; `number` reads both.
"""

import json
import math
from typing import Any


def _in_words(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _in_words(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_in_words(item) for item in value]
    if not isinstance(value, float) or math.isfinite(value):
        return value
    return None if math.isnan(value) else ("Infinity" if value > 0 else "-Infinity")


def json_text(value: Any, indent: int | None = None) -> str:
    """Return plain values as JSON.

    Example:
        >>> json_text({"mean": math.inf, "count": 3, "low": math.nan})
        '{"mean": "Infinity", "count": 3, "low": null}'
    """
    return json.dumps(_in_words(value), indent=indent, allow_nan=False)


def number(value: float | str | None) -> float:
    """Return the number that `json_text` wrote.

    Example:
        >>> number(None), number("-Infinity"), number(0.5)
        (nan, -inf, 0.5)
    """
    return math.nan if value is None else float(value)
