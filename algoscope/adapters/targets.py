"""Learners by what a user types: a model, a reference, or a black box.

`load_target` understands `linear-d8`, `runs/mine`, `ridge(0.1)`,
`sklearn:Ridge(alpha=0.3)`, `python:module:function` and `cmd:program arguments`.
"""

import ast
import difflib
import importlib
import inspect
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from algoscope.adapters.black_box import (
    TIMEOUT,
    EstimatorPredictor,
    FunctionPredictor,
    describe,
    is_regressor,
    one_line,
)
from algoscope.adapters.process import ProcessPredictor
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_positive,
)
from algoscope.model.checkpoints import shipped_models
from algoscope.model.learner import InContextLearner
from algoscope.predictors import CATALOG, BlackBox, Predictor, parse_predictor


def load_target(text: str, timeout: float = TIMEOUT) -> Predictor | BlackBox:
    """Return the learner that `text` names.

    It is a shipped model or the directory of one (`linear-d8`, `runs/mine`), a
    textbook predictor (`ridge(0.1)`), or a black box: `sklearn:Ridge(alpha=0.3)`,
    `python:module:function` or `cmd:program arguments`. A black box that does not
    answer a question within `timeout` seconds has no answer to it.

    Example:
        >>> load_target("sklearn:Ridge(alpha=0.3)").name
        'sklearn:Ridge(alpha=0.3)'
    """
    if not isinstance(text, str):
        raise InvalidTypeError("target", "be text", repr(text))
    require_positive("timeout", timeout)
    text = text.strip()
    kind, colon, rest = text.partition(":")
    if colon and kind in _KINDS:
        return _KINDS[kind](text, rest, timeout)
    if text in shipped_models() or (text and Path(text).is_dir()):
        return InContextLearner.from_pretrained(text)
    if "/" in text:
        raise _rejection("be a directory that exists", text)
    return _reference(text)


def _reference(text: str) -> Predictor:
    try:
        return parse_predictor(text)
    except (ValueError, TypeError):
        if "(" in text or text.lower() in CATALOG:
            raise  # it is meant as a reference, and the parser says what is wrong
    rule = "be a model, a reference, or start with sklearn:, python: or cmd:"
    raise _rejection(rule, text, _nearest(text, [*shipped_models(), *CATALOG]))


def _regressor(text: str, call: str, timeout: float) -> EstimatorPredictor:
    """Return a scikit-learn regressor from a call such as Ridge(alpha=1)."""
    try:
        from sklearn.utils import all_estimators
    except ModuleNotFoundError:
        remedy = "Install it: pip install 'algoscope[sklearn]'."
        raise _rejection("be used with scikit-learn installed", text, remedy) from None
    try:
        tree = ast.parse(call.strip(), mode="eval").body
        function = tree.func if isinstance(tree, ast.Call) else tree
        keywords = tree.keywords if isinstance(tree, ast.Call) else []
        arguments = {
            each.arg: ast.literal_eval(each.value) for each in keywords if each.arg
        }
        unnamed = getattr(tree, "args", None) or len(arguments) < len(keywords)
        if unnamed or not isinstance(function, ast.Name):
            raise ValueError("not a call with keywords")
    except (ValueError, SyntaxError, TypeError):
        rule = "be a class with literal keyword arguments after sklearn:"
        remedy = "For example: sklearn:Ridge(alpha=0.3)."
        raise _rejection(rule, text, remedy) from None
    classes = dict(all_estimators(type_filter="regressor"))
    if function.id not in classes:
        rule = "name a regressor of scikit-learn"
        raise _rejection(rule, text, _nearest(function.id, classes))
    kind = classes[function.id]
    known = inspect.signature(kind).parameters
    for argument in arguments:
        if argument not in known:
            rule = f"use parameters of {function.id}"
            raise _rejection(rule, f"{text} with {argument}", _nearest(argument, known))
    return EstimatorPredictor(_create(kind, arguments, text), text, timeout=timeout)


def _imported(
    text: str, address: str, timeout: float
) -> FunctionPredictor | EstimatorPredictor:
    """Return module:name, a function or a regressor, from the current directory."""
    module_name, _, name = address.partition(":")
    if not module_name or not name:
        remedy = "For example: python:my_module:my_function."
        raise _rejection("be python:module:function", text, remedy)
    if "" not in sys.path and str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        value: Any = importlib.import_module(module_name)
    except Exception as error:
        rule = f"name a module that can be imported from {Path.cwd()}"
        raise _rejection(rule, text, f"It raised {describe(error)}.") from error
    for part in name.split("."):
        if not hasattr(value, part):
            rule = f"name something in {module_name}"
            raise _rejection(rule, text, _nearest(part, dir(value)))
        value = getattr(value, part)
    if isinstance(value, type) and hasattr(value, "fit"):
        value = _create(value, {}, text)
    if is_regressor(value):
        return EstimatorPredictor(value, text, timeout=timeout)
    if isinstance(value, type) or not callable(value):
        rule = "name a function f(X, y, x_query) or a regressor"
        raise InvalidTypeError("target", rule, f"{text}, {one_line(repr(value), 60)}")
    return FunctionPredictor(value, text, timeout)


def _program(text: str, command: str, timeout: float) -> ProcessPredictor:
    """Return a program that answers in JSON lines."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        rule = "be a command as a shell reads it"
        raise _rejection(rule, text, f"{error}.") from None
    if not words or shutil.which(words[0]) is None:
        remedy = "Give the path of an executable file."
        raise _rejection("name a program that can be run", text, remedy)
    return ProcessPredictor(words, text, timeout)


_KINDS: dict[str, Callable[[str, str, float], BlackBox]] = {
    "sklearn": _regressor,
    "python": _imported,
    "cmd": _program,
}


def _create(kind: type, arguments: dict[str, Any], text: str) -> Any:
    try:
        return kind(**arguments)
    except Exception as error:
        remedy = f"It raised {describe(error)}."
        raise _rejection(
            "name a class that can be instantiated", text, remedy
        ) from error


def _nearest(word: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(word, list(known), n=1)
    return f"Did you mean '{near[0]}'?" if near else ""


def _rejection(rule: str, text: str, remedy: str = "") -> InvalidValueError:
    return InvalidValueError("target", rule, f"'{text}'", remedy)
