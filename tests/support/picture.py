"""Takes the picture of the README: python tests/support/picture.py"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs" / "images" / "playground.png"
WIDTH, HEIGHT = 1280, 840


def take(out: Path) -> None:
    """Write the first screen of the default page as a PNG."""
    from playwright.sync_api import sync_playwright
    from support.browser import FLAGS, find_browser
    from support.playing import played

    from algoscope.foundation.files import write_atomically
    from algoscope.playground import play

    with TemporaryDirectory() as directory, sync_playwright() as playwright:
        path = play().write(Path(directory) / "playground.html")
        browser = playwright.chromium.launch(executable_path=find_browser(), args=FLAGS)
        with played(browser, path, width=WIDTH, height=HEIGHT) as watched:
            write_atomically(out, watched.page.screenshot())
        browser.close()


if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
    take(OUT)
    print(OUT)
