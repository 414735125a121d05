"""Figure 3: which algorithm a learner resembles as it grows (paper §4.3).

For every depth L, and for every hidden size H, the best runs over the other
hyper-parameters (paper app. D) are compared with the references: SPD/d averaged over
n < d, without noise. The best runs are those of least risk, which depends on no
reference. Their *phase* is the family of the nearest of the paper's references.

A second drawing shows the wider reference set: a solver that has not converged
resembles ridge regression, and k steps of gradient descent or of Newton's iteration may
resemble the learner more.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.experiments.distances import (
    ALL,
    FITTED_GD,
    FITTED_RIDGE,
    IN_WORDS,
    UNDER,
    Distances,
    family,
    in_text,
    paper_names,
    regions,
)
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import NoLearnerError, Place, Spent
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import ReferenceSet, WiderReferences, measure_runs
from algoscope.experiments.seed_groups import (
    NOT_LEARNED,
    SYMBOLS,
    UNCLEAR,
    Series,
    by_seed,
    over_regions,
    series_of,
)
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import color_of, label_lines, looks, save_picture
from algoscope.foundation.text import listed
from algoscope.predictors import figure_1_references
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import BEST, TrainingConfig, preset
from algoscope.training.sweeps.grid import Grid

ORDER = ["gradient descent", "ridge", "OLS"]  # the paper's phases as learners grow
SHADES = {
    "gradient descent": color_of("GD"),
    "ridge": color_of("Ridge"),
    "OLS": color_of("OLS"),
}
LABELS_OF_AXES = {"num_layers": "layers L", "hidden_size": "hidden size H"}
REQUIRED = {8: 16, 16: 32}  # d: the hidden size from which on the paper sees ridge

Judged = tuple[Verdict, str]  # and the reason


@dataclass(frozen=True)
class Figure3:
    """The sizes of figure 3; grids of the same d have sequences of the same length."""

    grids: tuple[Grid, ...]
    num_datasets: int = 10_000
    wider: WiderReferences = WiderReferences()
    seed: int = 0


def grid(base: TrainingConfig, layers: tuple, sizes: tuple, **axes: tuple) -> Grid:
    """Return runs of one dimension."""
    return Grid(base, {"num_layers": layers, "hidden_size": sizes, **axes})


def trainings(config: Figure3) -> list[TrainingConfig]:
    """Return all runs, the longest first, so that no core waits for the last one."""
    runs = dict.fromkeys(run for part in config.grids for run in part.configs)
    return sorted(runs, key=lambda run: -run.steps * run.flops_per_step)


def measure(config: Figure3, place: Place) -> Spent:
    """Train the grids and measure every run against all references."""
    bases = {part.base.dim: part.base for part in config.grids}
    references = {dim: _references(config, base) for dim, base in bases.items()}
    kept, spent = measure_runs(place, trainings(config), references, _name)
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _references(config: Figure3, base: TrainingConfig) -> ReferenceSet:
    dim, last = base.dim, base.num_examples - 1
    task, spans = LinearRegression(dim), regions(dim, last)
    sizes = last, config.num_datasets, spans, config.seed
    further = config.wider.predictors(task, last)
    return ReferenceSet(task, figure_1_references(), *sizes, further)


def _name(run: TrainingConfig) -> str:
    return f"d{run.dim}-L{run.num_layers}-H{run.hidden_size}-{run.run_id}.json"


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
    claims += [requirement_claim(each) for each in width if each.dim in REQUIRED]
    findings = [_sentence(each, wider) for each in series for wider in (False, True)]
    return Judgment(tuple(findings), tuple(map(_table, series)), tuple(claims))


def _sentence(series: Series, wider: bool = False) -> str:
    """Return what is nearest at every size."""
    names = None if wider else paper_names()
    parts = []
    for value, run in series.runs.items():
        best, found = run.nearest(UNDER, names), run.phase()
        text = f"{run.in_words(best.second)} at {in_text(best)}"
        if found == NOT_LEARNED:
            text = f"not learned (share {in_text(run.learned())})"
        elif not wider:
            text += ", not significantly" if found == UNCLEAR else ""
            fits = run.nearer_fits(UNDER, paper_names())
            text += f" ({fits})" if fits else ""
        parts.append(f"{SYMBOLS[series.axis]} = {value}: {text}")
    chosen = "of the wider reference set" if wider else "of the paper's references"
    return (
        f"d = {series.dim}, nearest {chosen} by MSPD/d over n < d: {'; '.join(parts)} "
        f"({series.num_datasets:,} datasets, seeds: {series.seeds})."
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

    return Claim(
        f"GD → ridge → OLS with depth, d = {series.dim}",
        "One layer is best approximated by a single step of gradient descent, two to "
        "four by ridge regression, eight or more by OLS (§4.3, figure 3).",
        _sentence(series),
        *over_regions(judge_in),
        seeds=series.seeds,
        difference=series.least_lead(),
    )


def _order(series: Series, region: str) -> Judged:
    """Judge whether the paper's phases appear in its order; others are left out."""
    phases = list(series.phases(region).values())
    if len(phases) < 2:
        return "not testable", "Only one size was trained."
    ranks = [ORDER.index(phase) for phase in phases if phase in ORDER]
    shown = f"The phases are {', '.join(phases)}."
    if ranks != sorted(ranks) or len(set(ranks)) < 2:
        return "not reproduced", shown
    return ("reproduced", "") if len(set(ranks)) == len(ORDER) else ("partly", shown)


