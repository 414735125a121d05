"""A learning rule in JAX: how a state changes with an example, and what it predicts.

A rule is a function `step(state, x, y)` that returns the next state, a function
`predict(state, x)`, and the state to start from, which may be any pytree. Tracing it
for a dimension gives jaxprs of flat arrays; `replay` makes a program of them.
"""

import linecache
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax import errors
from jax.extend.core import ClosedJaxpr, Literal

from algoscope.foundation.text import one_line
from algoscope.foundation.validation import (
    InvalidTypeError,
    InvalidValueError,
)

# What JAX cannot trace, and what to write instead; the first that fits.
UNTRACEABLE: dict[type[Exception], tuple[str, str]] = {
    errors.TracerBoolConversionError: (
        "a choice by data",
        "Use jnp.where in the place of `if`, `and`, `or` and `while`.",
    ),
    errors.NonConcreteBooleanIndexError: (
        "a selection by data",
        "Use jnp.where with zeros in the place of what is left out.",
    ),
    errors.TracerArrayConversionError: (
        "an array that depends on data",
        "Use jnp in the place of NumPy.",
    ),
    errors.TracerIntegerConversionError: (
        "an index that depends on data",
        "Use fixed indices.",
    ),
    errors.ConcretizationTypeError: (
        "a number that depends on data",
        "Leave out float(), int() and item(); shapes and ranges have to be fixed.",
    ),
}
ELSEWHERE = "site-packages"  # where the code of JAX and NumPy is
PACKAGE = Path(__file__).parents[2]  # where the code of algoscope is


@dataclass(frozen=True, eq=False)
class LearningRule:
    """An update, a prediction and a start.

    Example:
        >>> rule = LearningRule(
        ...     step=lambda w, x, y: w + 0.1 * x * (y - w @ x),
        ...     predict=lambda w, x: w @ x,
        ...     init=np.zeros,  # a function of the dimension, or the state itself
        ... )
        >>> rule.start(dim=2).tolist()
        [0.0, 0.0]
    """

    step: Callable[..., Any]
    predict: Callable[..., Any]
    init: Any
    name: str = "rule"

    def __post_init__(self):
        for name in ("step", "predict"):
            if not callable(getattr(self, name)):
                got = type(getattr(self, name)).__name__
                raise InvalidTypeError(name, "be a function", got)

    def start(self, dim: int) -> Any:
        """Return the state before the first example."""
        return self.init(dim) if callable(self.init) else self.init


