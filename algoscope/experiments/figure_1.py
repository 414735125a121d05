"""Figure 1: SPD and ILWD per number of examples, d = 8, no noise (paper §4.3).

Measured for all n up to the model's context length, and drawn over the paper's ranges:
SPD/d for n = 1 to 14, ILWD/d for n = 3 to 13. A second drawing shows the wider
reference set. Both drawings are of one model; the claims are judged over it and further
seeds of its training.
"""

from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

from algoscope.comparison.compare import compare
from algoscope.comparison.result import LABELS, Comparison, comparison_figure
from algoscope.experiments.distances import (
    FITTED_RIDGE,
    UNDER,
    Distances,
    family,
    in_text,
    paper_names,
    regions,
)
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent, model_or_run
from algoscope.experiments.record import Claim, Difference, Table, Verdict
from algoscope.experiments.references import ReferenceSet, WiderReferences, measure_runs
from algoscope.experiments.seed_groups import SeedGroup
from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import save_picture
from algoscope.foundation.text import listed, number
from algoscope.model.learner import InContextLearner
from algoscope.predictors import figure_1_references
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset

FILE = "comparison.json"
LAST = 14  # the last n of the paper's axis
CLOSE = 0.01  # SPD/d that the paper calls a match
MOST_APART = 2  # n of 1–14 where SPD/d to OLS may be larger: docs/verdicts.md
LABELED = ("OLS", "Ridge(0.1)")  # whose risk is drawn beside the learner's


@dataclass(frozen=True)
class Figure1:
    """The sizes of figure 1."""

    model: str = "linear-d8"
    training: TrainingConfig | None = None  # to train instead of taking the model
    num_datasets: int = 10_000
    num_costly_datasets: int = 500  # for ILWD
    num_queries: int = 32  # 4d, to fit the implied weights on
    wider: WiderReferences = WiderReferences()
    seed: int = 0
    seeds: tuple[TrainingConfig, ...] = ()  # the model's training with further seeds


def trainings(config: Figure1) -> list[TrainingConfig]:
    """Return the runs, without those of models that ship."""
    return [*([config.training] if config.training else []), *config.seeds]


def measure(config: Figure1, place: Place) -> Spent:
    """Compare the model with all references, and every seed with the paper's."""
    learner, spent = model_or_run(place, config.model, config.training)
    task, most = LinearRegression(learner.dim), learner.max_examples

    def save() -> None:
        found = compare(
            learner,
            figure_1_references() + config.wider.predictors(task, most),
            task,
            num_examples=most,
            num_datasets=config.num_datasets,
            seed=config.seed,
            metrics=("mspd", "ilwd"),
            num_costly_datasets=config.num_costly_datasets,
            num_queries=config.num_queries,
            progress=place.progress,
        )
        drawn = (learner.name, *LABELED)
        curves = [c for c in found.curves if c.second != LABELS or c.first in drawn]
        replace(found, curves=curves).save(place.directory / FILE)

    settings = asdict(config)
    del settings["seeds"]
    identity = {"config": settings, "learner": learner.digest}
    cache = Cache(place.directory)
    spent += Spent(cache.file(FILE, identity | {"versions": provenance()}, save))
    kept, more = _measure_seeds(config, place, learner)
    cache.keep_only([FILE, *kept])
    return spent + more


def _measure_seeds(
    config: Figure1, place: Place, learner: InContextLearner
) -> tuple[list[str], Spent]:
    """Write the distances of the model and of further seeds; return the file names."""
    dim, last = learner.dim, learner.max_examples
    sizes = last, config.num_datasets, spans(dim, last), config.seed
    references = ReferenceSet(LinearRegression(dim), figure_1_references(), *sizes)
    about = {"dim": dim, "learner": learner.name}
    first = f"distances-{learner.name}.json"
    spent = references.measure_once(place, first, learner, about)
    names, more = measure_runs(place, config.seeds, {dim: references}, _name)
    return [first, *names], spent + more


def _name(run: TrainingConfig) -> str:
    return f"distances-{run.run_id}.json"


def spans(dim: int, last: int) -> dict[str, tuple[int, int]]:
    """Return the regions of n, the range of the paper's axis, and each n in it.

    Example:
        >>> spans(2, 3)["n = 1–3"], spans(2, 3)["n = 2"]
        ((1, 3), (2, 2))
    """
    shown = min(LAST, last)
    each = {f"n = {n}": (n, n) for n in range(1, shown + 1)}
    return {**regions(dim, last), f"n = 1–{shown}": (1, shown), **each}


def _only(found: Comparison, names: tuple[str, ...]) -> Comparison:
    """Return the comparison with these references alone."""
    kept = (*names, LABELS)
    return replace(
        found,
        curves=[curve for curve in found.curves if curve.second in kept],
        metrics={"ilwd": [c for c in found.of("ilwd") if c.second in kept]},
        mspd=[each for each in found.mspd if each.second in kept],
    )


