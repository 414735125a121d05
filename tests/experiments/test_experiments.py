"""Experiments: measured once, judged by their numbers, drawn from what is saved."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from algoscope.experiments.cache import forget_others, names_in, once
from support.refusals import refuses

from algoscope.comparison.compare import LINEAR_FIT, compare
from algoscope.comparison.intervals import Curve, Estimate
from algoscope.comparison.result import LABELS, Comparison
from algoscope.experiments import (
    BUDGETS,
    MODULES,
    experiment,
    figure_1,
    figure_2,
    figure_3,
    figure_6,
    figure_7,
    figure_8,
    phases,
    readings,
)
from algoscope.experiments import figure_8 as requirements
from algoscope.experiments import learners as models
from algoscope.experiments.experiment import SMOKE, Place, total
from algoscope.experiments.learners import (
    FILES,
    MEASURED,
    NoLearnerError,
    keep_models,
    train,
)
from algoscope.experiments.readings import read_at_labels
from algoscope.experiments.record import Record
from algoscope.experiments.references import Distances, Yardstick, paper_names
from algoscope.foundation.cache import digest_of_learner
from algoscope.foundation.files import write_json
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.initialization import random_transformer
from algoscope.model.learner import InContextLearner
from algoscope.predictors import ols, ridge
from algoscope.probing.result import Measurement, ProbingResult
from algoscope.tasks.linear import LinearRegression
from algoscope.training import sweeps
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.cost import core_seconds
from algoscope.training.sweeps.store import Outcome

HOUR = 3600
TINY = replace(preset("demo"), num_layers=1, hidden_size=8, num_examples=5, steps=50)


# Measured once


def test_a_measurement_is_made_once_for_one_identity(tmp_path: Path):
    made = []

    def measure(name: str = "a.json") -> None:
        made.append(name)
        write_json(tmp_path / name, {})

    first = once(tmp_path, "a.json", {"seed": 0, "sizes": (1, 2)}, measure)
    assert once(tmp_path, "a.json", {"seed": 0, "sizes": (1, 2)}, measure) == first
    assert made == ["a.json"]
    once(tmp_path, "a.json", {"seed": 1}, measure)
    assert len(made) == 2
    (tmp_path / "a.json").unlink()
    once(tmp_path, "a.json", {"seed": 1}, measure)
    assert len(made) == 3


def test_a_measurement_that_fails_is_not_taken_for_made(tmp_path: Path):
    def interrupted() -> None:
        write_json(tmp_path / "a.json", {})
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        once(tmp_path, "a.json", {}, interrupted)
    assert names_in(tmp_path) == []


def test_measurements_of_other_configurations_are_forgotten(tmp_path: Path):
    for name in ("a.json", "b.json"):
        once(tmp_path, name, {}, lambda name=name: write_json(tmp_path / name, {}))
    forget_others(tmp_path, ["b.json"])
    assert names_in(tmp_path) == ["b.json"]
    assert not (tmp_path / "a.json").exists()


def test_small_models_are_kept_and_those_of_other_runs_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    store, directory = tmp_path / "store", tmp_path / "fig"
    for run, size in {"small": 5, "large": 9, "diverged": 0}.items():
        for name in FILES if size else ("config.json",):
            (store / run / name).parent.mkdir(parents=True, exist_ok=True)
            (store / run / name).write_bytes(b"x" * size)
    monkeypatch.setattr(models, "MOST_BYTES", 5)
    keep_models(store, ["small", "large", "diverged"], directory)
    assert [path.name for path in (directory / "models").iterdir()] == ["small"]
    kept = directory / "models" / "small"
    assert {path.name for path in kept.iterdir()} == set(FILES)
    assert (kept / "model.safetensors").read_bytes() == b"xxxxx"
    (kept / "notes.txt").write_text("mine")
    monkeypatch.setattr(models, "MOST_BYTES", 9)
    keep_models(store, ["large"], directory)
    assert {path.name for path in kept.iterdir()} == {"notes.txt"}
    assert (directory / "models" / "large" / "config.json").exists()
    keep_models(store, [], directory)
    assert not (directory / "models" / "large").exists()


def test_a_model_is_kept_by_one_experiment(tmp_path: Path):
    for name in FILES:
        (tmp_path / "store" / "run" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "store" / "run" / name).write_text("x")
    results = tmp_path / "results"
    for _ in range(2):
        keep_models(tmp_path / "store", ["run"], results / "fig3")
        keep_models(tmp_path / "store", ["run"], results / "fig8")
        assert models.find_model("run", results) == results / "fig3" / "models" / "run"
        assert not (results / "fig8" / "models" / "run").exists()
    (results / "fig3" / "models" / "run" / FILES[-1]).unlink()
    keep_models(tmp_path / "store", ["run"], results / "fig8")
    assert models.find_model("run", results) == results / "fig8" / "models" / "run"


# Budgets and costs


@pytest.mark.parametrize("name", MODULES)
def test_every_experiment_has_the_three_budgets_and_a_cost(name: str):
    found = experiment(name)
    assert found.name == name
    assert tuple(found.budgets) == BUDGETS
    costs = [found.estimate(budget).seconds for budget in BUDGETS]
    assert 0 < costs[0] <= costs[1] <= costs[2]


def test_everything_takes_at_most_eight_hours_on_two_cores():
    cost = total([experiment(name).estimate("cpu") for name in MODULES])
    assert cost.seconds < 8 * HOUR


def test_experiments_that_share_runs_pay_for_them_once():
    both = [experiment(name).estimate("cpu") for name in ("fig3", "fig8")]
    shared = set(both[0].trainings) & set(both[1].trainings)
    assert len(shared) == 6  # d = 8: four depths, and two hidden sizes below 64
    paid = sum(core_seconds(run) for run in shared) / 2
    assert total(both).seconds == pytest.approx(sum(c.seconds for c in both) - paid)


def test_the_estimate_of_the_shipped_model_fits_what_its_training_took():
    seconds = core_seconds(preset("d8")) / 2
    assert 1529 / 1.5 < seconds < 1529 * 1.5


def test_the_grid_of_the_paper_has_2016_runs():
    assert len(figure_8.EXPERIMENT.estimate("paper").trainings) == 2016


def test_a_budget_is_one_of_three():
    with refuses(
        InvalidValueError,
        "`budget` must be one of smoke, cpu, paper, got 'cpus'. Did you mean 'cpu'?",
    ):
        figure_7.EXPERIMENT.config("cpus")


def test_a_figure_is_one_of_the_paper():
    known = ", ".join(MODULES)
    with refuses(
        InvalidValueError,
        f"`figure` must be one of {known}, got 'fig9'. Did you mean 'fig8'?",
    ):
        experiment("fig9")


# Distances


def small_learner(seed: int = 0, dim: int = 2, num_examples: int = 5):
    return InContextLearner(
        random_transformer(
            seed,
            token_size=dim + 1,
            max_time=2 * num_examples - 1,
            num_layers=1,
            hidden_size=8,
            num_heads=2,
        ),
        f"random {seed}",
    )


def test_distances_agree_with_a_comparison(tmp_path: Path):
    learner, task = small_learner(dim=3), LinearRegression(3, 2.0, 0.25)
    references = (ols, ridge(0.5))
    yardstick = Yardstick(task, references, 4, 40, {"low": (1, 2), "all": (1, 4)}, 3)
    found = yardstick.distances(learner, "random", {})
    for region, span in yardstick.spans.items():
        expected = compare(
            learner,
            references,
            task,
            num_examples=4,
            num_datasets=40,
            seed=3,
            metrics=("mspd",),
            region=span,
        )
        for reference in ("OLS", "Ridge(0.5)", LABELS):
            one = found.to(reference, region)
            other = next(
                e
                for e in expected.mspd
                if (e.first, e.second) == (learner.name, reference)
            )
            for part in ("mean", "low", "high", "median", "count"):
                assert getattr(one, part) == pytest.approx(getattr(other, part))
    yardstick.measure_once(tmp_path, "random.json", learner, {})
    saved = Distances.load(tmp_path / "random.json")
    assert saved.nearest("low").second == found.nearest("low").second
    assert saved.to("OLS", "all").mean == pytest.approx(found.to("OLS", "all").mean)


def test_margins_are_differences_of_means():
    yardstick = Yardstick(LinearRegression(2), (ols, ridge(0.5)), 4, 30, {"a": (1, 3)})
    found = yardstick.distances(small_learner(), "random", {})
    best = found.nearest("a")
    for margin in found.margins["a"]:
        assert margin.first == best.second
        gap = found.to(margin.second, "a").mean - best.mean
        assert margin.mean == pytest.approx(gap)


# Judging


def distances(means: dict[str, float], width: float = 0.001, **about) -> Distances:
    """Return made-up distances with intervals of one width."""
    regions = [phases.REGION, "over-determined", "all n"]
    estimates = [
        Estimate("learner", name, mean, mean - width, mean + width, mean, 100)
        for name, mean in (means | {LABELS: 1.0}).items()
    ]
    nearest = min(means, key=lambda name: means[name])
    margins = [
        Estimate(nearest, name, gap, gap - width, gap + width, gap, 100)
        for name, mean in means.items()
        if name != nearest and (gap := mean - means[nearest]) >= 0
    ]
    return Distances(
        learner="learner",
        about=about,
        num_datasets=100,
        spans={region: [1, 7] for region in regions},
        means=dict.fromkeys(regions, estimates),
        margins=dict.fromkeys(regions, margins),
    )


def test_margins_tell_apart_what_intervals_do_not():
    close = distances({"OLS": 0.10, "Ridge(0.1)": 0.12}, 0.015)
    assert not close.stands_out("all n")
    assert close.is_surely_nearest("all n")
    closer = distances({"OLS": 0.10, "Ridge(0.1)": 0.11}, 0.015)
    assert not closer.is_surely_nearest("all n")


def near(reference: str) -> dict[str, float]:
    return {name: 0.1 if name == reference else 0.3 for name in paper_names()}


def phase_series(nearest: list[str], axis: str = "num_layers", dim: int = 8):
    sizes = [1, 2, 4, 8] if axis == "num_layers" else [16, 32, 64, 128]
    runs = [
        distances(near(name), dim=dim, num_heads=4, num_layers=1, hidden_size=1)
        for name in nearest
    ]
    for run, size in zip(runs, sizes, strict=False):
        run.about[axis] = size
    return phases.series_of(runs, axis)


@pytest.mark.parametrize(
    ("nearest", "by_width", "by_depth", "reason"),
    [
        (["GD(0.01)", "Ridge(0.5)", "Ridge(0.1)", "OLS"], "reproduced", None, ""),
        (["GD(0.01)", "Ridge(0.1)", "OLS", "OLS"], "reproduced", "partly", "L = 4."),
        (["SGD(0.03)", "Ridge(0.1)", "OLS", "OLS"], "reproduced", "partly", "1 and 4."),
        (["GD(0.01)", "Ridge(0.1)", "Ridge(0.1)"], "partly", None, "L = 1, 2 and 4 we"),
        (["GD(0.02)", "GD(0.01)", "Ridge(0.1)", "Ridge(0.1)"], "partly", None, "2 and"),
        (["OLS", "Ridge(0.1)", "GD(0.01)", "OLS"], "not reproduced", None, "phases"),
        (["OLS", "OLS", "OLS", "OLS"], "not reproduced", None, "phases are OLS"),
        (["KNN(3, uniform)", "Ridge(0.1)", "OLS"], "not reproduced", None, "neighbors"),
        (["GD(0.01)"], "not testable", None, "Only one size"),
    ],
)
def test_phases_are_judged_by_their_order_and_with_depth_by_their_place(
    nearest: list[str], by_width: str, by_depth: str | None, reason: str
):
    assert phases.width_claim(phase_series(nearest, "hidden_size")).verdict == by_width
    claim = phases.depth_claim(phase_series(nearest, "num_layers"))
    assert claim.verdict == (by_depth or by_width)
    assert reason in claim.reason
    assert bool(claim.reason) == (claim.verdict != "reproduced")


@pytest.mark.parametrize(
    ("dim", "least", "nearest", "verdict"),
    [
        (8, 16, ["Ridge(0.1)", "OLS", "OLS", "OLS"], "reproduced"),
        (16, 32, ["GD(0.01)", "Ridge(0.1)", "OLS", "OLS"], "reproduced"),
        (16, 32, ["Ridge(0.1)", "Ridge(0.1)", "OLS", "OLS"], "partly"),
        (8, 16, ["GD(0.01)", "GD(0.01)", "OLS", "OLS"], "partly"),
        (8, 16, ["Ridge(0.1)", "GD(0.01)", "OLS", "OLS"], "not reproduced"),
        (8, 16, ["GD(0.01)"] * 4, "not reproduced"),
    ],
)
def test_the_required_hidden_size_is_judged(
    dim: int, least: int, nearest: list[str], verdict: str
):
    series = phase_series(nearest, "hidden_size", dim)
    assert phases.requirement_claim(series, least).verdict == verdict


def test_a_series_takes_the_run_of_least_risk_whatever_is_nearest():
    good, bad = distances(near("OLS"), dim=8), distances(near("GD(0.01)"), dim=8)
    for run, risk in ((good, 0.5), (bad, 0.2)):
        run.about["num_layers"] = 1
        run.means["all n"] = [Estimate("l", LABELS, risk, 0.0, 1.0, risk, 9)]
    series = phases.series_of([good, bad], "num_layers")
    assert series.runs[1] is bad


def write_columns(directory: Path, nearest: dict[str, str], width: float) -> None:
    """Write made-up distances of figure 2's learners."""
    for ratio, name in nearest.items():
        means = {"OLS": 0.3, "Ridge(0.25)": 0.3, "Ridge(0.444444)": 0.3} | {name: 0.1}
        file = f"{ratio.replace('/', '-')}.json"
        bayes = {"0": "OLS", "1/4": "Ridge(0.25)", "4/9": "Ridge(0.444444)"}[ratio]
        made = distances(
            means, width, ratio=ratio, bayes=bayes, learner="l", dim=8, sigma=1, tau=1
        )

        def save(made=made, file=file):
            values = {k: getattr(made, k) for k in made.__dataclass_fields__}
            for part in ("means", "margins"):
                values[part] = {
                    region: [vars(e) for e in each]
                    for region, each in values[part].items()
                }
            write_json(directory / file, values)

        once(directory, file, {"of": name}, save)


