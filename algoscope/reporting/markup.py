"""Markup that is safe to put into a page: text is escaped, SVG files are cleaned.

Of an SVG file, only elements and attributes on the lists below are kept: shapes, text,
PNG images and references within the same file. Scripts, style sheets, links and event
handlers are dropped. Names get a prefix, so that the figures of one page do not share
any. The colors that all figures share become variables of the page, which is light or
dark, and panels become elements of their own, which a narrow page shows one by one.
"""

import html
import re
from dataclasses import dataclass
from xml.etree import ElementTree

from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import COLORS, FAINT, FRAME, INK, PAPER

VOID_ELEMENTS = {"meta"}  # those without a closing tag

# A page cannot hold control characters, lone surrogates and non-characters. The
# replacements are the symbols for control characters, such as ␇, and otherwise �.
_UNPRINTABLE = {code: 0x2400 + code for code in range(32) if code not in (9, 10)}
_UNPRINTABLE |= {127: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_UNPRINTABLE |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)

# What an SVG file in a page may hold.
NAMESPACE = "{http://www.w3.org/2000/svg}"
HREFS = ("href", "{http://www.w3.org/1999/xlink}href")
DEEPEST = 64  # nested elements; pages are parsed recursively


def _names(text: str) -> frozenset[str]:
    return frozenset(text.split())


ELEMENTS = _names(
    """
    svg g defs symbol use path rect line polyline polygon circle ellipse text tspan
    image clipPath mask pattern marker linearGradient radialGradient stop
    """
)
TEXT_ELEMENTS = {"text", "tspan"}
GEOMETRY = _names(
    """
    d x y x1 y1 x2 y2 cx cy r rx ry dx dy fx fy width height points transform viewBox
    preserveAspectRatio offset clipPathUnits gradientUnits gradientTransform
    spreadMethod patternUnits patternContentUnits patternTransform maskUnits
    maskContentUnits markerUnits markerWidth markerHeight refX refY orient
    """
)
PROPERTIES = _names(
    """
    fill fill-opacity fill-rule stroke stroke-dasharray stroke-dashoffset
    stroke-linecap stroke-linejoin stroke-miterlimit stroke-opacity stroke-width
    opacity color stop-color stop-opacity clip-path clip-rule mask marker-start
    marker-mid marker-end font font-family font-size font-stretch font-style
    font-variant font-weight text-anchor dominant-baseline baseline-shift
    letter-spacing word-spacing visibility display image-rendering shape-rendering
    paint-order
    """
)
FUNCTIONS = _names("matrix translate scale rotate skewX skewY rgb rgba hsl hsla")

# Colors of figures and what a page shows for them; report.css has the rest.
_PAGE_COLORS = {
    color.lower(): f"var(--color-{place})" for place, color in enumerate(COLORS)
}
_PAGE_COLORS |= {INK: "currentColor", PAPER: "var(--paper)"}
_PAGE_COLORS |= {FRAME: "var(--line)", FAINT: "var(--faint)"}
LARGEST = 1.25  # times its own size, of a panel on a wide page

_NAME = re.compile(r"[\w.:-]+")
_LOCAL = re.compile(r"""url\(\s*["']?#([\w.:-]+)["']?\s*\)""")
_FUNCTION = re.compile(r"([\w-]*)\s*\(")
_VALUE = re.compile(r"""[\w\s.,#%()'"+*-]*""")
_PICTURE = re.compile(r"data:image/png;base64,[A-Za-z0-9+/=\s]*")
_LENGTH = re.compile(r"\s*([\d.]+)(pt|px)?\s*")
_BOX = re.compile(r"(-?[\d.]+) (-?[\d.]+) ([\d.]+) ([\d.]+)")


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


def inline_svg(text: str, *, prefix: str, label: str, source: str) -> Markup:
    """Return the SVG as an element of a page, with `prefix` before each of its ids.

    `label` is what screen readers read; `source` is the path that an error names.
    """
    if "<!ENTITY" in text:  # may expand to gigabytes
        raise DamagedFileError(source, "is not a safe SVG file (it declares entities)")
    try:
        root = ElementTree.fromstring(text)
    except (ElementTree.ParseError, ValueError) as error:
        raise DamagedFileError(source, f"is not an SVG file ({error})") from None
    if root.tag != f"{NAMESPACE}svg":
        problem = f"is not an SVG file (its root element is {root.tag})"
        raise DamagedFileError(source, problem)
    if _depth(root) > DEEPEST:
        problem = f"nests elements more than {DEEPEST} levels deep"
        raise DamagedFileError(source, problem)
    _drop_repeated_ids(root)
    if panels := _panels(root):
        shown = [_panel(panel, prefix) for panel in panels]
        return element("div", *shown, class_="panels", role="img", aria_label=label)
    width, height = (_LENGTH.fullmatch(root.get(n, "")) for n in ("width", "height"))
    if "viewBox" not in root.attrib and width and height:
        root.set("viewBox", f"0 0 {width[1]} {height[1]}")
    least = f"min(38rem, {width[1]}{width[2] or 'px'})" if width else "0"
    root.set("style", "")
    return _converted(
        root, prefix, role="img", aria_label=label, style=f"min-width: {least}"
    )


