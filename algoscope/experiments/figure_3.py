"""Figure 3: which algorithm a learner resembles as it grows (paper §4.3).

For every depth L, and for every hidden size H, the best run over the other
hyper-parameters (paper app. D) is compared with the references: SPD/d averaged over
n < d, without noise. The best run is the one of least risk, which no reference enters.

A second drawing has the wider panel: a solver that has not converged resembles ridge
regression, and k steps of gradient descent or of Newton may resemble it more.
"""

from dataclasses import dataclass, replace
from pathlib import Path

from algoscope.experiments.experiment import Experiment, Judgment, Place, Spent
from algoscope.experiments.learners import MEASURED, NoLearnerError, train
from algoscope.experiments.phases import (
    REGION,
    Series,
    depth_claim,
    draw_phases,
    phase_table,
    requirement_claim,
    sentence,
    series_of,
    width_claim,
)
from algoscope.experiments.references import (
    Distances,
    Wider,
    Yardstick,
    about_run,
    later_references,
)
from algoscope.foundation.cache import Cache
from algoscope.predictors import figure_1_references
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps.grid import Grid


@dataclass(frozen=True)
class Figure3:
    """The sizes of figure 3.

    With `cpu` there is one learning rate, the preset's, and one number of heads: every
    other value would cost as much again.
    """

    grids: tuple[Grid, ...]  # one for each d
    num_datasets: int = 10_000
    wider: Wider = Wider()
    seed: int = 0


def grid(base: TrainingConfig, layers: tuple, sizes: tuple, **axes: tuple) -> Grid:
    """Return the runs of one dimension."""
    return Grid(base, {"num_layers": layers, "hidden_size": sizes, **axes})


def trainings(config: Figure3) -> list[TrainingConfig]:
    """Return all runs, the longest first: so no core waits for the last."""
    runs = [each for part in config.grids for each in part.configs]
    return sorted(runs, key=lambda run: -run.steps * run.flops_per_step)


def measure(config: Figure3, place: Place) -> Spent:
    """Train the grids and measure every run against both panels."""
    yardsticks = {part.base.dim: _yardstick(config, part) for part in config.grids}
    runs = trainings(config)
    measured = {}
    for run in runs:
        seconds = yardsticks[run.dim].seconds_measured(
            place.directory, _name(run), about_run(run)
        )
        if seconds is not None:
            measured[run] = seconds
    trained, spent = train(place, runs, measured)
    kept = []
    for run, seconds in measured.items():
        if spent.runs[run.run_id] == MEASURED:
            spent += Spent(seconds)
            kept.append(_name(run))
    for each in trained:
        run, name = each.config, _name(each.config)
        place.note(f"measuring {name.removesuffix('.json')}")
        spent += Spent(
            yardsticks[run.dim].measure_once(
                place.directory, name, each.learner, about_run(run)
            )
        )
        kept.append(name)
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _yardstick(config: Figure3, part: Grid) -> Yardstick:
    dim, last = part.base.dim, part.base.num_examples - 1
    task = LinearRegression(dim)
    return Yardstick(
        task,
        figure_1_references() + later_references(task, last, config.wider),
        last,
        config.num_datasets,
        {REGION: (1, dim - 1), "all n": (1, last)},
        config.seed,
    )


def _name(run: TrainingConfig) -> str:
    return f"d{run.dim}-L{run.num_layers}-H{run.hidden_size}-{run.run_id}.json"


def _series(directory: Path) -> list[Series]:
    runs = [Distances.load(directory / name) for name in Cache(directory).names]
    dims = sorted({each.about["dim"] for each in runs})
    return [
        series_of([each for each in runs if each.about["dim"] == dim], axis)
        for dim in dims
        for axis in ("num_layers", "hidden_size")
    ]


def judge(config: Figure3, directory: Path) -> Judgment:
    """Say what is nearest at every size, in both panels."""
    series = _series(directory)
    depth = [each for each in series if each.axis == "num_layers"]
    width = [each for each in series if each.axis == "hidden_size"]
    claims = [depth_claim(each) for each in depth]
    claims += [width_claim(each) for each in width if each.dim == 16]
    claims += [
        requirement_claim(each, least)
        for each in width
        if (least := {8: 16, 16: 32}.get(each.dim)) is not None
    ]
    findings = [sentence(each, wider) for each in series for wider in (False, True)]
    tables = tuple(map(phase_table, series))
    return Judgment(tuple(findings), tables, tuple(claims))


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the paper's panel and the wider one."""
    series = _series(directory)
    return tuple(
        draw_phases(series, directory, name, wider=wider)
        for name, wider in (("figure_3", False), ("figure_3_wider", True))
    )


D8 = replace(preset("d8"), steps=8000)
D16 = replace(D8, dim=16, num_examples=24)
PAPER = replace(preset("paper"), num_examples=40)
PAPER_AXES = ((1, 2, 4, 8, 12, 16), (16, 32, 64, 256, 512, 1024))
RATES = {"learning_rate": (1e-4, 2.5e-4), "num_heads": (1, 2, 4, 8)}
TINY = replace(preset("demo"), num_examples=5, steps=50)

EXPERIMENT = Experiment(
    name="fig3",
    title="Which algorithm can a small model run?",
    budgets={
        "smoke": Figure3((grid(TINY, (1, 2), (8,)),), 100, Wider((2,), (2,), (), 50)),
        "cpu": Figure3(
            (
                grid(D8, (1, 2, 4, 8), (16, 32, 64, 128)),
                grid(D16, (1, 2, 4, 8), (16, 32, 64)),
            )
        ),
        "paper": Figure3(
            tuple(grid(replace(PAPER, dim=d), *PAPER_AXES, **RATES) for d in (8, 16))
        ),
    },
    trainings=trainings,
    measuring=lambda config: sum(
        20 + 3e-3 * config.num_datasets * (1 + len(part.configs) / 4)
        for part in config.grids
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
