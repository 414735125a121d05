"""Reference sets: distances as a comparison has them, fitted, and measured once."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support.experiments import place_in, small_learner

from algoscope.comparison.compare import compare
from algoscope.comparison.predict import held_out, predict_exactly
from algoscope.comparison.result import LABELS
from algoscope.experiments import references
from algoscope.experiments.distances import (
    ALL,
    FITTED_GD,
    FITTED_RIDGE,
    Distances,
    paper_names,
    regions,
)
from algoscope.experiments.references import ReferenceSet, Spectra, WiderReferences
from algoscope.experiments.seed_groups import SeedGroup
from algoscope.foundation.cache import Cache
from algoscope.predictors import Predictor, gd, ols, ridge, zero
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


Measure = Callable[[Predictor], SeedGroup]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> Measure:
    """Return what a learner that answers as a predictor is found to be."""
    task = LinearRegression(3, 2.0, 0.25)
    names = (ols, ridge(0.125), ridge(0.5))
    chosen = ReferenceSet(task, names, 8, 200, regions(3, 8), further=(gd(0.02),))

    def measure(predictor: Predictor) -> SeedGroup:
        def predict(learner, x, y):
            return predict_exactly(predictor, x, y)

        monkeypatch.setattr(references, "predict_all", predict)
        return SeedGroup((chosen.distances(small_learner(), "as predictor", {}),))

    return measure


def test_zero_learns_nothing_and_the_bayes_predictor_all(measured: Measure):
    nothing, all_of_it = measured(zero), measured(ridge(0.125))
    for share in (nothing.learned().mean, nothing.learned().high):
        assert share == pytest.approx(0, abs=1e-12)
    for share in (all_of_it.learned().mean, all_of_it.learned().low):
        assert share == pytest.approx(1)
    assert 0.5 < measured(ridge(0.5)).learned().mean < 1


def test_a_model_nearer_to_zero_than_to_any_reference_has_not_learned(
    measured: Measure,
):
    found = measured(gd(1e-3))
    names = ["OLS", "Ridge(0.125)", "Ridge(0.5)"]
    assert found.nearest(ALL).second in (FITTED_RIDGE, FITTED_GD)
    assert found.is_nearer("Zero", found.nearest(ALL, names).second, ALL)
    assert not found.is_nearest(found.nearest(ALL, names).second, ALL, names)
    assert not found.has_learned


def test_zero_bayes_and_fitted_references_are_measured_beside_the_others(
    measured: Measure,
):
    found = measured(ridge(0.3))
    names = ["OLS", "Ridge(0.125)", "Ridge(0.5)", "Zero", FITTED_RIDGE, FITTED_GD]
    assert found.references == [*names, "GD(0.02)"]
    (run,) = found.runs
    assert run.columns == [*names, LABELS, "risk of zero", "risk of Bayes"]
    assert run.replicates is not None
    assert run.replicates.shape == (400, 4, len(run.columns))
    assert found.nearest(ALL).second == FITTED_RIDGE
    for region in run.spans:
        for name in names:
            estimate, replicates = run.to(name, region), run.column(name, region)
            width = estimate.high - estimate.low
            assert abs(np.mean(replicates) - estimate.mean) <= 0.1 * width
            assert run.trimmed[region][name] <= estimate.mean


def test_a_learner_that_diverged_is_measured_and_has_not_learned(
    monkeypatch: pytest.MonkeyPatch,
):
    def diverge(learner, x, y):
        return np.full(y.shape, np.inf)

    monkeypatch.setattr(references, "predict_all", diverge)
    chosen = ReferenceSet(LinearRegression(2), (ols,), 4, 30, regions(2, 4))
    found = SeedGroup((chosen.distances(small_learner(), "random", {}),))
    assert found.to("OLS", ALL).mean == np.inf
    assert not found.has_learned
    assert not found.is_nearer("OLS", "Zero", ALL)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_fitted_references_recover_what_made_the_predictions(noise: float):
    x, y = held_out(
        LinearRegression(3, 1.0, noise), num_datasets=200, num_examples=9, seed=0
    )
    spectra = Spectra.of(x, y)
    found = spectra.fit(predict_exactly(ridge(0.3), x, y))[FITTED_RIDGE]
    assert float(found.name[len("Ridge(") : -1]) == pytest.approx(0.3, rel=0.02)
    found = spectra.fit(predict_exactly(gd(0.01, 4), x, y))[FITTED_GD]
    assert found.name == "GD(0.01, steps=4)"


def test_references_are_fitted_on_other_datasets_than_those_of_the_comparison():
    chosen = ReferenceSet(LinearRegression(2), (ols,), 4, 30, {"a": (1, 3)})
    (x, _), (tuning, _) = chosen._data, chosen._tuning
    assert not set(x.ravel().tolist()) & set(tuning.ravel().tolist())


def test_the_wider_reference_set_adds_references_of_its_own():
    added = [each.name for each in FEW.predictors(LinearRegression(2), 5)]
    assert len(added) == 5
    assert added[0] == "OptimalGD"
    assert added[1].startswith("GD(")
    assert added[1].endswith("steps=2)")
    assert added[2:] == ["Newton(4)", "Newton(6)", "ConjugateGradients(3)"]
    assert not set(added) & set(paper_names())
