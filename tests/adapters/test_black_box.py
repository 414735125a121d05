"""Every kind of black box computes what its algorithm does, and survives failures."""

import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import (
    LinearRegression,
    LogisticRegression,
    Ridge,
    SGDRegressor,
)
from sklearn.neighbors import KNeighborsRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from support.boxes import PENALTY, collect, questions, solve_ridge, ten_questions
from support.refusals import refuses

from algoscope.adapters import (
    EstimatorPredictor,
    Failures,
    FunctionPredictor,
    ProcessPredictor,
)
from algoscope.comparison.predict import predict_all, predict_queries
from algoscope.predictors import BlackBox, Predictor, ridge, sgd

DATASETS, EXAMPLES, DIM = 4, 6, 2  # of the fixture `data`


def ridge_boxes(server) -> Iterator[BlackBox]:
    yield FunctionPredictor(solve_ridge)
    yield EstimatorPredictor(Ridge(alpha=PENALTY, fit_intercept=False))
    yield ProcessPredictor(server())


def test_every_kind_of_box_agrees_with_the_reference_at_every_prefix(server, data):
    expected = predict_all(ridge(PENALTY), *data)
    for box in ridge_boxes(server):
        assert isinstance(box, BlackBox)
        assert not isinstance(box, Predictor)
        predictions = predict_all(box, *data)
        assert predictions.dtype == np.float64
        assert np.all(np.isnan(predictions[:, 0]))
        np.testing.assert_allclose(predictions[:, 1:], expected[:, 1:], atol=1e-8)


def test_every_kind_of_box_agrees_with_the_reference_for_many_queries(server, data):
    x, y = data
    asked = x[:, 4:], y[:, 4:], x[:, :4]
    after = x.shape[1] - 5
    expected = predict_queries(ridge(PENALTY), *asked, after=after)
    for box in ridge_boxes(server):
        answers = predict_queries(box, *asked, after=after)
        np.testing.assert_allclose(answers, expected, atol=1e-8)


def test_no_bit_is_lost_on_the_way_to_a_program_and_back(server, rng):
    sizes = 10.0 ** rng.integers(-30, 0, (3, EXAMPLES, 1))  # larger: a singular gram
    x = rng.standard_normal((3, EXAMPLES, DIM)) * sizes
    sizes = 10.0 ** rng.integers(-30, 30, (3, EXAMPLES))
    y = rng.standard_normal((3, EXAMPLES)) * sizes
    inside = predict_all(FunctionPredictor(solve_ridge), x, y)
    outside = predict_all(ProcessPredictor(server()), x, y)
    np.testing.assert_array_equal(inside, outside)


def test_single_precision_questions_are_answered_in_double(server, data):
    x, y = (part.astype(np.float32) for part in data)
    doubled = x.astype(np.float64), y.astype(np.float64)
    for box in ridge_boxes(server):
        predictions = predict_all(box, x, y)
        np.testing.assert_array_equal(predictions, predict_all(box, *doubled))


def test_an_incremental_regressor_takes_one_step_per_example_in_order(data):
    # SGDRegressor descends (wᵀx − y)²/2, so that its step is twice as small.
    constant = {"learning_rate": "constant", "eta0": 0.06, "shuffle": False}
    learner = SGDRegressor(fit_intercept=False, alpha=0.0, **constant)
    box = EstimatorPredictor(learner, "SGD", incremental=True)
    expected = predict_all(sgd(0.03), *data)
    np.testing.assert_allclose(
        predict_all(box, *data)[:, 1:], expected[:, 1:], atol=1e-9
    )
    assert not hasattr(learner, "coef_")


def test_a_pipeline_is_a_regressor(data):
    pipeline = make_pipeline(StandardScaler(), LinearRegression())
    asked = questions(*data)[0]
    answer = next(EstimatorPredictor(pipeline).answers([asked]))
    expected = pipeline.fit(asked.x, asked.y).predict(asked.queries)
    np.testing.assert_array_equal(answer, expected)


