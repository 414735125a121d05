"""Fixtures of the tests of the playground."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.browser import browser as browser
from support.compiling import QUICKLY


@pytest.fixture(scope="session")
def default_file(tmp_path_factory) -> Path:
    """The page without arguments, as the command writes it.

    In a process of its own, where no types are checked: that takes a third of the time.
    """
    path = tmp_path_factory.mktemp("page") / "playground.html"
    command = [sys.executable, "-m", "algoscope.cli", "play", "-o", str(path)]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, env=os.environ | QUICKLY
    )
    models = "linear-d1, linear-d2, sgd-d1, sgd-d2, ridge-d1, ridge-d2"
    assert done.stdout.startswith(f"{path}: {models}, ")
    assert done.stdout.endswith(" MB. Open it in a browser.\n")
    return path
