"""Figure 8: how large a learner must be to prefer OLS to ridge regression (app. H).

For each d, the least L, H and M with SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), the other
hyper-parameters at their best. SPD is averaged over n < d (for d = 1, at n = 1), and
over all n beside it. A size is enough if the difference is significant over seeds and
datasets, and the models have learned.

A search over one of them holds the others at large values and tries sizes upward, each
with all its seeds, until one is enough; all searches advance together. The paper's grid
of 2,016 runs is trained as a whole: the best over the others, as in the paper.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import inf
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from algoscope.experiments.distances import (
    ALL,
    FITTED_RIDGE,
    IN_WORDS,
    UNDER,
    Distances,
    in_text,
    regions,
)
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.figure_3 import D8, D16
from algoscope.experiments.learners import NoLearnerError, Place, Spent
from algoscope.experiments.record import Claim, Difference, Table, Verdict
from algoscope.experiments.references import ReferenceSet, measure_runs
from algoscope.experiments.seed_groups import (
    NOT_LEARNED,
    SeedGroup,
    by_seed,
    over_regions,
)
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import COLORS, save_picture
from algoscope.foundation.text import listed
from algoscope.predictors import ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps.grid import GRIDS, Grid

AXES = {
    "hidden_size": "hidden size H",
    "num_layers": "depth L",
    "num_heads": "number of heads M",
}
LOOKS = {  # of sizes that are enough, and of those that are not
    UNDER: (("o-", COLORS[0]), ("^", COLORS[1])),
    ALL: (("s:", COLORS[2]), ("v", COLORS[3])),
}


@dataclass(frozen=True)
class Figure8:
    """The sizes of figure 8: searches from the base of each d, or a whole grid."""

    bases: tuple[TrainingConfig, ...] = ()  # one for each d, with the large values
    num_seeds: tuple[int, ...] = ()  # one for each base
    until: tuple[str, ...] = (UNDER,)  # regions in which a search ends when enough
    num_layers: tuple[int, ...] = (1, 2, 4, 8)
    hidden_size: tuple[int, ...] = (8, 16, 32, 64)
    num_heads: tuple[int, ...] = (1, 2, 4)
    grid: Grid | None = None
    penalty: float = 0.1  # ε
    num_datasets: int = 10_000
    seed: int = 0


Size = tuple[TrainingConfig, ...]  # the runs of one size, which differ in their seed
Judge = Callable[[Sequence["LeastSize"]], tuple[Verdict, str]]  # and the reason


def _searches(config: Figure8) -> list[list[Size]]:
    """Return the sizes of each search, from the smallest up; a grid is one size."""
    whole = [[tuple(config.grid.configs)]] if config.grid else []
    return whole + [
        [
            tuple(replace(base, **{axis: size}, seed=seed) for seed in range(seeds))
            for size in getattr(config, axis)
        ]
        for base, seeds in zip(config.bases, config.num_seeds, strict=True)
        for axis in AXES
    ]


def trainings(config: Figure8) -> list[TrainingConfig]:
    """Return all runs that may be trained."""
    runs = [run for sizes in _searches(config) for size in sizes for run in size]
    return list(dict.fromkeys(runs))


def measure(config: Figure8, place: Place) -> Spent:
    """Train and measure rounds of runs: the next size of every unfinished search."""
    references = {run.dim: _references(config, run) for run in trainings(config)}
    spent, kept, searches = Spent(), [], _searches(config)
    done: set[TrainingConfig] = set()
    while searches:
        runs = list({run for search in searches for run in search[0]} - done)
        runs.sort(key=lambda run: (-run.steps * run.flops_per_step, run.run_id))
        done.update(runs)
        names, more = measure_runs(place, runs, references, _name)
        kept += names
        spent += more
        searches = [
            search[1:]
            for search in searches
            if search[1:] and not _ends(config, search[0], place, kept)
        ]
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _references(config: Figure8, run: TrainingConfig) -> ReferenceSet:
    last = run.num_examples - 1
    spans = {name: regions(run.dim, last)[name] for name in (UNDER, ALL)}
    sizes = last, config.num_datasets, spans, config.seed
    return ReferenceSet(LinearRegression(run.dim), (ols, ridge(config.penalty)), *sizes)


def _name(run: TrainingConfig) -> str:
    sizes = f"d{run.dim}-L{run.num_layers}-H{run.hidden_size}-M{run.num_heads}"
    return f"{sizes}-{run.run_id}.json"


def _ends(config: Figure8, size: Size, place: Place, kept: Sequence[str]) -> bool:
    """Return whether a search ends with this size; runs that diverged are left out."""
    names = [name for run in size if (name := _name(run)) in kept]
    if place.finished and not names:  # a larger size would look like the least
        return True
    group = SeedGroup(tuple(Distances.load(place.directory / name) for name in names))
    return bool(names) and all(
        answer(group, region) == "yes" for region in config.until
    )


def lead(group: SeedGroup, region: str) -> Difference:
    """Return how much nearer OLS is than ridge regression."""
    penalized = next(n for n in group.references if n.startswith("Ridge("))
    found = group.difference("OLS", penalized, region)
    return replace(found, of=f"d = {group.about['dim']}: {found.of}")


def answer(group: SeedGroup, region: str = UNDER) -> str:
    """Return whether a size is enough: yes, no, undecided or not learned.

    Old measurements do not tell what is significant; there, OLS must be nearer.
    """
    if not group.can_be_judged:
        return "yes" if group.nearest(region).second == "OLS" else "no"
    if not group.has_learned:
        return NOT_LEARNED
    gap = lead(group, region)
    return "yes" if gap.low > 0 else "no" if gap.high < 0 else "undecided"


@dataclass(frozen=True)
class LeastSize:
    """The least size that was seen to be enough for one d; None if no size was."""

    dim: int
    axis: str
    size: int | None
    tried: tuple[int, ...]
    undecided: tuple[int, ...] = ()  # smaller sizes that may be enough
    lead: Difference | None = None  # of the clearest models at the least size, or last

    @property
    def at_least(self) -> int:
        """The least that the size can be."""
        return self.size or (self.tried[-1] + 1 if self.tried else 1)

    def __str__(self) -> str:
        if not self.tried:
            return f"unknown for d = {self.dim}, as no run finished"
        size = f"more than {self.tried[-1]}" if self.size is None else str(self.size)
        unclear = f" ({listed(self.undecided)} undecided)" if self.undecided else ""
        return f"{size} for d = {self.dim}{unclear}"


def least_sizes(
    groups: Sequence[SeedGroup], region: str = UNDER, dims: Iterable[int] = ()
) -> list[LeastSize]:
    """Return, per hyper-parameter and d, the least size that is enough in a region.

    `dims` are those that were asked for: all runs of one may have diverged.
    """
    found = []
    for axis in AXES:
        for dim in sorted({*dims, *(group.about["dim"] for group in groups)}):
            same = [group for group in groups if group.about["dim"] == dim]
            answers = [(group.about[axis], answer(group, region)) for group in same]
            least = min((n for n, each in answers if each == "yes"), default=None)
            tried = tuple(sorted({n for n, _ in answers}))
            near = {n for n, each in answers if each == "undecided"}
            undecided = tuple(n for n in tried if n in near and n < (least or inf))
            shown = [g for g in same if g.about[axis] == (least or tried[-1])]
            gaps = [lead(group, region) for group in shown if group.can_be_judged]
            best = max(gaps, key=lambda gap: gap.low, default=None)
            found.append(LeastSize(dim, axis, least, tried, undecided, best))
    return found


def judge(config: Figure8, directory: Path) -> Judgment:
    """Say the least sizes for each d, for n < d and over all n."""
    groups = by_seed(Distances.load_all(directory))
    dims = [run.dim for run in trainings(config)]
    least = {region: least_sizes(groups, region, dims) for region in (UNDER, ALL)}
    seeds = min(group.seeds for group in groups)
    size = f"{config.num_datasets:,} datasets for each run, seeds: {seeds} or more"
    found = claims(least, seeds, size)
    return Judgment(tuple(c.measured for c in found), (runs_table(groups),), found)


def claims(
    least: Mapping[str, Sequence[LeastSize]], seeds: int, size: str
) -> tuple[Claim, ...]:
    """Judge the appendix: one head is enough, the rest grows in steps with d."""

    def claim(axis: str, name: str, paper: str, judge_sizes: Judge) -> Claim:
        own = {r: [e for e in each if e.axis == axis] for r, each in least.items()}
        parts = [f"for {IN_WORDS[r]}: {listed(each)}" for r, each in own.items()]
        measured = (
            f"The least {AXES[axis]} at which OLS is significantly nearer than "
            f"Ridge(0.1), {'; '.join(parts)} ({size})."
        )
        judged = over_regions(lambda region: judge_sizes(own[region]))
        leads = [each.lead for each in own[UNDER] if each.lead is not None]
        weakest = min(leads, key=lambda gap: gap.low, default=None)
        return Claim(name, paper, measured, *judged, seeds, weakest)

    steps = (
        "Hidden size and depth requirements depend on the input size like a step "
        "function; in the paper H is 20 to 30 and more, L is 2 to 8 (app. H, figure 8)."
    )
    single = "A single head is enough for all problem dimensions (app. H, figure 8)."
    heads = claim("num_heads", "a single head suffices", single, _one_is_enough)
    growth = [
        claim(axis, f"required {AXES[axis]} grows with d in steps", steps, _steps)
        for axis in ("hidden_size", "num_layers")
    ]
    return (heads, *growth)


def _one_is_enough(least: Sequence[LeastSize]) -> tuple[Verdict, str]:
    alone = [each.dim for each in least if each.size == 1]
    if len(alone) == len(least):
        return "reproduced", ""
    if not alone:
        return "not reproduced", "One head is enough for no d."
    return "partly", f"One head is enough for d = {listed(alone)}."


def _steps(least: Sequence[LeastSize]) -> tuple[Verdict, str]:
    """Judge whether a required size grows with d."""
    sizes = [each.size for each in least]
    if len(least) < 2:
        return "not testable", "Only one d was tried."
    if not any(sizes):
        return "not testable", "No size that was tried is enough for any d."
    if any((b.size or inf) < a.at_least for a, b in combinations(least, 2)):
        return "not reproduced", "It is smaller for some larger d."
    if None in sizes:
        return "partly", "The largest size that was tried is not enough for some d."
    if sizes[0] == sizes[-1]:
        return "partly", "It is the same for all d that were tried."
    return "reproduced", ""


def runs_table(groups: Sequence[SeedGroup]) -> Table:
    """Return every size with its distances to both references."""
    sizes = ("dim", "num_heads", "num_layers", "hidden_size")
    rows = []
    for group in sorted(groups, key=lambda each: [each.about[name] for name in sizes]):
        row = [*(str(group.about[each]) for each in ("dim", *AXES)), str(group.seeds)]
        row += [in_text(group.learned()), group.in_words(FITTED_RIDGE)]
        for region in (UNDER, ALL):
            row += [in_text(group.to("OLS", region)), group.robust("OLS", region)]
            row += [in_text(lead(group, region)), answer(group, region)]
        rows.append(tuple(row))
    header = ["d", "H", "L", "M", "seeds", "share learned", "nearest ridge"]
    for words in map(IN_WORDS.get, (UNDER, ALL)):
        header += [f"SPD/d to OLS, {words}", "median, mean without the largest 1 %"]
        header += ["how much farther Ridge(0.1) is", "enough"]
    return Table("Models", tuple(header), tuple(rows))


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the least hidden size, depth and number of heads against d."""
    figure = least_sizes_figure(by_seed(Distances.load_all(directory)))
    return (save_picture(figure, directory, "figure_8"),)


