"""A comparison measures what it says, and survives the disk."""

import json
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.boxes import Boxed, Opaque, ridge_answers
from support.comparisons import curve, handmade
from support.refusals import refuses

from algoscope.comparison import compare as comparison
from algoscope.comparison.compare import ALL_METRICS, compare
from algoscope.comparison.intervals import Curve, Estimate, bootstrap_interval
from algoscope.comparison.predict import held_out
from algoscope.comparison.result import LABELS, Comparison
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.machine import provenance
from algoscope.model.checkpoints import MODELS
from algoscope.predictors import PredictorFailedError, gd, knn, ols, ridge
from algoscope.tasks.linear import LinearRegression

DIM, EXAMPLES, DATASETS, SEED = 2, 4, 30, 1
TASK = LinearRegression(DIM, noise_variance=0.3)
LEARNER = replace(ols, name="learner")
REFERENCES = (gd(0.02), ols, ridge(0.5))


@pytest.fixture(scope="module")
def sampled() -> tuple[np.ndarray, np.ndarray]:
    return held_out(TASK, num_datasets=DATASETS, num_examples=EXAMPLES + 1, seed=SEED)


@pytest.fixture(scope="module")
def measured(sampled) -> Comparison:
    """A learner that is least squares, against references that include it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "held_out", lambda task, **sizes: sampled)
        return compare(
            LEARNER,
            REFERENCES,
            TASK,
            num_examples=EXAMPLES,
            num_datasets=DATASETS,
            seed=SEED,
        )


# Measuring.


def test_a_learner_that_is_least_squares_is_told_to_be(measured):
    (name, distance), (_, second), _ = measured.nearest(1, EXAMPLES)
    assert name == "OLS"
    assert distance < 1e-8  # single against double precision
    assert second > 1e-3


def test_there_is_a_curve_for_each_reference_and_for_each_predictor_s_risk(measured):
    assert [(curve.first, curve.second) for curve in measured.curves] == [
        ("learner", "GD(0.02)"),
        ("learner", "OLS"),
        ("learner", "Ridge(0.5)"),
        ("learner", LABELS),
        ("GD(0.02)", LABELS),
        ("OLS", LABELS),
        ("Ridge(0.5)", LABELS),
    ]


def test_every_curve_begins_without_examples_and_ends_with_all(measured):
    assert measured.num_examples == EXAMPLES
    for each in measured.curves:
        for column in (each.mean, each.low, each.high, each.median):
            assert len(column) == EXAMPLES + 1
            assert all(type(number) is float for number in column)
        if each.second != LABELS:  # all predict 0
            assert each.mean[0] == each.low[0] == each.high[0] == each.median[0] == 0


def at_every_prefix(weights, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the predictions of a function from x and y to weights, in NumPy."""
    return np.array(
        [
            [rows[n] @ weights(rows[:n], labels[:n]) for n in range(EXAMPLES + 1)]
            for rows, labels in zip(x, y, strict=True)
        ]
    )


def test_the_columns_are_statistics_of_the_spd_over_datasets(measured, sampled):
    x, y = (part.astype(np.float64) for part in sampled)
    step = at_every_prefix(lambda x, y: 2 * 0.02 * x.T @ y, x, y)
    least = at_every_prefix(lambda x, y: np.linalg.pinv(x, rcond=1e-6) @ y, x, y)
    by_names = {(c.first, c.second): c for c in measured.curves}
    for pair, difference, tolerance in (
        (("GD(0.02)", LABELS), step - y, 1e-9),
        (("learner", LABELS), least - y, 1e-3),  # in single precision
        (("learner", "GD(0.02)"), least - step, 1e-3),
    ):
        spd, found = difference**2 / DIM, by_names[pair]
        low, high = bootstrap_interval(spd, seed=SEED)
        np.testing.assert_allclose(found.mean, spd.mean(0), rtol=tolerance)
        np.testing.assert_allclose(found.median, np.median(spd, 0), rtol=tolerance)
        np.testing.assert_allclose(found.low, low, rtol=tolerance)
        np.testing.assert_allclose(found.high, high, rtol=tolerance)


