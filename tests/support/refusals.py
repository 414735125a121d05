"""How tests state a refusal: the error's kind and its whole message."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from jaxtyping import config


@contextmanager
def refuses(kind: type[Exception], message: str) -> Iterator[None]:
    """Pass only if exactly this is raised inside, without the help of type checks.

    The checks of annotations are on in tests only; a user meets the package's own.
    """
    with _only_own_checks(), pytest.raises(kind, match=rf"\A{re.escape(message)}\Z"):
        yield


@contextmanager
def refused(name: str, text: str) -> Iterator[None]:
    """Pass if a value is refused inside, with `name` and a message that goes on so.

    For messages that end with numbers that need not be exactly the same everywhere.
    """
    start = re.escape(f"`{name}") + r"\w*` must " + re.escape(text)
    with _only_own_checks(), pytest.raises(ValueError, match=start):
        yield


@contextmanager
def _only_own_checks() -> Iterator[None]:
    checks_are_off = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", checks_are_off)