BAYES = {"0": "OLS", "1/4": "Ridge(0.25)", "4/9": "Ridge(0.444444)"}


@pytest.mark.parametrize(
    ("nearest", "width", "verdict"),
    [
        (BAYES, 0.01, "reproduced"),
        (BAYES, 0.2, "partly"),  # intervals overlap
        (BAYES | {"1/4": "OLS"}, 0.01, "partly"),
        (dict.fromkeys(BAYES, "OLS"), 0.01, "not reproduced"),
    ],
)
def test_the_diagonal_is_judged_by_separate_intervals(
    tmp_path: Path, nearest: dict[str, str], width: float, verdict: str
):
    write_columns(tmp_path, nearest, width)
    deviations = ((0.0, 1.0), (0.5, 1.0), (0.5, 0.75))
    config = figure_2.Figure2(preset("d8"), "linear-d8", deviations)
    judgment = figure_2.judge(config, tmp_path)
    assert [claim.verdict for claim in judgment.claims] == [verdict]
    assert figure_2.draw(tmp_path) == ("figure_2",)
    for ending in ("svg", "png"):
        assert (tmp_path / f"figure_2.{ending}").stat().st_size < 300_000


def test_a_column_whose_run_diverged_is_told_and_not_counted(tmp_path: Path):
    write_columns(tmp_path, {"0": "OLS", "1/4": "Ridge(0.25)"}, 0.01)
    config = figure_2.Figure2(
        preset("d8"), "linear-d8", ((0.0, 1.0), (0.5, 1.0), (0.5, 0.75))
    )
    judgment = figure_2.judge(config, tmp_path)
    assert judgment.findings[-1] == "No learner was trained for σ²/τ² = 4/9."
    assert judgment.claims[0].verdict == "partly"


