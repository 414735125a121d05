"""The documentation site in a browser, from a disk."""

import pytest
from support.browser import opened
from support.pages import PAGES

WIDTH = "document.documentElement.scrollWidth"
PHONE = 360  # pixels

pytestmark = pytest.mark.timeout(1500)  # the first test builds


def test_pages_fit_a_phone_and_request_nothing(site, browser):
    for page in PAGES:
        with opened(browser, site / page, width=PHONE) as watched:
            assert watched.page.evaluate(WIDTH) <= PHONE, page
            assert watched.logged == [], page


def test_pages_follow_dark_mode(site, browser):
    background = "getComputedStyle(document.body).backgroundColor"
    seen = set()
    for dark in (False, True):
        with opened(browser, site / "start.html", width=1280, dark=dark) as watched:
            seen.add(watched.page.evaluate(background))
    assert len(seen) == 2


@pytest.mark.parametrize(
    ("word", "page"), [("Sherman", "paper"), ("nadaraya_watson", "predictors")]
)
def test_search_finds_a_word_without_a_server(site, browser, word, page):
    with opened(browser, site / "search.html", width=1280) as watched:
        watched.page.goto(f"{(site / 'search.html').as_uri()}?q={word}")
        watched.page.wait_for_selector("#search-results li a")
        watched.page.wait_for_timeout(300)
        found = watched.page.eval_on_selector_all(
            "#search-results li a", "links => links.map(link => link.href)"
        )
        assert any(f"{page}.html" in address for address in found), found
        assert watched.logged == []


def test_formulas_are_drawn_by_the_browser(site, browser):
    with opened(browser, site / "paper.html", width=1400) as watched:
        sizes = watched.page.eval_on_selector_all(
            ".formula math",
            "all => all.map(each => each.getBoundingClientRect().height)",
        )
        assert len(sizes) > 10
        assert min(sizes) > 10


def test_the_playground_answers_inside_its_page(site, browser):
    with opened(browser, site / "live.html", width=1280) as watched:
        frame = watched.page.frame_locator("iframe.playground")
        frame.get_by_text("answers like").first.wait_for()
