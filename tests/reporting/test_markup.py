"""Text in a page is shown as it is; an SVG in it refers to itself only."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refuses
from support.results import SVG, TEXT, Reader

from algoscope.comparison.result import Comparison
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import save_figure
from algoscope.model.checkpoints import MODELS
from algoscope.reporting.markup import (
    ELEMENTS,
    HREFS,
    NAMESPACE,
    element,
    inline_svg,
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
    assert styles[0] == styles[1]


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
