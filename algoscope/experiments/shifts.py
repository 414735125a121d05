"""Shifts: what remains of the match with least squares outside the training data.

The paper measures learners on the distribution that they were trained on. Here each run
is also asked about datasets that are changed in one way (`SHIFTS`). Runs trained on
x ~ N(0, I) with several seeds and sizes are compared with one trained on the task
`broad`. The claims are ours, not the paper's; docs/verdicts.md has the rules.
"""

from dataclasses import asdict, dataclass, replace
from itertools import combinations
from pathlib import Path

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import interval_of
from algoscope.experiments import figure_3
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent, models_and_runs
from algoscope.experiments.record import OURS, Claim, Difference, Table, Verdict
from algoscope.experiments.shift_distances import ShiftDistances, measure_shifts
from algoscope.experiments.shifted_data import IN_DISTRIBUTION, NOISE, SHIFTS
from algoscope.foundation import provenance
from algoscope.foundation.plotting import save_picture
from algoscope.foundation.text import listed, number, short, with_interval
from algoscope.foundation.validation import InvalidValueError
from algoscope.tasks.broad import BroadRegression
from algoscope.training.config import TrainingConfig, preset

FILE = ShiftDistances.file
MATCH = 0.01  # of the signal: what the paper calls a match (figure 1)
ALIKE = 0.002  # runs whose distances in distribution differ by less are alike
FACTORS = (10, 3)  # by which alike runs differ under a shift: clearly, partly
SURVIVES = 3  # times the distance in distribution
LEAST_RUNS = 3


@dataclass(frozen=True)
class Shifts:
    """The learners and sizes of the experiment."""

    models: tuple[str, ...] = ("linear-d8", "linear-d8-broad")  # those that ship
    runs: tuple[TrainingConfig, ...] = ()
    num_datasets: int = 4000
    seed: int = 0


def measure(config: Shifts, place: Place) -> Spent:
    """Train the runs, and measure all of them under all shifts."""
    learners, spent = models_and_runs(place, config.models, config.runs)
    dims = {name: learner.dim for name, learner in learners.items()}
    if len(set(dims.values())) > 1:
        raise InvalidValueError("runs", "have the same dimension", dims)
    laws = {
        name: "broad" if isinstance(learner.task, BroadRegression) else "linear"
        for name, learner in learners.items()
    }

    def save() -> None:
        measure_shifts(
            learners,
            laws,
            SHIFTS,
            min(dims.values()),
            num_datasets=config.num_datasets,
            num_examples=min(each.max_examples for each in learners.values()),
            seed=config.seed,
            versions=provenance(),
            progress=place.progress,
        ).save(place.directory)

    digests = {name: learner.digest for name, learner in learners.items()}
    identity = {"config": asdict(config), "learners": digests}
    return spent + place.measure_once(FILE, identity, save)


def matches(found: ShiftDistances, run: str, shift: str) -> bool:
    """Return whether a run is significantly nearer to OLS than `MATCH`."""
    return bool(found.of(run, shift)[2] < MATCH)


def breaks(found: ShiftDistances, run: str, shift: str) -> bool:
    """Return whether a run is significantly farther from OLS than `MATCH`."""
    return bool(found.of(run, shift)[1] > MATCH)


def survived(found: ShiftDistances, run: str) -> list[str]:
    """Return the shifts that at most triple the distance of a run, significantly."""
    at_home = found.replicates(run, IN_DISTRIBUTION)
    return [
        shift
        for shift in found.judged
        if _interval(SURVIVES * at_home - found.replicates(run, shift))[0] > 0
    ]


def _interval(resampled: Float[np.ndarray, " resamples"]) -> tuple[float, float]:
    low, high = interval_of(resampled[:, None])
    return float(low[0]), float(high[0])


def judge(config: Shifts, directory: Path) -> Judgment:
    """Say where each run matches least squares, and judge our claims."""
    found = ShiftDistances.load(directory)
    matching = {
        law: [
            run
            for run, own in zip(found.runs, found.laws, strict=True)
            if own == law and matches(found, run, IN_DISTRIBUTION)
        ]
        for law in ("linear", "broad")
    }
    plain, broad = matching.values()
    left_out = [run for run in found.runs if run not in [*plain, *broad]]
    findings = [found.sentence, *(_where(found, run) for run in found.runs)]
    if left_out:
        findings.append(
            f"These do not match OLS in distribution (distance significantly below "
            f"{MATCH}), so they decide nothing: {listed(left_out)}."
        )
    noisy = [f"{run} {found.text(run, 'label noise')}" for run in found.runs]
    findings.append(
        f"With label noise (σ² = {NOISE}) ridge regression is the Bayes predictor and "
        f"OLS is not, so distances to OLS decide nothing there: {'; '.join(noisy)}."
    )
    claims = (_limits(found, plain), _by_run(found, plain), _broad(found, plain, broad))
    tables = tuple(_table(found, region) for region in found.spans)
    return Judgment(tuple(findings), tables, claims)


