"""Figure 8: how large a learner must be to prefer OLS to ridge regression (app. H).

For each d, the least L, H and M with SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), the other
hyper-parameters at their best. SPD is averaged over n < d; for d = 1 it is at n = 1.

A search over one of them holds the others at large values and tries sizes upward until
one is enough; all searches advance together. The paper's grid of 2,016 runs is trained
as a whole: the best over the others, as in the paper.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import NoLearnerError, Place, Spent
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import (
    Distances,
    ReferenceSet,
    in_text,
    measure_runs,
)
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import COLORS, save_picture
from algoscope.foundation.text import listed
from algoscope.predictors import ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps.grid import GRIDS, Grid

REGION = "under-determined"
AXES = {
    "hidden_size": "hidden size H",
    "num_layers": "depth L",
    "num_heads": "number of heads M",
}


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
    """Return all runs that may be trained."""
    whole = list(config.grid.configs) if config.grid else []
    return whole + [run for search in _candidates(config) for run in search]


def measure(config: Figure8, place: Place) -> Spent:
    """Train and measure rounds of runs: the next size of every unfinished search."""
    references = {run.dim: _references(config, run) for run in trainings(config)}
    spent, kept = Spent(), []
    searches = _candidates(config)
    first = list(config.grid.configs) if config.grid else []
    pending = [*first, *(search[0] for search in searches)]
    done: set[TrainingConfig] = set()
    while pending:
        runs = [run for run in dict.fromkeys(pending) if run not in done]
        runs.sort(key=lambda run: -run.steps * run.flops_per_step)
        done.update(runs)
        names, more = measure_runs(place, runs, references, _name)
        kept += names
        spent += more
        searches = [
            search[1:]
            for search in searches
            if search[1:] and not _is_enough(search[0], place, kept)
        ]
        pending = [search[0] for search in searches]
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _references(config: Figure8, run: TrainingConfig) -> ReferenceSet:
    return ReferenceSet(
        LinearRegression(run.dim),
        (ols, ridge(config.penalty)),
        run.num_examples - 1,
        config.num_datasets,
        {REGION: (1, max(1, run.dim - 1))},
        config.seed,
    )


def _name(run: TrainingConfig) -> str:
    sizes = f"d{run.dim}-L{run.num_layers}-H{run.hidden_size}-M{run.num_heads}"
    return f"{sizes}-{run.run_id}.json"


def _is_enough(run: TrainingConfig, place: Place, kept: Sequence[str]) -> bool:
    name = _name(run)
    diverged = name not in kept
    return not diverged and prefers_ols(Distances.load(place.directory / name))


def prefers_ols(run: Distances) -> bool:
    """Return whether SPD(OLS, ICL) < SPD(Ridge(0.1), ICL)."""
    return run.nearest(REGION).second == "OLS"


def _is_decided(run: Distances) -> bool:
    """Return whether the 95 % interval of the difference leaves out zero."""
    return run.is_significantly_nearest(REGION)


@dataclass(frozen=True)
class LeastSize:
    """The least size that was seen to be enough for one d; None if no size was."""

    dim: int
    axis: str
    size: int | None
    tried: tuple[int, ...]
    undecided: tuple[int, ...] = ()  # sizes up to it whose intervals include both

    def __str__(self) -> str:
        if not self.tried:
            return f"unknown for d = {self.dim}, as no run finished"
        size = f"more than {self.tried[-1]}" if self.size is None else str(self.size)
        unclear = f" ({listed(self.undecided)} undecided)" if self.undecided else ""
        return f"{size} for d = {self.dim}{unclear}"


def least_sizes(runs: Sequence[Distances], dims: Iterable[int] = ()) -> list[LeastSize]:
    """Return, per hyper-parameter and d, the least size of a run that is enough.

    `dims` are those that were asked for: all runs of one may have diverged.
    """
    found = []
    for axis in AXES:
        for dim in sorted({*dims, *(run.about["dim"] for run in runs)}):
            same = [run for run in runs if run.about["dim"] == dim]
            enough = [run for run in same if prefers_ols(run)]
            least = min((run.about[axis] for run in enough), default=None)
            tried = tuple(sorted({run.about[axis] for run in same}))
            clear = {run.about[axis] for run in enough if _is_decided(run)}
            near = {run.about[axis] for run in same if not _is_decided(run)} - clear
            undecided = tuple(n for n in tried if n in near and n <= (least or inf))
            found.append(LeastSize(dim, axis, least, tried, undecided))
    return found


def judge(config: Figure8, directory: Path) -> Judgment:
    """Say the least sizes for each d."""
    runs = Distances.load_all(directory)
    least = least_sizes(runs, [run.dim for run in trainings(config)])
    findings = tuple(_sentences(least, config.num_datasets).values())
    return Judgment(findings, (runs_table(runs),), claims(least, config.num_datasets))


def _sentences(least: Sequence[LeastSize], num_datasets: int) -> dict[str, str]:
    """Return one sentence for each hyper-parameter."""
    return {
        axis: f"The least {words} at which OLS is nearer than Ridge(0.1): "
        f"{listed([each for each in least if each.axis == axis])} "
        f"({num_datasets:,} datasets for each run)."
        for axis, words in AXES.items()
    }


def claims(least: Sequence[LeastSize], num_datasets: int) -> tuple[Claim, ...]:
    """Judge the appendix: one head is enough, the rest grows in steps with d."""
    measured = _sentences(least, num_datasets)
    heads = [each for each in least if each.axis == "num_heads"]
    alone = [each.dim for each in heads if each.size == 1]
    single = Claim.of_parts(
        "a single head suffices",
        "A single head is enough for all problem dimensions (app. H, figure 8).",
        measured["num_heads"],
        [each.size == 1 for each in heads],
        f"One head is enough for d = {listed(alone)}."
        if alone
        else "One head is enough for no d.",
    )
    growth = [
        Claim(
            f"required {AXES[axis]} grows with d in steps",
            "Hidden size and depth requirements depend on the input size like a step "
            "function; in the paper H is 20 to 30 and more, L is 2 to 8 (app. H, "
            "figure 8).",
            measured[axis],
            *_steps([float(e.size or inf) for e in least if e.axis == axis]),
        )
        for axis in ("hidden_size", "num_layers")
    ]
    return (single, *growth)


def _steps(sizes: list[float]) -> tuple[Verdict, str]:
    """Judge whether a required size grows with d; infinity stands for none tried."""
    if len(sizes) < 2:
        return "not testable", "Only one d was tried."
    if set(sizes) == {inf}:
        return "not testable", "No size that was tried is enough for any d."
    if sizes != sorted(sizes):
        return "not reproduced", "It is smaller for some larger d."
    if sizes[0] == sizes[-1]:
        return "partly", "It is the same for all d that were tried."
    if inf in sizes:
        return "partly", "The largest size that was tried is not enough for some d."
    return "reproduced", ""


def runs_table(runs: Sequence[Distances]) -> Table:
    """Return every run with its distances to both references."""
    sizes = ("dim", "num_heads", "num_layers", "hidden_size")
    rows = tuple(
        (
            *(str(run.about[each]) for each in ("dim", *AXES)),
            *(in_text(each) for each in run.means[REGION][:2]),
            ("yes" if prefers_ols(run) else "no") + ("" if _is_decided(run) else "?"),
        )
        for run in sorted(runs, key=lambda run: [run.about[each] for each in sizes])
    )
    header = ("d", "H", "L", "M", "SPD/d to OLS", "SPD/d to Ridge(0.1)", "OLS nearer")
    return Table("Runs", header, rows)


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the least hidden size, depth and number of heads against d."""
    figure = least_sizes_figure(Distances.load_all(directory))
    return (save_picture(figure, directory, "figure_8"),)


def least_sizes_figure(runs: Sequence[Distances]) -> Figure:
    """Return one panel for each hyper-parameter."""
    least = least_sizes(runs)
    figure = Figure(figsize=(10.5, 3.4))
    for axes, axis in zip(figure.subplots(1, 3), AXES, strict=True):
        _draw_axis(axes, [each for each in least if each.axis == axis])
        axes.set_ylabel(f"{AXES[axis]} needed")
    figure.suptitle(
        f"SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), {runs[0].num_datasets:,} datasets",
        fontsize=10,
    )
    figure.tight_layout()
    return figure


def _draw_axis(axes: Axes, least: Sequence[LeastSize]) -> None:
    met = {each.dim: each.size for each in least if each.size is not None}
    unmet = {e.dim: e.tried[-1] for e in least if e.size is None and e.tried}
    axes.plot(list(met), list(met.values()), "o-", color=COLORS[0])
    axes.plot(
        list(unmet), list(unmet.values()), "^", color=COLORS[1], label="more than"
    )
    if unmet:
        axes.legend(fontsize=7)
    axes.set_xlabel("d")
    axes.set_xticks([each.dim for each in least])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


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