def title_of(text: str) -> str:
    """Return the title of an SVG file that `inline_svg` accepts, or ""."""
    return ElementTree.fromstring(text).findtext(f"{NAMESPACE}title") or ""


def _panels(root: ElementTree.Element) -> list[ElementTree.Element]:
    """Return the panels of a figure of `render_panels`, each an SVG of its own.

    Their drawings are taken out of the root; the first panel also gets its definitions,
    which all of them use.
    """
    views = [(view, _BOX.fullmatch(view.get("viewBox", ""))) for view in root]
    found = []
    for view, box in views:
        if view.tag != f"{NAMESPACE}view" or not box:
            continue
        size = {"width": f"{box[3]}pt", "height": f"{box[4]}pt", "viewBox": box[0]}
        panel = ElementTree.Element(f"{NAMESPACE}svg", size)
        for name in view.get("id", "").split(".")[1:]:
            panel.extend(_taken(root, name))
        found.append(panel)
    if found:
        found[0].extend(list(root.iter(f"{NAMESPACE}defs")))
    return found


def _panel(panel: ElementTree.Element, prefix: str) -> Markup:
    """Return a panel that grows with those beside it, or a legend on its own line."""
    if any(each.get("id", "").startswith("key_") for each in panel):
        return element("div", _converted(panel, prefix), class_="key")
    width = float(panel.attrib["viewBox"].split()[2])
    most = f"max-width: min(100%, {LARGEST * width:.0f}pt)"
    style = f"flex: {width:.0f} 1 {width:.0f}pt; {most}"
    return _converted(panel, prefix, style=style)


def _taken(root: ElementTree.Element, name: str) -> list[ElementTree.Element]:
    """Remove the elements of this id and return them."""
    owners = [(owner, each) for owner in root.iter() for each in owner]
    found = [(owner, each) for owner, each in owners if each.get("id") == name]
    for owner, each in found:
        owner.remove(each)
    return [each for _, each in found]


def _depth(root: ElementTree.Element) -> int:
    """Return how deep the elements are nested, counted no further than needed."""
    depth, level = 0, [root]
    while level and depth <= DEEPEST:
        depth, level = depth + 1, [child for each in level for child in each]
    return depth


def _drop_repeated_ids(root: ElementTree.Element) -> None:
    """Keep the first of equal ids; matplotlib repeats the id of equal images."""
    seen: set[str] = set()
    for node in root.iter():
        name = node.get("id")
        if name in seen:
            del node.attrib["id"]
        elif name is not None:
            seen.add(name)


def _converted(node: ElementTree.Element, prefix: str, **extra: str) -> Markup:
    tag = node.tag.removeprefix(NAMESPACE)
    content: list[Markup | str] = [node.text or ""] if tag in TEXT_ELEMENTS else []
    for child in node:
        if _is_kept(child):
            content.append(_converted(child, prefix))
        if tag in TEXT_ELEMENTS:
            content.append(child.tail or "")
    return element(tag, *content, **_attributes(node, prefix) | extra)


def _is_kept(node: ElementTree.Element) -> bool:
    tag = str(node.tag)
    return tag.startswith(NAMESPACE) and tag.removeprefix(NAMESPACE) in ELEMENTS


def _attributes(node: ElementTree.Element, prefix: str) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in node.attrib.items():
        if name == "id" and _NAME.fullmatch(value):
            kept["id"] = prefix + value
        elif name in HREFS:
            kept["href"] = _reference(node.tag, value, prefix)
        elif name == "style":
            kept["style"] = _style(value, prefix)
        elif name in GEOMETRY | PROPERTIES:
            kept[name] = _PAGE_COLORS.get(value.lower(), _value(value, prefix))
    return {name: value for name, value in kept.items() if value}


def _reference(tag: str, text: str, prefix: str) -> str:
    """Return the target of a reference: embedded PNG data for images, else an id."""
    if tag == f"{NAMESPACE}image":
        return "".join(text.split()) if _PICTURE.fullmatch(text) else ""
    local = text.startswith("#") and _NAME.fullmatch(text[1:])
    return f"#{prefix}{text[1:]}" if local else ""


def _style(text: str, prefix: str) -> str:
    pairs = [each.partition(":") for each in text.split(";")]
    kept = [
        f"{name.strip()}: {_PAGE_COLORS.get(value.lower(), value)}"
        for name, _, given in pairs
        if name.strip() in PROPERTIES and (value := _value(given.strip(), prefix))
    ]
    return "; ".join(kept)


def _value(text: str, prefix: str) -> str:
    """Return a value with its local references renamed, or "" if it is not safe."""
    rest = _LOCAL.sub("", text)
    functions = set(_FUNCTION.findall(rest)) - {""}
    if not _VALUE.fullmatch(rest) or functions - FUNCTIONS:
        return ""
    return _LOCAL.sub(rf"url(#{prefix}\1)", text)