@dataclass(frozen=True)
class TracedRule:
    """A rule as jaxprs, for one dimension, with its state as a list of arrays."""

    step: ClosedJaxpr
    predict: ClosedJaxpr
    start: list[np.ndarray]
    names: list[str]

    @classmethod
    def of(cls, rule: LearningRule, dim: int) -> "TracedRule":
        """Return a rule, traced for inputs of `dim` coordinates."""
        start = _called("init", rule.start, dim)
        paths, tree = jax.tree_util.tree_flatten_with_path(start)
        if not paths:
            raise InvalidValueError("init", "hold at least one array", "none")
        names, leaves = [], []
        for path, leaf in paths:
            name = jax.tree_util.keystr(path, simple=True, separator=".")
            if np.iscomplexobj(leaf):
                raise InvalidTypeError("init", "hold real numbers", "complex ones")
            try:
                array = np.asarray(leaf)
                inexact = not np.issubdtype(array.dtype, np.integer)
                array = array.astype(np.float64) if inexact else array
            except (TypeError, ValueError) as error:
                rule_text = "be made of arrays of numbers"
                remedy = "Use jax.random.PRNGKey." if is_key(leaf) else ""
                got = "a key of random numbers" if remedy else repr(leaf)
                raise InvalidTypeError("init", rule_text, got, remedy) from error
            if not np.isfinite(array).all():
                raise InvalidValueError("init", "be finite", "NaN or infinity")
            names.append(name if name[:1].isalpha() else f"state{name}")
            leaves.append(array)
        kinds = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in leaves]
        x = jax.ShapeDtypeStruct((dim,), np.float64)
        y = jax.ShapeDtypeStruct((), np.float64)

        def step(*args):
            after = rule.step(jax.tree.unflatten(tree, args[:-2]), *args[-2:])
            _require_alike(jax.tree.structure(after), tree)
            return jax.tree.leaves(after)

        def predict(*args):
            found = rule.predict(jax.tree.unflatten(tree, args[:-1]), args[-1])
            return [jax.numpy.ravel(each) for each in jax.tree.leaves(found)]

        traced = _traced("step", step, *kinds, x, y)
        for name, kind, result in zip(names, kinds, traced.out_avals, strict=True):
            if kind.shape != result.shape:
                rule_text = f"return `{name}` of shape {kind.shape}, as it starts"
                raise InvalidValueError("step", rule_text, f"shape {result.shape}")
        predicted = _traced("predict", predict, *kinds, x)
        if not predicted.out_avals or not sum(a.size for a in predicted.out_avals):
            raise InvalidValueError("predict", "return a number", "nothing")
        return cls(traced, predicted, leaves, names)

    @property
    def asked(self) -> set[int]:
        """Which arrays of the state `predict` uses."""
        jaxpr = self.predict.jaxpr
        asked = {
            v for each in jaxpr.eqns for v in each.invars if type(v) is not Literal
        }
        asked |= {v for v in jaxpr.outvars if type(v) is not Literal}
        return {k for k, v in enumerate(jaxpr.invars[:-1]) if v in asked}

    @property
    def clocks(self) -> set[int]:
        """Which arrays of the state depend on no data, as a count of steps does."""
        jaxpr = self.step.jaxpr
        needs: dict[Any, set[int]] = {v: {k} for k, v in enumerate(jaxpr.invars)}
        for equation in jaxpr.eqns:
            sources = [v for v in equation.invars if not isinstance(v, Literal)]
            found = set().union(*(needs.get(v, set()) for v in sources))
            needs.update(dict.fromkeys(equation.outvars, found))
        outs = [
            set() if isinstance(v, Literal) else needs.get(v, set())
            for v in jaxpr.outvars
        ]
        clocks = set(range(len(self.start)))
        while True:
            rest = {k for k in clocks if outs[k] <= clocks}
            if rest == clocks:
                return clocks
            clocks = rest


def is_key(found: Any) -> bool:
    """Return whether something is a key of random numbers, which NumPy cannot hold."""
    is_array = isinstance(found, jax.Array)
    return is_array and jax.numpy.issubdtype(found.dtype, jax.dtypes.prng_key)


def place_of(file: str, line: int) -> str:
    """Return where something was written: the file, the line and its text."""
    text = linecache.getline(file, line).strip()
    return f"{file}:{line}: `{text}`" if text else f"{file}:{line}"


def _traced(name: str, function: Callable[..., Any], *kinds: Any) -> ClosedJaxpr:
    """Return a function as a jaxpr, or say which line JAX cannot trace."""
    return _called(name, jax.make_jaxpr(function), *kinds)


def _called(name: str, function: Callable[..., Any], *args: Any) -> Any:
    """Return what the user's code returns, or say which line of it fails, and why."""
    try:
        return function(*args)
    except (InvalidValueError, InvalidTypeError):
        raise
    except Exception as error:
        reasons = (v for k, v in UNTRACEABLE.items() if isinstance(error, k))
        rule = "consist of what JAX can trace"
        what, remedy = next(reasons, ("", ""))
        if not what:
            rule = "run without errors"
            what = one_line(f"{type(error).__name__}: {error}".removesuffix(": "))
        own = [
            place_of(frame.filename, frame.lineno or 0)
            for frame in traceback.extract_tb(error.__traceback__)
            if not _is_foreign(Path(frame.filename))
        ]
        got = f"{what} in {own[-1]}" if own else what
        raise InvalidValueError(name, rule, got, remedy) from error


def _is_foreign(file: Path) -> bool:
    """Return whether code is not the user's own, but a library's or this package's."""
    return ELSEWHERE in file.parts or PACKAGE in file.parents


def _require_alike(after: Any, before: Any) -> None:
    if after != before:
        rule = f"return a state of the form that it starts with, {before}"
        raise InvalidValueError("step", rule, after)
