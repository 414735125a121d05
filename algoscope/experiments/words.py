"""Numbers in sentences: always with their interval."""

import math
from collections.abc import Sequence


def number(value: float) -> str:
    """Return a number with three significant digits.

    Example:
        >>> number(0.00219768), number(1.2345e7), number(float("nan"))
        ('0.0022', '1.23e+07', '–')
    """
    return "–" if math.isnan(value) else f"{float(f'{value:.3g}'):g}"


def with_interval(mean: float, low: float, high: float) -> str:
    """Return a number and its 95 % interval.

    Example:
        >>> with_interval(0.5, 0.41, 0.6)
        '0.5 [0.41, 0.6]'
    """
    return f"{number(mean)} [{number(low)}, {number(high)}]"


def listed(items: Sequence[object], none: str = "none") -> str:
    """Return items with commas and an "and".

    Example:
        >>> listed([1, 2, 8]), listed([]), listed(["OLS"])
        ('1, 2 and 8', 'none', 'OLS')
    """
    texts = [str(item) for item in items]
    if len(texts) < 2:
        return texts[0] if texts else none
    return f"{', '.join(texts[:-1])} and {texts[-1]}"
