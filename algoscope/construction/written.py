"""Learners compiled from what a user wrote: a learning rule in JAX, or a program.

`compile` traces a rule, writes its program and compiles it. The learner that it returns
keeps the program, so that saving it saves the program as well.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, get_args

from algoscope.construction.algorithms.algorithm import WrittenAlgorithm
from algoscope.construction.build import (
    COMPILED_ACTIVATIONS,
    Construction,
    WrittenLearner,
)
from algoscope.construction.compiler.numerics import DType, numerics
from algoscope.construction.language.interpreter import Tokens
from algoscope.construction.language.program import Program
from algoscope.construction.language.replay import program_of
from algoscope.construction.language.rules import LearningRule
from algoscope.foundation.user_code import import_object
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.model import Activation


def learning_rule(
    *, predict: Callable[..., Any], init: Any, name: str | None = None
) -> Callable[[Callable[..., Any]], LearningRule]:
    """Return a decorator that makes a learning rule of a function `step`.

    `init` is the state before the first example, or a function of the dimension.

    Example:
        >>> import numpy as np
        >>> @learning_rule(predict=lambda w, x: w @ x, init=np.zeros)
        ... def hebb(w, x, y):
        ...     return w + 0.1 * x * y
        >>> hebb.name
        'hebb'
    """

    def decorate(step: Callable[..., Any]) -> LearningRule:
        return LearningRule(step, predict, init, name or _name_of(step))

    return decorate


def _name_of(step: Callable[..., Any]) -> str:
    name = getattr(step, "__name__", "rule")
    return name if name.isidentifier() else "rule"


def compile(
    step: Callable[..., Any] | LearningRule | Program,
    predict: Callable[..., Any] | None = None,
    init: Any = None,
    *,
    dim: int | None = None,
    num_examples: int | None = None,
    dtype: DType = "float64",
    activation: Activation = "gelu",
    tokens: Tokens | None = None,
    name: str | None = None,
) -> WrittenLearner:
    """Return a transformer that runs a learning rule written in JAX.

    `step(state, x, y)` returns the state after an example, `predict(state, x)` a number
    or several, and `init` is the state to start from, or a function of the dimension.
    In the place of the three, `step` may be a `learning_rule` or a `Program`. What no
    layer computes is refused, with the line that asks for it.

    Operands are calibrated on the datasets `tokens`, by default draws of the paper's
    task. The default precision is float64, which has to be switched on in JAX.

    Example:
        >>> import jax
        >>> import jax.numpy as jnp
        >>> import algoscope as asc
        >>> def loss(w, x, y):
        ...     return (w @ x - y) ** 2
        >>> def step(w, x, y):
        ...     return w - 0.1 * jax.grad(loss)(w, x, y)
        >>> learner = asc.compile(
        ...     step, jnp.dot, jnp.zeros(2), dim=2, num_examples=3, dtype="float32"
        ... )
        >>> learner.transformer.num_layers
        6
        >>> x, y = jnp.array([[1.0, 0.0], [0.0, 1.0]]), jnp.array([1.0, -1.0])
        >>> round(float(learner(x, y, jnp.array([1.0, -2.0]))), 3)
        0.6
    """
    construction = written(
        step, predict, init, dim, num_examples, dtype, activation, name
    )
    return WrittenLearner(construction, construction.compile(tokens))


def written(
    step: Callable[..., Any] | LearningRule | Program,
    predict: Callable[..., Any] | None = None,
    init: Any = None,
    dim: int | None = None,
    num_examples: int | None = None,
    dtype: DType = "float64",
    activation: Activation = "gelu",
    name: str | None = None,
) -> Construction:
    """Return the construction of a rule or a program, before it is compiled."""
    if isinstance(step, Program):
        program = step
        chosen = WrittenAlgorithm(name or "program", program)
        size = (dim or program.dim, num_examples or program.num_examples)
        chosen.program(*size)  # rejects another size
        return Construction(chosen, *size, dtype, activation)
    if isinstance(step, LearningRule):
        if predict is not None or init is not None:
            raise InvalidValueError("predict", "be left out for a rule", "one")
        rule = step if name is None else replace(step, name=name)
    elif predict is None:
        remedy = "Or give a rule made by `learning_rule`."
        raise InvalidValueError("predict", "be given beside `step`", "none", remedy)
    else:
        rule = LearningRule(step, predict, init, name or _name_of(step))
    if dim is None or num_examples is None:
        missing = "dim" if dim is None else "num_examples"
        raise InvalidValueError(missing, "be given", "none")
    require_choice("dtype", dtype, get_args(DType))
    require_choice("activation", activation, COMPILED_ACTIVATIONS)
    digits = numerics(dtype, activation).digits
    program = program_of(rule, dim, num_examples, digits)
    return Construction(
        WrittenAlgorithm(rule.name, program), dim, num_examples, dtype, activation
    )


def load_rule(text: str) -> LearningRule | Program:
    """Return the object NAME of a Python file, from `FILE.py:NAME`.

    The file is run: it is the user's own.
    """
    path, _, name = text.rpartition(":")
    if not path.endswith(".py") or not name:
        raise InvalidValueError("algorithm", "be FILE.py:NAME", repr(text))
    found = import_object("algorithm", text, text)
    if not isinstance(found, (LearningRule, Program)):
        rule = f"name a learning rule or a program of {path}"
        got = f"`{name}`, a {type(found).__name__}"
        remedy = "Decorate its step with `@algoscope.learning_rule(...)`."
        raise InvalidValueError("algorithm", rule, got, remedy)
    return found
