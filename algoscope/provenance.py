"""The versions that decide a number; they stand in every result."""

import platform
from importlib.metadata import version

PACKAGES = ("algoscope", "jax", "jaxlib", "numpy")


def provenance() -> dict[str, str]:
    """Return the versions of Python and of the packages that compute."""
    return {"python": platform.python_version(), **{p: version(p) for p in PACKAGES}}
