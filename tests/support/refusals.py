"""How tests state that a value is rejected: the error's type and its message."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from jaxtyping import config


@contextmanager
def refuses(kind: type[Exception], message: str) -> Iterator[None]:
    """Pass only if exactly this error is raised inside, by the package itself.

    Annotations are checked in tests only, so these checks are switched off inside.
    """
    with only_own_checks(), pytest.raises(kind, match=rf"\A{re.escape(message)}\Z"):
        yield


@contextmanager
def refused(name: str, text: str) -> Iterator[None]:
    """Pass if the value `name` is rejected inside, with a message that begins so.

    For messages that end with numbers that differ between machines.
    """
    start = re.escape(f"`{name}") + r"\w*` must " + re.escape(text)
    with only_own_checks(), pytest.raises(ValueError, match=start):
        yield


@contextmanager
def only_own_checks() -> Iterator[None]:
    checks_are_off = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        yield
    finally:
        config.update("jaxtyping_disable", checks_are_off)
