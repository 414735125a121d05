"""Examples in the documentation run with the settings that a user has."""

import os

import jax
import pytest

os.environ.setdefault("MPLBACKEND", "agg")  # figures are saved, never shown


@pytest.fixture
def default_settings():
    """Undo the strict settings of tests/conftest.py: float32, and rank promotion."""
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(autouse=True)
def _doctests_run_with_default_settings(request: pytest.FixtureRequest):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("default_settings")
