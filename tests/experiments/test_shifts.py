"""Distances to OLS under shifts: closed forms, our claims, and the whole experiment."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.experiments import TINY, place_in, small_learner
from support.refusals import refuses

from algoscope.experiments import shifts
from algoscope.experiments.record import OURS, Record
from algoscope.experiments.shift_distances import (
    ShiftDistances,
    distances,
    measure_shifts,
    spans_of,
)
from algoscope.experiments.shifted_data import (
    IN_DISTRIBUTION,
    SHIFTS,
    draw_shifted,
    find_shift,
)
from algoscope.experiments.shifts import EXPERIMENT, Shifts
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.predictors import ols, ridge, zero

DIM, LAST = 4, 7
SIZES: Any = {"num_datasets": 300, "num_examples": LAST, "seed": 1}
NAMES = tuple(shift.name for shift in SHIFTS)


def of(predictor, shift: str) -> np.ndarray:
    """Return the distances of one predictor, per dataset and n."""
    return distances({"run": predictor}, find_shift(shift), DIM, **SIZES)["run"]


@pytest.mark.parametrize("shift", NAMES)
def test_least_squares_has_no_distance_under_any_shift(shift: str):
    np.testing.assert_array_equal(of(ols, shift), 0)


@pytest.mark.parametrize("shift", [IN_DISTRIBUTION, "skewed", "Laplace"])
def test_ridge_has_the_distance_of_its_formula(shift: str):
    penalty = 0.1
    x, y, _ = draw_shifted(
        find_shift(shift), DIM, num_datasets=300, num_examples=LAST + 1, seed=1
    )
    found = of(ridge(penalty), shift)
    for n in (1, DIM - 1, LAST):
        u, s, vt = np.linalg.svd(x[:, :n], full_matrices=False)
        shrunk = (1 / s - s / (s**2 + penalty)) * np.einsum("bnk,bn->bk", u, y[:, :n])
        gap = np.einsum("bk,bkd,bd->b", shrunk, vt, x[:, n])
        np.testing.assert_allclose(found[:, n], gap**2 / DIM, rtol=1e-6, atol=1e-12)


def test_ridge_has_the_expected_distance_in_distribution():
    # Over w and the query, E[gap²] = Σ (λ/(s² + λ))²; by the signal, over d.
    penalty, n = 0.5, 2
    x, _, _ = draw_shifted(
        SHIFTS[0], DIM, num_datasets=300, num_examples=LAST + 1, seed=1
    )
    values = np.linalg.svd(x[:, :n], compute_uv=False) ** 2
    expected = np.sum((penalty / (values + penalty)) ** 2, axis=1) / DIM
    error = of(ridge(penalty), IN_DISTRIBUTION)[:, n] - expected
    assert abs(error.mean()) < 5 * error.std() / np.sqrt(len(error))


def test_distances_are_relative_to_the_signal():
    plain = of(ridge(0.1), IN_DISTRIBUTION)
    # Ridge of doubled inputs is ridge with a quarter of the penalty.
    np.testing.assert_allclose(of(ridge(0.4), "x × 2"), plain, rtol=1e-6, atol=1e-15)
    halved = of(ridge(0.025), "x × 1/2")
    np.testing.assert_allclose(halved, plain, rtol=1e-6, atol=1e-15)
    np.testing.assert_allclose(of(ridge(0.1), "w × 3"), plain, rtol=1e-6, atol=1e-15)


def test_predicting_zero_is_as_far_as_the_signal_once_n_exceeds_d():
    for shift in (IN_DISTRIBUTION, "x × 2", "w × 3", "mean not 0", "orthogonal"):
        assert of(zero, shift)[:, LAST].mean() == pytest.approx(1, abs=0.35)


def test_new_directions_cannot_be_predicted():
    # An input orthogonal to all before it: OLS and ridge both answer 0.
    assert np.max(of(ridge(0.1), "orthogonal")[:, :DIM]) < 1e-20


@pytest.fixture(scope="module")
def measured() -> ShiftDistances:
    runs = {"OLS": ols, "ridge": ridge(0.1), "learner": small_learner(0, DIM, LAST + 1)}
    laws = dict.fromkeys(runs, "linear")
    return measure_shifts(runs, laws, SHIFTS, DIM, **SIZES, versions={})


def test_a_result_agrees_with_its_samples(measured: ShiftDistances):
    samples = of(ridge(0.1), "skewed")[:, 1:]
    index = NAMES.index("skewed")
    np.testing.assert_allclose(measured.curves[0, 1, index], samples.mean(axis=0))
    np.testing.assert_allclose(measured.curves[3, 1, index], np.median(samples, axis=0))
    for region, (first, last) in spans_of(DIM, LAST).items():
        mean = samples[:, first - 1 : last].mean()
        assert measured.of("ridge", "skewed", region)[0] == pytest.approx(mean)
    mean, low, high, _ = measured.of("ridge", "skewed")
    assert low < mean < high
    resampled = measured.replicates("ridge", "skewed")
    assert resampled.mean() == pytest.approx(mean, rel=0.1)
    assert np.all(measured.curves[0, 0] == 0)
    assert np.all(measured.regions[0, 2, :, -1] > 0.05)  # random weights


def test_resamples_are_paired_between_runs_and_shifts(measured: ShiftDistances):
    plain = measured.replicates("ridge", IN_DISTRIBUTION)
    np.testing.assert_allclose(measured.replicates("ridge", "w × 3"), plain, rtol=1e-9)


def test_a_result_is_saved_tabulated_and_drawn(measured: ShiftDistances, tmp_path):
    measured.save(tmp_path)
    found = ShiftDistances.load(tmp_path)
    assert (found.runs, found.shifts, found.laws) == (
        measured.runs,
        NAMES,
        ("linear",) * 3,
    )
    np.testing.assert_allclose(found.curves, measured.curves, rtol=1e-6)
    assert len(found.rows()) == 3 * len(NAMES) * LAST
    assert found.sentence.startswith("Distance to OLS over all n")
    figure = found.map_figure()
    assert [each.get_text() for each in figure.axes[0].get_xticklabels()] == [
        "OLS",
        "ridge",
        "learner",
    ]
    own = figure.add_axes((0, 0, 1, 1))
    assert found.plot(own) is figure


def test_a_damaged_result_is_rejected(measured: ShiftDistances, tmp_path: Path):
    replace(measured, runs=("OLS", "ridge")).save(tmp_path)
    with pytest.raises(DamagedFileError, match="is not a saved shifts .*'curves'"):
        ShiftDistances.load(tmp_path)


def test_the_first_shift_is_none(tmp_path: Path):
    with refuses(
        InvalidValueError, "`shifts` must start with 'in distribution', got skewed."
    ):
        measure_shifts(
            {"OLS": ols},
            {"OLS": "linear"},
            (find_shift("skewed"),),
            DIM,
            **SIZES,
            versions={},
        )


def made_up(directory: Path, runs: dict[str, dict[str, float]], spread: float = 0.02):
    """Save distances that are `runs[run][shift]`, or `runs[run]["else"]`."""
    values = np.array(
        [[run.get(name, run["else"]) for name in NAMES] for run in runs.values()]
    )
    noise = np.random.default_rng(0).normal(1, spread, 400)
    resampled = values[None] * noise[:, None, None]
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    numbers = np.stack([values, low, high, values])
    ShiftDistances(
        runs=tuple(runs),
        laws=tuple("broad" if "broad" in run else "linear" for run in runs),
        shifts=NAMES,
        dim=DIM,
        num_datasets=100,
        seed=0,
        versions={},
        curves=np.repeat(numbers[..., None], LAST, axis=-1),
        regions=np.repeat(numbers[..., None], 4, axis=-1),
        resampled=resampled,
    ).save(directory)
    return {claim.name: claim for claim in shifts.judge(Shifts(), directory).claims}


LIMITS = "the match with least squares has limits"
BY_RUN = "behavior under a shift is a property of the run"
BROAD = "training on a broad law of x survives"
FINE = {"else": 0.002}
LIMITED = FINE | {"x × 2": 0.02, "w × 3": 0.04}


@pytest.mark.parametrize(
    ("runs", "verdict", "reason"),
    [
        ({"a": LIMITED, "b": LIMITED, "c": LIMITED}, "reproduced", ""),
        ({"a": LIMITED, "b": LIMITED}, "partly", "Only 2 runs."),
        ({"a": LIMITED, "b": FINE, "c": FINE}, "partly", "No shift under which all"),
        ({"a": FINE, "b": FINE, "c": FINE}, "not reproduced", "No shift under"),
        ({"a": {"else": 0.02}}, "not testable", "No run trained on x ~ N(0, I)"),
        (
            {"a": LIMITED, "b": LIMITED, "c": LIMITED, "poor": {"else": 0.02}},
            "reproduced",  # a run that does not match at home decides nothing
            "",
        ),
    ],
)
def test_limits_are_judged(tmp_path: Path, runs: dict, verdict: str, reason: str):
    claim = made_up(tmp_path, runs)[LIMITS]
    assert (claim.verdict, claim.reason[: len(reason)]) == (verdict, reason)
    if verdict == "reproduced":
        assert "all break under x × 2 and w × 3; " in claim.measured
        assert claim.seeds == 3
        assert claim.difference is not None
        assert claim.difference.mean == pytest.approx(0.03)
        assert claim.difference.low > 0


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (FINE, FINE | {"skewed": 0.05}, "reproduced"),
        (FINE, FINE | {"skewed": 0.01}, "partly"),
        (FINE, FINE | {"skewed": 0.004}, "not reproduced"),
        (FINE, FINE | {"label noise": 1.0}, "not reproduced"),  # OLS is not best
        (FINE, {"else": 0.007}, "not testable"),  # not alike in distribution
    ],
)
def test_the_difference_of_runs_is_judged(
    tmp_path: Path, first: dict, second: dict, verdict: str
):
    for runs in ({"a": first, "b": second}, {"b": second, "a": first}):
        claim = made_up(tmp_path, runs)[BY_RUN]
        assert claim.verdict == verdict
        assert claim.seeds == 2
        if verdict in ("reproduced", "partly"):
            assert claim.measured.startswith("Under skewed, the distance of b")
            assert claim.difference is not None
            factor = second["skewed"] / first["else"]
            assert claim.difference.mean == pytest.approx(np.log10(factor), abs=1e-6)


def test_a_run_on_other_data_is_not_compared_with_the_others(tmp_path: Path):
    runs = {"a": FINE, "broad": FINE | {"skewed": 0.05}}
    assert made_up(tmp_path, runs)[BY_RUN].verdict == "not testable"


@pytest.mark.parametrize(
    ("broad", "verdict", "reason"),
    [
        ({"else": 0.005}, "reproduced", ""),
        ({"else": 0.005, "label noise": 1.0}, "reproduced", ""),
        ({"else": 0.005, "skewed": 0.016}, "partly", "Not under skewed."),
        (
            {"else": 0.005, "skewed": 0.016, "x × 2": 0.02, "w × 3": 0.05},
            "not reproduced",
            "Not under x × 2, w × 3 and skewed.",
        ),
        ({"else": 0.03}, "not testable", "No run trained on the task broad"),
    ],
)
def test_survival_is_judged(tmp_path: Path, broad: dict, verdict: str, reason: str):
    claim = made_up(tmp_path, {"a": LIMITED, "broad": broad})[BROAD]
    assert (claim.verdict, claim.reason[: len(reason)]) == (verdict, reason)
    if verdict == "partly":
        assert claim.difference is not None
        assert claim.difference.of.endswith("distance under skewed, broad")
        assert claim.difference.mean == pytest.approx(-0.001, abs=1e-6)


def test_claims_are_marked_as_ours(tmp_path: Path):
    claims = made_up(tmp_path, {"a": LIMITED})
    assert len(claims) == 3
    for claim in claims.values():
        assert claim.paper.startswith(OURS)
        assert claim.is_ours


def test_without_a_broad_run_that_claim_is_not_testable(tmp_path: Path):
    assert made_up(tmp_path, {"a": LIMITED})[BROAD].verdict == "not testable"


def test_the_experiment_runs_from_training_to_figures(tmp_path: Path, trained):
    record = EXPERIMENT.reproduce("smoke", place_in(tmp_path, "shifts"))
    directory = tmp_path / "shifts"
    found = ShiftDistances.load(directory)
    assert found.runs == (
        "linear-d2",
        "L1 H8 50 steps seed 0",
        "broad L1 H8 50 steps seed 1",
    )
    assert [run.task for run in trained] == ["linear", "broad"]
    assert record.figures == ("shifts_map", "shifts")
    assert (directory / "shifts.svg").exists()
    assert len(record.tables) == 4
    assert [claim.verdict for claim in record.claims] == ["not testable"] * 3
    assert Record.load(directory) == record
    assert EXPERIMENT.redraw(directory) == record


def test_a_model_that_does_not_ship_yet_is_left_out(tmp_path: Path, trained):
    config = Shifts(("linear-d2", "linear-d2-wide"), num_datasets=5)
    shifts.measure(config, place_in(tmp_path, "shifts"))
    assert ShiftDistances.load(tmp_path / "shifts").runs == ("linear-d2",)
    assert trained == []


def test_runs_of_two_dimensions_are_rejected(tmp_path: Path, trained):
    config = Shifts(("linear-d2",), (replace(TINY, dim=3),), 5)
    with pytest.raises(InvalidValueError, match="`runs` must have the same dimension"):
        shifts.measure(config, place_in(tmp_path, "shifts"))
