"""Learners by what a user types: a model, a reference, or a black box.

`load_target` understands `linear-d8`, `runs/mine`, `ridge(0.1)`,
`sklearn:Ridge(alpha=0.3)`, `torch:module:factory`, `python:module:function` and
`cmd:program arguments`. `open_target` finds those whose hidden states can be seen.
"""

import ast
import inspect
import shlex
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from algoscope.adapters.batched import causal
from algoscope.adapters.black_box import (
    TIMEOUT,
    EstimatorPredictor,
    FunctionPredictor,
    is_regressor,
)
from algoscope.adapters.process import ProcessPredictor
from algoscope.adapters.torch import from_torch, is_torch_module
from algoscope.foundation.text import one_line
from algoscope.foundation.user_code import describe, did_you_mean, import_object
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
    require_positive,
)
from algoscope.model.checkpoints import shipped_models
from algoscope.model.learner import InContextLearner
from algoscope.model.opened import OpenedLearner
from algoscope.predictors import BlackBox, Predictor, parse_predictor
from algoscope.predictors.catalog import predictor_names


def load_target(text: str, timeout: float = TIMEOUT) -> Predictor | BlackBox:
    """Return the learner that `text` names.

    It is a shipped model or the directory of one (`linear-d8`, `runs/mine`), a
    textbook predictor (`ridge(0.1)`), a PyTorch model (`torch:module:factory`), or a
    black box: `sklearn:Ridge(alpha=0.3)`, `python:module:name` (a function, a wrapped
    model or a regressor) or `cmd:program arguments`. A black box that does not answer
    a question, or a batch of them, within `timeout` seconds has no answer to it.

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
    if text in shipped_models() or (text and _is_directory(text)):
        return InContextLearner.from_pretrained(text)
    if "/" in text:
        raise _rejection("be a directory that exists", text)
    return _reference(text)


def open_target(
    text: str,
    *,
    dim: int | None = None,
    max_examples: int | None = None,
    blocks: str | None = None,
) -> OpenedLearner:
    """Return the learner that `text` names, if its hidden states can be seen.

    It is a shipped model or the directory of one, `torch:module:factory`, or
    `python:module:name` of an opened learner or a PyTorch module. The three options are
    about PyTorch modules that do not tell them: d, the most examples that fit before a
    query, and the path of the blocks, by default the only ModuleList.

    Example:
        >>> open_target("linear-d2").layer_names[-1]
        'layer 4'
    """
    kind, _, address = text.strip().partition(":")
    options = {"dim": dim, "max_examples": max_examples, "blocks": blocks}
    if kind not in ("torch", "python"):
        found: Any = load_target(text)
    else:
        of_torch = kind == "torch"
        found = _made(text, address) if of_torch else _found(text, address, kind)
        if is_torch_module(found):
            return _opened(found, text, **options)
    if not isinstance(found, OpenedLearner):
        rule = "be a learner whose hidden states can be seen"
        remedy = (
            "That is a model of this package, a PyTorch module (torch:module:factory) "
            "or what `from_torch` returns with `layers`."
        )
        raise _rejection(rule, text, remedy)
    for name, value in options.items():
        if value is not None and value != getattr(found, name, None):
            rule = "be left out for a learner that is open already"
            raise InvalidValueError(name, rule, repr(value))
    return found


def _opened(
    module: Any,
    text: str,
    dim: int | None,
    max_examples: int | None,
    blocks: str | None,
) -> OpenedLearner:
    from algoscope.adapters.residual_stream import only_blocks

    path = only_blocks(module) if blocks is None else blocks
    return from_torch(module, dim, layers=path, max_examples=max_examples, name=text)


def _is_directory(text: str) -> bool:
    try:
        return Path(text).is_dir()
    except (OSError, ValueError):  # too long to be a name, or not one
        return False


def _reference(text: str) -> Predictor:
    try:
        return parse_predictor(text)
    except (ValueError, TypeError):
        if "(" in text or text.lower() in predictor_names():
            raise  # it is meant as a reference, and the parser says what is wrong
    rule = "be a model, a reference, or start with sklearn:, torch:, python: or cmd:"
    known = [*shipped_models(), *predictor_names()]
    raise _rejection(rule, text, did_you_mean(text, known))


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
    except (ValueError, SyntaxError, TypeError, RecursionError, MemoryError):
        rule = "be a class with literal keyword arguments after sklearn:"
        remedy = "For example: sklearn:Ridge(alpha=0.3)."
        raise _rejection(rule, text, remedy) from None
    classes = dict(all_estimators(type_filter="regressor"))
    if function.id not in classes:
        rule = "name a regressor of scikit-learn"
        raise _rejection(rule, text, did_you_mean(function.id, classes))
    kind = classes[function.id]
    known = inspect.signature(kind).parameters
    for argument in arguments:
        if argument not in known:
            rule = f"use parameters of {function.id}"
            raise _rejection(
                rule, f"{text} with {argument}", did_you_mean(argument, known)
            )
    return EstimatorPredictor(_create(kind, arguments, text), text, timeout=timeout)


def _imported(text: str, address: str, timeout: float) -> Predictor | BlackBox:
    """Return what is called module:name, from the current directory."""
    return _as_predictor(_found(text, address, "python"), text, timeout)


def _torch_made(text: str, address: str, timeout: float) -> Predictor | BlackBox:
    """Return module:factory, a module of PyTorch or a function that makes one."""
    value = _made(text, address)
    if isinstance(value, BlackBox):
        return value
    return from_torch(value, name=text, timeout=timeout)


def _made(text: str, address: str) -> Any:
    """Return the module, or the wrapped model, that torch:module:factory makes."""
    if address.endswith((".pt", ".pth", ".pt2")):
        rule = "name a Python module and what makes the model in it"
        remedy = (
            "Loading such a file can run code that is hidden in it: write a function "
            "that creates the model and loads its weights, torch:my_module:my_factory."
        )
        raise _rejection(rule, text, remedy)
    value = _found(text, address, "torch")
    made = is_torch_module(value) or isinstance(value, BlackBox)
    if not made and callable(value):
        value = _create(value, {}, text)
    if not is_torch_module(value) and not isinstance(value, BlackBox):
        rule = "name a torch.nn.Module or a function that returns one"
        raise InvalidTypeError("target", rule, f"{text}, {one_line(repr(value), 60)}")
    return value


def _found(text: str, address: str, kind: str) -> Any:
    """Return what module:name is; `module` may also be a file that ends with .py."""
    module, _, name = address.rpartition(":")
    if not module or not name:
        remedy = f"For example: {kind}:my_module:my_function."
        raise _rejection(f"be {kind}:module:function", text, remedy)
    return import_object("target", text, address)


def _as_predictor(value: Any, text: str, timeout: float) -> Predictor | BlackBox:
    """Return an object of a user as a predictor, by what it is.

    A function of two arguments is causal, one of three answers single questions.
    """
    if isinstance(value, type) and hasattr(value, "fit"):
        value = _create(value, {}, text)
    if isinstance(value, (Predictor, BlackBox)):
        return value
    if is_torch_module(value):
        return from_torch(value, name=text, timeout=timeout)
    if is_regressor(value):
        return EstimatorPredictor(value, text, timeout=timeout)
    if isinstance(value, type) or not callable(value):
        rule = "name a function, a model or a regressor"
        raise InvalidTypeError("target", rule, f"{text}, {one_line(repr(value), 60)}")
    if _num_arguments(value) == 2:
        return causal(value, name=text, timeout=timeout)
    return FunctionPredictor(value, text, timeout)


def _num_arguments(function: Any) -> int | None:
    """Return how many arguments a function must be given, if it tells."""
    try:
        known = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    ordered = (
        inspect.Parameter.POSITIONAL_ONLY,
        inspect.Parameter.POSITIONAL_OR_KEYWORD,
    )
    return sum(p.kind in ordered and p.default is p.empty for p in known)


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


_KINDS: dict[str, Callable[[str, str, float], Predictor | BlackBox]] = {
    "sklearn": _regressor,
    "python": _imported,
    "torch": _torch_made,
    "cmd": _program,
}


def _create(kind: Callable[..., Any], arguments: dict[str, Any], text: str) -> Any:
    try:
        return kind(**arguments)
    except Exception as error:
        remedy = f"It raised {describe(error)}."
        raise _rejection("name something that can be created", text, remedy) from error


def _rejection(rule: str, text: str, remedy: str = "") -> InvalidValueError:
    return InvalidValueError("target", rule, f"'{text}'", remedy)
