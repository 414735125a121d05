"""Figure 6: how linear the learner's predictions are in the query (paper app. F).

R² is measured in three forms, per number of examples: pooled and per dataset, of the
linear fit to the predictions, and against gold labels (`Linearity`).
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np

from algoscope.comparison.predict import HELD_OUT, draw_datasets
from algoscope.comparison.result import Comparison, linearity_figure
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent, models_and_runs
from algoscope.experiments.linearity import FORMS, Linearity, linearity_of, sums_of
from algoscope.experiments.record import Claim, Difference, Table, Verdict
from algoscope.foundation import provenance
from algoscope.foundation.plotting import save_picture
from algoscope.foundation.text import listed
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Dataset
from algoscope.training.config import TrainingConfig, preset

FILE = "linear_fit.json"
OLD_FILE = "linearity.json"  # of a result that has R² per dataset only
LINEAR = 0.99  # above this R², a learner counts as linear
DECISIVE = ("pooled", "median")


@dataclass(frozen=True)
class Figure6:
    """The sizes of figure 6."""

    models: tuple[str, ...] = ("linear-d8",)
    runs: tuple[TrainingConfig, ...] = ()  # trained beside the models
    num_datasets: int = 100
    num_queries: int = 64  # as in the authors' code
    seed: int = 0


def measure(config: Figure6, place: Place) -> Spent:
    """Train the runs, and measure R² of every learner on the same datasets."""
    learners, spent = models_and_runs(place, config.models, config.runs)

    def save() -> None:
        dim = next(iter(learners.values())).dim
        examples = 1 + min(each.max_examples for each in learners.values())
        drawn = draw_datasets(
            LinearRegression(dim),
            num_datasets=config.num_datasets,
            num_examples=examples + config.num_queries,
            seed=config.seed,
            fold=HELD_OUT,
        )
        queries = np.asarray(drawn.x)[:, examples:]
        data = Dataset(drawn.x[:, :examples], drawn.y[:, :examples], drawn.w)
        found = {}
        for done, (name, learner) in enumerate(learners.items()):
            place.progress("measuring linearity", done, len(learners), name)
            found[name] = sums_of(learner, data, queries)
        linearity_of(
            found,
            dim,
            config.seed,
            num_datasets=config.num_datasets,
            num_queries=config.num_queries,
            versions=provenance(),
        ).save(place.directory / FILE)

    digests = {name: learner.digest for name, learner in learners.items()}
    identity = {"config": asdict(config), "learners": digests}
    return spent + place.measure_once(FILE, identity, save)


@dataclass(frozen=True)
class Growth:
    """How one form of R² grows over n < d; docs/verdicts.md has the rule."""

    curved: list[int]  # where it is significantly below `LINEAR`
    falls: list[int]  # where it is significantly smaller than at n − 1
    grows: bool  # significantly, from n = 1 to n = d
    gradual: bool  # all that the claim asks for

    @classmethod
    def of(cls, found: Linearity, form: str) -> "Growth":
        """Return the growth of a form over all learners."""
        under = range(1, min(found.dim, found.num_examples + 1))
        index = list(FORMS).index(form)
        curved = [n for n in under if found.at(form, n)[2] < LINEAR]
        falls = [n for n in under[1:] if found.steps[2, index, n - 2] < 0]
        grows = bool(found.rise[1, index] > 0)
        gradual = grows and not falls and 2 * len(curved) >= max(len(under), 1)
        return cls(curved, falls, grows, gradual)


def judge(config: Figure6, directory: Path) -> Judgment:
    """Say how each form of R² grows, and judge the claim by pooled and median R²."""
    found = Linearity.load(directory / FILE)
    header = ("n", *FORMS.values())
    rows = tuple(
        (str(n), *(found.text(form, n) for form in FORMS))
        for n in range(1, found.num_examples + 1)
    )
    table = Table("R², mean over learners", header, rows)
    return Judgment((found.sentence, _drawn(found)), (table,), (_claim(found),))


def _drawn(found: Linearity) -> str:
    """Say which form the paper seems to have drawn."""
    asked = [n for n in (1, 2, 4, 8, 16) if n < found.dim] or [1]
    gold = ", ".join(found.text("gold", n) for n in asked)
    shares = ", ".join(f"{n / found.dim:.4f}" for n in asked)
    fit = ", ".join(found.text("pooled", n) for n in asked)
    text = (
        f"At n = {listed(asked)}, R² against gold labels is {gold}, where n/d is "
        f"{shares}; pooled R² of the linear fit is {fit}. "
    )
    by_labels, by_fit = Growth.of(found, "gold"), Growth.of(found, "pooled")
    if by_labels.gradual and not by_fit.gradual:
        return text + (
            "Only the first grows gradually up to n = d, as the paper's curve does, "
            "and the authors' code computes it: it seems to be what figure 6 shows, "
            "although appendix F describes the second."
        )
    if by_fit.gradual:
        return text + "The second grows gradually, as appendix F says."
    return text + "Neither grows gradually up to n = d, as the paper's curve does."


def _claim(found: Linearity) -> Claim:
    name = "gradual linearity"
    paper = (
        "The learner becomes gradually linear in the under-determined regime; its "
        "hypothesis class is not purely linear (app. F, figure 6)."
    )
    seeds = len(found.learners)
    if found.dim < 2 or seeds < 2:
        missing = "d = 1 is never under-determined." if found.dim < 2 else "One seed."
        return Claim(name, paper, found.sentence, "not testable", missing, seeds)
    forms = {form: Growth.of(found, form) for form in DECISIVE}
    verdict: Verdict = "not reproduced"
    if all(each.gradual for each in forms.values()):
        verdict = "reproduced"
    elif all(each.curved and each.grows for each in forms.values()) or any(
        each.gradual for each in forms.values()
    ):
        verdict = "partly"
    reasons = [
        f"{form} R² is significantly below {LINEAR} at n = {listed(each.curved)} of "
        f"the n < d, {'grows' if each.grows else 'does not grow'} significantly from "
        f"n = 1 to n = d, and falls significantly at n = {listed(each.falls)}"
        for form, each in forms.items()
    ]
    under = range(1, min(found.dim, found.num_examples + 1))
    worst = min(under, key=lambda n: found.at("pooled", n)[0])
    value, low, high = (float(each) for each in LINEAR - found.at("pooled", worst))
    difference = Difference(f"{LINEAR} − pooled R² at n = {worst}", value, high, low)
    reason = ""
    if verdict != "reproduced":
        reason = f"P{'; '.join(reasons)[1:]}."
    return Claim(name, paper, found.sentence, verdict, reason, seeds, difference)


def draw(directory: Path) -> tuple[str, ...]:
    """Draw R² against n."""
    if (directory / FILE).exists():
        figure = Linearity.load(directory / FILE).plot()
    else:
        figure = linearity_figure(Comparison.load(directory / OLD_FILE))
    return (save_picture(figure, directory, "figure_6"),)


SEEDS = (replace(preset("d8"), seed=1),)  # linear-d8 has 0
PAPER = tuple(replace(preset("paper"), seed=seed) for seed in (0, 1))

EXPERIMENT = Experiment(
    name="fig6",
    title="Is the learner linear in its query?",
    budgets={
        "smoke": Figure6(models=("linear-d2",), num_datasets=20, num_queries=8),
        "cpu": Figure6(runs=SEEDS),
        "paper": Figure6(models=(), runs=PAPER, num_datasets=300),
    },
    trainings=lambda config: config.runs,
    measuring=lambda config: (
        20
        + 16e-3
        * config.num_datasets
        * config.num_queries
        * (len(config.models) + len(config.runs))
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
