"""`compare` measures what it says, with defaults for everything but the learner."""

from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
from support.boxes import Boxed, Opaque, ridge_answers
from support.progress import Reports
from support.refusals import refuses

from algoscope.comparison import compare as comparison
from algoscope.comparison.compare import BLACK_BOX_DATASETS, asked_on, compare
from algoscope.comparison.intervals import Estimate, bootstrap_interval
from algoscope.comparison.metrics import ALL_METRICS
from algoscope.comparison.predict import held_out
from algoscope.comparison.result import LABELS, Comparison
from algoscope.foundation import provenance
from algoscope.model.learner import InContextLearner
from algoscope.model.transformer import random_transformer
from algoscope.predictors import (
    PredictorFailedError,
    figure_1_references,
    gd,
    knn,
    ols,
    ridge,
)
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


def test_a_reference_of_figure_1_is_compared_with_the_others():
    known = {reference.name for reference in figure_1_references()}
    found = compare(ridge(0.1), None, TASK, num_examples=1, num_datasets=2)
    asked = {curve.second for curve in found.curves if curve.first == "Ridge(0.1)"}
    assert asked - {LABELS} == known - {"Ridge(0.1)"}


def test_what_was_saved_is_loaded(measured, tmp_path):
    path = tmp_path / "new" / "evaluation.json"
    measured.save(path)
    assert Comparison.load(path) == measured
    measured.save(path)  # over the old one
    assert Comparison.load(path) == measured


def test_a_comparison_with_nothing_is_refused():
    with refuses(
        ValueError, "`references` must name at least one predictor, got none."
    ):
        compare(gd(0.1), [], TASK, num_examples=EXAMPLES, num_datasets=DATASETS)


# Defaults.


def tiny_model(task: LinearRegression = TASK) -> InContextLearner:
    transformer = random_transformer(
        0, token_size=3, max_time=7, num_layers=1, hidden_size=4, num_heads=1
    )
    return InContextLearner(transformer, "tiny", task=task)


def test_a_model_is_compared_on_its_own_task_with_all_examples_it_has_room_for():
    found = compare(tiny_model(), [ols, ridge(0.1)], num_datasets=5)
    assert found.task == repr(TASK)
    assert found.num_examples == 3
    other = LinearRegression(2)
    assert compare(tiny_model(), [ols], other, num_datasets=5).task == repr(other)
    fewer = compare(tiny_model(), [ols], num_examples=2, num_datasets=5)
    assert fewer.num_examples == 2


def test_references_may_be_names_and_are_by_default_those_of_figure_1():
    named = compare(tiny_model(), ["ols", "ridge(0.5)"], num_datasets=5)
    given = compare(tiny_model(), [ols, ridge(0.5)], num_datasets=5)
    assert named == given
    default = compare(tiny_model(), num_datasets=5, num_examples=1)
    names = [curve.second for curve in default.curves if curve.first == "tiny"]
    assert names == [*(each.name for each in figure_1_references()), LABELS]
    with pytest.raises(ValueError, match=r"^`predictor` must .*, got 'olz'\."):
        compare(tiny_model(), ["olz"], num_datasets=5)


@pytest.mark.parametrize("learner", [ols, Boxed("box", ridge_answers)])
def test_a_predictor_that_knows_no_task_needs_one(learner):
    message = (
        f"`task` must be given for {learner.name}, which does not know its task, "
        "got None. For example `LinearRegression(dim=4)`."
    )
    with refuses(ValueError, message):
        compare(learner, [ridge(0.1)])
    assert asked_on(learner, TASK, None) == (TASK, 20)
    assert asked_on(learner, TASK, 7) == (TASK, 7)


def test_more_examples_than_a_model_has_room_for_are_refused():
    message = "`num_examples` must be at most 3, the context length of tiny, got 4."
    with refuses(ValueError, message):
        compare(tiny_model(), [ols], num_examples=4)


def test_a_black_box_is_asked_about_fewer_datasets_by_default(monkeypatch):
    asked = []

    def watched(task, **sizes):
        asked.append(sizes["num_datasets"])
        return held_out(task, **sizes | {"num_datasets": 2})

    monkeypatch.setattr(comparison, "held_out", watched)
    for learner in (LEARNER, Boxed("box", ridge_answers)):
        compare(learner, [ols], TASK, num_examples=1)
    assert asked == [10_000, BLACK_BOX_DATASETS]


# Every metric.

BOX = Boxed("box", ridge_answers, least=2)  # λ = 0.5; abstains from one example
EVERYTHING = [
    *("sim_e", "r2_gold", "ilwd", "sim_w", "r2", "sensitivity_cosine"),
    *("sensitivity_distance", "influence_cosine", "influence_distance", "symmetry"),
]


@pytest.fixture(scope="module")
def reports() -> Reports:
    return Reports()


@pytest.fixture(scope="module")
def everything(reports) -> Comparison:
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
        progress=reports,
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


def test_the_settings_are_kept(everything):
    assert everything.settings == {
        "metrics": list(ALL_METRICS),
        "region": [2, 3],
        "num_costly_datasets": 12,
        "num_queries": 5,
        "difference_step": 1e-3,
    }


def test_steps_and_questions_are_reported(everything, reports):
    steps, questions = (reports.of(f"{verb} box") for verb in ("comparing", "asking"))
    assert len(steps) + len(questions) == len(reports.counts)
    # Four predictors, five kinds of measurements.
    assert steps == [(n, 20) for n in range(1, 21)]
    assert [done for done, _ in questions] == list(range(1, len(questions) + 1))
    assert all(total is not None and done <= total for done, total in questions)
    assert questions[-1] == (len(questions), len(questions))


def test_every_metric_survives_the_disk(everything, tmp_path):
    path = tmp_path / "evaluation.json"
    everything.save(path)
    assert "NaN" not in path.read_text()
    loaded = Comparison.load(path)
    assert repr(asdict(loaded)) == repr(asdict(everything))  # NaN ≠ NaN
    loaded.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


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


@pytest.mark.parametrize("cheap", ["mspd", "r2_gold"])
def test_a_box_that_dies_in_a_later_metric_keeps_the_earlier_ones(cheap):
    def dies_of_many(x, y, queries):
        if len(queries) > 1:
            raise PredictorFailedError("box", "ended", "Start it again.")
        return ridge_answers(x, y, queries)

    sizes: dict[str, Any] = {"num_examples": 3, "num_datasets": 5}
    with pytest.warns(UserWarning, match=r"^`box` ended\..* Not measured: ilwd, r2\.$"):
        found = compare(
            Boxed("box", dies_of_many),
            [ridge(0.5)],
            TASK,
            metrics=(cheap, "r2", "ilwd"),
            num_costly_datasets=2,
            **sizes,
        )
    assert found.against("Ridge(0.5)").mean[1:] == pytest.approx([0] * 3, abs=1e-9)
    assert bool(found.mspd) == (cheap == "mspd")
    assert list(found.metrics) == [each for each in [cheap] if each != "mspd"]
    assert found.settings["metrics"] == [cheap]


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


def test_a_learner_that_hides_its_weights_is_compared_by_its_answers():
    sizes: dict[str, Any] = {
        "num_examples": 2,
        "num_datasets": 3,
        "num_costly_datasets": 20,
    }
    found = compare(Opaque(gd(0.1)), [gd(0.1)], TASK, metrics=("ilwd",), **sizes)
    assert max(found.against("GD(0.1)", "ilwd").mean) < 1e-9
