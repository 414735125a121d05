"""Tests run in double precision, and a random test draws the same numbers each time."""

import signal
from zlib import crc32

import jax
import numpy as np
import pytest
from hypothesis import settings
from jaxtyping import PRNGKeyArray
from support.compiling import emit_quickly

# Programs that tests interrupt inherit it, also where the suite runs in the background.
signal.signal(signal.SIGINT, signal.default_int_handler)

jax.config.update("jax_num_cpu_devices", 4)  # for data-parallel training
jax.config.update("jax_enable_x64", True)
jax.config.update("jax_numpy_rank_promotion", "raise")

# deadline: the first example of a test compiles.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable")


@pytest.fixture(autouse=True)
def _compile_quickly(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Spare optimizations: most programs here run for less time than they compile.

    Tests marked `optimized` are about rounding, or compute for long. Programs that
    tests start are compiled as users have them, but for those that train tiny runs.
    """
    quickly = request.node.get_closest_marker("optimized") is None
    jax.config.update("jax_disable_most_optimizations", quickly)
    if quickly:
        emit_quickly(monkeypatch)


@pytest.fixture
def seed(request: pytest.FixtureRequest) -> int:
    """A number of the test's own: fixed, and different from every other test's."""
    return crc32(request.node.nodeid.encode())


@pytest.fixture
def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.fixture
def key(seed: int) -> PRNGKeyArray:
    return jax.random.key(seed)
