"""Fixtures of the tests of the playground."""

from pathlib import Path

import pytest
from support.browser import browser as browser

from algoscope.playground import Playground, play


@pytest.fixture(scope="session")
def default_page() -> Playground:
    """The page without arguments."""
    return play()


@pytest.fixture(scope="session")
def default_file(default_page, tmp_path_factory) -> Path:
    """The page without arguments, as a file."""
    return default_page.write(tmp_path_factory.mktemp("page") / "playground.html")