def test_the_datasets_are_those_that_the_comparison_names(sampled, monkeypatch):
    asked = []

    def watched(task, **sizes):
        asked.append((task, sizes))
        return sampled

    monkeypatch.setattr(comparison, "held_out", watched)
    sizes: dict[str, Any] = {
        "num_datasets": DATASETS,
        "num_examples": EXAMPLES,
        "seed": SEED,
    }
    compare(LEARNER, [gd(0.2)], TASK, **sizes)
    sizes["num_examples"] += 1
    assert asked == [(TASK, sizes)]


def test_the_risk_of_a_reference_is_its_own(measured):
    risks = {
        c.first: c.average(1, EXAMPLES) for c in measured.curves if c.second == "Y"
    }
    assert risks["learner"] == pytest.approx(risks["OLS"], rel=1e-4)
    assert risks["Ridge(0.5)"] < risks["OLS"]  # with noise, least squares overfits
    assert len(set(risks.values())) == 4


def test_a_comparison_says_how_it_was_made(measured):
    assert (measured.learner, measured.dim) == ("learner", DIM)
    assert measured.task == repr(TASK)
    assert (measured.num_datasets, measured.seed) == (DATASETS, SEED)
    assert measured.versions == provenance()


def test_the_versions_are_those_that_decide_a_number():
    versions = provenance()
    assert set(versions) == {"python", "algoscope", "jax", "jaxlib", "numpy"}
    assert versions["numpy"] == np.__version__


def test_a_comparison_without_examples_is_refused():
    with refuses(ValueError, "`num_examples` must be at least 1, got 0."):
        compare(LEARNER, REFERENCES, TASK, num_examples=0)
    with refuses(TypeError, "`num_examples` must be an integer, got 3.0."):
        compare(LEARNER, REFERENCES, TASK, num_examples=3.0)  # pyright: ignore[reportArgumentType]


def test_a_comparison_without_datasets_is_refused():
    with refuses(ValueError, "`num_datasets` must be at least 1, got 0."):
        compare(LEARNER, REFERENCES, TASK, num_examples=1, num_datasets=0)
    with refuses(ValueError, "`seed` must be at least 0, got -1."):
        compare(LEARNER, REFERENCES, TASK, num_examples=1, seed=-1)


@pytest.mark.parametrize(
    ("learner", "references"),
    [
        ("OLS", ["OLS"]),
        ("ICL", ["OLS", "GD", "OLS"]),
        (LABELS, ["OLS"]),
        ("A", [LABELS]),
    ],
    ids=["learner", "references", "learner Y", "reference Y"],
)
def test_a_name_that_is_taken_is_refused(learner, references):
    first, *others = (replace(ols, name=name) for name in (learner, *references))
    taken = LABELS if LABELS in (learner, *references) else "OLS"
    message = (
        "`each predictor` must have a name of its own; Y stands for the labels, "
        f"got '{taken}' twice."
    )
    with refuses(ValueError, message):
        compare(first, others, TASK, num_examples=1, num_datasets=1)


# Reading.

SMALL = handmade(
    {"A": [9.0, 4.0, 2.0, 3.0], "B": [9.0, 1.0, 8.0, 0.0], "C": [0.0, 2.0, 2.5, 7.0]}
)


def test_an_average_includes_both_ends():
    each = curve("ICL", "A", [1.0, 2.0, 4.0, 8.0])
    assert each.average(0, 3) == 3.75
    assert each.average(1, 2) == 3.0
    assert each.average(3, 3) == 8.0


def test_the_curve_against_a_reference_is_the_learner_s():
    assert SMALL.against("B") == curve("ICL", "B", [9.0, 1.0, 8.0, 0.0])
    assert SMALL.against(LABELS).mean == [10.0] * 4


def test_an_unknown_reference_is_refused_with_the_known_ones():
    message = "`reference` must be one of A, B, C, Y, got 'D'."
    with refuses(ValueError, message):
        SMALL.against("D")


