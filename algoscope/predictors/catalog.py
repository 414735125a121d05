"""The catalog: every predictor under the name that users type.

`parse_predictor` reads the call that builds a predictor, such as `ridge(0.1)`, which is
also its name. The text is parsed, never evaluated: it can only hold a name of the
catalog and plain arguments.

To add a predictor, write its file and a line in `CATALOG`
(docs/how_to_add_a_predictor.md). Other packages add theirs as plug-ins.
"""

import ast
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import wraps
from typing import Any, get_args

from algoscope.foundation.plugins import (
    PREDICTORS,
    broken,
    load_plugin,
    names_with_plugins,
    plugin_named,
)
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.predictors.accelerated import (
    chebyshev,
    conjugate_gradients,
    heavy_ball,
    newton,
)
from algoscope.predictors.gradient_descent import (
    average,
    gd,
    gd_growing,
    gd_plus_plus,
    preconditioned_gd,
    zero,
)
from algoscope.predictors.lasso import lasso
from algoscope.predictors.least_squares import bayes, ols, ridge, rls
from algoscope.predictors.neighbors import knn, nadaraya_watson
from algoscope.predictors.optimal_rates import optimal_gd
from algoscope.predictors.protocols import Predictor
from algoscope.predictors.stochastic import kaczmarz, sgd


@dataclass(frozen=True)
class Entry:
    """How to build a predictor, and calls with usual parameters as examples."""

    build: Callable[..., Predictor]
    examples: tuple[str, ...] = ()


# Predictors that need an array or a task cannot be typed: `discrete_bayes`, `tuned_gd`,
# `optimal_preconditioned_gd`, and `preconditioned_gd` with a covariance. `bayes` has no
# example because it returns `ols` or `ridge`.
CATALOG: dict[str, Entry] = {
    "zero": Entry(lambda: zero, ("zero",)),
    "average": Entry(lambda: average, ("average",)),
    "ols": Entry(lambda: ols, ("ols",)),
    "ridge": Entry(ridge, ("ridge(0.1)",)),
    "bayes": Entry(bayes),
    "lasso": Entry(lasso, ("lasso(0.1)",)),
    "rls": Entry(rls, ("rls(0.9, 0.1)",)),
    "gd": Entry(gd, ("gd(0.02)", "gd(0.02, steps=8, penalty=0.1)")),
    "gd_growing": Entry(gd_growing, ("gd_growing(0.02)",)),
    "gd_plus_plus": Entry(gd_plus_plus, ("gd_plus_plus(0.02, 0.01, 3)",)),
    "preconditioned_gd": Entry(preconditioned_gd, ("preconditioned_gd(0.02, 4)",)),
    "optimal_gd": Entry(optimal_gd, ("optimal_gd(0.25)",)),
    "sgd": Entry(sgd, ("sgd(0.03)", "sgd(0.03, 0.2)", "sgd(0.03, clip=0.5)")),
    "kaczmarz": Entry(kaczmarz, ("kaczmarz",)),
    "heavy_ball": Entry(heavy_ball, ("heavy_ball(0.02, 0.5, 4)",)),
    "chebyshev": Entry(chebyshev, ("chebyshev(4, 0.2, 2.5)",)),
    "conjugate_gradients": Entry(conjugate_gradients, ("conjugate_gradients(2)",)),
    "newton": Entry(newton, ("newton(4)",)),
    "knn": Entry(
        knn, ("knn(3, uniform)", "knn(3, weighted)", "knn(3, weighted, power=1)")
    ),
    "nadaraya_watson": Entry(nadaraya_watson, ("nadaraya_watson(0.5)",)),
}


def example_predictors() -> tuple[Predictor, ...]:
    """Return at least one predictor of each family, with usual parameters."""
    return tuple(
        parse_predictor(text) for entry in CATALOG.values() for text in entry.examples
    )


def figure_1_references() -> tuple[Predictor, ...]:
    """Return the references of figure 1, in the order of its legend.

    Example:
        >>> [reference.name for reference in figure_1_references()][:3]
        ['OLS', 'Ridge(0.1)', 'Ridge(0.5)']
    """
    return (
        ols,
        ridge(0.1),
        ridge(0.5),
        gd(0.01),
        gd(0.02),
        sgd(0.01),
        sgd(0.03),
        knn(3, "uniform"),
        knn(3, "weighted"),
    )


def parse_predictor(text: str) -> Predictor:
    """Return the predictor that a text such as `ridge(0.1)` describes.

    Case and underscores in the name do not matter. Words without quotes are strings.

    Example:
        >>> parse_predictor("KNN(3, weighted)").name
        'KNN(3, weighted)'
        >>> parse_predictor("gd(0.02, steps=8)").name, parse_predictor("ols").name
        ('GD(0.02, steps=8)', 'OLS')
    """
    called, values, options = _read_call(text)
    name = _find(called, CATALOG)
    if name not in CATALOG:
        known = predictor_names()
        name = _find(called, known)
        require_choice("predictor", name, known)
    build = CATALOG[name].build if name in CATALOG else _plugin(name)
    signature = inspect.signature(build)
    try:
        bound = signature.bind(*values, **options)
    except TypeError as error:
        rule = f"have the form {name}({', '.join(_parameters(signature))})"
        remedy = f"{str(error).capitalize()}."
        raise InvalidValueError("predictor", rule, repr(text), remedy) from None
    for key, value in bound.arguments.items():
        annotation = signature.parameters[key].annotation
        real = float in (annotation, *get_args(annotation))
        if real and type(value) is int:
            bound.arguments[key] = float(value)
    return build(*bound.args, **bound.kwargs)


def predictor_names() -> list[str]:
    """Return the names of the catalog and of installed plug-ins."""
    return names_with_plugins(PREDICTORS, CATALOG)


def _find(called: str, names: Iterable[str]) -> str:
    """Return the name that is meant, whatever its case and underscores."""
    plain = {name.lower().replace("_", ""): name for name in names}
    return plain.get(called.lower().replace("_", ""), called.lower())


def _plugin(name: str) -> Callable[..., Predictor]:
    """Return how to build a plug-in: a function that returns a predictor, or itself."""
    found = load_plugin(PREDICTORS, name)
    if isinstance(found, Predictor) and not isinstance(found, type):
        return lambda: found
    if not callable(found):
        why = f"is no predictor and no function that returns one: {type(found)}"
        raise broken(plugin_named(PREDICTORS, name), why)

    @wraps(found)
    def build(*values: Any, **options: Any) -> Predictor:
        built = found(*values, **options)
        if not isinstance(built, Predictor):
            why = f"returned no predictor but {type(built)}"
            raise broken(plugin_named(PREDICTORS, name), why)
        return built

    return build


def _read_call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name, the positional and the keyword arguments of a call."""
    try:
        call = ast.parse(text.strip().replace("++", "_plus_plus"), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, [], {}
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            options = {k.arg.lower(): _literal(k.value) for k in call.keywords if k.arg}
            if len(options) == len(call.keywords):
                return call.func.id, [_literal(node) for node in call.args], options
    except (SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        pass
    rule = "be a name, or a call with plain arguments such as 'ridge(0.1)'"
    raise InvalidValueError("predictor", rule, repr(text))


def _literal(node: ast.expr) -> Any:
    return node.id.lower() if isinstance(node, ast.Name) else ast.literal_eval(node)


def _parameters(signature: inspect.Signature) -> list[str]:
    """Return the parameters without their types."""
    empty = inspect.Parameter.empty
    return [
        p.name if p.default is empty else f"{p.name}={p.default}"
        for p in signature.parameters.values()
    ]