def _where(found: ShiftDistances, run: str) -> str:
    kept = [s for s in found.judged if matches(found, run, s)]
    lost = [s for s in found.judged if breaks(found, run, s)]
    open_ = [s for s in found.judged if s not in [*kept, *lost]]
    text = f"{run}: the match holds under {listed(kept)}, and breaks under "
    text += listed([f"{s} ({short(found.of(run, s)[0])})" for s in lost])
    return text + (f"; undecided: {listed(open_)}." if open_ else ".")


def _limits(found: ShiftDistances, plain: list[str]) -> Claim:
    """Judge whether the match holds under some shifts and breaks under others."""
    name = "the match with least squares has limits"
    paper = (
        f"{OURS} Runs that match least squares where they were trained, x ~ N(0, I), "
        "match it under some shifts too, and under others none of them does."
    )
    if not plain:
        reason = "No run trained on x ~ N(0, I) matches OLS in distribution."
        return Claim(name, paper, found.sentence, "not testable", reason)
    lost = {s: [r for r in plain if breaks(found, r, s)] for s in found.judged}
    by_all = [s for s in found.judged if all(matches(found, r, s) for r in plain)]
    by_none = [s for s in found.judged if len(lost[s]) == len(plain)]
    mixed = [s for s in found.judged if s not in [*by_all, *by_none]]
    measured = (
        f"Runs that match in distribution: {len(plain)}. All of them match under "
        f"{listed(by_all)}; all break under {listed(by_none)}; it depends on the run, "
        f"or is undecided, under {listed(mixed)} (bound {MATCH} of the signal, mean "
        f"over n = 1–{found.num_examples}, {found.num_datasets:,} datasets)."
    )
    worst = max(by_none or found.judged, key=lambda s: _least(found, plain, s)[0])
    _, run = _least(found, plain, worst)
    excess = found.of(run, worst)[:3] - MATCH
    of = f"distance of {run} − {MATCH}, the least of all runs, under {worst}"
    difference = Difference(of, *(float(each) for each in excess))
    verdict: Verdict = "partly" if any(lost.values()) else "not reproduced"
    reason = "No shift under which all runs match, or none under which all break."
    if by_all and by_none:
        reason = f"Only {len(plain)} runs."
        if len(plain) >= LEAST_RUNS:
            verdict, reason = "reproduced", ""
    return Claim(name, paper, measured, verdict, reason, len(plain), difference)


def _least(found: ShiftDistances, runs: list[str], shift: str) -> tuple[float, str]:
    """Return the least distance of any of these runs under a shift, and the run."""
    return min((float(found.of(run, shift)[0]), run) for run in runs)


def _by_run(found: ShiftDistances, plain: list[str]) -> Claim:
    """Judge whether runs that agree in distribution differ under a shift."""
    name = "behavior under a shift is a property of the run"
    paper = (
        f"{OURS} Runs trained on x ~ N(0, I) that agree in distribution, to {ALIKE} of "
        f"the signal, differ by more than a factor of {FACTORS[0]} under a shift."
    )
    pairs = [pair for pair in combinations(plain, 2) if _are_alike(found, *pair)]
    if not pairs:
        reason = f"No two runs agree to {ALIKE} in distribution."
        return Claim(name, paper, found.sentence, "not testable", reason, len(plain))
    asked = [
        (a, b, s) for x, y in pairs for a, b in ((x, y), (y, x)) for s in found.judged
    ]
    far, near, shift = max(asked, key=lambda each: _log_ratios(found, *each).min())
    logs = _log_ratios(found, far, near, shift)
    value = float(np.log10(found.of(far, shift)[0] / found.of(near, shift)[0]))
    low, high = _interval(logs)
    least = 10 ** float(logs.min())
    ratio = with_interval(10**value, 10**low, 10**high)
    measured = (
        f"Under {shift}, the distance of {far} ({found.text(far, shift)}) is {ratio} "
        f"times that of {near} ({found.text(near, shift)}), and at least "
        f"{number(least)} times in every resample; in distribution they have "
        f"{found.text(far, IN_DISTRIBUTION)} and {found.text(near, IN_DISTRIBUTION)}. "
        f"This is the most of {len(pairs)} pairs and {len(found.judged)} shifts "
        f"({found.num_datasets:,} common datasets)."
    )
    clearly, partly = FACTORS
    verdict: Verdict = "reproduced" if least > clearly else "not reproduced"
    reason = "" if least > clearly else f"The factor is not more than {clearly}."
    if partly < least <= clearly:
        verdict = "partly"
    of = f"log₁₀ of the distances of {far} − {near}, under {shift}"
    difference = Difference(of, value, low, high)
    return Claim(name, paper, measured, verdict, reason, len(plain), difference)


