"""Figure 6: how linear the learner's predictions are in the query (paper app. F).

R² of the best linear fit to predictions at fresh queries, per number of examples. A
linear algorithm has R² = 1 throughout.
"""

from dataclasses import asdict, dataclass
from pathlib import Path

from algoscope.comparison.compare import compare
from algoscope.comparison.intervals import Curve
from algoscope.comparison.result import Comparison, linearity_figure
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent, model_or_run
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.foundation.plotting import FORMATS, save_figure
from algoscope.foundation.text import listed, number, with_interval
from algoscope.predictors import ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset

FILE = "linearity.json"
LINEAR = 0.99  # above this R², a learner counts as linear


@dataclass(frozen=True)
class Figure6:
    """The sizes of figure 6."""

    model: str = "linear-d8"
    training: TrainingConfig | None = None  # to train instead of taking the model
    num_datasets: int = 300
    num_queries: int = 64  # as in the authors' code
    seed: int = 0


def measure(config: Figure6, place: Place) -> Spent:
    """Measure R² of the learner, and of two linear algorithms beside it."""
    learner, spent = model_or_run(place, config.model, config.training)

    def save() -> None:
        compare(
            learner,
            [ols, ridge(0.1)],
            LinearRegression(learner.dim),
            num_examples=learner.max_examples,
            num_datasets=config.num_datasets,
            seed=config.seed,
            metrics=("r2",),
            num_costly_datasets=config.num_datasets,
            num_queries=config.num_queries,
            progress=place.progress,
        ).save(place.directory / FILE)

    identity = {"config": asdict(config), "learner": learner.digest}
    return spent + place.measure_once(FILE, identity, save)


def _own(found: Comparison) -> Curve:
    return next(curve for curve in found.of("r2") if curve.first == found.learner)


def judge(config: Figure6, directory: Path) -> Judgment:
    """Say how R² grows, and from which n on the learner is linear."""
    found = Comparison.load(directory / FILE)
    curve, dim = _own(found), found.dim
    under = range(1, min(dim, found.num_examples + 1))  # n < d
    last = min(dim, found.num_examples)
    linear = [n for n in range(1, found.num_examples + 1) if curve.low[n] > LINEAR]
    falls = [n for n in under[1:] if curve.high[n] < curve.low[n - 1]]
    curved = [n for n in under if curve.high[n] < LINEAR]
    grows = curve.high[1] < curve.low[last] and bool(curved)

    def at(n: int) -> str:
        return with_interval(curve.mean[n], curve.low[n], curve.high[n])

    sentence = (
        f"R² of the linear fit to {found.learner} is {at(1)} after one example, "
        f"{at(last)} after {last} and {at(found.num_examples)} after "
        f"{found.num_examples} ({found.settings['num_costly_datasets']:,} datasets of "
        f"{found.settings['num_queries']} queries); it is significantly above {LINEAR} "
        f"at {len(linear)} of {found.num_examples} n."
    )
    verdict: Verdict = "not reproduced"
    reason = (
        "R² at n = 1 is not significantly below R² at n = d, or R² is significantly "
        f"below {LINEAR} at no n < d."
    )
    if grows:
        gradual = 2 * len(curved) >= len(under)
        verdict = "reproduced" if gradual and not falls else "partly"
        reason = ""
        if verdict == "partly":
            reason = f"R² is significantly below {LINEAR} only at n = {listed(curved)}"
            reason += f", and falls at n = {listed(falls)}." if falls else "."
    claim = Claim(
        "gradual linearity",
        "The learner becomes gradually linear in the under-determined regime; its "
        "hypothesis class is not purely linear (app. F, figure 6).",
        sentence,
        verdict,
        reason,
    )
    rows = tuple(
        (str(n), at(n), number(curve.median[n]))
        for n in range(1, found.num_examples + 1)
    )
    table = Table("R² of the linear fit", ("n", "mean", "median"), rows)
    return Judgment((sentence,), (table,), (claim,))


def draw(directory: Path) -> tuple[str, ...]:
    """Draw R² against n."""
    found = Comparison.load(directory / FILE)
    for ending in FORMATS:
        save_figure(linearity_figure(found), directory / f"figure_6{ending}")
    return ("figure_6",)


EXPERIMENT = Experiment(
    name="fig6",
    title="Is the learner linear in its query?",
    budgets={
        "smoke": Figure6(model="linear-d2", num_datasets=20, num_queries=8),
        "cpu": Figure6(),
        "paper": Figure6(training=preset("paper")),
    },
    trainings=lambda config: [config.training] if config.training else [],
    measuring=lambda config: 20 + 16e-3 * config.num_datasets * config.num_queries,
    measure=measure,
    judge=judge,
    draw=draw,
)