def test_a_reference_that_diverged_is_nearest_to_nobody():
    diverged = {"A": [0.0, 3.0], "B": [0.0, float("nan")], "C": [0.0, 1.0]}
    assert [name for name, _ in handmade(diverged).nearest(1, 1)] == ["C", "A", "B"]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (1, 3, [("A", 3.0), ("B", 3.0), ("C", 23 / 6)]),
        (1, 1, [("B", 1.0), ("C", 2.0), ("A", 4.0)]),
        (2, 2, [("A", 2.0), ("C", 2.5), ("B", 8.0)]),
        (0, 3, [("C", 2.875), ("A", 4.5), ("B", 4.5)]),
    ],
)
def test_references_are_sorted_by_their_mean_distance(start, stop, expected):
    assert SMALL.nearest(start, stop) == [
        (name, pytest.approx(distance)) for name, distance in expected
    ]


def test_the_number_of_examples_is_one_less_than_that_of_prefixes():
    assert SMALL.num_examples == 3


# Saving and loading.


def test_what_was_saved_is_loaded(measured, tmp_path):
    path = tmp_path / "new" / "evaluation.json"
    measured.save(path)
    assert Comparison.load(path) == measured
    measured.save(path)  # over the old one
    assert Comparison.load(path) == measured


def test_any_name_survives_the_disk(tmp_path):
    odd = handmade({'"\\\n': [0.1, 1e-300], "größer": [1e300, 2 / 3]}, "κ<script>")
    odd.save(tmp_path / "odd.json")
    assert Comparison.load(tmp_path / "odd.json") == odd


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Comparison.load(tmp_path / "nowhere.json")


def stored() -> dict:
    return {"format": "algoscope comparison", **asdict(SMALL)}


def without(name: str) -> dict:
    return {key: value for key, value in stored().items() if key != name}


CURVE = asdict(SMALL.curves[0])
CURVE_WITHOUT_LOW = {key: value for key, value in CURVE.items() if key != "low"}
NOT_COMPARISONS = {
    "another format": (stored() | {"format": "algoscope"}, "'format'"),
    "no format": (without("format"), "'format'"),
    "no curves": (without("curves"), "'curves'"),
    "no seed": (
        without("seed"),
        "Comparison.__init__() missing 1 required positional argument: 'seed'",
    ),
    "another field": (
        stored() | {"color": 1},
        "Comparison.__init__() got an unexpected keyword argument 'color'",
    ),
    "a damaged curve": (
        stored() | {"curves": [CURVE, CURVE_WITHOUT_LOW]},
        "Curve.__init__() missing 1 required positional argument: 'low'",
    ),
    "an empty list of curves": (stored() | {"curves": []}, "'curves'"),
    "curves of two lengths": (
        stored() | {"curves": [CURVE, CURVE | {"high": [1.0]}]},
        "'curves'",
    ),
    "a number for curves": (
        stored() | {"curves": 3},
        "'int' object is not iterable",
    ),
}


@pytest.mark.parametrize("kind", NOT_COMPARISONS)
def test_a_file_that_holds_no_comparison_is_refused(kind, tmp_path):
    values, error = NOT_COMPARISONS[kind]
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps(values))
    message = f"`{path}` must hold a saved comparison, got an error in {error}."
    with refuses(DamagedFileError, message):
        Comparison.load(path)


