"""The panel: every predictor under a name that a user can type.

`parse_predictor` reads the call that builds a predictor, which is also its name. Text
is read, never evaluated: it may hold a name of the panel and plain arguments.
"""

import ast
import inspect
from collections.abc import Callable
from typing import Any, get_args

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

# What needs an array or a task is not here: `discrete_bayes`, `tuned_gd`,
# `optimal_preconditioned_gd`. Without its covariance, `preconditioned_gd` is.
PANEL: dict[str, Callable[..., Predictor]] = {
    "zero": lambda: zero,
    "average": lambda: average,
    "ols": lambda: ols,
    "ridge": ridge,
    "bayes": bayes,
    "lasso": lasso,
    "rls": rls,
    "gd": gd,
    "gd_growing": gd_growing,
    "gd_plus_plus": gd_plus_plus,
    "preconditioned_gd": preconditioned_gd,
    "optimal_gd": optimal_gd,
    "sgd": sgd,
    "kaczmarz": kaczmarz,
    "heavy_ball": heavy_ball,
    "chebyshev": chebyshev,
    "conjugate_gradients": conjugate_gradients,
    "newton": newton,
    "knn": knn,
    "nadaraya_watson": nadaraya_watson,
}


def example_panel() -> tuple[Predictor, ...]:
    """Return one of each family or more, with usual parameters."""
    return (
        zero,
        average,
        ols,
        ridge(0.1),
        lasso(0.1),
        rls(0.9, 0.1),
        gd(0.02),
        gd(0.02, steps=8, penalty=0.1),
        gd_growing(0.02),
        gd_plus_plus(0.02, 0.01, 3),
        preconditioned_gd(0.02, 4),
        optimal_gd(0.25),
        sgd(0.03),
        sgd(0.03, 0.2),
        sgd(0.03, clip=0.5),
        kaczmarz(),
        heavy_ball(0.02, 0.5, 4),
        chebyshev(4, 0.2, 2.5),
        conjugate_gradients(2),
        newton(4),
        knn(3, "uniform"),
        knn(3, "weighted"),
        knn(3, "weighted", power=1),
        nadaraya_watson(0.5),
    )


def parse_predictor(text: str) -> Predictor:
    """Return the predictor that a text such as `ridge(0.1)` calls for.

    Case does not matter, nor underscores in the name. Bare words are strings.

    Example:
        >>> parse_predictor("KNN(3, weighted)").name
        'KNN(3, weighted)'
        >>> parse_predictor("gd(0.02, steps=8)").name, parse_predictor("ols").name
        ('GD(0.02, steps=8)', 'OLS')
    """
    called, values, options = _read_call(text)
    plain = {name.replace("_", ""): name for name in PANEL}
    name = plain.get(called.lower().replace("_", ""), called.lower())
    require_choice("predictor", name, PANEL)
    signature = inspect.signature(PANEL[name])
    try:
        bound = signature.bind(*values, **options)
    except TypeError as error:
        rule = f"have the form {name}({', '.join(_forms(signature))})"
        remedy = f"{str(error).capitalize()}."
        raise InvalidValueError("predictor", rule, repr(text), remedy) from None
    for key, value in bound.arguments.items():
        annotation = signature.parameters[key].annotation
        real = float in (annotation, *get_args(annotation))
        if real and type(value) is int:
            bound.arguments[key] = float(value)
    return PANEL[name](*bound.args, **bound.kwargs)


def _read_call(text: str) -> tuple[str, list[Any], dict[str, Any]]:
    """Return the name, the values and the options of a call."""
    try:
        call = ast.parse(text.strip().replace("++", "_plus_plus"), mode="eval").body
        if isinstance(call, ast.Name):
            return call.id, [], {}
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name):
            options = {k.arg.lower(): _literal(k.value) for k in call.keywords if k.arg}
            if len(options) == len(call.keywords):
                return call.func.id, [_literal(node) for node in call.args], options
    except (SyntaxError, ValueError, TypeError):
        pass
    rule = "be a name, or a call with plain arguments such as 'ridge(0.1)'"
    raise InvalidValueError("predictor", rule, repr(text))


def _literal(node: ast.expr) -> Any:
    return node.id.lower() if isinstance(node, ast.Name) else ast.literal_eval(node)


def _forms(signature: inspect.Signature) -> list[str]:
    """Return the parameters without their types."""
    empty = inspect.Parameter.empty
    return [
        p.name if p.default is empty else f"{p.name}={p.default}"
        for p in signature.parameters.values()
    ]
