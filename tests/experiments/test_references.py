"""Reference sets: distances as a comparison has them, saved and ranked."""

from pathlib import Path

import pytest
from support.experiments import distances, place_in, save_distances, small_learner

from algoscope.comparison.compare import compare
from algoscope.comparison.result import LABELS
from algoscope.experiments.references import (
    Distances,
    ReferenceSet,
    WiderReferences,
    paper_names,
)
from algoscope.foundation.cache import Cache
from algoscope.predictors import ols, ridge
from algoscope.tasks.linear import LinearRegression

FEW = WiderReferences((2,), (4, 6), (3,), 50)


def test_distances_agree_with_a_comparison(tmp_path: Path):
    learner, task = small_learner(dim=3), LinearRegression(3, 2.0, 0.25)
    references = (ols, ridge(0.5))
    spans = {"low": (1, 2), "all": (1, 4)}
    reference_set = ReferenceSet(task, references, 4, 40, spans, 3)
    found = reference_set.distances(learner, "random", {})
    for region, span in spans.items():
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


def test_distances_are_measured_once_and_saved_with_six_digits(tmp_path: Path):
    stages = []
    place = place_in(tmp_path, progress=lambda *report: stages.append(report))
    reference_set = ReferenceSet(LinearRegression(2), (ols,), 4, 30, {"a": (1, 3)})
    learner, about = small_learner(), {"num_layers": 1}
    assert reference_set.cached_seconds(place, "random.json", about) is None
    spent = reference_set.measure_once(place, "random.json", learner, about)
    found = reference_set.distances(learner, "random", about)
    saved = Distances.load(place.directory / "random.json")
    assert saved.to("OLS", "a").mean == pytest.approx(found.to("OLS", "a").mean, 1e-5)
    assert saved.to("OLS", "a").mean == float(f"{found.to('OLS', 'a').mean:.6g}")
    assert saved.about == about
    assert Distances.load_all(place.directory) == [saved]
    assert reference_set.measure_once(place, "random.json", learner, about) == spent
    assert stages == [("measuring random", 0, None)]
    assert reference_set.cached_seconds(place, "random.json", about) == spent.seconds
    reference_set.measure_once(place, "random.json", small_learner(1), about)
    assert len(stages) == 2
    assert Cache(place.directory).names == ["random.json"]


def test_margins_are_differences_of_means():
    spans = {"a": (1, 3)}
    reference_set = ReferenceSet(LinearRegression(2), (ols, ridge(0.5)), 4, 30, spans)
    found = reference_set.distances(small_learner(), "random", {})
    best = found.nearest("a")
    for margin in found.margins["a"]:
        assert margin.first == best.second
        gap = found.to(margin.second, "a").mean - best.mean
        assert margin.mean == pytest.approx(gap)


def test_references_are_ranked_without_the_labels():
    found = distances({"GD(0.01)": 3.0, "OLS": 1.5, "Ridge(0.1)": 2.0})
    ranked = [each.second for each in found.ranked("all n")]
    assert ranked == ["OLS", "Ridge(0.1)", "GD(0.01)"]  # the labels are at 1
    assert found.nearest("all n", ["GD(0.01)", "Ridge(0.1)"]).second == "Ridge(0.1)"


def test_margins_can_be_significant_where_intervals_overlap():
    close = distances({"OLS": 0.10, "Ridge(0.1)": 0.12}, 0.015)
    assert not close.stands_out("all n")
    assert close.is_significantly_nearest("all n")
    assert close.stands_out("all n", ["OLS"])
    closer = distances({"OLS": 0.10, "Ridge(0.1)": 0.11}, 0.015)
    assert not closer.is_significantly_nearest("all n")


def test_saved_distances_are_read_in_the_order_of_the_cache(tmp_path: Path):
    for name in ("b.json", "a.json"):
        save_distances(tmp_path, name, distances({"OLS": 0.1}, of=name))
    found = Distances.load_all(tmp_path)
    assert [each.about["of"] for each in found] == ["b.json", "a.json"]


def test_the_wider_reference_set_adds_references_of_its_own():
    added = [each.name for each in FEW.predictors(LinearRegression(2), 5)]
    assert len(added) == 5
    assert added[0] == "OptimalGD"
    assert added[1].startswith("GD(")
    assert added[1].endswith("steps=2)")
    assert added[2:] == ["Newton(4)", "Newton(6)", "ConjugateGradients(3)"]
    assert not set(added) & set(paper_names())
