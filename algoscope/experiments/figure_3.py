"""Figure 3: which algorithm a learner resembles as it grows (paper §4.3).

For every depth L, and for every hidden size H, the best run over the other
hyper-parameters (paper app. D) is compared with the references: SPD/d averaged over
n < d, without noise. The best run is the one of least risk, which depends on no
reference. Its *phase* is the family of the nearest of the paper's references.

A second drawing shows the wider reference set: a solver that has not converged
resembles ridge regression, and k steps of gradient descent or of Newton's iteration may
resemble the learner more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.comparison.result import LABELS
from algoscope.experiments.distances import (
    ALL,
    FITTED_GD,
    FITTED_RIDGE,
    NOT_LEARNED,
    UNCLEAR,
    UNDER,
    Distances,
    SeedGroup,
    by_seed,
    family,
    in_text,
    over_regions,
    paper_names,
    regions,
)
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import NoLearnerError, Place, Spent
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import (
    ReferenceSet,
    WiderReferences,
    measure_runs,
)
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import COLORS, STYLES, save_picture
from algoscope.foundation.text import listed
from algoscope.predictors import figure_1_references
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps.grid import Grid

ORDER = ["gradient descent", "ridge", "OLS"]  # the paper's phases as learners grow
SHADES = {"gradient descent": "#D55E00", "ridge": "#009E73", "OLS": "#0072B2"}
SYMBOLS = {"num_layers": "L", "hidden_size": "H"}
LABELS_OF_AXES = {"num_layers": "layers L", "hidden_size": "hidden size H"}
REQUIRED = {8: 16, 16: 32}  # d: the hidden size from which on the paper sees ridge


Judged = tuple[Verdict, str]  # and the reason


@dataclass(frozen=True)
class Figure3:
    """The sizes of figure 3.

    With `cpu` there is one learning rate, the preset's, and one number of heads: every
    other value would cost as much again.
    """

    grids: tuple[Grid, ...]  # one for each d
    num_datasets: int = 10_000
    wider: WiderReferences = WiderReferences()
    seed: int = 0


def grid(base: TrainingConfig, layers: tuple, sizes: tuple, **axes: tuple) -> Grid:
    """Return the runs of one dimension."""
    return Grid(base, {"num_layers": layers, "hidden_size": sizes, **axes})


def trainings(config: Figure3) -> list[TrainingConfig]:
    """Return all runs, the longest first, so that no core waits for the last one."""
    runs = [run for part in config.grids for run in part.configs]
    return sorted(runs, key=lambda run: -run.steps * run.flops_per_step)


def measure(config: Figure3, place: Place) -> Spent:
    """Train the grids and measure every run against all references."""
    references = {part.base.dim: _references(config, part) for part in config.grids}
    kept, spent = measure_runs(place, trainings(config), references, _name)
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _references(config: Figure3, part: Grid) -> ReferenceSet:
    dim, last = part.base.dim, part.base.num_examples - 1
    task = LinearRegression(dim)
    return ReferenceSet(
        task,
        figure_1_references(),
        last,
        config.num_datasets,
        regions(dim, last),
        config.seed,
        config.wider.predictors(task, last),
    )


def _name(run: TrainingConfig) -> str:
    return f"d{run.dim}-L{run.num_layers}-H{run.hidden_size}-{run.run_id}.json"


@dataclass(frozen=True)
class Series:
    """The best learners, over seeds, for every value of one hyper-parameter."""

    dim: int
    axis: str
    runs: dict[int, SeedGroup]

    @property
    def seeds(self) -> int:
        """The least number of seeds at any size."""
        return min(run.seeds for run in self.runs.values())

    @property
    def num_datasets(self) -> int:
        """The datasets that each run was measured on."""
        return next(iter(self.runs.values())).num_datasets

    @property
    def references(self) -> list[str]:
        """The names of all references."""
        return next(iter(self.runs.values())).references

    def phases(self, region: str = UNDER) -> dict[int, str]:
        """Return the phase at every size."""
        return {value: run.phase(region) for value, run in self.runs.items()}


def series_of(runs: Sequence[SeedGroup], axis: str) -> Series:
    """Keep, for every value on the axis, the learners of least risk."""
    best = {}
    for value in sorted({run.about[axis] for run in runs}):
        same = [run for run in runs if run.about[axis] == value]
        best[value] = min(same, key=lambda run: run.to(LABELS, ALL).mean)
    return Series(runs[0].about["dim"], axis, best)


def _load(directory: Path) -> list[Series]:
    runs = by_seed(Distances.load_all(directory))
    dims = sorted({each.about["dim"] for each in runs})
    return [
        series_of([each for each in runs if each.about["dim"] == dim], axis)
        for dim in dims
        for axis in SYMBOLS
    ]


def judge(config: Figure3, directory: Path) -> Judgment:
    """Say what is nearest at every size, in both reference sets."""
    series = _load(directory)
    width = [each for each in series if each.axis == "hidden_size"]
    claims = [depth_claim(each) for each in series if each.axis == "num_layers"]
    claims += [width_claim(each) for each in width if each.dim == 16]
    claims += [
        requirement_claim(s, REQUIRED[s.dim]) for s in width if s.dim in REQUIRED
    ]
    findings = [_sentence(each, wider) for each in series for wider in (False, True)]
    return Judgment(tuple(findings), tuple(map(_table, series)), tuple(claims))


def _sentence(series: Series, wider: bool = False) -> str:
    """Return what is nearest at every size."""
    names = None if wider else paper_names()
    parts = []
    for value, run in series.runs.items():
        best, found = run.nearest(UNDER, names), run.phase()
        text = f"{best.second} at {in_text(best)}"
        if found == NOT_LEARNED:
            text = f"not learned (share {in_text(run.learned())})"
        elif found == UNCLEAR and not wider:
            text += ", not significantly"
        parts.append(f"{SYMBOLS[series.axis]} = {value}: {text}")
    chosen = "of the wider reference set" if wider else "of the paper's references"
    return (
        f"d = {series.dim}, nearest {chosen} by MSPD/d over n < d: {'; '.join(parts)} "
        f"({series.num_datasets:,} datasets, seeds: {series.seeds})."
    )


def _claim(series: Series, name: str, paper: str, judged: Judged) -> Claim:
    """Return a claim with the difference at the largest size of the series."""
    run = list(series.runs.values())[-1]
    near = run.nearest(UNDER, paper_names()).second
    verdict, reason = judged
    return Claim(
        name,
        paper,
        _sentence(series),
        verdict,
        reason,
        series.seeds,
        run.runner_up(near, UNDER, paper_names()),
    )


def depth_claim(series: Series) -> Claim:
    """Judge GD → ridge → OLS with depth, and at which depths."""

    def judge_in(region: str) -> Judged:
        verdict, reason = _order(series, region)
        differs = [L for L in series.runs if not _is_as_in_paper(series, L, region)]
        if verdict in ("reproduced", "partly") and differs:
            where = f"L = {listed(differs)}"
            return "partly", f"The order is the paper's; the phase differs at {where}."
        if verdict == "partly":
            return verdict, f"Only L = {listed(list(series.runs))} were trained."
        return verdict, reason

    return _claim(
        series,
        f"GD → ridge → OLS with depth, d = {series.dim}",
        "One layer is best approximated by a single step of gradient descent, two to "
        "four by ridge regression, eight or more by OLS (§4.3, figure 3).",
        over_regions(judge_in),
    )


def _order(series: Series, region: str) -> Judged:
    """Judge whether the phases follow the paper's order; others are left out."""
    phases = list(series.phases(region).values())
    if len(phases) < 2:
        return "not testable", "Only one size was trained."
    ranks = [ORDER.index(phase) for phase in phases if phase in ORDER]
    shown = f"The phases are {', '.join(phases)}."
    if ranks != sorted(ranks) or len(set(ranks)) < 2:
        return "not reproduced", shown
    if set(phases) == set(ORDER):
        return "reproduced", ""
    return "partly", shown