def scaled(
    dim: int, layers: int, hidden: int, heads: int, enough: bool, width: float = 0.001
) -> Distances:
    means = {"OLS": 0.1 if enough else 0.3, "Ridge(0.1)": 0.2}
    sizes = {"num_layers": layers, "hidden_size": hidden, "num_heads": heads}
    return distances(means, width, dim=dim, **sizes)


def test_the_least_size_is_that_of_the_smallest_run_that_suffices():
    runs = [
        scaled(2, 1, 64, 4, False),
        scaled(2, 2, 64, 4, True),
        scaled(2, 8, 16, 4, True),
        scaled(2, 8, 64, 1, True),
        scaled(8, 8, 64, 1, False),
        scaled(8, 8, 64, 4, False),
    ]
    found = {(e.axis, e.dim): e.size for e in requirements.least_sizes(runs)}
    assert found["num_layers", 2] == 2
    assert found["hidden_size", 2] == 16
    assert found["num_heads", 2] == 1
    assert found["num_heads", 8] is None


def test_sizes_whose_intervals_hold_both_answers_are_undecided():
    runs = [
        scaled(8, 8, 64, 1, False, width=0.15),
        scaled(8, 8, 64, 2, True),
        scaled(8, 8, 64, 4, True, width=0.15),
    ]
    least = {each.axis: each for each in requirements.least_sizes(runs)}
    assert least["num_heads"].unsure == (1,)  # 4 is larger than what is enough
    assert least["num_layers"].unsure == ()  # one run of that depth is sure
    single, *_ = requirements.claims(list(least.values()), 100)
    assert "2 for d = 8 (1 undecided)" in single.measured
    assert single.reason == "It does for no d."
    table = requirements.requirement_table(runs)
    assert [row[-1] for row in table.rows] == ["no?", "yes", "yes?"]


