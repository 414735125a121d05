"""Figure 2: learners trained with noise against OLS and ridge regression (paper §4.3).

Each column is a learner, trained and measured on its own σ² and τ²; each row is a
reference. The claim is the diagonal: the learner is nearest to the ridge regression
whose penalty is its σ²/τ², the Bayes predictor.

The paper's caption averages over the under-determined n, but its numbers fit the
over-determined tail. Both regions are measured here: n < d, and n ≥ 2d. All n together
say whether a model has learned.
"""

from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from algoscope.experiments.distances import (
    ALL,
    FITTED_GD,
    FITTED_RIDGE,
    IN_WORDS,
    UNDER,
    Distances,
    in_text,
)
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import NoLearnerError, Place, Spent, train_runs
from algoscope.experiments.record import Claim, Difference, Table, Verdict
from algoscope.experiments.references import ReferenceSet
from algoscope.experiments.seed_groups import SeedGroup, by_seed
from algoscope.foundation.cache import Cache
from algoscope.foundation.plotting import COLORS, ON_BRIGHT, ON_DARK, save_picture
from algoscope.foundation.text import listed, scientific, with_interval
from algoscope.model.learner import InContextLearner
from algoscope.predictors import Predictor, ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import BEST, TrainingConfig, preset

TAIL = "n ≥ 2d"
REGIONS = (UNDER, TAIL)  # where the Bayes predictor must be nearest


@dataclass(frozen=True)
class Figure2:
    """The sizes of figure 2."""

    base: TrainingConfig
    noiseless: str | None  # a model for the first seed without noise, instead of a run
    noiseless_base: TrainingConfig | None = None  # its training, for further seeds
    deviations: tuple[tuple[float, float], ...] = (  # σ and τ, as the paper gives them
        (0.0, 1.0),
        (0.25, 1.0),
        (0.5, 1.5),
        (0.5, 1.0),
        (0.5, 0.75),
    )
    seeds: tuple[int, ...] = (0,)  # of training
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


def column(config: Figure2, sigma: float, tau: float) -> list[TrainingConfig]:
    """Return the runs of one column, one for each seed."""
    base = config.base
    if config.noiseless_base is not None and not sigma:
        base = config.noiseless_base
    base = replace(base, noise_variance=sigma**2, prior_variance=tau**2)
    return [replace(base, seed=seed) for seed in config.seeds]


def trainings(config: Figure2) -> list[TrainingConfig]:
    """Return the runs, without the one whose learner is a model."""
    return [
        run
        for each in config.deviations
        for run in column(config, *each)
        if not _is_model(config, run)
    ]


def _is_model(config: Figure2, run: TrainingConfig) -> bool:
    """Return whether a model takes the place of this run."""
    first = not run.noise_variance and run.seed == config.seeds[0]
    return first and config.noiseless is not None


def measure(config: Figure2, place: Place) -> Spent:
    """Train the learners and measure each on the distribution it was trained on."""
    trained, spent = train_runs(place, trainings(config))
    learners = {each.config: each.learner for each in trained}
    references = tuple(reference(ratio(*each)) for each in config.deviations)
    dim, last = config.base.dim, config.base.num_examples - 1
    spans = {UNDER: (1, max(1, dim - 1)), TAIL: (2 * dim, last), ALL: (1, last)}
    kept = []
    for sigma, tau in config.deviations:
        reference_set = ReferenceSet(
            LinearRegression(dim, tau**2, sigma**2),
            references,
            last,
            config.num_datasets,
            spans,
            config.seed,
        )
        about = {
            "sigma": sigma,
            "tau": tau,
            "ratio": str(ratio(sigma, tau)),
            "bayes": reference(ratio(sigma, tau)).name,
            "dim": dim,
        }
        for run in column(config, sigma, tau):
            learner = learners.get(run)
            if config.noiseless is not None and _is_model(config, run):
                learner = InContextLearner.from_pretrained(config.noiseless)
            if learner is None:  # its run diverged
                continue
            kept.append(f"ratio-{about['ratio'].replace('/', '-')}-{run.seed}.json")
            of_run = about | {"seed": run.seed, "run": learner.name}
            spent += reference_set.measure_once(place, kept[-1], learner, of_run)
    if not kept:
        raise NoLearnerError(spent.runs)
    Cache(place.directory).keep_only(kept)
    return spent