def refused_as_unreadable(path: Path, error: str):
    message = f"`{path}` must be a readable JSON file, got {error}."
    return refuses(DamagedFileError, message)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    path = tmp_path / "evaluation.json"
    SMALL.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with refused_as_unreadable(path, "JSONDecodeError"):
        Comparison.load(path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "figure.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with refused_as_unreadable(path, "UnicodeDecodeError"):
        Comparison.load(path)


def test_a_directory_is_refused(tmp_path):
    with refused_as_unreadable(tmp_path, "IsADirectoryError"):
        Comparison.load(tmp_path)


def test_a_file_that_holds_no_object_is_refused(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text("[1, 2]")
    with refuses(DamagedFileError, f"`{path}` must hold a JSON object, got list."):
        Comparison.load(path)


def test_curves_and_comparisons_are_values():
    assert Curve(**asdict(SMALL.curves[0])) == SMALL.curves[0]
    assert replace(SMALL, seed=8) != SMALL


def test_a_comparison_with_nothing_is_refused():
    with refuses(
        ValueError, "`references` must name at least one predictor, got none."
    ):
        compare(gd(0.1), [], TASK, num_examples=EXAMPLES, num_datasets=DATASETS)


# Every metric.

BOX = Boxed("box", ridge_answers, least=2)  # λ = 0.5; abstains from one example
EVERYTHING = [
    *("sim_e", "r2_gold", "ilwd", "sim_w", "r2", "sensitivity_cosine"),
    *("sensitivity_distance", "influence_cosine", "influence_distance", "symmetry"),
]


@pytest.fixture(scope="module")
def steps() -> list[tuple[int, int]]:
    return []


@pytest.fixture(scope="module")
def everything(steps) -> Comparison:
    """A black box that is ridge regression, against references that include it."""
    return compare(
        BOX,
        [ridge(0.5), gd(0.02), knn(1)],
        TASK,
        num_examples=3,
        num_datasets=40,
        seed=SEED,
        metrics=ALL_METRICS,
        num_costly_datasets=12,
        num_queries=5,
        region=(2, 3),
        progress=lambda done, total: steps.append((done, total)),
    )


def test_a_black_box_is_told_by_every_metric(everything):
    assert list(everything.metrics) == EVERYTHING
    for metric in ("spd", *EVERYTHING[2:4], *EVERYTHING[5:9]):
        (name, best), *_ = everything.nearest(2, 3, metric)
        assert name == "Ridge(0.5)", metric
        is_cosine = metric.endswith("cosine") or metric.startswith("sim_")
        assert best == pytest.approx(float(is_cosine), abs=1e-5), metric
    assert everything.against("Ridge(0.5)", "sim_e").average(2, 3) > 1 - 1e-6


def test_what_the_box_did_not_answer_is_missing_and_counted(everything):
    for metric in ("spd", "r2_gold", "sim_e"):
        own = next(c for c in everything.of(metric) if c.first == "box")
        assert own.counts == [0, 0, 40, 40]
        assert np.isnan(own.mean).tolist() == [True, True, False, False]
    assert everything.against("Ridge(0.5)", "ilwd").counts == [0, 0, 12, 12]
    risk = next(c for c in everything.curves if c.first == "Ridge(0.5)")
    assert risk.counts == [40] * 4


def test_an_average_leaves_out_what_was_not_measured(everything):
    own = everything.against("GD(0.02)")
    assert (
        own.average(0, 3) == own.average(2, 3) == pytest.approx(np.mean(own.mean[2:]))
    )
    assert np.isnan(own.average(0, 1))


def test_linearity_is_measured_of_every_predictor(everything):
    means = {c.first: c.mean[3] for c in everything.of("r2")}
    assert means["box"] == pytest.approx(1.0, abs=1e-9)
    assert means["Ridge(0.5)"] == pytest.approx(1.0, abs=1e-9)
    assert means["KNN(1, uniform)"] < 0.99
    assert {c.second for c in everything.of("r2")} == {"linear fit"}


def test_symmetries_are_measured_of_every_predictor(everything):
    change = {(c.first, c.second): c.mean[2] for c in everything.of("symmetry")}
    assert len(change) == 4 * 6
    for name in ("box", "Ridge(0.5)", "GD(0.02)"):
        assert change[name, "additivity"] < 1e-5
        assert change[name, "input scale"] > 1e-3


def test_mspd_is_the_mean_over_its_region(everything):
    assert everything.settings["region"] == [2, 3]
    for estimate in everything.mspd:
        (same,) = (
            c
            for c in everything.curves
            if (c.first, c.second) == (estimate.first, estimate.second)
        )
        assert estimate.mean == pytest.approx(same.average(2, 3), rel=1e-12)
        assert estimate.low <= estimate.mean <= estimate.high
        assert estimate.count == 40


def test_the_settings_and_the_steps_are_told(everything, steps):
    assert everything.settings == {
        "metrics": list(ALL_METRICS),
        "region": [2, 3],
        "num_costly_datasets": 12,
        "num_queries": 5,
        "difference_step": 1e-3,
    }
    assert steps == [(n, 20) for n in range(1, 21)]  # four predictors, five kinds


def test_every_metric_survives_the_disk(everything, tmp_path):
    path = tmp_path / "evaluation.json"
    everything.save(path)
    assert "NaN" not in path.read_text()
    loaded = Comparison.load(path)
    assert repr(loaded) == repr(everything)  # NaN is not equal to itself
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("path", sorted(MODELS.glob("*/evaluation.json")), ids=str)
def test_comparisons_from_before_other_metrics_are_loaded(path, tmp_path):
    old = json.loads(path.read_text())
    for added in ("metrics", "mspd", "settings"):
        old.pop(added, None)
    for each in old["curves"]:
        each.pop("counts", None)
    (tmp_path / "old.json").write_text(json.dumps(old))
    loaded = Comparison.load(tmp_path / "old.json")
    assert loaded.learner == path.parent.name
    assert [c.mean for c in loaded.curves] == [c["mean"] for c in old["curves"]]


def test_by_default_only_spd_is_measured(measured):
    assert measured.metrics == {}
    assert measured.mspd == []
    assert measured.settings == {"metrics": ["spd"]}
    assert all(each.counts == [DATASETS] * 5 for each in measured.curves)


def test_the_default_region_is_that_below_the_dimension():
    task = LinearRegression(3)
    sizes: dict[str, Any] = {
        "num_examples": 4,
        "num_datasets": 5,
        "metrics": ("spd", "mspd"),
    }
    found = compare(gd(0.1), [gd(0.2)], task, **sizes)
    assert found.settings["region"] == [1, 2]
    assert isinstance(found.mspd[0], Estimate)
    assert found.mspd[0].mean == pytest.approx(found.against("GD(0.2)").average(1, 2))


def test_in_one_dimension_there_is_no_region_below_it():
    sizes: dict[str, Any] = {
        "num_examples": 1,
        "num_datasets": 5,
        "metrics": ("spd", "mspd"),
    }
    found = compare(gd(0.1), [gd(0.2)], LinearRegression(1), **sizes)
    assert found.mspd == []
    assert "region" not in found.settings


# Laws of the numbers.


def test_risks_are_those_of_theory():
    """Noiseless: least squares has τ²(1 − n/d), the best step τ²(d + 1)/(n + d + 1)."""
    dim, n, prior = 4, 3, 2.0
    best = gd(1 / (2 * (n + dim + 1)))
    task = LinearRegression(dim, prior_variance=prior)
    found = compare(ols, [best], task, num_examples=6, num_datasets=3000, seed=2)
    risks = {c.first: c for c in found.curves if c.second == LABELS}
    for m in range(7):
        expected = prior * max(0.0, 1 - m / dim)
        error = (risks["OLS"].high[m] - risks["OLS"].low[m]) / 4
        assert risks["OLS"].mean[m] == pytest.approx(expected, abs=4 * error + 1e-5)
    error = (risks[best.name].high[n] - risks[best.name].low[n]) / 4
    expected = prior * (dim + 1) / (n + dim + 1)
    assert risks[best.name].mean[n] == pytest.approx(expected, abs=4 * error)


def test_for_isotropic_queries_spd_is_ilwd():
    """E ((w − w′)ᵀx)² = ‖w − w′‖² where x has the identity as its covariance."""
    found = compare(
        gd(0.05),
        [ridge(1.0)],
        LinearRegression(3),
        num_examples=4,
        num_datasets=1500,
        metrics=("spd", "ilwd"),
        num_costly_datasets=1500,
    )
    spd, ilwd = (found.against("Ridge(1)", each) for each in ("spd", "ilwd"))
    for n in range(1, 5):
        error = (spd.high[n] - spd.low[n] + ilwd.high[n] - ilwd.low[n]) / 4
        assert spd.mean[n] == pytest.approx(ilwd.mean[n], abs=4 * error)
        assert error < 0.15 * ilwd.mean[n]


class Diverged:
    name = "diverged"

    def __call__(self, x, y, query, /):
        return y[0] * np.nan

    def predict_prefixes(self, x, y, /):
        return y * np.nan


def test_a_reference_that_diverges_is_infinitely_far_and_not_left_out():
    sizes: dict[str, Any] = {"num_examples": 2, "num_datasets": 5}
    found = compare(gd(0.1), [Diverged(), gd(0.2)], TASK, **sizes)
    assert [name for name, _ in found.nearest(1, 2)] == ["GD(0.2)", "diverged"]
    assert found.against("diverged").mean == [np.inf] * 3
    assert found.against("diverged").counts == [5] * 3


def test_a_box_that_dies_in_a_later_metric_keeps_the_earlier_ones():
    def dies_of_many(x, y, queries):
        if len(queries) > 1:
            raise PredictorFailedError("box", "ended", "Start it again.")
        return ridge_answers(x, y, queries)

    sizes: dict[str, Any] = {"num_examples": 3, "num_datasets": 5}
    with pytest.warns(UserWarning, match=r"^`box` ended\..* Not measured: r2, ilwd\.$"):
        found = compare(
            Boxed("box", dies_of_many),
            [ridge(0.5)],
            TASK,
            metrics=("mspd", "r2", "ilwd"),
            num_costly_datasets=2,
            **sizes,
        )
    assert found.against("Ridge(0.5)").mean[1:] == pytest.approx([0] * 3, abs=1e-9)
    assert found.mspd
    assert found.metrics == {}
    assert found.settings["metrics"] == ["mspd"]


# Refusals.


def refused(message: str, **changes):
    sizes: dict[str, Any] = {"num_examples": 2, "num_datasets": 5} | changes
    with refuses(ValueError, message):
        compare(gd(0.1), [gd(0.2)], LinearRegression(3), **sizes)


def test_an_unknown_metric_is_refused():
    names = ", ".join(ALL_METRICS)
    message = f"`metric` must be one of {names}, got 'iwld'. Did you mean 'ilwd'?"
    refused(message, metrics=("spd", "iwld"))


def test_a_metric_that_was_not_measured_is_refused(measured):
    with refuses(ValueError, "`metric` must be one of spd, got 'ilwd'."):
        measured.against("OLS", "ilwd")


def test_bad_settings_are_refused_before_anything_is_measured():
    refused("`num_queries` must be at least 3, got 2.", num_queries=2)
    refused("`num_costly_datasets` must be at least 1, got 0.", num_costly_datasets=0)
    refused("`difference_step` must be positive, got 0.0.", difference_step=0.0)
    rule = "`region` must be a first and a last n with 0 ≤ first ≤ last ≤ 2"
    refused(f"{rule}, got (1, 3).", region=(1, 3))
    refused(f"{rule}, got (2, 1).", region=(2, 1))


def test_a_damaged_metric_is_refused(tmp_path):
    path = tmp_path / "evaluation.json"
    short = asdict(curve("ICL", "A", [1.0]))
    for metrics, error in (({"ilwd": [short]}, "'ilwd'"), ({"ilwd": []}, "'ilwd'")):
        path.write_text(json.dumps(stored() | {"metrics": metrics}))
        message = f"`{path}` must hold a saved comparison, got an error in {error}."
        with refuses(DamagedFileError, message):
            Comparison.load(path)


def test_a_learner_that_hides_its_weights_is_compared_by_its_answers():
    sizes: dict[str, Any] = {
        "num_examples": 2,
        "num_datasets": 3,
        "num_costly_datasets": 20,
    }
    found = compare(Opaque(gd(0.1)), [gd(0.1)], TASK, metrics=("ilwd",), **sizes)
    assert max(found.against("GD(0.1)", "ilwd").mean) < 1e-9
