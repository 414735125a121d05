"""A report in a browser: readable everywhere, and nothing in it can act."""

import re
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Condition, Thread

import pytest
from support.browser import OpenedPage, find_browser, opened
from support.comparisons import handmade
from support.results import save_identification, save_probing, save_record, save_run

from algoscope.experiments.record import Claim, Table
from algoscope.reporting import report

HOSTILE_SVG = """<svg xmlns="http://www.w3.org/2000/svg" width="90" height="60"
     xmlns:xlink="http://www.w3.org/1999/xlink" onload="document.title='hacked'">
  <script>document.title = 'hacked'</script>
  <style>body { display: none } @import "http://127.0.0.1:9/a.css";</style>
  <image xlink:href="http://127.0.0.1:9/b.png" width="9" height="9"/>
  <image href="data:image/svg+xml;base64,PHN2Zy8+" width="9" height="9"/>
  <use href="http://127.0.0.1:9/c.svg#x"/>
  <a href="javascript:document.title='hacked'"><text>press me</text></a>
  <foreignObject><img xmlns="http://www.w3.org/1999/xhtml" src="http://127.0.0.1:9/d"
    onerror="document.title='hacked'"/></foreignObject>
  <animate attributeName="href" values="javascript:document.title='hacked'"/>
  <set attributeName="onmouseover" to="document.title='hacked'"/>
  <rect width="9" height="9" onclick="document.title='hacked'"
    style="fill: url(http://127.0.0.1:9/e); stroke: u\\72l(//127.0.0.1:9/f);
      position: fixed; background: red"/>
  <text x="1" y="9">&lt;script>document.title='hacked'&lt;/script></text>
</svg>"""
HOSTILE = (
    "<script>document.title='hacked'</script>",
    '"><img src=x onerror="document.title=\'hacked\'">',
    "javascript:document.title='hacked'",
    "</title></style><svg onload=document.title='hacked'>",
    "'-->]]>&lt;b&gt;`|\\ $x$ {{7*7}}",
    "long" * 60,
)
POLICY = re.compile(r'<meta http-equiv="Content-Security-Policy"[^>]*>')
WIDTH = "document.documentElement.scrollWidth"
PAPER = "getComputedStyle(document.body).backgroundColor"


def test_without_a_browser_its_tests_are_skipped_or_fail(monkeypatch):
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("ALGOSCOPE_REQUIRE_BROWSER", raising=False)
    with pytest.raises(pytest.skip.Exception, match="no Chromium here: install chrom"):
        find_browser()
    monkeypatch.setenv("ALGOSCOPE_REQUIRE_BROWSER", "1")
    with pytest.raises(pytest.fail.Exception, match="no Chromium here: install chrom"):
        find_browser()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory) -> Path:
    """A report of results whose every name and file tries to act."""
    root = tmp_path_factory.mktemp("hostile")
    first, second, third, fourth, fifth, long = HOSTILE
    experiment = root / "results" / "fig <b>1"
    save_record(
        experiment,
        figure=first,
        title=second,
        budget=third,
        command=fourth,
        config={fifth: [long]},
        versions={first: second},
        findings=HOSTILE,
        tables=(
            Table(third, HOSTILE, (HOSTILE, HOSTILE[::-1])),
            Table("wide", tuple("abcdefghijklmnop"), (("1.2345",) * 16,) * 40),
        ),
        claims=tuple(
            Claim(text, text, text, verdict, text)
            for text in HOSTILE
            for verdict in ("reproduced", "partly", "not reproduced", "not testable")
        ),
        runs={text: text for text in HOSTILE},
    )
    (experiment / "curves.svg").write_text(HOSTILE_SVG)
    save_run(root / "results" / "<img src=x onerror=alert(1)>", first)
    save_identification(root / "results" / f"{HOSTILE[2]}.json", second)
    save_probing(root / "results" / "probed", second)
    out = root / "report.html"
    report([root / "results"], out, title=HOSTILE[3])
    return out


