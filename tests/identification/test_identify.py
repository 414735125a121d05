"""`identify` names the algorithm that a predictor runs, and says when it knows none.

The truth is known: textbook predictors, scikit-learn's regressors, and functions that
no family describes. All have one dimension and one number of examples, so that every
family compiles once for the whole file.
"""

from functools import cache

import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, HuberRegressor, Lasso, Ridge
from sklearn.neighbors import KNeighborsRegressor
from support.boxes import Boxed, ridge_answers
from support.refusals import refuses

from algoscope import InContextLearner, LinearRegression
from algoscope.adapters import EstimatorPredictor, FunctionPredictor
from algoscope.identification import Identification, identify
from algoscope.predictors import (
    PredictorFailedError,
    conjugate_gradients,
    gd,
    kaczmarz,
    knn,
    newton,
    ols,
    ridge,
    rls,
    sgd,
)

pytestmark = pytest.mark.optimized  # Computes for longer than it compiles.

TASK = LinearRegression(dim=2)
EXAMPLES = 8


def ask(box, **options) -> Identification:
    return identify(
        box,
        TASK,
        num_examples=EXAMPLES,
        num_datasets=32,
        with_evidence=False,
        **options,
    )


@cache
def known() -> Identification:
    return identify(ridge(0.3), TASK, num_examples=EXAMPLES, num_datasets=32)


# The right answer.


@pytest.mark.parametrize(
    ("box", "family", "parameters"),
    [
        (ols, "ols", {}),
        (knn(3, "weighted"), "knn", {"k": 3, "weighting": "weighted"}),
        (gd(0.01, 3), "gd", {"steps": 3, "learning_rate": 0.01}),
        (gd(0.02), "gd", {"steps": 1, "learning_rate": 0.02}),
        (sgd(0.03), "sgd", {"learning_rate": 0.03}),
        (sgd(0.03, 0.2), "sgd", {"learning_rate": 0.03, "penalty": 0.2}),
        (newton(4), "newton", {"steps": 4}),
        (conjugate_gradients(1), "conjugate_gradients", {"steps": 1}),
        (kaczmarz(0.7), "kaczmarz", {"learning_rate": 0.7}),
        (rls(0.8, 0.5), "rls", {"forgetting": 0.8, "penalty": 0.5}),
        (EstimatorPredictor(Ridge(0.7)), "ridge", {"penalty": 0.7, "intercept": True}),
        (EstimatorPredictor(Lasso(0.1)), "lasso", {"penalty": 0.1, "intercept": True}),
        (EstimatorPredictor(KNeighborsRegressor(2)), "knn", {"k": 2}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_family_and_its_parameters_are_found(box, family, parameters):
    found = ask(box)
    assert found.verdict == family
    for name, value in parameters.items():
        expected = pytest.approx(value, rel=0.01) if isinstance(value, float) else value
        assert found.parameters[name] == expected
    assert found.confidence > 0.95
    assert found.regimes[-1].verdict == family  # with few examples, many coincide


@pytest.mark.parametrize(
    "box",
    [
        EstimatorPredictor(BayesianRidge()),
        EstimatorPredictor(HuberRegressor(max_iter=1000)),
        FunctionPredictor(lambda x, y, query: 0.7, "a constant"),
        FunctionPredictor(lambda x, y, query: float(np.sin(9 * query.sum())), "a sine"),
    ],
    ids=lambda box: box.name,
)
def test_an_algorithm_of_no_family_is_none_of_the_known(box):
    found = ask(box)
    assert found.verdict == "none"
    assert found.parameters == {}
    assert found.nearest.distance > found.threshold
    assert "none of the known algorithms" in found.sentence
    assert found.nearest.name in found.sentence


def test_algorithms_that_agree_on_the_task_are_told_apart_elsewhere():
    """On orthogonal inputs one step of GD is ridge regression, up to its scale."""
    found = ask(gd(0.01, 8))
    distances = {c.family: c.distance for c in reversed(found.candidates)}
    assert distances["gd"] < 1e-12
    assert distances["ridge"] > 1e-3


def test_the_order_of_examples_tells_one_pass_from_all_at_once():
    found = ask(sgd(0.02))
    distances = {c.family: c.distance for c in reversed(found.candidates)}
    assert distances["sgd"] < 1e-12 < 1e-4 < distances["gd"]


def test_a_trained_learner_is_held_to_its_task():
    found = ask(InContextLearner.from_pretrained("linear-d2"))
    assert found.domain == "task"
    assert found.verdict in ("ols", "ridge")
    assert found.nearest.low <= found.nearest.distance <= found.nearest.high


def test_the_answer_does_not_depend_on_the_seed():
    assert {ask(ridge(0.5), seed=seed).verdict for seed in (0, 1, 2)} == {"ridge"}


def test_the_same_seed_gives_the_same_answer():
    assert ask(sgd(0.03)) == ask(sgd(0.03))


def test_a_model_knows_its_task_and_progress_is_reported():
    learner = InContextLearner.from_pretrained("linear-d2")
    reports = []
    found = identify(
        learner,
        num_examples=EXAMPLES,
        num_datasets=32,
        with_evidence=False,
        progress=lambda stage, done, total, note="": reports.append(
            (stage, done, total)
        ),
    )
    assert (found.task, found.dim) == (repr(learner.task), 2)
    assert found.evidence == {}
    stages = {stage: (done, total) for stage, done, total in reports}
    assert set(stages) == {"trying families", "fitting families"}
    assert all(done == total for done, total in stages.values())


def test_a_black_box_reports_its_answers():
    stages = set()
    box = Boxed("box", ridge_answers)
    ask(box, progress=lambda stage, done, total, note="": stages.add(stage))
    assert stages > {"trying families", "fitting families"}


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


def test_the_range_of_a_parameter_holds_the_truth():
    low, high = known().parameter_ranges["penalty"]
    assert low == pytest.approx(0.3, rel=1e-6)
    assert high == pytest.approx(0.3, rel=1e-6)


def test_a_box_that_dies_before_the_evidence_keeps_its_answer():
    def dies_of_many(x, y, queries):
        if len(queries) > 1:
            raise PredictorFailedError("box", "ended", "Start it again.")
        return ridge_answers(x, y, queries, 0.3)

    with pytest.warns(UserWarning, match=r"^`box` ended\..* The evidence is left out"):
        found = identify(
            Boxed("box", dies_of_many), TASK, num_examples=EXAMPLES, num_datasets=32
        )
    assert (found.verdict, found.evidence) == ("ridge", {})


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