def test_a_dimension_whose_runs_all_diverged_is_not_forgotten():
    runs = [scaled(2, 8, 64, heads, True) for heads in (1, 4)]
    least = requirements.least_sizes(runs, (2, 8))
    single, width, _ = requirements.claims(least, 100)
    assert single.verdict == "partly"
    assert "unknown for d = 8, as no run ended" in single.measured
    assert width.verdict == "partly"


@pytest.mark.parametrize(
    ("heads", "hidden", "verdicts"),
    [
        ([1, 1], [16, 32], ["reproduced", "reproduced"]),
        ([1, 2], [16, 16], ["partly", "partly"]),
        ([2, 2], [32, 16], ["not reproduced", "not reproduced"]),
        ([None, 1], [16, None], ["partly", "partly"]),
        ([None, None], [None, None], ["not reproduced", "not testable"]),
    ],
)
def test_requirements_are_judged(heads: list, hidden: list, verdicts: list[str]):
    def least(axis: str, sizes: list):
        return [
            requirements.Least(dim, axis, size, (1, 64))
            for dim, size in zip((2, 8), sizes, strict=True)
        ]

    made = least("num_heads", heads) + least("hidden_size", hidden)
    claims = requirements.claims(made + least("num_layers", [1, 2]), 100)
    assert [claim.verdict for claim in claims[:2]] == verdicts
    assert claims[2].verdict == "reproduced"