def _is_as_in_paper(series: Series, num_layers: int, region: str) -> bool:
    """Return whether a depth has the paper's phase; SGD takes more than one step."""
    expected = ORDER[0] if num_layers == 1 else ORDER[1] if num_layers < 8 else ORDER[2]
    run = series.runs[num_layers]
    nearest = run.nearest(region, paper_names()).second
    return run.phase(region) == expected and not nearest.startswith("SGD")


def width_claim(series: Series) -> Claim:
    """Judge the same with hidden size."""
    return _claim(
        series,
        f"the same phases with hidden size, d = {series.dim}",
        "A similar phase shift occurs when the hidden size varies in a problem of 16 "
        "dimensions (§4.3, figure 3).",
        over_regions(lambda region: _order(series, region)),
    )


def requirement_claim(series: Series, least: int) -> Claim:
    """Judge from which hidden size on a learner is ridge-like."""
    sizes = list(series.runs)

    def judge_in(region: str) -> Judged:
        phases = series.phases(region)
        good = [h for h, found in phases.items() if found in ("ridge", "OLS")]
        if least <= min(sizes):
            return "not testable", "No narrower model was trained."
        if not good or good != [h for h in sizes if h >= good[0]]:
            return "not reproduced", f"Nearest to either at H = {listed(good)}."
        if good[0] != least:
            enough = "already enough" if good[0] < least else "needed"
            return "partly", f"H = {good[0]} is {enough}."
        return "reproduced", ""

    return _claim(
        series,
        f"H ≥ {least} for ridge-like behavior at d = {series.dim}",
        f"Hidden sizes of {least} and more are close to ridge-regression-like "
        f"solutions for d = {series.dim} (§4.3).",
        over_regions(judge_in),
    )


