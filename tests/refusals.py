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
    checks_are_off = config.jaxtyping_disable
    config.update("jaxtyping_disable", True)
    try:
        with pytest.raises(kind, match=rf"\A{re.escape(message)}\Z"):
            yield
    finally:
        config.update("jaxtyping_disable", checks_are_off)