def linearity(values: list[float], width: float = 0.01) -> Comparison:
    """Return a made-up comparison that holds R² after 0, 1, … examples."""
    low, high = [v - width for v in values], [v + width for v in values]
    spd = Curve("learner", "OLS", values, low, high, values)
    r2 = Curve("learner", LINEAR_FIT, values, low, high, values)
    sizes = {"num_costly_datasets": 10, "num_queries": 8}
    return Comparison(
        "learner", 4, "task", 10, 0, [spd], {}, {"r2": [r2]}, settings=sizes
    )


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.0, 0.5, 0.6, 0.8, 0.98, 1.0], "reproduced"),
        ([0.0, 0.5, 0.9, 0.7, 0.98, 1.0], "partly"),
        ([0.0, 0.9, 1.0, 1.0, 1.0, 1.0], "partly"),  # linear from two examples on
        ([0.0, 1.0, 1.0, 1.0, 1.0, 1.0], "not reproduced"),
        ([0.0, 0.9, 0.8, 0.7, 0.6, 0.5], "not reproduced"),
    ],
)
def test_linearity_is_judged_by_its_growth(
    tmp_path: Path, values: list[float], verdict: str
):
    linearity(values).save(tmp_path / figure_6.FILE)
    judgment = figure_6.judge(figure_6.Figure6(), tmp_path)
    assert judgment.claims[0].verdict == verdict
    assert figure_6.draw(tmp_path) == ("figure_6",)


def fit(own: dict[str, float], dim: int = 4, last: int = 6) -> Comparison:
    """Return a made-up comparison whose SPD and ILWD do not depend on n."""

    def curve(first: str, second: str, value: float) -> Curve:
        mean, low, high = ([value * c] * (last + 1) for c in (1.0, 0.9, 1.1))
        return Curve(first, second, mean, low, high, mean)

    curves = [curve("learner", name, value) for name, value in own.items()]
    labels = [curve(name, LABELS, 0.5) for name in ("learner", *figure_1.LABELED)]
    mspd = [
        Estimate("learner", name, value, value * 0.9, value * 1.1, value, 10)
        for name, value in own.items()
    ]
    return Comparison(
        "learner",
        dim,
        "task",
        10,
        0,
        curves + labels,
        {},
        {"ilwd": curves},
        mspd,
        {"num_costly_datasets": 10, "region": [1, dim - 1]},
    )