def test_a_function_may_change_its_arguments(data):
    def destructive(X, y, x_query):
        value = solve_ridge(X, y, x_query)
        for part in (X, y, x_query):
            part[:] = 0
        return value

    before = [part.copy() for part in data]
    x, y = data
    after = x.shape[1] - 1
    changed = predict_queries(FunctionPredictor(destructive), x, y, x, after=after)
    kept = predict_queries(FunctionPredictor(solve_ridge), x, y, x, after=after)
    np.testing.assert_array_equal(changed, kept)
    for part, copy in zip(data, before, strict=True):
        np.testing.assert_array_equal(part, copy)


@pytest.mark.parametrize("kind", [float, np.float32, lambda v: np.array([v]), int])
def test_a_prediction_may_be_any_kind_of_number(kind, data):
    box = FunctionPredictor(lambda X, y, q: kind(2.0), "two")
    assert [a.tolist() for a in box.answers(questions(*data))] == [[2.0] * 3] * DATASETS
    assert box.failures == Failures(0, DATASETS)


@pytest.mark.parametrize("make", [0, 1, 2], ids=["function", "estimator", "process"])
def test_answers_are_given_one_by_one(make, server, data):
    box = list(ridge_boxes(server))[make]
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield questions(*data)[0]

    answers = box.answers(endless())
    assert taken == []
    next(answers)
    next(answers)
    assert 2 <= len(taken) <= 9
    answers.close()  # pyright: ignore[reportAttributeAccessIssue]


def test_names_are_those_of_what_is_asked():
    assert FunctionPredictor(solve_ridge).name == "solve_ridge"
    assert EstimatorPredictor(Ridge(alpha=0.3)).name == "Ridge(alpha=0.3)"
    assert ProcessPredictor(["a b", "c"]).name == "'a b' c"
    assert ProcessPredictor(["a"], "mine").name == "mine"


# Failures that cost one question.


def bad_replies():
    yield "nan", lambda: np.nan, "a prediction that is NaN or infinite"
    yield "infinity", lambda: -np.inf, "a prediction that is NaN or infinite"
    yield "none", lambda: None, "[None, None, None], which is not an array of numbers"
    yield "text", lambda: "1", "['1', '1', '1'], which is not an array of numbers"
    yield "truth", lambda: True, "[True, True, True], which is not an array of numbers"
    yield "complex", lambda: 1j, "[1j, 1j, 1j], which is not an array of numbers"
    yield "vector", lambda: [1.0, 2.0], "predictions of shape (3, 2) instead of (3,)"
    here = f"({Path(__file__).name}:"
    yield "exception", lambda: 1 / 0, f"ZeroDivisionError: division by zero {here}"
    yield "exit", lambda: sys.exit(4), f"SystemExit: 4 {here}"


@pytest.mark.parametrize(
    ("value", "reason"), [pytest.param(*rest, id=name) for name, *rest in bad_replies()]
)
def test_a_function_that_fails_once_answers_the_rest(value, reason, rng):
    calls = iter(range(1000))

    def sometimes(X, y, x_query):
        return value() if 6 <= next(calls) < 9 else 1.0

    box = FunctionPredictor(sometimes)
    answers, error = collect(box, ten_questions(rng))
    failed = [bool(np.all(np.isnan(answer))) for answer in answers]
    # A question is given up at the first exception; three calls are one or two of them.
    assert error is None
    assert failed[:3] == [False, False, True]
    assert not any(failed[5:])
    assert box.failures.count == sum(failed)
    assert box.failures.total == 10
    assert box.failures.first.startswith(reason)


def test_too_few_examples_for_a_regressor_are_answered_with_nan(data):
    box = EstimatorPredictor(KNeighborsRegressor(3))
    predictions = predict_all(box, *data)
    assert np.isnan(predictions).tolist() == [[True] * 3 + [False] * 3] * DATASETS
    assert (box.failures.count, box.failures.total) == (2 * DATASETS, 5 * DATASETS)
    assert "ValueError: Expected n_neighbors <= n_samples_fit" in box.failures.first


def test_a_slow_answer_is_given_up_and_the_next_is_asked(rng):
    calls = iter(range(100))

    def slow_once(X, y, x_query):
        try:
            if next(calls) == 0:
                time.sleep(30)
        except Exception:  # a box may catch everything; its time is up nevertheless
            return 0.0
        return 1.0

    box = FunctionPredictor(slow_once, timeout=0.2)
    start = time.monotonic()
    answers, _ = collect(box, ten_questions(rng)[:2])
    assert time.monotonic() - start < 10
    assert np.isnan(answers[0]).all()
    assert answers[1].tolist() == [1.0] * 3
    assert box.failures == Failures(1, 2, "no answer within 0.2 s")


