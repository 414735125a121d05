"""Figure 8: the least sizes that are enough, searched for and judged."""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.experiments import TINY, distances, place_in, save_distances

from algoscope.experiments import figure_8
from algoscope.experiments.learners import MEASURED
from algoscope.experiments.references import Distances
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig


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
    found = {(e.axis, e.dim): e.size for e in figure_8.least_sizes(runs)}
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
    least = {each.axis: each for each in figure_8.least_sizes(runs)}
    assert least["num_heads"].undecided == (1,)  # 4 is larger than what is enough
    assert least["num_layers"].undecided == ()  # one run of that depth is sure
    single, *_ = figure_8.claims(list(least.values()), 100)
    assert "2 for d = 8 (1 undecided)" in single.measured
    assert single.reason == "One head is enough for no d."
    table = figure_8.runs_table(runs)
    assert [row[-1] for row in table.rows] == ["no?", "yes", "yes?"]


def test_a_dimension_whose_runs_all_diverged_is_not_forgotten():
    runs = [scaled(2, 8, 64, heads, True) for heads in (1, 4)]
    least = figure_8.least_sizes(runs, (2, 8))
    single, width, _ = figure_8.claims(least, 100)
    assert single.verdict == "partly"
    assert "unknown for d = 8, as no run finished" in single.measured
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
            figure_8.LeastSize(dim, axis, size, (1, 64))
            for dim, size in zip((2, 8), sizes, strict=True)
        ]

    made = least("num_heads", heads) + least("hidden_size", hidden)
    claims = figure_8.claims(made + least("num_layers", [1, 2]), 100)
    assert [claim.verdict for claim in claims[:2]] == verdicts
    assert claims[2].verdict == "reproduced"


def test_figure_8_searches_no_further_than_needed(
    tmp_path: Path, trained: list[TrainingConfig], monkeypatch: pytest.MonkeyPatch
):
    def suffices(run: Distances) -> bool:
        return run.about["num_layers"] >= 2 and run.about["hidden_size"] >= 16

    monkeypatch.setattr(figure_8, "prefers_ols", suffices)
    base = replace(TINY, num_layers=4, hidden_size=32)
    config = figure_8.Figure8((base,), (1, 2, 4), (8, 16, 32), (1, 2), num_datasets=5)
    place = place_in(tmp_path, "fig8")
    spent = figure_8.measure(config, place)
    shapes = {(c.num_layers, c.hidden_size, c.num_heads) for c in trained}
    assert shapes == {(1, 32, 4), (2, 32, 4), (4, 8, 4), (4, 16, 4), (4, 32, 1)}
    assert len(spent.runs) == 5
    measured = Cache(place.directory).names
    assert figure_8.measure(config, place).seconds == spent.seconds
    assert len(trained) == 5
    assert Cache(place.directory).names == measured
    runs = [Distances.load(place.directory / name) for name in measured]
    least = {each.axis: each.size for each in figure_8.least_sizes(runs)}
    assert least == {"num_layers": 2, "hidden_size": 16, "num_heads": 1}


def test_a_run_that_was_measured_is_not_trained_again_when_its_model_is_gone(
    tmp_path: Path, trained: list[TrainingConfig]
):
    config = figure_8.Figure8((TINY,), (1,), (8,), (4,), num_datasets=5)
    place = place_in(tmp_path, "fig8")
    before = figure_8.measure(config, place)
    shutil.rmtree(place.store)
    after = figure_8.measure(config, place)
    assert trained == [TINY]
    assert after.runs == {TINY.run_id: MEASURED}
    assert before.seconds - after.seconds == pytest.approx(1)  # of training


def test_the_least_sizes_are_drawn(tmp_path: Path):
    for dim, enough in ((2, True), (8, False)):
        save_distances(tmp_path, f"d{dim}.json", scaled(dim, 8, 64, 1, enough))
    assert figure_8.draw(tmp_path) == ("figure_8",)
    figure = figure_8.least_sizes_figure(Distances.load_all(tmp_path))
    names = ["hidden size H needed", "depth L needed", "number of heads M needed"]
    assert [axes.get_ylabel() for axes in figure.axes] == names
    for axes, size in zip(figure.axes, (64, 8, 1), strict=True):
        met, unmet = axes.lines
        np.testing.assert_array_equal(met.get_xydata(), [(2, size)])
        np.testing.assert_array_equal(unmet.get_xydata(), [(8, size)])