ORDER = dict(zip(paper_names(), np.geomspace(1e-3, 0.6, 9).tolist(), strict=True))


@pytest.mark.parametrize(
    ("own", "verdicts"),
    [
        (ORDER, ["reproduced"] * 3),
        (
            {name: 0.02 + value for name, value in ORDER.items()},
            ["partly", "partly", "reproduced"],
        ),
        (ORDER | {"OLS": 0.9}, ["not reproduced"] * 3),
        (ORDER | {"SGD(0.01)": 0.9}, ["reproduced", "reproduced", "partly"]),
    ],
)
def test_figure_1_is_judged(tmp_path: Path, own: dict[str, float], verdicts: list[str]):
    fit(own | {"OptimalGD": 0.5}).save(tmp_path / figure_1.FILE)
    judgment = figure_1.judge(figure_1.Figure1(), tmp_path)
    assert [claim.verdict for claim in judgment.claims] == verdicts
    assert figure_1.draw(tmp_path) == ("figure_1", "figure_1_wider")


def probed(errors: dict[tuple[str, str, str], list[float]]) -> ProbingResult:
    """Return a made-up result with these relative errors per layer."""
    noise = np.array([-1e-3, 0.0, 1e-3])[:, None, None]
    measurements = tuple(
        Measurement(
            learner=learner,
            target=target,
            kind=kind,
            layers=tuple(range(len(values))),
            error=np.array(values)[None, :, None] + noise,
            variance=np.ones((3, 1)),
            attention=np.ones((3, len(values), 1, 3)) / 3,
        )
        for (learner, target, kind), values in errors.items()
    )
    config = {"repeats": 3, "num_test": 10, "num_training": 10}
    return ProbingResult("l", ("c",), 4, "task", (1,), config, {}, measurements)


EARLY, LATE = [1.0, 0.8, 0.1, 0.2, 0.3], [1.0, 0.9, 0.8, 0.1, 0.05]


def results(
    moment: list[float], weights: list[float], linear: float, control: float
) -> ProbingResult:
    errors = {}
    for learner, offset in (("l", 0.0), ("c", control)):
        for target, values in (("moment", moment), ("w_ols", weights)):
            for kind, more in (("linear", linear), ("mlp", 0.0)):
                made = [value + offset + more for value in values]
                errors[learner, target, kind] = made
    return probed(errors)


def test_probing_is_judged():
    found = results(EARLY, LATE, 0.1, 0.5)
    assert readings.moment_before_weights(found).verdict == "reproduced"
    assert readings.nonlinear_is_better(found).verdict == "reproduced"
    assert readings.controls_are_worse(found, "c").verdict == "reproduced"
    assert readings.deep_not_input(found).verdict == "reproduced"
    assert readings.decoded_accurately(found).verdict == "not reproduced"
    closer = results(EARLY, [value / 10 for value in LATE], 0.1, 0.5)
    assert readings.decoded_accurately(closer).verdict == "reproduced"
    assert readings.half_way(found.of("moment", "mlp")) == 2
    assert readings.half_way(found.of("w_ols", "mlp")) == 3


def test_probing_that_shows_nothing_is_judged_so():
    found = results(LATE, EARLY, -0.1, -0.02)
    assert readings.moment_before_weights(found).verdict == "not reproduced"
    assert readings.nonlinear_is_better(found).verdict == "not reproduced"
    assert readings.controls_are_worse(found, "c").verdict == "not reproduced"
    flat = results([0.5] * 5, [0.5, 0.5, 0.5, 0.3, 0.3], 0.0, 0.0)
    assert readings.deep_not_input(flat).verdict == "not reproduced"