def _is_as_in_paper(series: Series, num_layers: int, region: str) -> bool:
    """Return whether a depth has the paper's phase; SGD takes more than one step."""
    expected = ORDER[0] if num_layers == 1 else ORDER[1] if num_layers < 8 else ORDER[2]
    run = series.runs[num_layers]
    nearest = run.nearest(region, paper_names()).second
    return run.phase(region) == expected and not nearest.startswith("SGD")


def width_claim(series: Series) -> Claim:
    """Judge the same with hidden size."""
    return Claim(
        f"the same phases with hidden size, d = {series.dim}",
        "A similar phase shift occurs when the hidden size varies in a problem of 16 "
        "dimensions (§4.3, figure 3).",
        _sentence(series),
        *over_regions(lambda region: _order(series, region)),
        seeds=series.seeds,
        difference=series.least_lead(),
    )


def requirement_claim(series: Series) -> Claim:
    """Judge from which hidden size on a learner is ridge-like."""
    least, sizes, families = REQUIRED[series.dim], list(series.runs), ("ridge", "OLS")

    def judge_in(region: str) -> Judged:
        if not min(sizes) < least <= max(sizes):
            missing = "narrower" if least <= min(sizes) else "wider"
            return "not testable", f"No {missing} model was trained."
        good = [h for h in sizes if series.runs[h].leads(families, region)]
        if not good or good != [h for h in sizes if h >= good[0]]:
            return "not reproduced", f"Nearest to either at H = {listed(good)}."
        if good[0] != min(h for h in sizes if h >= least):
            enough = "already enough" if good[0] < least else "needed"
            return "partly", f"H = {good[0]} is {enough}."
        return "reproduced", ""

    first = min((h for h in sizes if h >= least), default=max(sizes))
    return Claim(
        f"H ≥ {least} for ridge-like behavior at d = {series.dim}",
        f"Hidden sizes of {least} and more are close to ridge-regression-like "
        f"solutions for d = {series.dim} (§4.3).",
        _sentence(series),
        *over_regions(judge_in),
        seeds=series.seeds,
        difference=series.lead(first, families),
    )