def _load(directory: Path) -> list[SeedGroup]:
    found = by_seed(Distances.load_all(directory))
    return sorted(found, key=lambda each: Fraction(each.about["ratio"]))


def judge(config: Figure2, directory: Path) -> Judgment:
    """Say for each column where its minimum is, and whether it is significant."""
    columns = _load(directory)
    asked = {str(ratio(*each)) for each in config.deviations}
    missing = sorted(asked - {each.about["ratio"] for each in columns}, key=Fraction)
    findings = tuple(map(_sentence, columns))
    if missing:
        findings += (f"No learner was trained for σ²/τ² = {listed(missing)}.",)
    learned = [each for each in columns if each.has_learned]
    hits = [_hits(each) for each in learned]
    in_both = sum(len(regions) == len(REGIONS) for regions in hits)
    clear = sum(bool(_clear(each)) for each in learned)
    verdict: Verdict = "not reproduced"
    if clear == in_both == len(asked):
        verdict = "reproduced"
    elif sum(map(bool, hits)) > len(asked) / 2:
        verdict = "partly"
    seeds = min(each.seeds for each in columns)
    claim = Claim(
        "the diagonal of figure 2",
        "For all σ² and τ² the ridge parameter that gives the best fit is the one that "
        "minimizes Bayes risk (§4.3, figure 2).",
        f"{len(learned)} of {len(asked)} columns have learned. The Bayes predictor is "
        f"nearest in both regions of n in {in_both} of {len(asked)} columns; in "
        f"{clear} columns it is significantly nearest in at least one region "
        f"({config.num_datasets:,} datasets per column, seeds: {seeds}).",
        verdict,
        "" if verdict == "reproduced" else "The findings list each column.",
        seeds,
        min(map(_margin, columns), key=lambda gap: gap.low),
    )
    return Judgment(findings, tuple(_table(columns, r) for r in REGIONS), (claim,))


def _hits(found: SeedGroup) -> list[str]:
    """Return the regions where the learners' Bayes predictor is nearest."""
    bayes, names = found.about["bayes"], _references([found])
    return [r for r in REGIONS if found.is_nearest(bayes, r, names)]


def _clear(found: SeedGroup) -> list[str]:
    """Return those of them where it is significantly nearest."""
    bayes, names = found.about["bayes"], _references([found])
    return [r for r in _hits(found) if found.is_significantly_nearest(bayes, r, names)]


def _margin(found: SeedGroup) -> Difference:
    """Return the difference to the next in the region where it is more significant."""
    bayes, names = found.about["bayes"], _references([found])
    gaps = [found.runner_up(bayes, region, names) for region in REGIONS]
    best = max(gaps, key=lambda gap: gap.low)
    return replace(best, of=f"σ²/τ² = {found.about['ratio']}: {best.of}")


def _sentence(found: SeedGroup) -> str:
    about, names = found.about, _references([found])
    runs = [f"{run.about['run']} of seed {run.about['seed']}" for run in found.runs]
    start = f"σ²/τ² = {about['ratio']} ({listed(runs)})"
    if not found.has_learned:
        return f"{start}: not learned ({found.size})."
    parts = []
    for region in REGIONS:
        best, next_one = found.ranked(region, names)[:2]
        text = f"{with_fraction(best.second)} at MSPD/d = {in_text(best)}"
        gap = found.difference(best.second, next_one.second, region)
        text += f", nearer than {with_fraction(next_one.second)} by {in_text(gap)}"
        fits = found.nearer_fits(region, names)
        text += f" ({fits})" if fits else ""
        parts.append(f"for {IN_WORDS.get(region, region)} is {text}")
    return (
        f"{start}: the Bayes predictor {with_fraction(about['bayes'])} is nearest for: "
        f"{_in_words(_hits(found))}; significantly for: {_in_words(_clear(found))}. "
        f"The nearest {'; '.join(parts)} ({found.size})."
    )


