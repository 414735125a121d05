"""Figure 2: learners trained with noise against OLS and ridge regression (paper §4.3).

Each column is a learner, trained and measured on its own σ² and τ²; each row is a
reference. The claim is the diagonal: the learner is nearest to the ridge regression
whose penalty is its σ²/τ², the Bayes predictor.

The paper's caption averages over the under-determined n, but its numbers fit the
over-determined tail. Both regions are measured here: n < d, and n ≥ 2d.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import NoLearnerError, Place, Spent, train_runs
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.references import Distances, ReferenceSet, in_text
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import save_picture
from algoscope.foundation.text import listed, scientific, with_interval
from algoscope.model.learner import InContextLearner
from algoscope.predictors import Predictor, ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset

REGIONS = ("under-determined", "over-determined")


@dataclass(frozen=True)
class Figure2:
    """The sizes of figure 2."""

    base: TrainingConfig
    noiseless: str | None  # a model for the first column, instead of a run
    deviations: tuple[tuple[float, float], ...] = (  # σ and τ, as the paper gives them
        (0.0, 1.0),
        (0.25, 1.0),
        (0.5, 1.5),
        (0.5, 1.0),
        (0.5, 0.75),
    )
    num_datasets: int = 30_000
    seed: int = 0


def ratio(sigma: float, tau: float) -> Fraction:
    """Return σ²/τ² as a fraction.

    Example:
        >>> ratio(0.5, 0.75), ratio(0.0, 1.0)
        (Fraction(4, 9), Fraction(0, 1))
    """
    return (Fraction(sigma) / Fraction(tau)) ** 2


def reference(penalty: Fraction) -> Predictor:
    """Return the Bayes predictor of a ratio: OLS, or ridge regression."""
    return ridge(float(penalty)) if penalty else ols


def with_fraction(name: str) -> str:
    """Return a name with its penalty as a fraction, as in the paper.

    Example:
        >>> with_fraction("Ridge(0.111111)"), with_fraction("OLS")
        ('Ridge(1/9)', 'OLS')
    """
    head, _, penalty = name.rstrip(")").partition("(")
    if not penalty:
        return name
    return f"{head}({Fraction(penalty).limit_denominator(1000)})"


def column(config: Figure2, sigma: float, tau: float) -> TrainingConfig:
    """Return the run of one column."""
    return replace(config.base, noise_variance=sigma**2, prior_variance=tau**2)


def trainings(config: Figure2) -> list[TrainingConfig]:
    """Return the runs, without the column whose learner is a model."""
    return [
        column(config, *each)
        for each in config.deviations
        if each[0] or config.noiseless is None
    ]


def measure(config: Figure2, place: Place) -> Spent:
    """Train the learners and measure each on the distribution it was trained on."""
    trained, spent = train_runs(place, trainings(config))
    learners = {each.config: each.learner for each in trained}
    references = tuple(reference(ratio(*each)) for each in config.deviations)
    dim, last = config.base.dim, config.base.num_examples - 1
    kept = []
    for sigma, tau in config.deviations:
        learner = learners.get(column(config, sigma, tau))
        if not sigma and config.noiseless is not None:
            learner = InContextLearner.from_pretrained(config.noiseless)
        if learner is None:  # its run diverged
            continue
        reference_set = ReferenceSet(
            LinearRegression(dim, tau**2, sigma**2),
            references,
            last,
            config.num_datasets,
            {REGIONS[0]: (1, dim - 1), REGIONS[1]: (2 * dim, last)},
            config.seed,
        )
        about = {
            "sigma": sigma,
            "tau": tau,
            "ratio": str(ratio(sigma, tau)),
            "bayes": reference(ratio(sigma, tau)).name,
            "learner": learner.name,
            "dim": dim,
        }
        kept.append(f"ratio-{about['ratio'].replace('/', '-')}.json")
        spent += reference_set.measure_once(place, kept[-1], learner, about)
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _load(directory: Path) -> list[Distances]:
    found = Distances.load_all(directory)
    return sorted(found, key=lambda each: Fraction(each.about["ratio"]))


def judge(config: Figure2, directory: Path) -> Judgment:
    """Say for each column where its minimum is, and whether it stands out."""
    columns = _load(directory)
    asked = {str(ratio(*each)) for each in config.deviations}
    missing = sorted(asked - {each.about["ratio"] for each in columns}, key=Fraction)
    findings = tuple(map(_sentence, columns))
    if missing:
        findings += (f"No learner was trained for σ²/τ² = {listed(missing)}.",)
    hits = [_hits(each) for each in columns]
    in_both = sum(len(regions) == len(REGIONS) for regions in hits)
    separate = sum(bool(_separate(each)) for each in columns)
    verdict: Verdict = "not reproduced"
    if separate == in_both == len(asked):
        verdict = "reproduced"
    elif sum(map(bool, hits)) > len(asked) / 2:
        verdict = "partly"
    claim = Claim(
        "the diagonal of figure 2",
        "For all σ² and τ² the ridge parameter that gives the best fit is the one that "
        "minimizes Bayes risk (§4.3, figure 2).",
        f"The Bayes predictor is nearest in both regions of n in {in_both} of "
        f"{len(asked)} columns; in {separate} columns its interval lies below all "
        f"others in at least one region ({config.num_datasets:,} datasets per column).",
        verdict,
        "" if verdict == "reproduced" else "The findings list each column.",
    )
    return Judgment(findings, tuple(_table(columns, r) for r in REGIONS), (claim,))


def _hits(found: Distances) -> list[str]:
    """Return the regions where the learner's Bayes predictor is nearest."""
    bayes = found.about["bayes"]
    return [r for r in REGIONS if found.nearest(r).second == bayes]