def _table(series: Series) -> Table:
    """Return MSPD/d to every reference at every size, and what was learned."""
    runs = series.runs.values()
    rows = [
        (name, *(in_text(run.to(name, UNDER)) for run in runs))
        for name in series.references
    ]
    for name in (FITTED_RIDGE, FITTED_GD):
        rows.append((f"{name}: parameters", *(run.in_words(name) for run in runs)))
    rows.append(("share learned", *(in_text(run.learned()) for run in runs)))
    for region in (UNDER, ALL):
        where = f", {IN_WORDS[region]}"
        best = [run.nearest(region, paper_names()).second for run in runs]
        robust = [r.robust(name, region) for r, name in zip(runs, best, strict=True)]
        rows.append((f"nearest of the paper's{where}", *best))
        rows.append((f"its median, mean without the largest 1 %{where}", *robust))
        rows.append((f"phase{where}", *series.phases(region).values()))
    shape = "L{num_layers} H{hidden_size} M{num_heads}, rate {learning_rate:g}".format
    rows.append(("the runs of least risk", *(shape(**run.about) for run in runs)))
    rows.append(("seeds", *(str(run.seeds) for run in runs)))
    header = ("reference", *(f"{SYMBOLS[series.axis]} = {v}" for v in series.runs))
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
    figure = Figure(figsize=(10.4, 3.9 * count))
    panels = figure.subplots(count, 2, squeeze=False).ravel()
    for axes, each in zip(panels, series, strict=False):
        _draw_series(axes, each, wider)
    for axes in panels[len(series) :]:
        axes.set_axis_off()
    found = {phase for each in series for phase in each.phases().values()}
    gray = sorted(found - set(SHADES))
    others = f", gray: {listed(gray)}" if gray else ""
    figure.suptitle(
        f"MSPD / d over n < d, {series[0].num_datasets:,} datasets; background: the "
        "nearest of the paper's references (green: gradient descent, orange: ridge, "
        f"blue: OLS{others})",
        fontsize=9,
    )
    figure.tight_layout()
    for axes in panels[: len(series)]:
        label_lines(axes)
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
    for name, look in looks(drawn).items():
        values = [run.to(name, UNDER) for run in series.runs.values()]
        means = [value.mean for value in values]
        axes.plot(places, means, label=name, **look.line)
        low, high = [v.low for v in values], [v.high for v in values]
        axes.fill_between(places, low, high, color=look.color, alpha=0.2, lw=0)
    for place, phase in zip(places, series.phases().values(), strict=True):
        shade = SHADES.get(phase, "0.5")
        axes.axvspan(place - 0.5, place + 0.5, color=shade, alpha=0.08, lw=0)
    axes.set_xticks(places, [str(value) for value in series.runs])
    axes.set_xlim(-0.5, len(series.runs) - 0.5)
    if wider:  # many lines are near 0
        axes.set_yscale("log")
    else:
        axes.set_ylim(0, 0.4)
    axes.set_xlabel(LABELS_OF_AXES[series.axis])
    axes.set_ylabel("MSPD / d")
    axes.set_title(f"d = {series.dim}", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)


D8 = TrainingConfig(steps=10_000, **BEST)
D16 = replace(D8, dim=16, num_examples=24)
# Already trained, for less time; they count where no better run is finished.
EARLIER = replace(D16, steps=8000, loss_weights="equal", decay="cosine")
SEEDS = {"seed": (0, 1)}
TUNED = {"learning_rate": (3e-3, D8.learning_rate, 3e-2), **SEEDS}  # for small models
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
        "cpu": Figure3(  # a cross: every depth at H = 64, every hidden size at L = 8
            (
                grid(D8, (1, 2), (64,), **TUNED),
                grid(D8, (4, 8), (64,), **SEEDS),
                grid(preset("d8"), (12,), (64,), **SEEDS),
                grid(D8, (8,), (8, 16), **TUNED),
                grid(D8, (8,), (32, 128), **SEEDS),
                grid(D16, (1, 2), (64,), **TUNED),
                grid(D16, (4, 8), (64,), **SEEDS),
                grid(D16, (8,), (16,), **TUNED),
                grid(D16, (8,), (32, 128), **SEEDS),
                grid(D16, (12,), (128,)),
                grid(EARLIER, (1, 2, 4, 8), (64,)),
                grid(EARLIER, (8,), (16, 32)),
            )
        ),
        "paper": Figure3(
            tuple(grid(replace(PAPER, dim=d), *PAPER_AXES, **RATES) for d in (8, 16))
        ),
    },
    trainings=trainings,
    measuring=lambda config: (
        50 + (5 + 1e-3 * config.num_datasets) * len(trainings(config))
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
