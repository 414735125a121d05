"""Settings of all tests; examples in docstrings run in a user's precision."""

import builtins
import gc
import os
from importlib.util import find_spec
from pathlib import Path

# Before JAX is imported, and for the processes that tests start: many of them compile
# the same training loop, and so does the next run of the suite.
COMPILED = Path(__file__).parent / ".pytest_cache" / "xla"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(COMPILED))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")
os.environ.setdefault("MPLBACKEND", "agg")  # figures are saved, never shown
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # as XLA: workers share the cores
gc.set_threshold(50_000, 20, 20)  # most of what is made here stays: modules, programs

import jax  # noqa: E402
import pytest  # noqa: E402
from support.checking import check_quickly  # noqa: E402
from support.compiling import emit_quickly  # noqa: E402

check_quickly()  # before algoscope is imported

MAPS = Path("/proc/self/maps")  # the memory maps of this process, on Linux
MOST_MAPS = 20_000  # of 65,530 that Linux allows; every compiled program has some

# The one file that needs PyTorch; doctests would import it.
collect_ignore = [] if find_spec("torch") else ["algoscope/exchange/torch_model.py"]


def pytest_collection_finish():
    """Spare the garbage collector what was imported: it is not looked through again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def _forget_programs_that_fill_memory():
    """Drop compiled programs between files: with too many, XLA crashes."""
    yield
    if MAPS.exists() and MAPS.read_bytes().count(b"\n") > MOST_MAPS:
        jax.clear_caches()
        gc.collect()  # programs that only a cycle holds


@pytest.fixture
def default_settings():
    """Undo the strict settings of tests/conftest.py: float32, and rank promotion."""
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"):
        yield


@pytest.fixture(autouse=True)
def _doctests_run_with_default_settings(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
):
    if isinstance(request.node, pytest.DoctestItem):
        request.getfixturevalue("default_settings")
        jax.config.update("jax_disable_most_optimizations", True)
        emit_quickly(monkeypatch)
        # An example leaves its last value there; tyro hashes all builtins it finds.
        monkeypatch.setattr(builtins, "_", None, raising=False)
