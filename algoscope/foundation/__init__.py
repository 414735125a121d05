"""What every other folder builds on: files, checks, text, figures, progress.

Here is the machine that computes: its package versions, and the number and speed of
its processor cores. Versions are saved with every result, because numbers can differ
between them. The cores decide how many virtual devices share a batch.
"""

import os
import time
from functools import cache

PACKAGES = ("algoscope", "jax", "jaxlib", "numpy")

# Costs are stated for a core of this speed: operations per second on float32.
CORE_FLOPS = 130e9
PRODUCTS, SIDE = 200, 64  # matrix products that are timed, and their sizes
TIMES = 50  # the fastest counts


def provenance() -> dict[str, str]:
    """Return the versions of Python and of the packages that affect numbers."""
    import platform
    from importlib.metadata import version

    return {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}}


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


@cache
def slowness() -> float:
    """Return how many times longer a core of this machine takes than costs state.

    The fastest of many short calls of JAX counts, so that other programs and the
    settings of NumPy hardly change it.
    """
    import jax

    product = jax.jit(lambda x: x @ x)
    matrices = jax.numpy.ones((PRODUCTS, SIDE, SIDE), "float32")
    product(matrices).block_until_ready()  # compiles
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        product(matrices).block_until_ready()
        seconds.append(time.perf_counter() - start)
    return min(seconds) * CORE_FLOPS / (PRODUCTS * 2 * SIDE**3)


def largest_divisor(size: int, at_most: int) -> int:
    """Return the largest divisor of `size` that is at most `at_most`.

    Example:
        >>> largest_divisor(40, 3), largest_divisor(7, 2)
        (2, 1)
    """
    return next(n for n in range(at_most, 0, -1) if size % n == 0)


def cores_for_batch(batch_size: int) -> int:
    """Return how many cores, one virtual device each, can share a batch evenly."""
    return largest_divisor(batch_size, num_cores())
