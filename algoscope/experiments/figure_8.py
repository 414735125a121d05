"""Figure 8: how large a learner must be to prefer OLS to ridge (app. H).

For each d, the least L, H and M with SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), other
hyper-parameters at their best. SPD is averaged over n < d, for d = 1 it is at n = 1.

A search over one of them holds the others at large values and tries sizes upward until
one suffices; all searches go on side by side. The paper's grid of 2,016 runs is trained
as a whole: the best over the others, as in the paper.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from algoscope.configuration import TrainingConfig, preset
from algoscope.experiments.distances import Distances, Yardstick, about_run
from algoscope.experiments.experiment import Experiment, Judgment, Place, Spent
from algoscope.experiments.learners import NoLearnerError, Trained, train
from algoscope.experiments.measured import forget_others, names_in
from algoscope.experiments.requirements import (
    AXES,
    REGION,
    claims,
    draw_requirements,
    least_sizes,
    requirement_table,
    satisfies,
    sentences,
)
from algoscope.predictors import ols, ridge
from algoscope.sweeps.grid import GRIDS, Grid
from algoscope.tasks import LinearRegression


@dataclass(frozen=True)
class Figure8:
    """The sizes of figure 8: searches from the base of each d, or a whole grid."""

    bases: tuple[TrainingConfig, ...] = ()  # one for each d, with the large values
    num_layers: tuple[int, ...] = (1, 2, 4, 8)
    hidden_size: tuple[int, ...] = (8, 16, 32, 64)
    num_heads: tuple[int, ...] = (1, 2, 4)
    grid: Grid | None = None
    penalty: float = 0.1  # ε
    num_datasets: int = 10_000
    seed: int = 0


def _candidates(config: Figure8) -> list[list[TrainingConfig]]:
    """Return one list of runs per search, from the smallest size up."""
    return [
        [replace(base, **{axis: size}) for size in getattr(config, axis)]
        for base in config.bases
        for axis in AXES
    ]


def trainings(config: Figure8) -> list[TrainingConfig]:
    """Return the most that may be trained."""
    whole = list(config.grid.configs) if config.grid else []
    return whole + [run for search in _candidates(config) for run in search]


def measure(config: Figure8, place: Place) -> Spent:
    """Train and measure rounds of runs: the next size of every unfinished search."""
    yardsticks: dict[int, Yardstick] = {}
    spent, kept = Spent(), []
    searches = _candidates(config)
    pending = [list(config.grid.configs)] if config.grid else []
    pending += [[s[0] for s in searches]] if searches else []
    done: set[TrainingConfig] = set()
    while pending:
        runs = [run for run in pending.pop() if run not in done]
        runs.sort(key=lambda run: -run.steps * run.flops_per_step)
        done.update(runs)
        trained, cost = train(place, runs)
        spent += cost
        for each in trained:
            seconds, name = _measure_one(config, place, each, yardsticks)
            spent += Spent(seconds)
            kept.append(name)
        searches = [
            search[1:]
            for search in searches
            if not _is_enough(search[0], config, place, kept) and search[1:]
        ]
        if searches:
            pending.append([search[0] for search in searches])
    if not kept:
        raise NoLearnerError(spent.runs)
    forget_others(place.directory, kept)
    return spent


def _name(run: TrainingConfig) -> str:
    sizes = f"d{run.dim}-L{run.num_layers}-H{run.hidden_size}-M{run.num_heads}"
    return f"{sizes}-{run.run_id}.json"


def _is_enough(
    run: TrainingConfig, config: Figure8, place: Place, kept: Sequence[str]
) -> bool:
    name = _name(run)
    if name not in kept:  # it diverged
        return False
    return satisfies(Distances.load(place.directory / name))


def _measure_one(
    config: Figure8, place: Place, each: Trained, yardsticks: dict[int, Yardstick]
) -> tuple[float, str]:
    run = each.config
    if run.dim not in yardsticks:
        yardsticks[run.dim] = Yardstick(
            LinearRegression(run.dim),
            (ols, ridge(config.penalty)),
            run.num_examples - 1,
            config.num_datasets,
            {REGION: (1, max(1, run.dim - 1))},
            config.seed,
        )
    name = _name(run)
    place.note(f"measuring {name.removesuffix('.json')}")
    seconds = yardsticks[run.dim].measure_once(
        place.directory, name, each.learner, about_run(run)
    )
    return seconds, name


def _load(directory: Path) -> list[Distances]:
    return [Distances.load(directory / name) for name in names_in(directory)]


def judge(config: Figure8, directory: Path) -> Judgment:
    """Say the least sizes for each d."""
    dims = [run.dim for run in trainings(config)]
    least = least_sizes(_load(directory), dims)
    return Judgment(
        sentences(least, config.num_datasets),
        (requirement_table(_load(directory)),),
        claims(least, config.num_datasets),
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the least hidden size, depth and number of heads against d."""
    return (draw_requirements(_load(directory), directory),)


SMALL = replace(preset("d8"), steps=4000)
TINY = replace(preset("demo"), num_examples=5, steps=50, hidden_size=8, num_layers=2)

EXPERIMENT = Experiment(
    name="fig8",
    title="How large must a learner be to prefer OLS?",
    budgets={
        "smoke": Figure8((TINY,), (1, 2), (8,), (1,), num_datasets=100),
        "cpu": Figure8(
            (
                *(replace(SMALL, dim=dim) for dim in (1, 2, 4)),
                replace(SMALL, steps=8000),  # these runs are figure 3's
            )
        ),
        "paper": Figure8(grid=GRIDS["paper"]),
    },
    trainings=trainings,
    measuring=lambda config: 1e-3 * config.num_datasets * len(trainings(config)),
    measure=measure,
    judge=judge,
    draw=draw,
)
