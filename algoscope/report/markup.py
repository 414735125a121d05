"""HTML from plain text: what is not markup already is escaped, always."""

import html
from dataclasses import dataclass

VOID = {"br", "meta"}

# A page cannot hold control characters, lone surrogates and non-characters.
_UNPRINTABLE = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_UNPRINTABLE |= {127: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_UNPRINTABLE |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def visible(text: str) -> str:
    """Return text with a picture in the place of each character that has none.

    Example:
        >>> visible("bell \\x07, tab \\t")
        'bell ␇, tab \\t'
    """
    return text.translate(_UNPRINTABLE)


@dataclass(frozen=True)
class Markup:
    """HTML that was built, or read from a file of this package."""

    html: str


def escape(text: object) -> str:
    """Return the HTML that shows this text.

    Example:
        >>> escape("<b>1 & 2</b>")
        '&lt;b&gt;1 &amp; 2&lt;/b&gt;'
    """
    return html.escape(visible(str(text)))


def element(tag: str, *content: Markup | str, **attributes: object) -> Markup:
    """Return one element; an attribute is named as in Python, class_ or http_equiv.

    Example:
        >>> element("p", "1 < 2 ", element("b", "yes"), class_="note").html
        '<p class="note">1 &lt; 2 <b>yes</b></p>'
    """
    named = {
        name.rstrip("_").replace("_", "-"): each for name, each in attributes.items()
    }
    opening = tag + "".join(
        f' {name}="{escape(value)}"' for name, value in named.items()
    )
    if tag in VOID:
        return Markup(f"<{opening}>")
    inside = (
        each.html if isinstance(each, Markup) else escape(each) for each in content
    )
    return Markup(f"<{opening}>{''.join(inside)}</{tag}>")
