"""Figure 3: phases over seeds are judged by their order, runs are measured once."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.experiments import group, near, place_in

from algoscope.experiments import figure_3
from algoscope.experiments.distances import ALL, FITTED_RIDGE
from algoscope.experiments.learners import MEASURED
from algoscope.experiments.seed_groups import Series, series_of
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig

SIZES = {"num_layers": [1, 2, 4, 8], "hidden_size": [16, 32, 64, 128]}
NONE = "not learned"
UNCLEAR = "OLS or Ridge(0.1)"  # as near to one as to the other


def phase_series(
    nearest: list[str],
    axis: str = "num_layers",
    dim: int = 8,
    seeds: int = 1,
    **choices: Any,
) -> Series:
    """Return a series whose runs are nearest to these references."""
    runs = []
    for name, size in zip(nearest, SIZES[axis], strict=False):
        sizes = {"dim": dim, "num_heads": 4, "num_layers": 8, "hidden_size": 64}
        about = sizes | {axis: size, "learning_rate": 0.01}
        means = near(name)
        if name == UNCLEAR:
            means = near("OLS") | {"Ridge(0.1)": 0.1}
        risk = 0.9 if name == NONE else 0.2
        runs.append(group(*[means] * seeds, risk=risk, **choices, **about))
    return series_of(runs, axis)


@pytest.mark.parametrize(
    ("nearest", "by_width", "by_depth", "reason"),
    [
        (["GD(0.01)", "Ridge(0.5)", "Ridge(0.1)", "OLS"], "reproduced", None, ""),
        (["GD(0.01)", "Ridge(0.1)", "OLS", "OLS"], "reproduced", "partly", "L = 4."),
        (["SGD(0.03)", "Ridge(0.1)", "OLS", "OLS"], "reproduced", "partly", "1 and 4."),
        (["GD(0.01)", "Ridge(0.1)", "Ridge(0.1)"], "partly", None, "L = 1, 2 and 4 we"),
        (["GD(0.02)", "GD(0.01)", "Ridge(0.1)", "Ridge(0.1)"], "partly", None, "2 and"),
        ([NONE, "Ridge(0.1)", "Ridge(0.1)", "OLS"], "partly", None, "differs at L = 1"),
        ([NONE, "GD(0.01)", "Ridge(0.1)", "OLS"], "reproduced", "partly", "1 and 2."),
        (["GD(0.01)", "Ridge(0.1)", UNCLEAR, "OLS"], "reproduced", "partly", "L = 4."),
        (["KNN(3, uniform)", "Ridge(0.1)", "OLS"], "partly", None, "L = 1 and 4."),
        ([NONE, NONE, UNCLEAR, "OLS"], "not reproduced", None, "learned, unclear, OLS"),
        (["OLS", "Ridge(0.1)", "GD(0.01)", "OLS"], "not reproduced", None, "phases"),
        (["OLS", "OLS", "OLS", "OLS"], "not reproduced", None, "phases are OLS"),
        (["GD(0.01)"], "not testable", None, "Only one size"),
    ],
)
def test_phases_are_judged_by_their_order_and_with_depth_by_their_place(
    nearest: list[str], by_width: str, by_depth: str | None, reason: str
):
    width = figure_3.width_claim(phase_series(nearest, "hidden_size"))
    assert width.verdict == by_width
    claim = figure_3.depth_claim(phase_series(nearest, "num_layers", seeds=2))
    assert claim.verdict == (by_depth or by_width)
    assert reason in claim.reason
    assert bool(claim.reason) == (claim.verdict != "reproduced")
    assert (width.seeds, claim.seeds) == (1, 2)


def test_phases_must_be_significant_over_seeds():
    found = ["GD(0.01)", "Ridge(0.5)", "Ridge(0.1)", "OLS"]
    runs = phase_series(found).runs
    about = runs[8].about
    disagrees = group(near("OLS"), near("Ridge(0.1)") | {"OLS": 0.2}, **about)
    series = Series(8, "num_layers", runs | {8: disagrees})
    assert figure_3.depth_claim(series).verdict == "partly"
    assert "L = 8: OLS at 0.15 [" in figure_3.depth_claim(series).measured
    assert ", not significantly" in figure_3.depth_claim(series).measured
    assert figure_3.depth_claim(series).seeds == 1


def test_phases_that_hold_in_one_region_are_partly_reproduced():
    series = phase_series(["GD(0.01)", "Ridge(0.5)", "Ridge(0.1)", "OLS"])
    over_all = {ALL: near("GD(0.01)")}
    about = series.runs[8].about
    series.runs[8] = group(near("OLS"), unlike=over_all, **about)
    claim = figure_3.width_claim(Series(16, "hidden_size", series.runs))
    assert claim.verdict == "partly"
    assert claim.reason == (
        "For n < d: reproduced. For all n: not reproduced. The phases are gradient "
        "descent, ridge, ridge, gradient descent."
    )


@pytest.mark.parametrize(
    ("dim", "nearest", "verdict", "reason"),
    [
        (16, ["GD(0.01)", "Ridge(0.1)", "OLS", "OLS"], "reproduced", ""),
        (16, [NONE, "Ridge(0.1)", UNCLEAR, "OLS"], "reproduced", ""),
        (16, ["Ridge(0.1)", "Ridge(0.1)", "OLS", "OLS"], "partly", "16 is already en"),
        (16, ["GD(0.01)", "GD(0.01)", "OLS", "OLS"], "partly", "H = 64 is needed."),
        (16, ["Ridge(0.1)", NONE, "OLS", "OLS"], "not reproduced", "16, 64 and 128."),
        (16, ["GD(0.01)"] * 4, "not reproduced", "Nearest to either at H = none."),
        (8, ["Ridge(0.1)"] * 4, "not testable", "No narrower model was trained."),
        (16, ["GD(0.01)"], "not testable", "No wider model was trained."),
    ],
)
def test_the_required_hidden_size_is_judged(
    dim: int, nearest: list[str], verdict: str, reason: str
):
    series = phase_series(nearest, "hidden_size", dim)
    claim = figure_3.requirement_claim(series)
    assert claim.verdict == verdict
    assert reason in claim.reason
    assert bool(claim.reason) == (verdict != "reproduced")
    assert claim.difference is not None
    assert claim.difference.of.startswith("H = ")


def test_the_sentence_says_what_was_not_learned_and_what_fits_better():
    series = phase_series([NONE, "Ridge(0.1)"])
    about = series.runs[2].about
    series.runs[2] = group(near("Ridge(0.1)") | {FITTED_RIDGE: 0.05}, **about)
    measured = figure_3.depth_claim(series).measured
    assert "L = 1: not learned (share 0.111 [" in measured
    assert "L = 2: Ridge(0.1) at 0.1 [" in measured
    assert "(Ridge(0.003), fitted, is nearer: 0.05 [" in measured
    assert measured.endswith("(100 datasets, seeds: 1).")


def test_the_cpu_budget_is_a_cross_with_two_seeds():
    runs = figure_3.trainings(figure_3.EXPERIMENT.config("cpu"))
    assert len(runs) == len(set(runs)) == 67
    for dim, depths, widths in (
        (8, {1, 2, 4, 8, 12}, {8, 16, 32, 64, 128}),
        (16, {1, 2, 4, 8, 12}, {16, 32, 64, 128}),
    ):
        own = [run for run in runs if run.dim == dim]
        assert {run.num_layers for run in own} == depths
        assert {run.hidden_size for run in own} == widths
        assert len({run.num_examples for run in own}) == 1
    again = [run for run in runs if run.steps == 10_000 or run.num_layers == 12]
    single = [run for run in again if replace(run, seed=1 - run.seed) not in runs]
    assert [(r.dim, r.num_layers, r.hidden_size) for r in single] == [(16, 12, 128)]
    tuned = {(r.num_layers, r.hidden_size) for r in runs if r.learning_rate != 0.01}
    assert tuned == {(1, 64), (2, 64), (8, 8), (8, 16)}


def test_figure_3_measures_every_run_of_its_grid(
    tmp_path: Path, trained: list[TrainingConfig]
):
    place = place_in(tmp_path, "fig3")
    config = figure_3.EXPERIMENT.config("smoke")
    figure_3.measure(config, place)
    assert len(trained) == len(Cache(place.directory).names) == 2
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
    files = [place.directory / name for name in Cache(place.directory).names]
    contents = [path.read_bytes() for path in files]
    shutil.rmtree(place.store)
    after = figure_3.measure(config, place)
    assert len(trained) == 2
    assert after.runs == dict.fromkeys(before.runs, MEASURED)
    assert before.seconds - after.seconds == pytest.approx(2)  # of training
    assert [path.read_bytes() for path in files] == contents
    figure_3.measure(replace(config, num_datasets=50), place)
    assert len(trained) == 4
