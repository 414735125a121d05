"""Libraries that only some installations have, for tests that need them."""

import importlib
import os
from types import ModuleType

import pytest


def require(name: str = "torch") -> ModuleType:
    """Return the library; without it, skip the tests or, in CI, fail them."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError:
        reason = f"{name} is not installed: it is an extra, see README.md"
    if os.environ.get("ALGOSCOPE_REQUIRE_TORCH") == "1":
        pytest.fail(reason)
    pytest.skip(reason, allow_module_level=True)