def judge(config: Figure1, directory: Path) -> Judgment:
    """Say which reference is nearest, and judge the paper's three claims."""
    wider = Comparison.load(directory / FILE)
    found = _only(wider, paper_names())
    names = [name for name in Cache(directory).names if name != FILE]
    group = SeedGroup(tuple(Distances.load(directory / name) for name in names))
    last = min(LAST, found.num_examples)
    best = _best(group, last)
    later = [f"{name} ({number(mean)})" for name, mean in wider.nearest(1, last)[:3]]
    sharper = (
        f"The nearest of the wider reference set to {wider.learner} over n = 1–{last} "
        f"are {listed(later)} ({wider.num_datasets:,} datasets)."
    )
    tables = (
        _table(found, "SPD/d to the paper's references"),
        _table(wider, "SPD/d to the wider reference set"),
        _regions_table(group),
    )
    claims = (best, _minimum_norm(group, found), _ordering(group, last))
    return Judgment((best.measured, sharper), tables, claims)


def _best(group: SeedGroup, last: int) -> Claim:
    """Judge whether OLS fits best, over n < d and over the paper's range."""
    whole = f"n = 1–{last}"
    ranges = {UNDER: "n < d", whole: whole}
    at = {n: group.to("OLS", f"n = {n}") for n in range(1, last + 1)}
    by_ols = [n for n in at if group.nearest(f"n = {n}", paper_names()).second == "OLS"]
    apart = [n for n in at if not at[n].high < CLOSE]
    worst = max(at, key=lambda n: at[n].mean)
    but = f" (not at n = {listed(apart)})" if apart else ""
    means = [f"{in_text(group.to('OLS', r))} over {w}" for r, w in ranges.items()]
    measured = (
        f"OLS is the nearest of {len(paper_names())} references at {len(by_ols)} of "
        f"{last} n; SPD/d to it is {listed(means)}, and significantly below {CLOSE} at "
        f"{last - len(apart)} of {last} n{but}; its largest value is "
        f"{in_text(at[worst])} at n = {worst} ({group.size})."
    )
    for region, words in ranges.items():
        fits = group.nearer_fits(region, paper_names())
        measured += f" Over {words}, {fits}." if fits else ""
    clear = [group.is_significantly_nearest("OLS", r, paper_names()) for r in ranges]
    verdict: Verdict = "partly"
    reason = "OLS is not significantly nearest in both ranges."
    if all(clear) and len(apart) <= MOST_APART:
        verdict, reason = "reproduced", ""
    elif all(clear):
        reason = f"SPD/d to OLS is not significantly below {CLOSE} at {len(apart)} n."
    elif not any(group.is_nearest("OLS", region, paper_names()) for region in ranges):
        verdict, reason = "not reproduced", "OLS is nearest in neither range."
    return _claim(
        group,
        "OLS fits best without noise",
        "For almost any number of examples SPD/d between the transformer and OLS is "
        "below 0.01; other predictors agree considerably less well (§4.3, figure 1).",
        measured,
        (verdict, reason),
        group.runner_up("OLS", whole, paper_names()),
    )


def _claim(
    group: SeedGroup,
    name: str,
    paper: str,
    measured: str,
    judged: tuple[Verdict, str],
    difference: Difference,
) -> Claim:
    """Return a claim; a model that has not learned is no algorithm."""
    if not group.has_learned:
        judged = "not reproduced", "The model has not learned."
    return Claim(name, paper, measured, *judged, group.seeds, difference)


def _table(found: Comparison, title: str) -> Table:
    header, rows = found.summary()
    return Table(title, tuple(header), tuple(map(tuple, rows)))


def _regions_table(group: SeedGroup) -> Table:
    """Return the distance to OLS and how much farther the next is, in each region."""
    rows = []
    for region, (first, last) in group.runs[0].spans.items():
        other = group.nearest(region, {*paper_names()} - {"OLS"}).second
        gap = group.difference("OLS", other, region)
        near = group.to("OLS", region), group.to(FITTED_RIDGE, region)
        span = str(first) if first == last else f"{first}–{last}"
        distances = map(in_text, near)
        rows.append(
            (span, *distances, group.robust("OLS", region), other, in_text(gap))
        )
    header = (
        "n",
        "SPD/d to OLS",
        f"to {group.in_words(FITTED_RIDGE)}",
        "to OLS: median, mean without the largest 1 %",
        "the next",
        "how much farther it is",
    )
    return Table(f"OLS and the next, seeds: {group.seeds}", header, tuple(rows))