def test_opening_a_page_fails_if_it_requests_anything(tmp_path, browser):
    path = tmp_path / "bad.html"
    path.write_text(
        "<img src='http://127.0.0.1:9/a.png'><div style='width: 999px'>wide</div>"
        "<script>document.title = 'hacked'; console.error('no'); oops()</script>"
    )
    address = "http://127.0.0.1:9/a.png"

    def visit() -> None:
        with opened(browser, path, width=360) as watched:
            assert watched.requests == [path.as_uri(), address]
            assert any(each == "no" for each in watched.logged)
            assert any("oops is not defined" in each for each in watched.logged)
            assert watched.page.title() == "hacked"
            assert watched.page.evaluate(WIDTH) > 360

    with pytest.raises(AssertionError, match=f"the page requested .'{address}'"):
        visit()


@pytest.mark.parametrize("policy", [True, False])
def test_hostile_names_are_shown_and_not_executed(tmp_path, browser, hostile, policy):
    text = hostile.read_text()
    assert len(POLICY.findall(text)) == 1
    path = tmp_path / "report.html"
    # Without the policy, escaping alone must hold.
    path.write_text(text if policy else POLICY.sub("", text))
    with opened(browser, path, width=1200) as watched:
        page = watched.page
        assert watched.requests == [path.as_uri()]
        assert watched.logged == []
        assert page.evaluate("document.title") == HOSTILE[3]
        shown = page.evaluate("document.body.textContent")
        for name in (*HOSTILE, "<img src=x onerror=alert(1)>", "fig <b>1"):
            assert name in shown
        acting = "script, img, iframe, object, embed, link, form, base, foreignObject"
        assert page.locator(acting).count() == 0
        links = "[...document.links].map(link => link.getAttribute('href'))"
        found = page.evaluate(links)
        assert found
        assert all(link.startswith("#") for link in found)
        handlers = (
            "[...document.querySelectorAll('*')].flatMap(e => e.getAttributeNames())"
            ".filter(name => name.startsWith('on'))"
        )
        assert page.evaluate(handlers) == []