def least_sizes_figure(groups: Sequence[SeedGroup]) -> Figure:
    """Return one panel for each hyper-parameter."""
    shown = [region for region in (UNDER, ALL) if region in groups[0].runs[0].spans]
    figure = Figure(figsize=(10.5, 3.4))
    for axes, axis in zip(figure.subplots(1, 3), AXES, strict=True):
        for region in shown:
            found = least_sizes(groups, region)
            words = f"{IN_WORDS[region]}: " if len(shown) > 1 else ""
            _draw(axes, [e for e in found if e.axis == axis], region, words)
        axes.set_ylabel(f"{AXES[axis]} needed")
    figure.suptitle(
        f"SPD(OLS, ICL) < SPD(Ridge(0.1), ICL), {groups[0].num_datasets:,} datasets",
        fontsize=10,
    )
    figure.tight_layout()
    return figure


def _draw(axes: Axes, least: Sequence[LeastSize], region: str, words: str) -> None:
    met = {each.dim: each.size for each in least if each.size is not None}
    unmet = {e.dim: e.tried[-1] for e in least if e.size is None and e.tried}
    (line, first), (marker, second) = LOOKS[region]
    label = f"{words}enough" if words else None
    axes.plot(list(met), list(met.values()), line, color=first, label=label)
    label = f"{words}more than"
    axes.plot(list(unmet), list(unmet.values()), marker, color=second, label=label)
    if unmet or words:
        axes.legend(fontsize=7)
    axes.set_xlabel("d")
    axes.set_xticks([each.dim for each in least])
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.spines[["top", "right"]].set_visible(False)


SMALL = tuple(replace(D8, dim=dim, steps=4000) for dim in (1, 2, 4))
D12 = replace(D8, dim=12, num_examples=25)
TINY = replace(preset("demo"), num_examples=5, steps=50, hidden_size=8, num_layers=2)

EXPERIMENT = Experiment(
    name="fig8",
    title="How large must a learner be to prefer OLS?",
    budgets={
        "smoke": Figure8((TINY,), (1,), (UNDER,), (1, 2), (8,), (1,), num_datasets=100),
        # Most runs of D8 and D16 are figure 3's.
        "cpu": Figure8((*SMALL, D8, D12, D16), (3, 3, 3, 2, 2, 2)),
        "paper": Figure8(grid=GRIDS["paper"]),
    },
    trainings=trainings,
    measuring=lambda config: 1e-3 * config.num_datasets * len(trainings(config)),
    measure=measure,
    judge=judge,
    draw=draw,
)
