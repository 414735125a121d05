"""Values as options of a command line."""

from collections.abc import Iterator
from typing import Any


def options(values: dict[str, Any]) -> Iterator[str]:
    """Yield the words that give these values; a flag is given by its name alone.

    Example:
        >>> list(options({"num_layers": 2, "pre_norm": True}))
        ['--num-layers', '2', '--pre-norm']
    """
    for name, value in values.items():
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield str(value)
