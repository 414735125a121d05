"""Figure 1: SPD and ILWD per number of examples, d = 8, no noise (paper §4.3).

Measured for all n up to the model's context length, and drawn over the paper's ranges:
SPD/d for n = 1 to 14, ILWD/d for n = 3 to 13. A second drawing shows the wider
reference set.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

from algoscope.comparison.compare import compare
from algoscope.comparison.result import LABELS, Comparison, comparison_figure
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent, model_or_run
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import (
    WiderReferences,
    family,
    in_text,
    paper_names,
)
from algoscope.foundation.plotting import save_picture
from algoscope.foundation.text import listed, number, with_interval
from algoscope.predictors import figure_1_references
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset

FILE = "comparison.json"
LAST = 14  # the last n of the paper's axis
CLOSE = 0.01  # SPD/d that the paper calls a match
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


def measure(config: Figure1, place: Place) -> Spent:
    """Compare the learner with the paper's references and those of later papers."""
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

    identity = {"config": asdict(config), "learner": learner.digest}
    return spent + place.measure_once(FILE, identity, save)


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
    last = min(LAST, found.num_examples)
    numbers = range(1, last + 1)
    own = found.against("OLS")
    close = [n for n in numbers if own.high[n] < CLOSE]
    apart = [n for n in numbers if n not in close]
    nearest = {n: found.nearest(n, n)[0][0] for n in numbers}
    by_ols = [n for n in numbers if nearest[n] == "OLS"]
    but = f" (not at n = {listed(apart)})" if apart else ""
    size = f"{found.num_datasets:,} datasets"
    worst = max(numbers, key=lambda n: own.mean[n])
    at_worst = with_interval(own.mean[worst], own.low[worst], own.high[worst])
    fits = (
        f"OLS is the nearest of {len(found.nearest(1, last))} references at "
        f"{len(by_ols)} of {last} n; SPD(OLS, {found.learner})/d is "
        f"{number(own.average(1, last))} on average over n = 1–{last} and "
        f"significantly below {CLOSE} at {len(close)} of {last} n{but}; its largest "
        f"value is {at_worst} at n = {worst} ({size})."
    )
    later = wider.nearest(1, last)[:3]
    sharper = (
        "The nearest of the wider reference set over the same n are "
        + listed([f"{name} ({number(value)})" for name, value in later])
        + f" ({size})."
    )
    enough = min(len(close), len(by_ols)) >= last - 2  # "almost any number"
    verdict: Verdict = (
        "reproduced" if enough else "partly" if by_ols else "not reproduced"
    )
    best = Claim(
        "OLS fits best without noise",
        "For almost any number of examples SPD/d between the transformer and OLS is "
        "below 0.01; other predictors agree considerably less well (§4.3, figure 1).",
        fits,
        verdict,
        "" if enough else "OLS is not nearest, or not below 0.01, at three n or more.",
    )
    return Judgment(
        findings=(fits, sharper),
        tables=(
            _table(found, "SPD/d to the paper's references"),
            _table(wider, "SPD/d to the wider reference set"),
        ),
        claims=(best, _minimum_norm(found), _ordering(found, last)),
    )


def _table(found: Comparison, title: str) -> Table:
    header, rows = found.summary()
    return Table(title, tuple(header), tuple(map(tuple, rows)))


def _minimum_norm(found: Comparison) -> Claim:
    """Judge n < d, where many weights fit the examples and OLS takes the smallest."""
    name = "minimum norm when under-determined"
    paper = (
        "With fewer examples than dimensions, predictions are reliably consistent with "
        "the minimum-norm predictor (§4.3)."
    )
    if found.dim < 2:
        return Claim(
            name, paper, "", "not testable", "d = 1 is never under-determined."
        )
    inside = range(1, found.dim)
    own = found.against("OLS")
    others = [found.against(n) for n, _ in found.nearest(1, 1) if n != "OLS"]
    beaten = [n for n in inside if any(c.high[n] < own.low[n] for c in others)]
    at_all = [n for n in inside if found.nearest(n, n)[0][0] == "OLS"]
    by_weights = [n for n in inside if found.nearest(n, n, "ilwd")[0][0] == "OLS"]
    means = [e for e in found.mspd if e.first == found.learner and e.second != LABELS]
    first, second = sorted(means, key=lambda estimate: estimate.mean)[:2]
    apart = first.second == "OLS" and first.high < second.low
    measured = (
        f"Over n = 1–{found.dim - 1}, SPD/d is {in_text(first)} to {first.second} and "
        f"{in_text(second)} to {second.second}, the next ({first.count:,} datasets). "
        f"OLS is nearest by SPD at {len(at_all)} and by ILWD at {len(by_weights)} of "
        f"{len(inside)} n; "
        + (
            f"another reference is significantly nearer at n = {listed(beaten)}."
            if beaten
            else "no other reference is significantly nearer at any n."
        )
    )
    if apart and not beaten:
        return Claim(name, paper, measured, "reproduced")
    verdict: Verdict = "partly" if first.second == "OLS" else "not reproduced"
    reason = (
        "OLS is nearest on average, but not significantly, or another reference is "
        "significantly nearer at some n."
    )
    return Claim(name, paper, measured, verdict, reason if verdict == "partly" else "")


def _ordering(found: Comparison, last: int) -> Claim:
    """Judge the order OLS, Ridge(0.1), Ridge(0.5), gradient descent, kNN."""
    ranked = [name for name, _ in found.nearest(1, last)]
    families = [family(name) for name in ranked]
    solvers = ["OLS", "Ridge(0.1)", "Ridge(0.5)"]
    first = ranked[:3] == solvers
    far = families[-1] == "nearest neighbors"
    distances = [f"{name} ({number(value)})" for name, value in found.nearest(1, last)]
    return Claim(
        "the order of the references",
        "OLS agrees best, then ridge regression with a small and a larger penalty; "
        "nearest neighbors agree least (§4.3, figure 1).",
        f"By SPD/d over n = 1–{last}: {', '.join(distances)} ({found.num_datasets:,} "
        "datasets).",
        "reproduced" if first and far else "partly" if first else "not reproduced",
        "" if first and far else f"The farthest is {ranked[-1]}." if first else "",
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the paper's references, and the added ones beside OLS and Ridge(0.1)."""
    found = Comparison.load(directory / FILE)
    names = [c.second for c in found.curves if c.first == found.learner]
    later = tuple(n for n in names if n not in paper_names() or n in LABELED)
    drawings = {"figure_1": paper_names(), "figure_1_wider": later}
    spans = {"spd": (1, LAST), "ilwd": (3, LAST - 1)}
    return tuple(
        save_picture(
            comparison_figure(_only(found, names), labeled=LABELED, spans=spans),
            directory,
            name,
        )
        for name, names in drawings.items()
    )


def _seconds(config: Figure1) -> float:
    """Return about how long measuring takes: mostly ILWD, a forward pass per query."""
    passes = config.num_costly_datasets * config.num_queries * 20
    return 30 + 0.003 * config.num_datasets + 8e-4 * passes


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
        "cpu": Figure1(),
        "paper": Figure1(training=preset("paper")),
    },
    trainings=lambda config: [config.training] if config.training else [],
    measuring=_seconds,
    measure=measure,
    judge=judge,
    draw=draw,
)
