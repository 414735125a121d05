"""Checking types quickly: jaxtyping where a function names shapes, beartype elsewhere.

jaxtyping wraps every function, binds its arguments to look for the axes of arrays, and
checks them twice. A function whose signature names no shape has no axes, and beartype
alone checks the same in a tenth of the time.
"""

import inspect
from functools import partial, wraps
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

_jaxtyped: Any = jaxtyping.jaxtyped
AS_JAXTYPING = BeartypeConf(violation_type=TypeError)


def check_quickly() -> None:
    """Let modules that are imported from now on check their types in this way."""
    jaxtyping.jaxtyped = _checked  # the name by which instrumented modules call it


def _checked(function: Any = None, *, typechecker: Any) -> Any:
    if function is None:
        return partial(_checked, typechecker=typechecker)
    if inspect.isfunction(function) and not _may_name_shapes(function):
        return _plainly_checked(function)
    return _jaxtyped(function, typechecker=typechecker)


def _plainly_checked(function: Any) -> Any:
    checked: Any = beartype(conf=AS_JAXTYPING)(function)

    @wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        chosen = function if jaxtyping.config.jaxtyping_disable else checked
        return chosen(*args, **kwargs)

    return called


def _may_name_shapes(function: Any) -> bool:
    hints = function.__annotations__.values()
    return any(isinstance(hint, str) or "jaxtyping" in repr(hint) for hint in hints)
