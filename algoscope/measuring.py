"""`algoscope compare` and `algoscope identify`: the commands that measure any target.

JAX is imported when a command runs, so that help is instant.
"""

import json
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from algoscope.options import Compare, Evaluate, Identify
from algoscope.validation import require_at_least, require_positive

DEFAULT_DIM, DEFAULT_EXAMPLES = 4, 20
BLACK_BOX_DATASETS = 200


@contextmanager
def _stopping_cleanly() -> Iterator[None]:
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


def complain(text: object) -> None:
    """Say in one line, beside the results, what went wrong."""
    print(f"algoscope: {text}", file=sys.stderr, flush=True)


def _target(command: Compare | Identify) -> tuple[Any, Any, int]:
    """Return the predictor, the task it is measured on, and the most examples."""
    require_positive("timeout", command.timeout)
    require_at_least("seed", command.seed, 0)
    for name in ("dim", "num_examples"):
        if (value := getattr(command, name)) is not None:
            require_at_least(name, value, 1)
    from algoscope.adapters import load_target
    from algoscope.learner import InContextLearner
    from algoscope.tasks import LinearRegression
    from algoscope.validation import InvalidValueError

    predictor = load_target(command.target, timeout=command.timeout)
    dim, examples = DEFAULT_DIM, DEFAULT_EXAMPLES
    if isinstance(predictor, InContextLearner):
        allow_precision(predictor)
        dim = predictor.dim
        examples = predictor.max_examples
        if isinstance(command, Identify):
            examples = min(examples, DEFAULT_EXAMPLES)
        if command.dim not in (None, dim):
            raise InvalidValueError("dim", f"be the model's {dim}", command.dim)
    task = LinearRegression(
        command.dim or dim, command.prior_variance, command.noise_variance
    )
    return predictor, task, command.num_examples or examples


def run_compare(command: Compare) -> None:
    """Compare the target with the references and print, save or draw the result."""
    if command.num_datasets is not None:
        require_at_least("num_datasets", command.num_datasets, 1)
    from algoscope.comparison import ALL_METRICS, compare
    from algoscope.console import measuring
    from algoscope.figures import draw_linearity
    from algoscope.predictors import BlackBox, figure_1_references, parse_predictor

    references = tuple(map(parse_predictor, command.references))
    metrics = ALL_METRICS if command.metrics == ("all",) else command.metrics
    predictor, task, num_examples = _target(command)
    is_black_box = isinstance(predictor, BlackBox)
    default = BLACK_BOX_DATASETS if is_black_box else 10_000
    with _stopping_cleanly(), measuring(predictor) as (watched, _):
        comparison = compare(
            watched,
            references or figure_1_references(),
            task,
            num_examples=num_examples,
            num_datasets=command.num_datasets or default,
            seed=command.seed,
            metrics=metrics,
        )
    if command.linearity_figure:
        draw_linearity(comparison, command.linearity_figure)
    report_comparison(comparison, command)


def report_comparison(comparison: Any, command: Compare | Evaluate) -> None:
    """Save, draw and print a comparison, as the options say."""
    from algoscope.console import print_comparison
    from algoscope.figures import draw_comparison

    if command.out:
        comparison.save(command.out)
    if command.figure:
        draw_comparison(comparison, command.figure)
    if command.json:
        print(json.dumps(asdict(comparison)))
        return
    print_comparison(comparison)


def run_identify(command: Identify) -> None:
    """Say which algorithm the target runs."""
    from algoscope.console import measuring, print_identification
    from algoscope.identification import identify

    predictor, task, num_examples = _target(command)
    with _stopping_cleanly(), measuring(predictor) as (watched, stage):
        found = identify(
            watched,
            task,
            num_examples=num_examples,
            num_datasets=command.num_datasets,
            domain=command.domain,
            seed=command.seed,
            progress=stage,
        )
    if command.out:
        found.save(command.out)
    if command.json:
        print(json.dumps(asdict(found)))
        return
    print_identification(found)