def test_timers_and_handlers_of_others_are_left_as_they_were(rng):
    rang = []
    handler = signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    before = signal.setitimer(signal.ITIMER_REAL, 0.3)
    mine = signal.getsignal(signal.SIGALRM)
    try:
        box = FunctionPredictor(lambda X, y, q: 1.0, "one")
        collect(box, ten_questions(rng))
        assert signal.getsignal(signal.SIGALRM) is mine
        assert 0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 0.3
        time.sleep(0.5)
        assert rang == [1]
    finally:
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, *before)


def test_a_box_works_outside_the_main_thread(data):
    results = []
    box = EstimatorPredictor(Ridge())
    thread = threading.Thread(target=lambda: results.append(predict_all(box, *data)))
    thread.start()
    thread.join()
    assert np.isfinite(results[0][:, 1:]).all()


def test_an_interrupt_by_the_user_goes_through(data):
    def interrupted(X, y, x_query):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        predict_all(FunctionPredictor(interrupted), *data)


# Failures that end it.


def test_twenty_failures_from_the_start_stop_the_questions(rng):
    def broken(X, y, x_query):
        raise ValueError("cannot\nlearn.")

    box = FunctionPredictor(broken, "mine")
    answers, error = collect(box, ten_questions(rng) * 3)
    assert np.isnan(answers).all()
    assert len(answers) == 20
    place = broken.__code__.co_firstlineno + 1
    assert str(error) == (
        "`mine` failed on 20 of 20 questions, first with ValueError: cannot learn "
        f"(test_black_box.py:{place}). "
        "Try it on one dataset by hand, or ask it with more examples."
    )


@pytest.mark.parametrize(("good", "asked"), [(9, 100), (12, 121), (10, None)])
def test_nine_failures_of_ten_stop_the_questions(good, asked, rng):
    calls = iter(range(10**6))

    def works_at_first(X, y, x_query):
        return 1.0 if next(calls) < good else np.nan

    box = FunctionPredictor(works_at_first, "f")
    question = ten_questions(rng)[0]._replace(queries=np.ones((1, DIM)))
    answers, error = collect(box, [question] * (asked + 50 if asked else 100))
    if asked is None:
        assert (len(answers), error) == (100, None)
    else:
        assert len(answers) == asked
        message = f"`f` failed on {asked - good} of {asked} questions"
        assert str(error).startswith(message)


# Arguments.


def test_bad_arguments_are_rejected():
    message = "`function` must be a function of X, y and x_query, got 3."
    with refuses(TypeError, message):
        FunctionPredictor(3)  # pyright: ignore[reportArgumentType]
    regressor = "`estimator` must be a scikit-learn regressor, got "
    with refuses(TypeError, f"{regressor}Ridge. Create one: Ridge()."):
        EstimatorPredictor(Ridge)
    other = "For another kind of object, use `FunctionPredictor`."
    with refuses(TypeError, f"{regressor}LogisticRegression(). {other}"):
        EstimatorPredictor(LogisticRegression())
    with refuses(TypeError, f"{regressor}3. {other}"):
        EstimatorPredictor(3)
    message = "`estimator` must have `partial_fit` to be incremental, got Ridge()."
    with refuses(TypeError, message):
        EstimatorPredictor(Ridge(), incremental=True)
    message = "`command` must be a list of words, got 'python a.py'. "
    with refuses(TypeError, f"{message}Split it with `shlex.split`."):
        ProcessPredictor("python a.py")
    with refuses(ValueError, "`command` must name a program, got no words."):
        ProcessPredictor([])
    for make in (
        lambda: FunctionPredictor(solve_ridge, timeout=-1.0),
        lambda: EstimatorPredictor(Ridge(), timeout=-1.0),
        lambda: ProcessPredictor(["a"], timeout=-1.0),
    ):
        with refuses(ValueError, "`timeout` must be positive, got -1.0."):
            make()