def _table(series: Series) -> Table:
    """Return MSPD/d to every reference at every size, and what was learned."""
    runs = series.runs.values()
    rows = [
        (name, *(in_text(run.to(name, UNDER)) for run in runs))
        for name in series.references
    ]
    for name in (FITTED_RIDGE, FITTED_GD):
        fitted = [listed([each.fitted[name] for each in run.runs]) for run in runs]
        rows.append((f"{name}: parameters", *fitted))
    rows.append(("share learned", *(in_text(run.learned()) for run in runs)))
    rows.append(("phase", *series.phases().values()))
    rows.append(("phase over all n", *series.phases(ALL).values()))
    chosen = [
        "L{num_layers} H{hidden_size} M{num_heads}".format(**r.about) for r in runs
    ]
    rows.append(("the run of least risk", *chosen))
    symbol = SYMBOLS[series.axis]
    header = ("reference", *(f"{symbol} = {value}" for value in series.runs))
    return Table(f"MSPD/d over n < d = {series.dim}", header, tuple(rows))


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the paper's references, and the wider reference set."""
    series = _load(directory)
    return tuple(
        save_picture(phases_figure(series, wider=wider), directory, name)
        for name, wider in (("figure_3", False), ("figure_3_wider", True))
    )


def phases_figure(series: Sequence[Series], *, wider: bool) -> Figure:
    """Return one panel per series; the background shows the phase."""
    count = -(-len(series) // 2)
    figure = Figure(figsize=(11, 4 * count))
    panels = figure.subplots(count, 2, squeeze=False).ravel()
    for axes, each in zip(panels, series, strict=False):
        _draw_series(axes, each, wider)
    for axes in panels[1::2]:  # the best rates of gradient descent differ between rows
        axes.legend(loc="center left", bbox_to_anchor=(1.02, 0.5), fontsize=7)
    figure.suptitle(
        f"MSPD / d over n < d, {series[0].num_datasets:,} datasets; background: the "
        "nearest of the paper's references (red: gradient descent, green: ridge, "
        "blue: OLS)",
        fontsize=9,
    )
    figure.tight_layout()
    return figure


def _is_drawn(name: str, wider: bool) -> bool:
    """The wider drawing keeps the paper's OLS and ridge, to compare the others with."""
    if not wider:
        return name in paper_names()
    return name not in paper_names() or family(name) in ("OLS", "ridge")


def _draw_series(axes: Axes, series: Series, wider: bool) -> None:
    places = range(len(series.runs))
    drawn = [name for name in series.references if _is_drawn(name, wider)]
    for index, name in enumerate(drawn):
        values = [run.to(name, UNDER) for run in series.runs.values()]
        color = COLORS[index % len(COLORS)]
        style = STYLES[index // len(COLORS) % len(STYLES)]
        means = [value.mean for value in values]
        axes.plot(places, means, f"o{style}", ms=3, color=color, label=name, lw=1.2)
        low, high = [v.low for v in values], [v.high for v in values]
        axes.fill_between(places, low, high, color=color, alpha=0.2, lw=0)
    for place, phase in zip(places, series.phases().values(), strict=True):
        shade = SHADES.get(phase, "0.5")
        axes.axvspan(place - 0.5, place + 0.5, color=shade, alpha=0.08, lw=0)
    axes.set_xticks(places, [str(value) for value in series.runs])
    axes.set(xlim=(-0.5, len(series.runs) - 0.5), ylim=(0, 0.4))
    axes.set_xlabel(LABELS_OF_AXES[series.axis])
    axes.set_ylabel("MSPD / d")
    axes.set_title(f"d = {series.dim}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


D8 = replace(preset("d8"), steps=8000)
D16 = replace(D8, dim=16, num_examples=24)
PAPER = replace(preset("paper"), num_examples=40)
PAPER_AXES = ((1, 2, 4, 8, 12, 16), (16, 32, 64, 256, 512, 1024))
RATES = {"learning_rate": (1e-4, 2.5e-4), "num_heads": (1, 2, 4, 8)}
TINY = replace(preset("demo"), num_examples=5, steps=50)
FEW = WiderReferences((2,), (2,), (), 50)

EXPERIMENT = Experiment(
    name="fig3",
    title="Which algorithm can a small model run?",
    budgets={
        "smoke": Figure3((grid(TINY, (1, 2), (8,)),), 100, FEW),
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