def looking(*places: int) -> ProbingResult:
    """Return probes with d = 1 that look, after one and two examples, at a position."""
    alpha = np.zeros((3, 5, 2, 5))
    alpha[:, :, range(2), places] = 0.9
    alpha[:, :, :, 0] += 0.1
    found = results(EARLY, LATE, 0.1, 0.5)
    seen = [
        replace(
            each,
            error=np.repeat(each.error, 2, axis=2),
            variance=np.ones((3, 2)),
            attention=alpha,
        )
        for each in found.measurements
    ]
    return replace(found, dim=1, prefixes=(1, 2), measurements=tuple(seen))


@pytest.mark.parametrize(
    ("places", "verdict"),
    [
        ((1, 1), "reproduced"),
        ((1, 3), "reproduced"),
        ((1, 2), "partly"),
        ((2, 3), "partly"),
        ((2, 4), "not reproduced"),
    ],
)
def test_where_probes_look_is_judged(places: tuple[int, ...], verdict: str):
    claim = read_at_labels(looking(*places))
    assert claim.verdict == verdict
    assert "0.40 is what equal attention" in claim.measured


def test_where_probes_look_takes_prefixes_on_both_sides_of_d():
    assert read_at_labels(results(EARLY, LATE, 0.1, 0.5)).verdict == "not testable"


# Running


def place_in(directory: Path, name: str = "fig7") -> Place:
    return Place(directory / name, directory / "runs", engine="inline")


def test_an_experiment_is_measured_once_and_drawn_the_same_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    place = place_in(tmp_path)
    first = figure_7.EXPERIMENT.reproduce("cpu", place)
    svg = place.directory / "figure_7.svg"
    drawn = svg.read_bytes()

    def forbidden(num_points: int) -> None:
        raise AssertionError("measured again")

    monkeypatch.setattr(figure_7, "approximate_squares", forbidden)
    svg.unlink()
    assert figure_7.EXPERIMENT.reproduce("cpu", place) == first
    assert svg.read_bytes() == drawn
    assert Record.load(place.directory) == first
    assert {claim.verdict for claim in first.claims} == {"reproduced", "partly"}


def test_the_smoke_budget_tests_no_claim(tmp_path: Path):
    record = figure_7.EXPERIMENT.reproduce("smoke", place_in(tmp_path))
    assert record.claims
    for claim in record.claims:
        assert (claim.verdict, claim.reason) == ("not testable", SMOKE)
        assert claim.measured


def test_results_of_another_budget_are_not_replaced(tmp_path: Path):
    smoke = figure_7.EXPERIMENT.reproduce("smoke", place_in(tmp_path))
    directory = place_in(tmp_path).directory
    message = (
        "`out` must hold no results of another budget than cpu, got those of smoke in "
        f"{directory}. Choose another --out."
    )
    with refuses(InvalidValueError, message):
        figure_7.EXPERIMENT.reproduce("cpu", place_in(tmp_path))
    assert Record.load(directory) == smoke


def test_the_measurements_of_a_shared_experiment_are_not_replaced(tmp_path: Path):
    record = figure_7.EXPERIMENT.reproduce("smoke", place_in(tmp_path))
    replace(record, figure="fig4", budget="cpu").save(tmp_path / "out" / "fig4")
    with pytest.raises(InvalidValueError, match="those of cpu in .*fig4"):
        experiment("fig5").refuse_other_budgets("smoke", tmp_path / "out" / "fig5")
    experiment("fig5").refuse_other_budgets("cpu", tmp_path / "out" / "fig5")


@pytest.fixture
def trained(monkeypatch: pytest.MonkeyPatch) -> list[TrainingConfig]:
    """Replace training by random weights; the list holds what was trained."""
    asked: list[TrainingConfig] = []

    def train_all(configs, store: Path, **choices) -> list[Outcome]:
        outcomes = []
        for config in configs:
            directory = store / config.run_id
            if not directory.exists():
                asked.append(config)
                made = small_learner(config.seed, config.dim, config.num_examples)
                made.save_pretrained(directory, card="", about={})
            outcomes.append(Outcome(config, directory, "finished", seconds=1.0))
        return outcomes

    monkeypatch.setattr(sweeps, "train_all", train_all)
    return asked


