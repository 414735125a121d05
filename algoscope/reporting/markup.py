"""HTML from plain text: whatever is not already markup is escaped."""

import html
from dataclasses import dataclass

VOID_ELEMENTS = {"meta"}  # those without a closing tag

# A page cannot hold control characters, lone surrogates and non-characters. The
# replacements are the symbols for control characters, such as ␇, and otherwise �.
_UNPRINTABLE = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_UNPRINTABLE |= {127: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_UNPRINTABLE |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


@dataclass(frozen=True)
class Markup:
    """HTML that `element` built, or that was read from a file of this package."""

    html: str


def element(tag: str, *content: Markup | str, **attributes: object) -> Markup:
    """Return one element; attributes have Python names, such as class_ or http_equiv.

    Example:
        >>> element("p", "1 < 2 ", element("b", "yes"), class_="note").html
        '<p class="note">1 &lt; 2 <b>yes</b></p>'
    """
    named = {
        name.rstrip("_").replace("_", "-"): each for name, each in attributes.items()
    }
    opening = tag + "".join(
        f' {name}="{_escaped(value)}"' for name, value in named.items()
    )
    if tag in VOID_ELEMENTS:
        return Markup(f"<{opening}>")
    inside = (
        each.html if isinstance(each, Markup) else _escaped(each) for each in content
    )
    return Markup(f"<{opening}>{''.join(inside)}</{tag}>")


def _escaped(text: object) -> str:
    return html.escape(visible(str(text)))


def visible(text: str) -> str:
    """Return text with each unprintable character replaced by a visible symbol.

    Example:
        >>> visible("bell \\x07, tab \\t")
        'bell ␇, tab \\t'
    """
    return text.translate(_UNPRINTABLE)