def _are_alike(found: ShiftDistances, first: str, second: str) -> bool:
    """Return whether distances in distribution differ by significantly less."""
    a, b = (found.replicates(run, IN_DISTRIBUTION) for run in (first, second))
    low, high = _interval(a - b)
    return low > -ALIKE and high < ALIKE


def _log_ratios(
    found: ShiftDistances, far: str, near: str, shift: str
) -> Float[np.ndarray, " resamples"]:
    """Return bootstrap replicates of log₁₀ of the ratio of two distances."""
    return np.log10(found.replicates(far, shift) / found.replicates(near, shift))


def _broad(found: ShiftDistances, plain: list[str], broad: list[str]) -> Claim:
    """Judge whether training on many laws of x keeps the distance small."""
    name = "training on a broad law of x survives"
    paper = (
        f"{OURS} A run trained on many laws of x stays within {SURVIVES} times its own "
        "distance in distribution under every shift whose optimum is least squares."
    )
    if not broad:
        reason = "No run trained on the task broad matches OLS in distribution."
        return Claim(name, paper, found.sentence, "not testable", reason)
    kept = {run: survived(found, run) for run in [*plain, *broad]}
    worst, run = max(
        ((shift, run) for run in broad for shift in found.judged),
        key=lambda each: (
            found.of(each[1], each[0])[0] / found.of(each[1], IN_DISTRIBUTION)[0]
        ),
    )
    at_home, away = found.replicates(run, IN_DISTRIBUTION), found.replicates(run, worst)
    mean = SURVIVES * found.of(run, IN_DISTRIBUTION)[0] - found.of(run, worst)[0]
    low, high = _interval(SURVIVES * at_home - away)
    of = f"{SURVIVES} × distance in distribution − distance under {worst}, {run}"
    counts = listed([f"{each} {len(kept[each])}" for each in kept])
    times = found.of(run, worst)[0] / found.of(run, IN_DISTRIBUTION)[0]
    at_worst, before = found.text(run, worst), found.text(run, IN_DISTRIBUTION)
    measured = (
        f"Shifts, of {len(found.judged)}, under which the distance is significantly "
        f"below {SURVIVES} times that in distribution: {counts}. The worst for runs "
        f"trained on broad is {worst}: {at_worst}, {number(float(times))} times "
        f"{before} ({run}; {found.num_datasets:,} datasets)."
    )
    fewest = min(len(kept[each]) for each in broad)
    verdict: Verdict = "not reproduced"
    if fewest == len(found.judged):
        verdict = "reproduced"
    elif fewest > max((len(kept[each]) for each in plain), default=0):
        verdict = "partly"
    missed = [s for s in found.judged if any(s not in kept[each] for each in broad)]
    reason = f"Not under {listed(missed)}." if missed else ""
    difference = Difference(of, float(mean), low, high)
    return Claim(name, paper, measured, verdict, reason, len(broad), difference)


def _table(found: ShiftDistances, region: str) -> Table:
    first, last = found.spans[region]
    span = f"n = {first}–{last}" if first < last else f"n = {first}"
    rows = tuple(
        (shift, *(found.text(run, shift, region) for run in found.runs))
        for shift in found.shifts
    )
    title = f"SPD to OLS over the signal, {region} ({span})"
    return Table(title, ("shift", *found.runs), rows)


def draw(directory: Path) -> tuple[str, ...]:
    """Draw distances against n under each shift, and a map of them over all n."""
    found = ShiftDistances.load(directory)
    return (
        save_picture(found.map_figure(), directory, "shifts_map"),
        save_picture(found.plot(), directory, "shifts"),
    )


D8 = preset("d8")  # linear-d8 is its seed 0
RUNS = (
    replace(D8, seed=1),
    TrainingConfig(),  # with 8 layers, and all positions weighted equally
    figure_3.D8,  # with 8 layers, as the next one with 4
    replace(figure_3.D8, num_layers=4),
    preset("d8-broad"),
)
PAPER = (
    *(replace(preset("paper"), seed=seed) for seed in (0, 1, 2)),
    replace(preset("paper"), task="broad"),
)
TINY = replace(preset("demo"), num_layers=1, hidden_size=8, num_examples=5, steps=50)

EXPERIMENT = Experiment(
    name="shifts",
    title="Does the match with least squares survive a shift of the data?",
    budgets={
        "smoke": Shifts(
            ("linear-d2",), (TINY, replace(TINY, task="broad", seed=1)), 40
        ),
        "cpu": Shifts(runs=RUNS),
        "paper": Shifts(models=(), runs=PAPER, num_datasets=10_000),
    },
    trainings=lambda config: config.runs,
    measuring=lambda config: (
        20
        + 1.2e-3
        * len(SHIFTS)
        * config.num_datasets
        * (len(config.models) + len(config.runs))
    ),
    measure=measure,
    judge=judge,
    draw=draw,
)
