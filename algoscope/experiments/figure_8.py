"""Figure 8: how large a learner must be to prefer OLS to ridge (app. H).

For each d, the least L, H and M with SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), other
hyper-parameters at their best. SPD is averaged over n < d, for d = 1 it is at n = 1.

A search over one of them holds the others at large values and tries sizes upward until
one suffices; all searches go on side by side. The paper's grid of 2,016 runs is trained
as a whole: the best over the others, as in the paper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.experiments.experiment import Experiment, Judgment, Place, Spent
from algoscope.experiments.learners import NoLearnerError, Trained, train
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import Distances, Yardstick, about_run
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import COLORS, save_picture
from algoscope.foundation.text import listed, with_interval
from algoscope.predictors import ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps.grid import GRIDS, Grid


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
    Cache(place.directory).keep_only(kept)
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
    return [Distances.load(directory / name) for name in Cache(directory).names]


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


REGION = "under-determined"
AXES = ("hidden_size", "num_layers", "num_heads")
WORDS = {
    "hidden_size": "hidden size H",
    "num_layers": "depth L",
    "num_heads": "number of heads M",
}


@dataclass(frozen=True)
class Least:
    """The least size that was seen to suffice for one d; None if none did."""

    dim: int
    axis: str
    size: int | None
    tried: tuple[int, ...]
    unsure: tuple[int, ...] = ()  # up to it, neither surely enough nor too small


def satisfies(run: Distances) -> bool:
    """Return whether SPD(OLS, ICL) < SPD(Ridge(0.1), ICL)."""
    return run.nearest(REGION).second == "OLS"


def _is_sure(run: Distances) -> bool:
    """Return whether the 95 % interval of the difference leaves out zero."""
    return run.is_surely_nearest(REGION)


def least_sizes(runs: Sequence[Distances], dims: Iterable[int] = ()) -> list[Least]:
    """Return the least size of a run that suffices, others at their best.

    `dims` are those that were asked for: all runs of one may have diverged.
    """
    found = []
    for axis in AXES:
        for dim in sorted({*dims, *(run.about["dim"] for run in runs)}):
            same = [run for run in runs if run.about["dim"] == dim]
            enough = [run.about[axis] for run in same if satisfies(run)]
            least = min(enough, default=None)
            tried = tuple(sorted({run.about[axis] for run in same}))
            sure = {run.about[axis] for run in same if satisfies(run) and _is_sure(run)}
            near = {run.about[axis] for run in same if not _is_sure(run)} - sure
            unsure = tuple(n for n in tried if n in near and n <= (least or inf))
            found.append(Least(dim, axis, least, tried, unsure))
    return found


def sentences(least: Sequence[Least], num_datasets: int) -> tuple[str, ...]:
    """Return one sentence for each hyper-parameter."""
    return tuple(
        f"The least {WORDS[axis]} that prefers OLS to Ridge(0.1): "
        + listed([_shown(each) for each in least if each.axis == axis])
        + f" ({num_datasets:,} datasets for each run)."
        for axis in AXES
    )


def _shown(each: Least) -> str:
    if not each.tried:
        return f"unknown for d = {each.dim}, as no run ended"
    size = f"more than {each.tried[-1]}" if each.size is None else str(each.size)
    unsure = f" ({listed(each.unsure)} undecided)" if each.unsure else ""
    return f"{size} for d = {each.dim}{unsure}"


def claims(least: Sequence[Least], num_datasets: int) -> tuple[Claim, ...]:
    """Judge the appendix: one head is enough, the rest grows in steps with d."""
    said = dict(zip(AXES, sentences(least, num_datasets), strict=True))
    heads = [each for each in least if each.axis == "num_heads"]
    alone = [each.dim for each in heads if each.size == 1]
    verdict: Verdict = "partly" if alone else "not reproduced"
    reason = f"It does for d = {listed(alone)}." if alone else "It does for no d."
    if len(alone) == len(heads):
        verdict, reason = "reproduced", ""
    single = Claim(
        "a single head suffices",
        "A single head is enough for all problem dimensions (app. H, figure 8).",
        said["num_heads"],
        verdict,
        reason,
    )
    return (single, *(_growth(least, axis, said[axis]) for axis in AXES[:2]))


def _growth(least: Sequence[Least], axis: str, measured: str) -> Claim:
    """Judge whether a requirement grows with d, never falling."""
    sizes = [each.size for each in least if each.axis == axis]
    known = [inf if size is None else float(size) for size in sizes]
    verdict, reason = _steps(known)
    return Claim(
        f"required {WORDS[axis]} grows with d in steps",
        "Hidden size and depth requirements depend on the input size like a step "
        "function; in print H is 20 to 30 and more, L is 2 to 8 (app. H, figure 8).",
        measured,
        verdict,
        reason,
    )


def _steps(sizes: list[float]) -> tuple[Verdict, str]:
    if len(sizes) < 2:
        return "not testable", "Only one d was tried."
    if set(sizes) == {inf}:
        return "not testable", "No size that was tried is enough for any d."
    if sizes != sorted(sizes):
        return "not reproduced", "It falls somewhere."
    if sizes[0] == sizes[-1]:
        return "partly", "It is the same for all d that were tried."
    if inf in sizes:
        return "partly", "The largest size that was tried is not enough for some d."
    return "reproduced", ""


def requirement_table(runs: Sequence[Distances]) -> Table:
    """Return every run with its distances to both references."""
    order = sorted(runs, key=lambda run: [run.about[a] for a in ("dim", *AXES[::-1])])
    rows = tuple(
        (
            str(run.about["dim"]),
            *(str(run.about[axis]) for axis in AXES),
            *(
                with_interval(each.mean, each.low, each.high)
                for each in run.means[REGION][:2]
            ),
            ("yes" if satisfies(run) else "no") + ("" if _is_sure(run) else "?"),
        )
        for run in order
    )
    header = ("d", "H", "L", "M", "SPD/d to OLS", "SPD/d to Ridge(0.1)", "OLS nearer")
    return Table("Runs", header, rows)


def draw_requirements(runs: Sequence[Distances], directory: Path) -> str:
    """Draw the least size against d, one panel for each hyper-parameter."""
    least = least_sizes(runs)
    figure = Figure(figsize=(10.5, 3.4))
    for axes, axis in zip(figure.subplots(1, 3), AXES, strict=True):
        own = [each for each in least if each.axis == axis]
        met = [each for each in own if each.size is not None]
        unmet = [each for each in own if each.size is None and each.tried]
        dims = [each.dim for each in met]
        axes.plot(dims, [each.size for each in met], "o-", color=COLORS[0])
        axes.plot(
            [each.dim for each in unmet],
            [each.tried[-1] for each in unmet],
            "^",
            color=COLORS[1],
            label="more than",
        )
        if unmet:
            axes.legend(fontsize=7)
        axes.set_xlabel("d")
        axes.set_xticks([each.dim for each in own])
        axes.set_ylabel(f"{WORDS[axis]} needed")
        axes.set_ylim(bottom=0)
        axes.yaxis.set_major_locator(MaxNLocator(integer=True))
        axes.spines[["top", "right"]].set_visible(False)
    figure.suptitle(
        f"SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), {runs[0].num_datasets:,} datasets",
        fontsize=10,
    )
    figure.tight_layout()
    return save_picture(figure, directory, "figure_8")