class Server(ThreadingHTTPServer):
    """A server on this machine that remembers what it was asked for."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked: set[str] = set()
        self.changed = Condition()

    def wait_for(self, paths: set[str]) -> bool:
        """Return whether all of the paths are asked for within a minute."""
        with self.changed:
            return self.changed.wait_for(lambda: paths <= self.asked, timeout=60)


class Handler(BaseHTTPRequestHandler):
    """Answers every request with an empty page."""

    def do_GET(self) -> None:
        assert isinstance(self.server, Server)
        with self.server.changed:
            self.server.asked.add(self.path.split("?")[0])
            self.server.changed.notify()
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture
def server() -> Iterator[Server]:
    with Server() as running:
        thread = Thread(target=running.serve_forever)
        thread.start()
        yield running
        running.shutdown()
        thread.join()


INJECTED = """
<script>document.title = 'hacked'</script>
<script src="{at}/script"></script>
<link rel="stylesheet" href="{at}/link">
<style>@import "{at}/import"; h1 {{ background: url({at}/background) }}</style>
<img src="{at}/image" onerror="document.title = 'hacked'">
<svg><image href="{at}/svg-image" width="9" height="9"/></svg>
<iframe src="{at}/frame"></iframe>
<object data="{at}/object"></object>
<video src="{at}/video"></video>
<form action="{at}/form" target="other"><input type="submit"></form>
"""
PLACES = set(re.findall(r"{at}(/[\w-]+)", INJECTED))


@pytest.mark.parametrize("policy", [True, False])
def test_the_policy_alone_stops_injected_elements(
    tmp_path, browser, hostile, server, policy
):
    text = hostile.read_text() if policy else POLICY.sub("", hostile.read_text())
    address = f"http://127.0.0.1:{server.server_port}"
    path = tmp_path / "report.html"
    path.write_text(text.replace("<main>", f"<main>{INJECTED.format(at=address)}"))
    with browser.new_context() as context:
        watched = OpenedPage(context, path)
        page = watched.page
        submit = page.locator("form input")
        if policy:
            with context.expect_console_message(lambda m: "form-action" in m.text):
                submit.click()
            assert server.asked == set()
            assert page.title() == HOSTILE[3]
            stopped = [line for line in watched.logged if "violates" in line]
            assert len(stopped) > len(PLACES)  # and the inline script
        else:  # the same elements act in a page without the policy
            submit.click()
            assert server.wait_for(PLACES), PLACES - server.asked
            assert page.title() == "hacked"


@pytest.mark.parametrize("dark", [False, True])
def test_a_phone_shows_it_without_scrolling_sideways(browser, hostile, dark):
    with opened(browser, hostile, width=360, dark=dark) as watched:
        page = watched.page
        assert page.evaluate(WIDTH) <= 360
        boxes = "[...document.querySelectorAll('.scroll, .card, pre')]"
        inside = f"{boxes}.every(e => e.getBoundingClientRect().right <= 360)"
        assert page.evaluate(inside)
        assert page.evaluate(f"{boxes}.some(e => e.scrollWidth > e.clientWidth)")
        assert watched.logged == []


def contrast(first: str, second: str) -> float:
    """Return the contrast of two colors, as accessibility guidelines define it."""

    def luminance(color: str) -> float:
        parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
        red, green, blue = (
            c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts
        )
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    low, high = sorted((luminance(first), luminance(second)))
    return (high + 0.05) / (low + 0.05)


def test_it_is_readable_in_the_light_and_in_the_dark(browser, hostile):
    papers = []
    with opened(browser, hostile, width=800) as watched:
        page = watched.page
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            paper = page.evaluate(PAPER)
            papers.append(paper)
            for name in ("body", "a", "th", "dt", ".good", ".mixed", ".bad", ".open"):
                ink = page.evaluate(
                    f"getComputedStyle(document.querySelector('{name}')).color"
                )
                assert contrast(paper, ink) >= 4.5, (scheme, name)
            text = "getComputedStyle(document.querySelector('.card text')).fill"
            assert contrast(paper, page.evaluate(text)) >= 4.5, scheme
    assert contrast(*papers) > 10


def test_figures_follow_the_colors_of_the_page_and_its_width(tmp_path, browser):
    names = ["OLS", "Ridge(0.1)", "GD(0.01)", "Newton(2)"]
    handmade({name: [0.0, 0.1, 0.2] for name in names}).save(tmp_path / "a.json")
    out = tmp_path / "report.html"
    report(tmp_path / "a.json", out, progress=False)
    inks = (
        "[...document.querySelectorAll('.panels path')].map(e => getComputedStyle(e))"
        ".flatMap(s => [s.fill, s.stroke]).filter(c => c.startsWith('rgb'))"
    )
    boxes = (
        "[...document.querySelectorAll('.panels > svg')].map("
        "e => e.getBoundingClientRect()).map(b => [b.left, b.right, b.top])"
    )
    with opened(browser, out, width=1280) as watched:
        page = watched.page
        found = {}
        for scheme in ("light", "dark"):
            page.emulate_media(color_scheme=scheme)
            found[scheme] = page.evaluate(inks), page.evaluate(PAPER)
        for colors, paper in found.values():
            drawn = {color for color in colors if color != paper}
            assert all(contrast(paper, color) >= 2 for color in drawn)
        light, dark = (colors for colors, _ in found.values())
        assert "rgb(255, 255, 255)" not in dark
        assert "rgb(0, 0, 0)" not in dark
        assert len(set(light)) == len(set(dark))
        (_, _, first), (_, _, second) = page.evaluate(boxes)
        assert abs(first - second) < 5  # side by side
        page.set_viewport_size({"width": 360, "height": 800})
        (_, right, first), (left, _, second) = page.evaluate(boxes)
        assert first < second
        assert left >= 0
        assert right <= 360
        assert page.evaluate(WIDTH) <= 360


def test_it_prints_with_everything_open_and_nothing_cut(browser, hostile):
    folded = (
        "[...document.querySelectorAll('details pre')]"
        ".map(each => each.checkVisibility())"
    )
    with opened(browser, hostile, width=720, dark=True) as watched:
        page = watched.page
        assert set(page.evaluate(folded)) == {False}
        page.emulate_media(media="print")
        assert set(page.evaluate(folded)) == {True}
        assert page.evaluate(WIDTH) <= 720
        assert page.evaluate(PAPER) == "rgb(255, 255, 255)"
        content = page.pdf(format="A4", print_background=True)
        assert content.startswith(b"%PDF-")
        assert len(re.findall(rb"/Type\s*/Page\b", content)) > 1
        assert watched.logged == []
