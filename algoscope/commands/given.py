"""Options that are None unless a person gives them."""

from collections.abc import Iterable
from typing import Any


def given(command: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return those of the named options that were given."""
    values = {name: getattr(command, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}
