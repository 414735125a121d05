"""`algoscope identify`: which learning algorithm a predictor runs."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from algoscope.cli import show
from algoscope.cli.console import (
    Target,
    find_target,
    print_identification,
    print_table,
    require_drawable,
    stopping_cleanly,
)
from algoscope.cli.destinations import require_file, write_or_rescue
from algoscope.foundation.files import DamagedFileError, json_text
from algoscope.foundation.text import short

EXAMPLES = """
algoscope identify linear-d8
algoscope identify 'sklearn:Lasso(alpha=0.1)' --dim 3
algoscope identify linear-d8 --shifts --figure shifts.png
algoscope identify python:my_module:predict --domain task --json
"""


@dataclass(frozen=True)
class Identify:
    """Say which learning algorithm a predictor runs."""

    target: Target
    dim: int | None = None
    """d of the test data. By default the model's, otherwise 4."""
    num_examples: int | None = None
    """The most examples before a query. By default 20, or what a model has room for."""
    num_datasets: int | None = None
    """Datasets to ask about. By default 128, and 64 with --domain task."""
    domain: Literal["task", "everywhere"] | None = None
    """What to speak about: its task alone, or all kinds of data. By default both."""
    shifts: bool = False
    """Also measure whether the match survives shifts of growing size."""
    pool: Path | None = None
    """Weights that a model was trained on, one task a row: a .npy or a .csv file."""
    noise_variance: float | None = None
    """σ² of the task. By default as a model was trained, otherwise 0."""
    prior_variance: float | None = None
    """τ² of the task. By default as a model was trained, otherwise 1."""
    seed: int = 0
    """Seed of the test data."""
    timeout: float = 60.0
    """Seconds after which an answer counts as missing."""
    out: Path | None = None
    """Write the identification to this file; what --shifts finds beside it."""
    figure: Path | None = None
    """Draw the identification, or with --shifts the shifts, into this file."""
    json: bool = False
    """Print the identification as JSON."""


def run_identify(command: Identify) -> None:
    """Say which algorithm the target runs."""
    require_file("out", command.out)
    require_drawable(figure=command.figure)
    from algoscope.foundation.plotting import save_figure
    from algoscope.identification import identify

    pool = load_pool(command.pool) if command.pool else None
    predictor, task = find_target(command)
    with stopping_cleanly():
        found = identify(
            predictor,
            task,
            num_examples=command.num_examples,
            num_datasets=command.num_datasets,
            domain=command.domain,
            seed=command.seed,
            pool=pool,
        )
    survival = None
    if command.shifts:
        with stopping_cleanly():
            survival = _survival(predictor, task, found, command, pool)
    if command.out:
        write_or_rescue(command.out, found.save, found.sentence)
        if survival:
            beside = command.out.with_suffix(".shifts.json")
            write_or_rescue(beside, survival.save)
    if command.figure:
        drawn = (survival or found).plot()
        write_or_rescue(command.figure, lambda path: save_figure(drawn, path))
    if command.json:
        more = {"survival": asdict(survival)} if survival else {}
        print(json_text({**asdict(found), **more}))
        return
    print_identification(found)
    if survival:
        rows = [
            [
                each.shift,
                f"{each.unit} {each.size:g}",
                short(each.distance),
                f"{short(each.low)}…{short(each.high)}",
                "" if each.distance <= survival.limit else "left",
            ]
            for each in survival.distances
        ]
        header = ["shift", "size", "distance", "95 % interval", ""]
        print_table(f"Does it stay {survival.algorithm}?", header, rows)
        show(survival.sentence)


def load_pool(path: Path) -> Any:
    """Return the weights in a file, one task a row."""
    import numpy as np

    try:
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        return np.loadtxt(path, delimiter=",", ndmin=2)
    except FileNotFoundError:
        raise DamagedFileError(path, "does not exist") from None
    except (OSError, ValueError) as error:
        raise DamagedFileError(path, f"holds no table of numbers ({error})") from None


def _survival(
    predictor: Any, task: Any, found: Any, command: Identify, pool: Any
) -> Any:
    """Measure the distance to the nearest hypothesis under shifts."""
    from algoscope.identification import survives
    from algoscope.identification.families import families_with
    from algoscope.identification.hypothesis import hypothesis_of

    nearest = found.nearest
    return survives(
        predictor,
        hypothesis_of(
            nearest.family, nearest.parameters, families_with(pool, found.dim)
        ),
        task,
        num_examples=command.num_examples,
        seed=command.seed,
    )