def _separate(found: Distances) -> list[str]:
    """Return those of them where its interval lies below all others."""
    return [region for region in _hits(found) if found.stands_out(region)]


def _sentence(found: Distances) -> str:
    hits = _hits(found)
    paired = [region for region in hits if found.is_significantly_nearest(region)]
    first = found.nearest(REGIONS[0])
    return (
        f"σ²/τ² = {found.about['ratio']} ({found.about['learner']}): the Bayes "
        f"predictor {with_fraction(found.about['bayes'])} is nearest in these regions: "
        f"{listed(hits)}; its interval lies below all others in: "
        f"{listed(_separate(found))}; differences on the same datasets are significant "
        f"in: {listed(paired)}. Under-determined, the nearest is "
        f"{with_fraction(first.second)} at MSPD/d = {in_text(first)} "
        f"({found.num_datasets:,} datasets)."
    )


def _table(columns: list[Distances], region: str) -> Table:
    span = "–".join(map(str, columns[0].spans[region]))
    rows = [
        (with_fraction(name), *(_cell(each, name, region) for each in columns))
        for name in _references(columns)
    ]
    header = ("reference", *(f"σ²/τ² = {each.about['ratio']}" for each in columns))
    return Table(f"MSPD/d, {region} (n = {span})", header, tuple(rows))


def _cell(found: Distances, name: str, region: str) -> str:
    value = found.to(name, region)
    return with_interval(value.mean, value.low, value.high, scientific)


def _references(columns: list[Distances]) -> list[str]:
    return [each.second for each in columns[0].means[REGIONS[0]]][:-1]


def draw(directory: Path) -> tuple[str, ...]:
    """Draw a heat map for each region; the brightness is proportional to 1/MSPD."""
    columns = _load(directory)
    figure = Figure(figsize=(2.6 + 2.2 * len(columns), 4.4))
    panels = figure.subplots(1, len(REGIONS), squeeze=False)[0]
    for axes, region in zip(panels, REGIONS, strict=True):
        _heat_map(axes, columns, region)
    panels[0].set_ylabel("reference")
    figure.suptitle(
        f"MSPD / d, d = {columns[0].about['dim']}, {columns[0].num_datasets:,} "
        "datasets; framed: the Bayes predictor",
        fontsize=10,
    )
    figure.tight_layout()
    return (save_picture(figure, directory, "figure_2"),)


def _heat_map(axes: Axes, columns: list[Distances], region: str) -> None:
    names = _references(columns)
    values = np.array(
        [[each.to(name, region).mean for each in columns] for name in names]
    )
    brightness = values.min(axis=0, keepdims=True) / values  # 1 at each column's least
    axes.imshow(brightness, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for row, name in enumerate(names):
        for column, each in enumerate(columns):
            color = "black" if brightness[row, column] > 0.6 else "white"
            text = scientific(values[row, column])
            axes.text(
                column, row, text, ha="center", va="center", color=color, fontsize=7
            )
            if each.about["bayes"] == name:
                corner = (column - 0.48, row - 0.48)
                axes.add_patch(
                    Rectangle(corner, 0.96, 0.96, fill=False, ec="#D55E00", lw=2)
                )
    shown = [f"{e.about['sigma']:g}/{e.about['tau']:g}" for e in columns]
    axes.set_xticks(range(len(columns)), shown, fontsize=8)
    axes.set_yticks(range(len(names)), list(map(with_fraction, names)), fontsize=8)
    axes.set_xlabel("σ/τ of the training data")
    span = "–".join(map(str, columns[0].spans[region]))
    axes.set_title(f"{region}, n = {span}", fontsize=9)


EXPERIMENT = Experiment(
    name="fig2",
    title="Is it the Bayes predictor when labels are noisy?",
    budgets={
        "smoke": Figure2(
            replace(
                preset("demo"), num_layers=1, hidden_size=8, num_examples=7, steps=50
            ),
            "linear-d2",
            deviations=((0.0, 1.0), (0.5, 1.0)),
            num_datasets=200,
        ),
        # linear-d8 is the same but for 14,000 steps.
        "cpu": Figure2(replace(preset("d8"), steps=12_000), "linear-d8"),
        "paper": Figure2(preset("paper"), None),
    },
    trainings=trainings,
    measuring=lambda config: 20 + 3e-3 * config.num_datasets * len(config.deviations),
    measure=measure,
    judge=judge,
    draw=draw,
)