def _minimum_norm(group: SeedGroup, found: Comparison) -> Claim:
    """Judge n < d, where many weights fit the examples and OLS takes the smallest."""
    name = "minimum norm when under-determined"
    paper = (
        "With fewer examples than dimensions, predictions are reliably consistent with "
        "the minimum-norm predictor (§4.3)."
    )
    if found.dim < 2:
        reason = "d = 1 is never under-determined."
        return Claim(name, paper, "", "not testable", reason, group.seeds)
    inside = range(1, min(found.dim - 1, LAST, found.num_examples) + 1)
    first, second = group.ranked(UNDER, paper_names())[:2]
    at = {n: group.nearest(f"n = {n}", paper_names()).second for n in inside}
    weights = [n for n in inside if found.nearest(n, n, "ilwd")[0][0] == "OLS"]
    beaten = [
        n for n in inside if group.materially_nearer(paper_names(), "OLS", f"n = {n}")
    ]
    fits = group.nearer_fits(UNDER, paper_names())
    others = f"at n = {listed(beaten)}" if beaten else "at no n"
    measured = (
        f"Over n = 1–{inside[-1]}, SPD/d is {in_text(first)} to {first.second} and "
        f"{in_text(second)} to {second.second}, the next ({group.size}). OLS is "
        f"nearest by SPD at {list(at.values()).count('OLS')} and, for {found.learner}, "
        f"by ILWD at {len(weights)} of {len(inside)} n; another reference is "
        f"materially nearer {others}." + (f" {fits}." if fits else "")
    )
    verdict: Verdict = "partly"
    reason = "OLS is nearest on average, but not significantly."
    if not group.is_nearest("OLS", UNDER, paper_names()):
        verdict, reason = "not reproduced", "OLS is not nearest on average."
    elif group.is_significantly_nearest("OLS", UNDER, paper_names()):
        verdict = "partly" if beaten else "reproduced"
        reason = f"Another reference is materially nearer {others}." if beaten else ""
    difference = group.runner_up("OLS", UNDER, paper_names())
    return _claim(group, name, paper, measured, (verdict, reason), difference)


def _ordering(group: SeedGroup, last: int) -> Claim:
    """Judge the order OLS, Ridge(0.1), Ridge(0.5), gradient descent, kNN."""
    region = f"n = 1–{last}"
    ranked = group.ranked(region, paper_names())
    solvers = ["OLS", "Ridge(0.1)", "Ridge(0.5)"]
    steps = [name for name in paper_names() if family(name) == "gradient descent"]
    far = [name for name in paper_names() if family(name) == "nearest neighbors"]
    levels = [*([name] for name in solvers), steps, far]
    pairs = [
        (a, b) for near, next_one in pairwise(levels) for a in near for b in next_one
    ]
    gaps = [group.difference(*pair, region) for pair in pairs]
    weak = [pair for pair, gap in zip(pairs, gaps, strict=True) if not gap.low > 0]
    verdict: Verdict = "not reproduced"
    reason = f"The nearest three are {listed([e.second for e in ranked[:3]])}."
    if not weak:
        verdict, reason = "reproduced", ""
    elif [each.second for each in ranked[:3]] == solvers:
        shown = [f"{a} than {b}" for a, b in weak]
        verdict, reason = "partly", f"Not significantly nearer: {listed(shown)}."
    distances = [f"{each.second} ({number(each.mean)})" for each in ranked]
    return _claim(
        group,
        "the order of the references",
        "OLS agrees best, then ridge regression with a small and a larger penalty; "
        "nearest neighbors agree least (§4.3, figure 1).",
        f"By SPD/d over {region}: {', '.join(distances)} ({group.size}).",
        (verdict, reason),
        min(gaps, key=lambda gap: gap.low),
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the paper's references, and the added ones beside OLS and Ridge(0.1)."""
    found = Comparison.load(directory / FILE)
    names = [c.second for c in found.curves if c.first == found.learner]
    later = tuple(n for n in names if n not in paper_names() or n in LABELED)
    drawings = {"figure_1": (paper_names(), LABELED), "figure_1_wider": (later, ())}
    spans = {"spd": (1, LAST), "ilwd": (3, LAST - 1)}
    return tuple(
        save_picture(
            comparison_figure(_only(found, names), labeled=labeled, spans=spans),
            directory,
            name,
        )
        for name, (names, labeled) in drawings.items()
    )


def _seconds(config: Figure1) -> float:
    """Return about how long measuring takes: mostly ILWD, a forward pass per query."""
    passes = config.num_costly_datasets * config.num_queries * 20
    seeds = 1 + len(config.seeds)
    return 30 + 0.003 * config.num_datasets * (1 + seeds) + 8e-4 * passes


EXPERIMENT = Experiment(
    name="fig1",
    title="Which algorithm is in-context learning without noise?",
    budgets={
        "smoke": Figure1(
            model="linear-d2",
            num_datasets=100,
            num_costly_datasets=20,
            num_queries=8,
            wider=WiderReferences((2,), (2,), (), 50),
        ),
        "cpu": Figure1(seeds=(replace(preset("d8"), seed=1),)),
        "paper": Figure1(
            training=preset("paper"), seeds=(replace(preset("paper"), seed=1),)
        ),
    },
    trainings=trainings,
    measuring=_seconds,
    measure=measure,
    judge=judge,
    draw=draw,
)
