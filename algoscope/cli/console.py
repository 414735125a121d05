"""What commands share: options as a user types them, and tables as a user sees them.

Between the two, the model or other target that a user names is found.
"""

import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import Field, asdict, dataclass, fields, make_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from algoscope.cli import complain, show
from algoscope.cli.destinations import require_file, write_or_rescue
from algoscope.foundation import num_cores
from algoscope.foundation.files import json_text
from algoscope.foundation.text import short, visible
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_positive,
)
from algoscope.training.config import TrainingConfig

if TYPE_CHECKING:
    from algoscope.comparison.result import Comparison
    from algoscope.identification import Identification

PLAIN_WIDTH = 200  # characters where the output is no terminal: no table is cut
DEFAULT_DIM = 4
VARIANCES = ("prior_variance", "noise_variance")

TARGET = (
    "A shipped model's name, a directory, a textbook algorithm such as ridge(0.1), "
    "sklearn:Ridge(alpha=0.3), torch:module:factory, python:module:function, or "
    "cmd:COMMAND, a program that answers JSON lines."
)
Target = Annotated[
    tyro.conf.Positional[str], tyro.conf.arg(help=TARGET, metavar="TARGET")
]
Model = Annotated[
    tyro.conf.Positional[str],
    tyro.conf.arg(help="A shipped model's name, or a directory.", metavar="TARGET"),
]
OPENED = (
    "A shipped model's name, a directory, torch:module:factory, or python:module:name "
    "of a PyTorch module or an opened learner."
)
Opened = Annotated[
    tyro.conf.Positional[str], tyro.conf.arg(help=OPENED, metavar="TARGET")
]


@dataclass(frozen=True, kw_only=True)
class ModuleOptions:
    """What a PyTorch module may not tell of itself."""

    dim: int | None = None
    """d of a PyTorch module that has no attribute `dim`."""
    max_examples: int | None = None
    """The most examples that fit before a query, for a PyTorch module."""
    blocks: str | None = None
    """The path of a PyTorch module's blocks, such as transformer.h. By default its
    only ModuleList."""


def given(command: Any, names: Iterable[str]) -> dict[str, Any]:
    """Return the options among `names` that a user gave: those that are not None."""
    values = {name: getattr(command, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def training_options(name: str, kind: Callable[[Field], Any], default: Any) -> type:
    """Return a dataclass with one option per field of `TrainingConfig`.

    `kind` says how an option is typed: once for `train`, any number of times for
    `sweep`. The help is that of the configuration.
    """
    options = [
        (
            each.name,
            Annotated[
                kind(each),
                tyro.conf.arg(
                    help=each.metadata["help"],
                    help_behavior_hint="(default: the preset's)",
                ),
            ],
            default,
        )
        for each in fields(TrainingConfig)
        if each.metadata.get("option", True)
    ]
    return make_dataclass(name, options, frozen=True, kw_only=True)


def use_cores(count: int | None = None) -> None:
    """Give JAX a virtual device per core, or so many, unless it is running already."""
    import jax

    with suppress(RuntimeError):
        jax.config.update("jax_num_cpu_devices", count or num_cores())


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


def find_opened(name: str, command: ModuleOptions) -> Any:
    """Return a learner whose hidden states can be seen: ours, or one in PyTorch."""
    from algoscope.adapters.targets import open_target

    options = given(command, ("dim", "max_examples", "blocks"))
    for each in ("dim", "max_examples"):
        if each in options:
            require_at_least(each, options[each], 1)
    learner = open_target(name, **options)
    _allow_precision(learner)
    return learner


def _allow_precision(learner: Any) -> None:
    """Switch JAX to float64 if the weights of one of our own learners need it."""
    import jax

    from algoscope.model.learner import InContextLearner

    if not isinstance(learner, InContextLearner):
        return
    if learner.transformer.block.precision == "float64":
        jax.config.update("jax_enable_x64", True)


def task_for(learner: Any, command: Any) -> Any:
    """Return the task of a learner, with the variances that are given."""
    changes = given(command, VARIANCES)
    if set(changes) <= {each.name for each in fields(learner.task)}:
        return replace(learner.task, **changes)
    return regression_for(learner, command)  # the control task has no prior variance


def regression_for(learner: Any, command: Any) -> Any:
    """Return linear regression with the variances given, or else as in training."""
    from algoscope.tasks.linear import FixedWeights, LinearRegression

    task = learner.task
    prior = 1.0 if isinstance(task, FixedWeights) else task.prior_variance
    own = {"prior_variance": prior, "noise_variance": task.noise_variance}
    return LinearRegression(learner.dim, **own | given(command, VARIANCES))


def find_target(command: Any) -> tuple[Any, Any]:
    """Return the predictor that a user names, and the task it is measured on."""
    require_positive("timeout", command.timeout)
    require_at_least("seed", command.seed, 0)
    for name in ("dim", "num_examples"):
        if (value := getattr(command, name)) is not None:
            require_at_least(name, value, 1)
    from algoscope.adapters import load_target
    from algoscope.tasks.linear import LinearRegression

    predictor: Any = load_target(command.target, timeout=command.timeout)
    if getattr(predictor, "task", None) is None:
        dim = command.dim or DEFAULT_DIM
        return predictor, LinearRegression(dim, **given(command, VARIANCES))
    _allow_precision(predictor)
    if command.dim not in (None, predictor.dim):
        raise InvalidValueError("dim", f"be the model's {predictor.dim}", command.dim)
    return predictor, task_for(predictor, command)


def require_drawable(**paths: Path | None) -> None:
    """Reject figures that cannot be drawn or written, before anything is measured."""
    from algoscope.foundation.plotting import require_ending

    for option, path in paths.items():
        if path is not None:
            require_ending(path)
            require_file(option, path)


def print_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]]
) -> None:
    """Print a table: the first column to the left, numbers to the right."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=Text(visible(title)), title_justify="left")
    for index, name in enumerate(header):
        justify = "right" if index else "left"
        table.add_column(Text(visible(name)), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(visible(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        console = Console(width=PLAIN_WIDTH)
    console.print(table)


def print_comparison(comparison: "Comparison") -> None:
    """Print the table by regime and the sentence that answers."""
    header, rows = comparison.summary()
    print_table(f"SPD/d of {comparison.learner} to each reference", header, rows)
    show(comparison.sentence)


def print_identification(found: "Identification") -> None:
    """Print the ranked candidates, the answer per regime, and the answer."""
    names = list(found.nearest.suites)
    header = ["hypothesis", "distance", "95 % interval", *names]
    rows = [
        [
            row["hypothesis"],
            short(row["distance"]),
            f"{short(row['low'])}…{short(row['high'])}",
            *(short(row[name]) for name in names),
        ]
        for row in found.rows()[:8]
    ]
    print_table(f"Which algorithm is {found.target}?", header, rows)
    for regime in found.regimes:
        span = "–".join(map(str, sorted({regime.first, regime.last})))
        show(
            f"{regime.name} (n = {span}): {regime.relation}; nearest {regime.nearest} "
            f"at {short(regime.distance)}"
        )
    show(found.sentence)


def report_comparison(comparison: Any, command: Any) -> None:
    """Save, draw and print a comparison, as the options say."""
    from algoscope.foundation.plotting import save_figure

    if command.out:
        write_or_rescue(command.out, comparison.save, comparison.sentence)
    if command.figure:
        figure = comparison.plot()
        write_or_rescue(command.figure, lambda path: save_figure(figure, path))
    if command.json:
        print(json_text(asdict(comparison)))
        return
    print_comparison(comparison)
