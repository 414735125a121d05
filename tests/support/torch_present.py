"""PyTorch and its companions: without them tests are skipped or, in CI, fail."""

import os
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import pytest


def require(name: str = "torch") -> Any:
    """Return the module; without it, skip the tests of the file or, in CI, fail."""
    for needed in ("torch", name):
        if find_spec(needed) is None:
            reason = f"no {needed} here: install it to check models in PyTorch"
            if os.environ.get("ALGOSCOPE_REQUIRE_TORCH") == "1":
                pytest.fail(reason, pytrace=False)
            pytest.skip(reason, allow_module_level=True)
    import torch  # pyright: ignore[reportMissingImports]

    torch.set_num_threads(1)  # as XLA: workers share the cores
    return import_module(name)
