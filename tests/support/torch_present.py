"""PyTorch where it is installed: its tests skip without it and, in CI, fail."""

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def require(name: str = "torch") -> Any:
    """Return the module; without it, skip the test or, in CI, fail it."""
    if find_spec(name) is None:
        reason = f"no {name} here: install it to test what opens PyTorch models"
        if os.environ.get("ALGOSCOPE_REQUIRE_TORCH") == "1":
            pytest.fail(reason)
        pytest.skip(reason, allow_module_level=True)
    return import_module(name)