def _in_words(regions: list[str]) -> str:
    return listed([IN_WORDS.get(region, region) for region in regions])


def _table(columns: list[SeedGroup], region: str) -> Table:
    span = "–".join(map(str, columns[0].runs[0].spans[region]))
    names = _references(columns)
    rows = [
        *((with_fraction(n), *(_cell(e, n, region) for e in columns)) for n in names),
        *(
            (name, *(f"{e.in_words(name)}: {_cell(e, name, region)}" for e in columns))
            for name in (FITTED_RIDGE, FITTED_GD)
        ),
        (
            "the Bayes predictor: median, mean without the largest 1 %",
            *(each.robust(each.about["bayes"], region) for each in columns),
        ),
        ("share learned", *(in_text(each.learned()) for each in columns)),
        ("seeds", *(str(each.seeds) for each in columns)),
    ]
    header = ("reference", *(f"σ²/τ² = {each.about['ratio']}" for each in columns))
    return Table(
        f"MSPD/d, {IN_WORDS.get(region, region)} ({span})", header, tuple(rows)
    )


def _cell(found: SeedGroup, name: str, region: str) -> str:
    value = found.to(name, region)
    return with_interval(value.mean, value.low, value.high, scientific)


def _references(columns: list[SeedGroup]) -> list[str]:
    """Return the names of the rows: ridge regression with several penalties."""
    return [n for n in columns[0].references if n.startswith(("OLS", "Ridge("))]


def draw(directory: Path) -> tuple[str, ...]:
    """Draw a heat map for each region; the brightness is proportional to 1/MSPD."""
    columns = _load(directory)
    regions = [region for region in columns[0].runs[0].spans if region != ALL]
    width = (1 + 0.75 * len(columns)) * len(regions)
    figure = Figure(figsize=(width, 1.6 + 0.5 * len(_references(columns))))
    panels = figure.subplots(1, len(regions), squeeze=False)[0]
    for axes, region in zip(panels, regions, strict=True):
        _heat_map(axes, columns, region)
        axes.set_ylabel("reference")
    figure.suptitle(
        f"MSPD / d, d = {columns[0].about['dim']}, {columns[0].num_datasets:,} "
        "datasets; framed: the Bayes predictor",
        fontsize=10,
    )
    figure.tight_layout()
    return (save_picture(figure, directory, "figure_2"),)


def _heat_map(axes: Axes, columns: list[SeedGroup], region: str) -> None:
    names = _references(columns)
    values = np.array(
        [[each.to(name, region).mean for each in columns] for name in names]
    )
    brightness = values.min(axis=0, keepdims=True) / values  # 1 at each column's least
    axes.imshow(brightness, cmap="viridis", vmin=0, vmax=1, aspect="auto")
    for row, name in enumerate(names):
        for column, each in enumerate(columns):
            color = ON_BRIGHT if brightness[row, column] > 0.6 else ON_DARK
            text = scientific(values[row, column])
            axes.text(
                column, row, text, ha="center", va="center", color=color, fontsize=7
            )
            if each.about["bayes"] == name:
                corner = (column - 0.48, row - 0.48)
                axes.add_patch(
                    Rectangle(corner, 0.96, 0.96, fill=False, ec=COLORS[1], lw=2)
                )
    shown = [f"{e.about['sigma']:g}/{e.about['tau']:g}" for e in columns]
    axes.set_xticks(range(len(columns)), shown, fontsize=8)
    axes.set_yticks(range(len(names)), list(map(with_fraction, names)), fontsize=8)
    axes.set_xlabel("σ/τ of the training data")
    span = "–".join(map(str, columns[0].runs[0].spans[region]))
    axes.set_title(f"{region}, n = {span}", fontsize=9)


D8 = TrainingConfig(steps=12_000, **BEST)

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
        "cpu": Figure2(D8, "linear-d8", preset("d8"), seeds=(0, 1)),
        "paper": Figure2(preset("paper"), None, seeds=(0, 1)),
    },
    trainings=trainings,
    measuring=lambda config: (
        20 + 3e-3 * config.num_datasets * len(config.deviations) * len(config.seeds)
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
