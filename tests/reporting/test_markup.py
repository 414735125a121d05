"""Text in a page is shown as it is; an SVG in it refers to itself only."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from support.refusals import refuses
from support.results import SVG, TEXT, Reader

from algoscope.comparison.result import Comparison
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import COLORS, render_panels, save_figure
from algoscope.model.checkpoints import MODELS
from algoscope.reporting.markup import (
    ELEMENTS,
    HREFS,
    NAMESPACE,
    element,
    inline_svg,
    title_of,
    visible,
)

ODD_ELEMENTS = ("script", "style", "foreignObject", "a", "animate", "set", "iframe")
VALUES = st.sampled_from(
    [
        "1",
        "red",
        "#x",
        "url(#x)",
        "url('#x')",
        "URL(#x)",
        "url(http://a/b)",
        "url(//a)",
        "u\\72l(#x)",
        "image-set('b')",
        "javascript:alert(1)",
        "http://a/b.png",
        "data:image/png;base64,AAAA",
        "data:image/svg+xml,<svg/>",
        "fill: url(#x); stroke: url(a.png)",
        "fill: red; position: fixed",
        "translate(1 2) rotate(3)",
    ]
)
NAMES = st.sampled_from(
    [
        *("id", "href", HREFS[1], "src", "style", "fill", "clip-path", "d", "class"),
        *("onload", "onclick", "transform", "xmlns", "filter", "formaction"),
    ]
)


@st.composite
def svg_trees(draw, depth: int = 0) -> ElementTree.Element:
    names = [*sorted(ELEMENTS), *ODD_ELEMENTS]
    name = draw(st.sampled_from(names)) if depth else "svg"
    space = draw(st.sampled_from([NAMESPACE, NAMESPACE, NAMESPACE, "", "{other}"]))
    node = ElementTree.Element(f"{space if depth else NAMESPACE}{name}")
    node.attrib.update(draw(st.dictionaries(NAMES, VALUES, max_size=4)))
    node.text = draw(st.sampled_from(["", "hello", "<script>x</script>"]))
    if depth < 3:
        node.extend(draw(st.lists(svg_trees(depth=depth + 1), max_size=3)))
    return node


def parsed(svg: str) -> ElementTree.Element:
    return ElementTree.fromstring(
        svg.replace("<svg", f"<svg xmlns='{NAMESPACE[1:-1]}'")
    )


@given(TEXT)
def test_any_text_is_shown_as_it_is(text):
    page = Reader(element("p", text, title=text).html)
    assert page.text == visible(text)
    assert page.elements == [("p", {"title": visible(text)})]


@given(TEXT)
def test_visible_text_can_be_encoded_and_replaces_only_the_unprintable(text):
    shown = visible(text)
    shown.encode()
    assert len(shown) == len(text)
    assert visible(shown) == shown
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]", shown)


@given(svg_trees())
def test_a_sanitized_svg_refers_to_itself_only_and_does_nothing(tree):
    text = ElementTree.tostring(tree, encoding="unicode")
    clean = inline_svg(text, prefix="p-", label="a", source="s").html
    for node in parsed(clean).iter():
        assert node.tag.removeprefix(NAMESPACE) in ELEMENTS
        for name, value in node.attrib.items():
            assert not name.startswith("on")
            assert name not in ("src", "class", "filter", "formaction")
            assert "position" not in value
            assert all(link == "url(#p-x)" for link in re.findall(r"url\(.*?\)", value))
            if name == "href":
                is_image = node.tag == f"{NAMESPACE}image"
                start = "data:image/png;base64," if is_image else "#p-"
                assert value.startswith(start)
            else:
                assert not re.search(r"script|http|//|\\|image|data:", value)
    again = inline_svg(
        clean.replace("<svg", f"<svg xmlns='{NAMESPACE[1:-1]}'", 1),
        prefix="",
        label="a",
        source="s",
    )
    assert again.html == clean


def test_a_figure_of_matplotlib_keeps_all_its_shapes(tmp_path):
    path = tmp_path / "figure.svg"
    comparison = Comparison.load(MODELS / "linear-d1" / "evaluation.json")
    save_figure(comparison.plot(), path)
    before = ElementTree.parse(path).getroot()
    after = parsed(inline_svg(path.read_text(), prefix="p-", label="", source="").html)
    for name in ("path", "use", "g", "clipPath", "rect"):
        tag = NAMESPACE + name
        assert len(list(after.iter(tag))) == len(list(before.iter(tag)))
    names = {node.get("id") for node in after.iter()}
    links = [node.attrib["href"] for node in after.iter(f"{NAMESPACE}use")]
    assert links
    assert {link[1:] for link in links} <= names
    clips = [
        node.attrib["clip-path"] for node in after.iter() if "clip-path" in node.attrib
    ]
    assert clips
    assert {clip[len("url(#") : -1] for clip in clips} <= names
    styles = [
        [node.get("style", "").rstrip(" ;") for node in root.iter(f"{NAMESPACE}path")]
        for root in (before, after)
    ]
    pages = {color.lower(): f"var(--color-{i})" for i, color in enumerate(COLORS)}
    pages |= {"#000000": "currentColor", "#ffffff": "var(--paper)"}
    pages |= {"#cccccc": "var(--line)"}
    in_page = [
        re.sub("#[0-9a-f]{6}", lambda found: pages.get(found[0], found[0]), each)
        for each in styles[0]
    ]
    assert in_page == styles[1]
    assert len(set(in_page) & set(styles[0])) < len(set(in_page))


def test_panels_are_shown_one_by_one_and_lose_nothing():
    figure = Figure(figsize=(8, 6))
    axes = figure.subplots(2, 2).ravel()
    for place, panel in enumerate(axes):
        panel.plot([0, 1], [0, place], label=f"line {place}")
    image = axes[3].imshow([[0, 1], [1, 0]])
    figure.colorbar(image, ax=axes[3], label="bar")
    figure.legend(ncols=4)
    figure.suptitle("a title § that no panel has")
    text = render_panels(figure).decode()
    assert title_of(text) == "a title § that no panel has"
    shown = parsed(inline_svg(text, prefix="p-", label="all", source="s").html)
    assert shown.attrib == {"class": "panels", "role": "img", "aria-label": "all"}
    assert [each.tag for each in shown] == ["div", *[f"{NAMESPACE}svg"] * 4]
    boxes = [
        [float(x) for x in each.attrib["viewBox"].split()]
        for each in shown.iter(f"{NAMESPACE}svg")
    ]
    heights = [height for *_, height in boxes[1:]]
    assert heights[:2] == [heights[0]] * 2
    assert heights[2:] == [heights[2]] * 2
    for panel in shown.iter(f"{NAMESPACE}svg"):
        assert panel.findall(f".//{NAMESPACE}use")
    names = {node.get("id") for node in shown.iter()}
    links = {node.attrib["href"] for node in shown.iter(f"{NAMESPACE}use")}
    assert {link[1:] for link in links} <= names
    before = list(ElementTree.fromstring(text).iter(f"{NAMESPACE}image"))
    assert len(before) == len(list(shown.iter(f"{NAMESPACE}image"))) == 2


@pytest.mark.parametrize("view", ["", "1 2 3", "a b c d", "0 0 9 9"])
def test_views_of_a_foreign_file_show_no_more_than_it_has(view):
    text = SVG.replace("</svg>", f'<view id="view.x" viewBox="{view}"/></svg>')
    shown = inline_svg(text, prefix="p-", label="", source="").html
    assert ("panels" in shown) == (view == "0 0 9 9")
    assert "view" not in shown.replace("viewBox", "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<svg", "is not an SVG file (unclosed token: line 1, column 0)"),
        ("<html/>", "is not an SVG file (its root element is html)"),
        (
            '<!DOCTYPE a [<!ENTITY b "c">]><a/>',
            "is not a safe SVG file (it declares entities)",
        ),
    ],
)
def test_what_is_no_svg_is_rejected(text, problem):
    with refuses(DamagedFileError, f"a.svg {problem}."):
        inline_svg(text, prefix="", label="", source="a.svg")


def test_an_svg_that_is_too_deep_is_rejected():
    text = SVG.replace("<path", "<g>" * 10_000 + "<path").replace(
        "</svg>", "</g>" * 10_000 + "</svg>"
    )
    message = "a.svg nests elements more than 64 levels deep."
    with refuses(DamagedFileError, message):
        inline_svg(text, prefix="", label="", source="a.svg")


def test_an_id_that_an_svg_has_twice_is_kept_once():
    text = (
        '<svg xmlns="http://www.w3.org/2000/svg"><g id="a"/><g id="a"/>'
        '<use href="#a"/></svg>'
    )
    page = inline_svg(text, prefix="p-", label="two", source="x.svg").html
    assert page.count('id="p-a"') == 1
    assert 'href="#p-a"' in page
