"""What the commands that measure a target share: finding it, and showing the result."""

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Annotated, Any

import tyro

from algoscope.commands.given import given
from algoscope.commands.messages import complain
from algoscope.strict_json import json_text
from algoscope.validation import (
    InvalidValueError,
    require_at_least,
    require_positive,
)

DEFAULT_DIM, DEFAULT_EXAMPLES = 4, 20
VARIANCES = ("prior_variance", "noise_variance")

TARGET = (
    "A shipped model's name, a directory, a textbook algorithm such as ridge(0.1), "
    "sklearn:Ridge(alpha=0.3), python:module:function, or cmd:COMMAND, a program that "
    "answers JSON lines."
)
Target = Annotated[
    tyro.conf.Positional[str], tyro.conf.arg(help=TARGET, metavar="TARGET")
]
Model = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(help="A shipped model's name, or a directory.", metavar="TARGET"),
]


@contextmanager
def stopping_cleanly() -> Iterator[None]:
    """End with one line and status 1 when a black box cannot be asked any further."""
    from algoscope.predictors import PredictorFailedError

    with warnings.catch_warnings():
        warnings.showwarning = lambda message, *_: complain(message)
        try:
            yield
        except PredictorFailedError as error:
            complain(error)
            sys.exit(1)


def allow_precision(learner: Any) -> None:
    """Switch JAX to float64 for weights that were written in it."""
    import jax

    if learner.transformer.block.precision == "float64":
        jax.config.update("jax_enable_x64", True)


def regression_for(model: str, dim: int, command: Any) -> Any:
    """Return linear regression with the variances given, or else as in training."""
    return _regression(_training_of(model), dim, command)


def task_for(model: str, dim: int, command: Any) -> Any:
    """Return the task of a model, with other variances if they are given."""
    from algoscope.tasks import FixedWeights

    trained = _training_of(model)
    regression = _regression(trained, dim, command)
    if trained.get("task") == "control" and command.prior_variance is None:
        return FixedWeights(dim, regression.noise_variance)
    return regression


def _regression(trained: dict[str, Any], dim: int, command: Any) -> Any:
    from algoscope.tasks import LinearRegression

    own = {name: trained[name] for name in VARIANCES if name in trained}
    return LinearRegression(dim, **own | given(command, VARIANCES))


def _training_of(model: str) -> dict[str, Any]:
    """Return how a saved model was trained, if it was."""
    from algoscope.checkpoints import read_json
    from algoscope.pretrained import CONFIG, locate

    return read_json(locate(model) / CONFIG).get("training") or {}


def find_target(command: Any, most_examples: int | None = None) -> tuple[Any, Any, int]:
    """Return the predictor, the task it is measured on, and the most examples."""
    require_positive("timeout", command.timeout)
    require_at_least("seed", command.seed, 0)
    for name in ("dim", "num_examples"):
        if (value := getattr(command, name)) is not None:
            require_at_least(name, value, 1)
    from algoscope.adapters import load_target
    from algoscope.learner import InContextLearner
    from algoscope.tasks import LinearRegression

    predictor = load_target(command.target, timeout=command.timeout)
    dim, examples = DEFAULT_DIM, DEFAULT_EXAMPLES
    if isinstance(predictor, InContextLearner):
        allow_precision(predictor)
        dim = predictor.dim
        examples = predictor.max_examples
        if most_examples is not None:
            examples = min(examples, most_examples)
        if command.dim not in (None, dim):
            raise InvalidValueError("dim", f"be the model's {dim}", command.dim)
        task = task_for(command.target.strip(), dim, command)
    else:
        task = LinearRegression(command.dim or dim, **given(command, VARIANCES))
    return predictor, task, command.num_examples or examples


def require_drawable(*paths: Any) -> None:
    """Refuse figures that cannot be drawn, before anything is measured."""
    from algoscope.canvas import require_ending

    for path in paths:
        if path is not None:
            require_ending(path)


def report_comparison(comparison: Any, command: Any) -> None:
    """Save, draw and print a comparison, as the options say."""
    from algoscope.console import print_comparison
    from algoscope.figures import draw_comparison

    if command.out:
        comparison.save(command.out)
    if command.figure:
        draw_comparison(comparison, command.figure)
    if command.json:
        print(json_text(asdict(comparison)))
        return
    print_comparison(comparison)
