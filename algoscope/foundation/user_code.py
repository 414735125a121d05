"""Python that a user wrote: objects found in it, and what it raises told in a line.

A user names an object as `module:name` or `FILE.py:name`. A module is imported from the
current directory, as Python itself would. A file is run anew each time, so that a
changed file counts, with its own folder on the path, so that it can import its
neighbors. Running it is meant: it is the user's own code.
"""

import difflib
import importlib
import importlib.util
import sys
import traceback
from collections.abc import Iterable
from pathlib import Path
from types import ModuleType
from typing import Any

from algoscope.foundation.text import one_line
from algoscope.foundation.validation import InvalidValueError


def import_object(option: str, text: str, address: str) -> Any:
    """Return what `module:name` is; `module` may also be a file that ends with .py.

    `option` and `text` are what the user typed, for messages. `name` may have dots.

    Example:
        >>> import_object("target", "python:math:sqrt", "math:sqrt")(9.0)
        3.0
    """
    place, _, name = address.rpartition(":")
    if not place or not name:
        rule, remedy = "end with module:name", "For example: my_module:my_function."
        raise _rejection(option, rule, text, remedy)
    is_file = place.endswith(".py")
    if is_file and not _exists(Path(place)):
        raise _rejection(option, "name a Python file that exists", text)
    folder = Path(place).resolve().parent if is_file else Path.cwd()
    if str(folder) not in sys.path and ("" not in sys.path or folder != Path.cwd()):
        sys.path.insert(0, str(folder))
    try:
        value: Any = _run(Path(place)) if is_file else importlib.import_module(place)
    except (Exception, SystemExit) as error:
        rule = "name a Python file that runs without errors"
        rule = rule if is_file else f"name a module that can be imported from {folder}"
        remedy = f"It raised {describe(error)}."
        raise _rejection(option, rule, text, remedy) from error
    for part in name.split("."):
        if not hasattr(value, part):
            rule = f"name something in {place}"
            raise _rejection(option, rule, text, did_you_mean(part, dir(value)))
        value = getattr(value, part)
    return value


def _exists(file: Path) -> bool:
    try:
        return file.is_file()
    except (OSError, ValueError):  # too long to be a name, or not one
        return False


def _run(file: Path) -> ModuleType:
    """Return the module that a file defines, under a name that no other module has."""
    name = f"algoscope user code {file.resolve()}"
    spec = importlib.util.spec_from_file_location(name, file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # where dataclasses and pickles look for it
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def describe(error: BaseException) -> str:
    """Return what was raised and, if it was, where.

    Example:
        >>> describe(ValueError("no\\nexamples."))
        'ValueError: no examples'
    """
    text = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return text
    return f"{text} ({Path(frames[-1].filename).name}:{frames[-1].lineno})"


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return a question for the known word that is nearest, if one is near.

    Example:
        >>> did_you_mean("rigde", ["ridge", "ols"])
        "Did you mean 'ridge'?"
    """
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean '{near[0]}'?" if near else ""


def _rejection(
    option: str, rule: str, text: str, remedy: str = ""
) -> InvalidValueError:
    return InvalidValueError(option, rule, f"'{text}'", remedy)