def test_models_that_results_keep_are_not_trained_again(
    tmp_path: Path, trained: list[TrainingConfig]
):
    place, other = place_in(tmp_path, "fig3"), replace(TINY, seed=1)
    (first, _), _ = train(place, [TINY, other])
    assert trained == [TINY, other]
    for name in ("evaluation.json", "metrics.jsonl"):
        (place.store / TINY.run_id / name).touch()
    keep_models(place.store, [TINY.run_id, other.run_id], place.directory)

    told = []
    elsewhere = Place(
        tmp_path / "fig8", tmp_path / "new", engine="inline", note=told.append
    )
    (again, _), _ = train(elsewhere, [TINY, other])
    assert trained == [TINY, other, other]
    assert told[0] == f"1 of 2 models are kept in {tmp_path}"
    assert digest_of_learner(again.learner) == digest_of_learner(first.learner)
    assert {path.name for path in (tmp_path / "new" / TINY.run_id).iterdir()} == set(
        FILES
    )


def test_figure_8_searches_no_further_than_needed(
    tmp_path: Path, trained: list[TrainingConfig], monkeypatch: pytest.MonkeyPatch
):
    def suffices(run: Distances) -> bool:
        return run.about["num_layers"] >= 2 and run.about["hidden_size"] >= 16

    monkeypatch.setattr(figure_8, "satisfies", suffices)
    monkeypatch.setattr(requirements, "satisfies", suffices)
    base = replace(TINY, num_layers=4, hidden_size=32)
    config = figure_8.Figure8((base,), (1, 2, 4), (8, 16, 32), (1, 2), num_datasets=5)
    place = place_in(tmp_path, "fig8")
    spent = figure_8.measure(config, place)
    shapes = {(c.num_layers, c.hidden_size, c.num_heads) for c in trained}
    assert shapes == {(1, 32, 4), (2, 32, 4), (4, 8, 4), (4, 16, 4), (4, 32, 1)}
    assert len(spent.runs) == 5
    measured = names_in(place.directory)
    assert figure_8.measure(config, place).seconds == spent.seconds
    assert len(trained) == 5
    assert names_in(place.directory) == measured
    runs = [Distances.load(place.directory / name) for name in measured]
    least = {each.axis: each.size for each in requirements.least_sizes(runs)}
    assert least == {"num_layers": 2, "hidden_size": 16, "num_heads": 1}


def test_figure_3_measures_every_run_of_its_grid(
    tmp_path: Path, trained: list[TrainingConfig]
):
    place = place_in(tmp_path, "fig3")
    config = figure_3.EXPERIMENT.config("smoke")
    figure_3.measure(config, place)
    assert len(trained) == len(names_in(place.directory)) == 2
    judgment = figure_3.judge(config, place.directory)
    assert len(judgment.claims) == 1
    assert len(judgment.findings) == 4
    assert figure_3.draw(place.directory) == ("figure_3", "figure_3_wider")


def test_figure_3_does_not_train_a_run_again_whose_model_is_gone_but_was_measured(
    tmp_path: Path, trained: list[TrainingConfig]
):
    place = place_in(tmp_path, "fig3")
    config = figure_3.EXPERIMENT.config("smoke")
    before = figure_3.measure(config, place)
    files = [place.directory / name for name in names_in(place.directory)]
    contents = [path.read_bytes() for path in files]
    shutil.rmtree(place.store)
    after = figure_3.measure(config, place)
    assert len(trained) == 2
    assert after.runs == dict.fromkeys(before.runs, MEASURED)
    assert before.seconds - after.seconds == pytest.approx(2)  # of training
    assert [path.read_bytes() for path in files] == contents
    figure_3.measure(replace(config, num_datasets=50), place)
    assert len(trained) == 4


def test_runs_that_diverged_are_told_and_leave_nothing_to_measure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def train_all(configs, store: Path, **choices) -> list[Outcome]:
        return [Outcome(c, store, "diverged", "The loss is NaN.", 2.0) for c in configs]

    monkeypatch.setattr(sweeps, "train_all", train_all)
    learners, spent = train(place_in(tmp_path), [TINY, TINY])
    assert learners == []
    assert spent.runs == {TINY.run_id: "diverged: The loss is NaN."}
    assert spent.seconds == 2
    base = replace(TINY, num_layers=1)
    config = figure_8.Figure8((base,), (1,), (8,), (4,), num_datasets=5)
    message = (
        "No run ended with a model, so there is nothing to measure. "
        f"{base.run_id}: diverged: The loss is NaN."
    )
    with refuses(NoLearnerError, message):
        figure_8.measure(config, place_in(tmp_path, "fig8"))
