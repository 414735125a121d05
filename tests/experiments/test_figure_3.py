"""Figure 3: phases are judged by their order, runs are measured once."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from support.experiments import distances, near, place_in

from algoscope.comparison.intervals import Estimate
from algoscope.comparison.result import LABELS
from algoscope.experiments import figure_3
from algoscope.experiments.learners import MEASURED
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig


def phase_series(
    nearest: list[str], axis: str = "num_layers", dim: int = 8
) -> figure_3.Series:
    """Return a series whose runs are nearest to these references."""
    sizes = [1, 2, 4, 8] if axis == "num_layers" else [16, 32, 64, 128]
    runs = [
        distances(near(name), dim=dim, num_heads=4, num_layers=1, hidden_size=1)
        for name in nearest
    ]
    for run, size in zip(runs, sizes, strict=False):
        run.about[axis] = size
    return figure_3.series_of(runs, axis)


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
    assert (
        figure_3.width_claim(phase_series(nearest, "hidden_size")).verdict == by_width
    )
    claim = figure_3.depth_claim(phase_series(nearest, "num_layers"))
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
    assert figure_3.requirement_claim(series, least).verdict == verdict


def test_a_series_takes_the_run_of_least_risk_whatever_is_nearest():
    good, bad = distances(near("OLS"), dim=8), distances(near("GD(0.01)"), dim=8)
    for run, risk in ((good, 0.5), (bad, 0.2)):
        run.about["num_layers"] = 1
        run.means["all n"] = [Estimate("l", LABELS, risk, 0.0, 1.0, risk, 9)]
    series = figure_3.series_of([good, bad], "num_layers")
    assert series.runs[1] is bad


@pytest.mark.parametrize(
    ("dim", "least", "nearest", "reason"),
    [
        (8, 16, ["Ridge(0.1)"] * 4, "Narrower models were not trained here; "),
        (16, 32, ["GD(0.01)", "OLS", "OLS", "OLS"], ""),
        (16, 32, ["OLS"] * 4, "H = 16 is already enough."),
        (8, 16, ["GD(0.01)", "GD(0.01)", "OLS", "OLS"], "H = 64 is needed."),
    ],
)
def test_the_required_hidden_size_has_a_reason(
    dim: int, least: int, nearest: list[str], reason: str
):
    series = phase_series(nearest, "hidden_size", dim)
    found = figure_3.requirement_claim(series, least).reason
    assert found.startswith(reason)
    assert bool(found) == bool(reason)


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
