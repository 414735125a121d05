"""`identify` says what a predictor is, what it behaves like, or that it knows none.

The truth is known: textbook predictors, scikit-learn's regressors, and functions that
no family describes. All have one dimension and one number of examples.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import HuberRegressor, Lasso, LinearRegression, Ridge
from sklearn.neighbors import KNeighborsRegressor
from support.boxes import Boxed, ridge_answers
from support.progress import Reports
from support.refusals import refuses

import algoscope as asc
from algoscope import InContextLearner
from algoscope.adapters import EstimatorPredictor, FunctionPredictor
from algoscope.identification import Identification, identify
from algoscope.predictors import (
    PredictorFailedError,
    conjugate_gradients,
    discrete_bayes,
    gd,
    kaczmarz,
    knn,
    newton,
    ols,
    ridge,
    rls,
    sgd,
)

TASK = asc.LinearRegression(dim=2)
EXAMPLES = 8
NEIGHBORS = KNeighborsRegressor(2, algorithm="kd_tree")  # fast for one query
SHAPED = "have shape (tasks, 2), with one task or more"


def ask(box, **options) -> Identification:
    settings = {
        "num_examples": EXAMPLES,
        "num_datasets": 32,
        "with_evidence": False,
        "progress": False,
    }
    return identify(box, TASK, **settings | options)


def function(f, name="box") -> FunctionPredictor:
    return FunctionPredictor(f, name)


def least_squares(x, y, query):
    return float(np.linalg.lstsq(x, y, rcond=1e-12)[0] @ query)


@cache
def known() -> Identification:
    return ask(ridge(0.3), with_evidence=True)


@cache
def trained() -> Identification:
    return ask(InContextLearner.from_pretrained("linear-d2"), num_datasets=64)


# What it is.


@pytest.mark.parametrize(
    ("box", "family", "parameters"),
    [
        (ols, "ols", {}),
        (knn(3, "weighted"), "knn", {"k": 3, "weighting": "weighted"}),
        (gd(0.01, 3), "gd", {"steps": 3, "learning_rate": 0.01}),
        (gd(0.003, 50), "gd", {"steps": 50, "learning_rate": 0.003}),
        (sgd(0.03), "sgd", {"learning_rate": 0.03}),
        (sgd(0.03, 0.2), "sgd", {"learning_rate": 0.03, "penalty": 0.2}),
        (newton(4), "newton", {"steps": 4}),
        (conjugate_gradients(1), "conjugate_gradients", {"steps": 1}),
        (kaczmarz(0.7), "kaczmarz", {"learning_rate": 0.7}),
        (rls(0.99, 0.5), "rls", {"forgetting": 0.99, "penalty": 0.5}),
        (ridge(400.0), "ridge", {"penalty": 400.0}),
        (EstimatorPredictor(LinearRegression()), "ols", {"intercept": True}),
        (EstimatorPredictor(Ridge(0.7)), "ridge", {"penalty": 0.7, "intercept": True}),
        (EstimatorPredictor(NEIGHBORS), "knn", {"k": 2}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_what_equals_a_family_is_that_family(box, family, parameters):
    found = ask(box)
    assert (found.relation, found.verdict) == ("is", family)
    for name, value in parameters.items():
        expected = pytest.approx(value, rel=0.01) if isinstance(value, float) else value
        assert found.parameters[name] == expected
    assert found.confidence > 0.95
    assert f"runs {family}" in found.sentence
    assert found.regimes[-1].verdict == family


def test_a_noisy_box_is_what_it_is_up_to_its_noise(rng):
    noisy = function(lambda x, y, q: least_squares(x, y, q) + 0.02 * rng.normal())
    found = ask(noisy, num_datasets=128)
    assert (found.relation, found.verdict) == ("is", "ols")
    assert found.noise > 1e-6


def test_a_solver_that_stops_early_still_has_its_family():
    found = ask(EstimatorPredictor(Lasso(0.1)))
    assert found.verdict == "lasso"
    assert found.parameters["penalty"] == pytest.approx(0.1, rel=0.01)


# What it is not.


@pytest.mark.parametrize(
    "box",
    [
        function(lambda x, y, q: 0.7, "a constant"),
        function(lambda x, y, q: float(np.sin(9 * q.sum())), "a sine"),
        function(lambda x, y, q: float(np.median(y)), "the median"),
    ],
    ids=lambda box: box.name,
)
def test_an_algorithm_of_no_family_is_none_of_the_known(box):
    found = ask(box)
    assert (found.relation, found.verdict) == ("none", "none")
    assert found.parameters == {}
    assert max(found.suites.values()) > found.limit
    assert "is none of the known algorithms" in found.sentence


def test_what_fails_on_one_kind_of_data_is_said_to():
    def zero_if_outlier(x, y, query):
        wild = np.max(np.abs(y)) > 6 * np.median(np.abs(y)) + 1
        return 0.0 if wild else least_squares(x, y, query)

    found = ask(function(zero_if_outlier))
    assert found.relation != "is"
    assert found.verdict == "ols"
    assert found.suites["outlier"] > 0.1
    assert found.suites["task"] < 1e-10
    assert "not on" in found.sentence
    assert "an outlier" in found.sentence


def test_both_questions_are_answered_for_a_trained_model():
    found = trained()
    assert [each.domain for each in found.statements] == ["task", "everywhere"]
    assert (found.relation, found.domain) == ("behaves like", "task")
    assert "ols" in {found.verdict, *found.ties}
    assert found.nearest.low <= found.distance <= found.nearest.high
    assert found.statements[1].relation == "none"
    assert "on its task" in found.sentence
    assert "on all kinds of data" in found.sentence


def test_the_next_family_is_never_nearer_than_the_one_that_is_named():
    for statement in trained().statements:
        following = statement.runner_up
        assert following is not None
        assert following.distance >= statement.nearest.distance


def test_a_huge_penalty_is_that_of_ridge_and_not_of_what_can_bend_to_it():
    """A shrunken ridge with a smaller penalty gives the same answers."""
    found = ask(ridge(164_359.0))
    assert (found.relation, found.verdict) == ("is", "ridge")
    assert found.parameters["penalty"] == pytest.approx(164_359, rel=1e-3)
    assert "shrunken" in found.ties


def test_what_leaves_much_of_small_answers_is_not_named():
    """The sign of a label times a tiny rate: near to much, and like nothing."""

    def signs(x, y, query):
        return float(0.01 * np.sign(y) @ x @ query)

    found = ask(function(signs), num_datasets=64)
    assert max(found.suites.values()) < found.limit
    assert (found.relation, found.verdict) == ("none", "none")
    assert "of the size of its answers" in found.sentence


# Regimes.


def test_a_change_of_algorithm_is_found_with_its_place():
    def switching(x, y, query):
        if len(x) > 4:
            return least_squares(x, y, query)
        near = np.argsort(np.sum((x - query) ** 2, axis=1), kind="stable")[:2]
        return float(y[near].mean())

    found = ask(function(switching))
    assert found.changes_at == 4
    first, second = found.regimes
    assert (first.verdict, first.first, first.last) == ("knn", 1, 4)
    assert first.parameters["k"] == 2
    assert (second.verdict, second.first, second.last) == ("ols", 5, 8)
    assert (found.relation, found.verdict) == ("none", "none")
    assert "changes its algorithm with n" in found.sentence


def test_a_change_of_a_parameter_is_found():
    def switching(x, y, query):
        return float(ridge_answers(x, y, query[None], 5 if len(x) <= 3 else 0.05)[0])

    found = ask(function(switching))
    assert found.changes_at == 3
    penalties = [regime.parameters["penalty"] for regime in found.regimes]
    assert penalties == pytest.approx([5, 0.05], rel=1e-3)


# A finite pool of weights.


def test_the_posterior_mean_over_a_pool_is_found_with_the_pool(rng):
    pool = rng.standard_normal((16, 2))
    box = discrete_bayes(pool, 0.25)
    found = ask(box, pool=pool)
    assert (found.relation, found.verdict) == ("is", "discrete_bayes")
    assert found.parameters["noise_variance"] == pytest.approx(0.25, rel=1e-5)
    assert found.parameters["tasks"] == 16
    assert ask(box).relation != "is"


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        (np.zeros((4, 3)), f"{SHAPED}, got shape (4, 3)"),
        (np.zeros((0, 2)), f"{SHAPED}, got shape (0, 2)"),
        (np.full((4, 2), np.nan), "hold finite numbers, got NaN or infinity"),
    ],
)
def test_a_pool_of_another_shape_is_rejected(pool, message):
    with refuses(ValueError, f"`pool` must {message}."):
        identify(ols, TASK, pool=pool)


# What was asked.


def test_questions_without_an_answer_are_counted():
    found = ask(
        function(
            lambda x, y, q: least_squares(x, y, q) if len(x) <= 5 else float("nan")
        )
    )
    assert found.answered == pytest.approx(5 / 8, abs=0.01)
    assert (found.first_n, found.last_n) == (1, 5)
    assert "62.5% were answered" in found.sentence
    assert found.regimes[-1].last == 5


def test_the_answer_does_not_depend_on_the_seed():
    assert {ask(ridge(0.5), seed=seed).verdict for seed in (0, 1, 2)} == {"ridge"}


def test_the_same_seed_gives_the_same_answer():
    assert ask(sgd(0.03)) == ask(sgd(0.03))


def test_one_domain_can_be_asked_about_alone():
    task = ask(ols, domain="task", num_datasets=32)
    assert set(task.suites) == {"task"}
    assert (task.relation, task.domain) == ("is", "task")
    everywhere = ask(ols, domain="everywhere")
    assert [each.domain for each in everywhere.statements] == ["everywhere"]


def test_progress_is_reported_with_totals():
    reports = Reports()
    box = function(lambda x, y, q: float(ridge_answers(x, y, q[None])[0]), "mine")
    ask(box, with_evidence=True, progress=reports)
    stages = {stage for stage, _, _ in reports.counts}
    assert stages == {"asking mine", "trying families", "fitting families"}
    for stage in stages:
        done, totals = zip(*reports.of(stage), strict=True)
        assert set(totals) == {done[-1]}  # known from the start


def test_any_other_predictor_needs_a_task():
    message = "`task` must be given for OLS, which does not know its task, got None. "
    with refuses(ValueError, message + "For example `LinearRegression(dim=4)`."):
        identify(ols)


# What it rests on.


def test_evidence_speaks_for_the_right_hypothesis():
    evidence = known().evidence
    assert evidence["num_queries"] == 2 * TASK.dim
    assert max(evidence["ilwd"].values()) < 1e-15
    assert evidence["influence"]["cosine"] == pytest.approx(1)
    for change in evidence["symmetries"].values():
        assert change["target"] == pytest.approx(change["nearest"], abs=1e-6)
    assert evidence["symmetries"]["permutation"]["target"] < 1e-9
    assert evidence["symmetries"]["input scale"]["target"] > 1e-3


def test_a_family_whose_symmetry_the_box_breaks_is_not_named():
    def clipped(x, y, query):
        return float(np.clip(least_squares(x, y, query), -2.2, 2.2))

    before = ask(function(clipped), domain="task")
    assert (before.relation, before.verdict) == ("behaves like", "ols")
    found = ask(function(clipped), with_evidence=True, domain="task")
    assert (found.relation, found.verdict) == ("none", "none")
    assert found.broken_symmetries["label scale"] > 0.1
    assert "It breaks a symmetry of ols, label scale, by" in found.sentence


def test_the_range_of_a_parameter_holds_its_estimate():
    low, high = known().parameter_ranges["penalty"]
    assert low <= known().parameters["penalty"] <= high
    assert high - low < 1e-6


def test_a_box_that_dies_before_the_evidence_keeps_its_answer():
    def dies_of_many(x, y, queries):
        if len(queries) > 1:
            raise PredictorFailedError("box", "ended", "Start it again.")
        return ridge_answers(x, y, queries, 0.3)

    with pytest.warns(UserWarning, match=r"^`box` ended\..* The evidence is left out"):
        found = ask(Boxed("box", dies_of_many), with_evidence=True)
    assert (found.verdict, found.evidence) == ("ridge", {})


def test_huber_is_not_least_squares_everywhere():
    box = EstimatorPredictor(HuberRegressor(max_iter=1000))
    found = ask(box, num_examples=5, num_datasets=16)
    assert found.relation != "is"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_examples": 1}, "`num_examples` must be at least 2, got 1."),
        ({"num_datasets": 3}, "`num_datasets` must be at least 16, got 3."),
        ({"seed": -1}, "`seed` must be at least 0, got -1."),
        (
            {"domain": "tasks"},
            "`domain` must be one of task, everywhere, got 'tasks'. "
            "Did you mean 'task'?",
        ),
    ],
)
def test_bad_options_are_rejected(options, message):
    with refuses(ValueError, message):
        identify(ols, TASK, **options)
