"""Numbers, durations and lists as text, the same in every command and page.

Text that comes from elsewhere (a file, a name, an option, an exception) is made safe to
print: `visible` shows control characters instead of sending them to a terminal.
"""

import math
from collections.abc import Callable, Sequence

LONGEST_MESSAGE = 500  # characters


def number(value: float) -> str:
    """Return a number with three significant digits, or a dash for NaN.

    Example:
        >>> number(0.00219768), number(1.2345e7), number(float("nan"))
        ('0.0022', '1.23e+07', '–')
    """
    return "–" if math.isnan(value) else f"{float(f'{value:.3g}'):g}"


def short(value: float | None) -> str:
    """Return a number with two significant digits, or a dash for None.

    Example:
        >>> short(0.00219768), short(None)
        ('0.0022', '–')
    """
    return "–" if value is None else f"{value:.2g}"


def scientific(value: float) -> str:
    """Return a number with three digits and its power of ten.

    Example:
        >>> scientific(0.00219768)
        '2.20e-03'
    """
    return f"{value:.2e}"


def with_interval(
    mean: float, low: float, high: float, form: Callable[[float], str] = number
) -> str:
    """Return a number and its 95 % interval, each as `form` writes it.

    Example:
        >>> with_interval(0.5, 0.41, 0.6)
        '0.5 [0.41, 0.6]'
    """
    return f"{form(mean)} [{form(low)}, {form(high)}]"


def duration(seconds: float) -> str:
    """Return a duration in the unit that fits it.

    Example:
        >>> duration(42.0), duration(1300.0), duration(5e6)
        ('42 s', '22 min', '58 days')
    """
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 1.5 * size:
            amount = seconds / size
            return f"{amount:.0f} {unit}" if amount >= 9.95 else f"{amount:.1f} {unit}"
    return f"{seconds:.0f} s"


def listed(items: Sequence[object], none: str = "none") -> str:
    """Return items with commas and a final "and", or `none` for an empty sequence.

    Example:
        >>> listed([1, 2, 8]), listed([]), listed(["OLS"])
        ('1, 2 and 8', 'none', 'OLS')
    """
    texts = [str(item) for item in items]
    if len(texts) < 2:
        return texts[0] if texts else none
    return f"{', '.join(texts[:-1])} and {texts[-1]}"


def visible(text: object, longest: int | None = None) -> str:
    """Return text with control characters shown as escapes, cut if it is too long.

    So a name from a file can neither move the cursor nor forge a line.

    Example:
        >>> visible("name\\n\\x1b[2J"), visible("x\\n" * 20, longest=8)
        ('name\\\\n\\\\x1b[2J', 'x\\\\nx\\\\nx…')
    """
    shown = str(text)
    if longest is not None:
        shown = shown[: longest + 1]
    if not shown.isprintable():
        shown = "".join(c if c.isprintable() else _escaped(c) for c in shown)
    if longest is not None and len(shown) > longest:
        shown = shown[: longest - 1] + "…"
    return shown


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def one_line(text: str, longest: int = 300) -> str:
    """Return the text on one line, without a full stop, cut if it is too long.

    Example:
        >>> one_line("no\\n examples.")
        'no examples'
    """
    line = " ".join(text.split()).rstrip(".")
    return line if len(line) <= longest else line[: longest - 1] + "…"
