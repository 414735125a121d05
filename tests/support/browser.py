"""Pages in the system's Chromium, without a window, driven by Playwright."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = [
    "--no-sandbox",  # it cannot be used by root
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
LOCAL = ("file:", "data:", "about:")
RENDERED = "new Promise(done => requestAnimationFrame(() => setTimeout(done)))"


def find_browser() -> str:
    """Return the path of the browser; without one, skip the test or, in CI, fail it."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found:
        return found
    reason = "no Chromium here: install chromium to check pages in a browser"
    if os.environ.get("ALGOSCOPE_REQUIRE_BROWSER") == "1":
        pytest.fail(reason)
    pytest.skip(reason)


# Not for the whole session: while Playwright runs, so does its event loop, and a test
# elsewhere that calls asyncio.run would fail.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A Chromium for all tests of a file."""
    path = find_browser()
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield launched
        launched.close()


class OpenedPage:
    """A file in a browser, and everything that it requested and logged."""

    def __init__(self, context: BrowserContext, path: Path, fragment: str = ""):
        self.requests: list[str] = []
        self.logged: list[str] = []  # by the browser, by the page, and uncaught errors
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("console", lambda message: self.logged.append(message.text))
        context.on("weberror", lambda error: self.logged.append(str(error.error)))
        self.page = context.new_page()
        address = path.as_uri() + (f"#{fragment}" if fragment else "")
        self.page.goto(address)  # returns when everything in it is loaded
        self.page.evaluate(RENDERED)

    @property
    def outside(self) -> list[str]:
        """The requests that went, or tried to go, to the network."""
        return [url for url in self.requests if not url.startswith(LOCAL)]


@contextmanager
def opened(
    browser: Browser, path: Path, *, width: int, dark: bool = False
) -> Iterator[OpenedPage]:
    """Open a file; the test fails if the page requests anything from the network."""
    with browser.new_context(
        viewport={"width": width, "height": 800},
        color_scheme="dark" if dark else "light",
    ) as context:
        found = OpenedPage(context, path)
        yield found
        found.page.evaluate(RENDERED)
    assert not found.outside, f"the page requested {found.outside}"
