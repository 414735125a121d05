"""The versions that decide a number; they stand in every result."""

import os
import platform
from importlib.metadata import version

PACKAGES = ("algoscope", "jax", "jaxlib", "numpy")


def provenance() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}}


def num_cores() -> int:
    """Return how many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def most_that_share(size: int, most: int) -> int:
    """Return the largest number up to `most` that divides a size evenly.

    Example:
        >>> most_that_share(40, 3), most_that_share(7, 2)
        (2, 1)
    """
    return next(n for n in range(most, 0, -1) if size % n == 0)


def cores_that_share(batch_size: int) -> int:
    """Return the most cores, one virtual device each, that divide a batch evenly."""
    return most_that_share(batch_size, num_cores())
