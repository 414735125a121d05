"""The playground in a browser: its state, its sentence, and gestures in its plot."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page
from support.browser import OpenedPage

PATIENCE = 60  # seconds
READY = "window.algoscope.ready.then(() => 0)"


class PlayedPage(OpenedPage):
    """An opened playground."""

    def evaluate(self, script: str, argument: Any = None) -> Any:
        """Return what a function of the application and an argument gives."""
        wrapped = f"async (given) => ({script})(await window.algoscope.ready, given)"
        return self.page.evaluate(wrapped, argument)

    @property
    def state(self) -> dict[str, Any]:
        """The state of the page."""
        return self.evaluate("(app) => JSON.parse(JSON.stringify(app.state))")

    @property
    def sentence(self) -> str:
        """The sentence on top."""
        return self.page.inner_text("#sentence")

    @property
    def status(self) -> str:
        """What the page last said about a file or a table."""
        return self.page.inner_text("#status")

    @property
    def address(self) -> str:
        """The part of the address after #."""
        return self.page.url.partition("#")[2]

    def wait_for(self, condition: str) -> None:
        """Wait until an expression is true.

        Playwright's own waiting evaluates text in the page, which the policy forbids.
        """
        deadline = time.monotonic() + PATIENCE
        while not self.page.evaluate(condition):
            assert time.monotonic() < deadline, f"still waiting for {condition}"
            self.page.wait_for_timeout(20)

    def point(self, number: int) -> tuple[float, float]:
        """Return where on the screen an example is, counted from 1."""
        return center(self.page, f"#points [data-index='{number - 1}'] circle.touch")

    def drag(self, number: int, across: float, down: float) -> None:
        """Drag an example by some pixels."""
        x, y = self.point(number)
        mouse = self.page.mouse
        mouse.move(x, y)
        mouse.down()
        mouse.move(x + across / 2, y + down / 2)
        mouse.move(x + across, y + down)
        mouse.up()


def center(page: Page, selector: str) -> tuple[float, float]:
    """Return the middle of an element."""
    box = page.locator(selector).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


@contextmanager
def played(
    browser: Browser,
    path: Path,
    fragment: str = "",
    *,
    width: int = 1280,
    height: int = 900,
    **context: Any,
) -> Iterator[PlayedPage]:
    """Open the playground; nothing may be requested or logged."""
    viewport: Any = {"width": width, "height": height}
    with browser.new_context(viewport=viewport, **context) as opened:
        found = PlayedPage(opened, path, fragment)
        found.page.evaluate(READY)
        yield found
        assert found.logged == [], found.logged
    assert found.outside == []
