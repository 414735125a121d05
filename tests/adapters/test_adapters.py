"""Black boxes answer as the algorithms they are, and fail without taking all along.

Programs are real ones: `SERVER` answers with ridge regression, in its own process, and
misbehaves at the fifth question in as many ways as there are names in `MISBEHAVIOR`.
"""

import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from support.refusals import refuses

from algoscope import InContextLearner
from algoscope.adapters import (
    EstimatorPredictor,
    Failures,
    FunctionPredictor,
    PredictorFailedError,
    ProcessPredictor,
    load_target,
)
from algoscope.adapters import process as pipe
from algoscope.adapters.process import Pipe
from algoscope.comparison.predict import predict_all, predict_queries
from algoscope.predictors import BlackBox, Predictor, Question, ridge, sgd

DATASETS, EXAMPLES, DIM, PENALTY = 4, 6, 2, 0.3
DOCUMENT = Path(__file__).parents[2] / "docs" / "bring_your_own_model.md"


def solve_ridge(X, y, x_query):
    gram = X.T @ X + PENALTY * np.eye(X.shape[1])
    return x_query @ np.linalg.solve(gram, X.T @ y)


SERVER = """
import json, os, sys, time
import numpy as np

count = 0
for line in sys.stdin:
    count += 1
    data = {name: np.array(value) for name, value in json.loads(line).items()}
    x, y, queries = data["x"], data["y"], data["queries"]
    gram = x.T @ x + 0.3 * np.eye(x.shape[1])
    answers = [float(q @ np.linalg.solve(gram, x.T @ y)) for q in queries]
    reply = json.dumps({"predictions": answers})
    if count == 5:
        MISBEHAVIOR
    print(reply, flush=True)
"""

MISBEHAVIOR = {
    "none": "pass",
    "crash": "print('out of\\nmemory', file=sys.stderr); sys.exit(3)",
    "die": "os.kill(os.getpid(), 9)",
    "hang": "time.sleep(600)",
    "garbage": "reply = 'step 5 of 10'",
    "list": "reply = '[1.0]'",
    "twice": "reply = reply + chr(10) + reply",
    "shape": "reply = json.dumps({'predictions': answers * 3})",
    "nan": "reply = json.dumps({'predictions': [float('nan')] * len(answers)})",
    "text": "reply = json.dumps({'predictions': ['1.0'] * len(answers)})",
    "error": "reply = json.dumps({'error': 'no\\nidea'})",
    "empty": "reply = '{}'",
    "endless": "sys.stdout.write('9' * 2**25)",
    "chatter": "sys.stderr.write('loading ' * 2**20)",
    "padded": "reply = reply + ' ' * 2**20",
}


@pytest.fixture
def server(tmp_path):
    """Return the command of a server that misbehaves so at its fifth question."""

    def command(misbehavior: str = "none") -> list[str]:
        path = tmp_path / f"{misbehavior}.py"
        path.write_text(SERVER.replace("MISBEHAVIOR", MISBEHAVIOR[misbehavior]))
        return [sys.executable, str(path)]

    return command


@pytest.fixture
def data(rng) -> tuple[np.ndarray, np.ndarray]:
    x = rng.standard_normal((DATASETS, EXAMPLES, DIM))
    return x, rng.standard_normal((DATASETS, EXAMPLES))


def questions(x: np.ndarray, y: np.ndarray) -> list[Question]:
    return [Question(a[:3], b[:3], a[3:]) for a, b in zip(x, y, strict=True)]


def ten_questions(rng) -> list[Question]:
    x, y = rng.standard_normal((10, EXAMPLES, DIM)), rng.standard_normal((10, EXAMPLES))
    return questions(x, y)


def collect(box: BlackBox, asked) -> tuple[list[np.ndarray], Exception | None]:
    """Return the answers, and what was raised after them."""
    answers = []
    try:
        for answer in box.answers(asked):
            answers.append(answer)
    except PredictorFailedError as error:
        return answers, error
    return answers, None


# A black box computes what the algorithm does.


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
    x = rng.standard_normal((3, EXAMPLES, DIM)) * 10.0 ** rng.integers(
        -30, 30, (3, 6, 1)
    )
    y = rng.standard_normal((3, EXAMPLES))
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
    yield "none", lambda: None, "[None, None, None], which is no array of numbers"
    yield "text", lambda: "1", "['1', '1', '1'], which is no array of numbers"
    yield "truth", lambda: True, "[True, True, True], which is no array of numbers"
    yield "complex", lambda: 1j, "[1j, 1j, 1j], which is no array of numbers"
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


@pytest.mark.parametrize(
    ("misbehavior", "reason"),
    [
        ("shape", "predictions of shape (9,) instead of (3,)"),
        ("nan", "a prediction that is NaN or infinite"),
        ("text", "['1.0', '1.0', '1.0'], which is no array of numbers"),
        ("error", "error: no idea"),
        ("empty", "a reply without predictions: {}"),
    ],
)
def test_a_bad_reply_of_a_program_costs_one_question(server, misbehavior, reason, rng):
    asked = ten_questions(rng)
    box = ProcessPredictor(server(misbehavior))
    answers, error = collect(box, asked)
    expected, _ = collect(FunctionPredictor(solve_ridge), asked)
    expected[4][:] = np.nan
    assert error is None
    np.testing.assert_array_equal(answers, expected)
    assert box.failures == Failures(1, 10, reason)


@pytest.mark.parametrize("misbehavior", ["chatter", "padded"])
def test_much_output_does_not_block_a_program(server, misbehavior, rng):
    box = ProcessPredictor(server(misbehavior), timeout=20.0)
    answers, error = collect(box, ten_questions(rng))
    assert (len(answers), error, box.failures.count) == (10, None, 0)


def test_large_questions_in_flight_do_not_block_a_program(server, rng):
    # Eight requests of about 2 MB each, far beyond what a pipe holds.
    x, y = rng.standard_normal((20000, 4)), rng.standard_normal(20000)
    box = ProcessPredictor(server(), timeout=30.0)
    answers, error = collect(box, [Question(x, y, x[:3])] * 10)
    assert error is None
    expected = [solve_ridge(x, y, query) for query in x[:3]]
    np.testing.assert_array_equal(answers, [expected] * 10)


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
        f"(test_adapters.py:{place}). "
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


HANDS_ON = "Run the command by hand."
PROTOCOL = "It must write one JSON object per request to stdout, all else to stderr."


@pytest.mark.parametrize(
    ("misbehavior", "message"),
    [
        (
            "crash",
            "exited with status 3 before it answered (question 5); "
            f"its stderr: out of | memory. {HANDS_ON}",
        ),
        ("die", f"died of signal 9 before it answered (question 5). {HANDS_ON}"),
        (
            "hang",
            "gave no reply within 4 s (question 5). Allow more time, or repair it.",
        ),
        (
            "garbage",
            f"sent a line that is no JSON object: 'step 5 of 10'. {PROTOCOL}",
        ),
        ("list", f"sent a line that is no JSON object: '[1.0]'. {PROTOCOL}"),
        (
            "endless",
            "sent more than 16777216 bytes without an end of line (question 5). "
            + PROTOCOL,
        ),
    ],
)
def test_a_program_that_breaks_keeps_its_answers(server, misbehavior, message, rng):
    asked = ten_questions(rng)
    patience = 4.0 if misbehavior == "hang" else 60.0  # it takes a second to start
    box = ProcessPredictor(server(misbehavior), "mine", timeout=patience)
    answers, error = collect(box, asked)
    expected, _ = collect(FunctionPredictor(solve_ridge), asked[:4])
    np.testing.assert_array_equal(answers, expected)
    assert str(error) == f"`mine` {message}"


def test_replies_out_of_step_are_found(server, rng):
    box = ProcessPredictor(server("twice"), "mine")
    _, error = collect(box, ten_questions(rng))
    assert str(error) == (
        f"`mine` sent more replies than there were questions. {PROTOCOL}"
    )


def test_an_answer_to_what_was_not_sent_yet_is_a_surplus(server):
    pipe = Pipe(server(), "mine", 10.0)
    try:
        assert not pipe.has_surplus(last=False)
        pipe.send(b"{}")
        assert pipe.has_surplus(last=False)
    finally:
        pipe.close()


def test_a_program_that_does_not_exist_is_an_error(data):
    _, error = collect(ProcessPredictor(["./no-such-program"]), questions(*data))
    assert str(error) == (
        "`./no-such-program` could not be started: [Errno 2] No such file or "
        "directory: './no-such-program'. Check that the command runs in a terminal."
    )


PID_SERVER = """
import json, os, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
for line in sys.stdin:
    print(json.dumps({"predictions": [os.getpid(), child.pid]}), flush=True)
"""


def runs(pid: float) -> bool:
    """Return whether the process is there and is not a zombie of its dead parent."""
    try:
        state = Path(f"/proc/{int(pid)}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


needs_proc = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="no /proc")


def eventually_gone(*pids: float) -> bool:
    deadline = time.monotonic() + 5
    while any(map(runs, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    return not any(map(runs, pids))


@pytest.fixture
def pid_server(tmp_path) -> list[str]:
    (tmp_path / "pids.py").write_text(PID_SERVER)
    return [sys.executable, str(tmp_path / "pids.py")]


two_queries = Question(np.ones((1, DIM)), np.ones(1), np.ones((2, DIM)))


@needs_proc
def test_a_program_and_what_it_started_end_with_the_answers(pid_server):
    box = ProcessPredictor(pid_server)
    (first,), (second,) = (list(box.answers([two_queries])) for _ in range(2))
    assert first[0] != second[0]
    assert eventually_gone(*first, *second)


@needs_proc
def test_a_program_ends_when_nobody_waits_for_its_answers(pid_server):
    answers = ProcessPredictor(pid_server).answers([two_queries] * 100)
    pids = next(answers)
    assert all(map(runs, pids))
    answers.close()  # pyright: ignore[reportAttributeAccessIssue]
    assert eventually_gone(*pids)


@needs_proc
def test_in_a_with_statement_a_program_is_started_once(pid_server):
    with ProcessPredictor(pid_server) as box:
        (first,), (second,) = (list(box.answers([two_queries] * 1)) for _ in range(2))
        assert first.tolist() == second.tolist()
        assert all(map(runs, first))
    assert eventually_gone(*first)


@needs_proc
def test_a_program_that_does_not_end_is_ended(tmp_path, monkeypatch):
    monkeypatch.setattr(pipe, "GRACE", 0.1)
    (tmp_path / "stay.py").write_text(PID_SERVER + "import time; time.sleep(600)")
    box = ProcessPredictor([sys.executable, str(tmp_path / "stay.py")])
    start = time.monotonic()
    (pids,) = box.answers([two_queries])
    assert time.monotonic() - start < 30
    assert eventually_gone(*pids)


# What a user types.


def test_models_are_loaded_by_name_and_by_directory(tmp_path):
    model = load_target("linear-d1")
    assert isinstance(model, InContextLearner)
    model.save_pretrained(tmp_path / "mine")
    saved = load_target(str(tmp_path / "mine"))
    assert (model.name, saved.name) == ("linear-d1", "linear-d1")


def test_references_are_read_as_calls():
    assert load_target("ridge(0.1)").name == "Ridge(0.1)"
    assert load_target(" OLS ").name == "OLS"


def test_regressors_are_found_by_name(data):
    text = "sklearn:Ridge(alpha=0.3, fit_intercept=False)"
    box = load_target(text)
    assert box.name == text
    expected = predict_all(ridge(PENALTY), *data)[:, 1:]
    np.testing.assert_allclose(predict_all(box, *data)[:, 1:], expected, atol=1e-8)
    assert load_target("sklearn:LinearRegression").name == "sklearn:LinearRegression"


MODULE = """
from sklearn.linear_model import Ridge, LogisticRegression
import numpy as np

def mean(X, y, x_query):
    return y.mean()

made = Ridge(alpha=0.3, fit_intercept=False)
number = 3
class Other: ...
class Needy(Ridge):
    def __init__(self, alpha): raise ValueError("no")
class Space:
    mean = staticmethod(mean)
"""


@pytest.fixture
def module(tmp_path, monkeypatch, seed) -> str:
    """A module in the current directory, under a name of this test's own."""
    name = f"mine_{seed}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import no_such_module_at_all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return name


def test_functions_and_regressors_are_imported(module, data):
    asked = questions(*data)[:1]
    for name in ("mean", "Space.mean"):
        box = load_target(f"python:{module}:{name}")
        assert isinstance(box, FunctionPredictor)
        assert box.name == f"python:{module}:{name}"
        np.testing.assert_allclose(next(box.answers(asked)), asked[0].y.mean())
    made = load_target(f"python:{module}:made")
    kind = load_target(f"python:{module}:Ridge")
    assert isinstance(made, EstimatorPredictor)
    assert isinstance(kind, EstimatorPredictor)
    expected = Ridge().fit(asked[0].x, asked[0].y).predict(asked[0].queries)
    np.testing.assert_allclose(next(kind.answers(asked)), expected)


def test_commands_are_split_as_a_shell_does(server, data):
    program, script = server()
    text = f"cmd:{program} '{script}'"
    box = load_target(text, timeout=30.0)
    assert box.name == text
    expected = predict_all(FunctionPredictor(solve_ridge), *data)
    np.testing.assert_array_equal(predict_all(box, *data), expected)


LITERAL = "be a class with literal keyword arguments after sklearn:"
FOR_EXAMPLE = "For example: sklearn:Ridge(alpha=0.3)."


@pytest.mark.parametrize(
    ("text", "rule", "remedy"),
    [
        (
            "linear-d9",
            "be a model, a reference, or start with sklearn:, python: or cmd:",
            "Did you mean 'linear-d8'?",
        ),
        (
            "ridgee",
            "be a model, a reference, or start with sklearn:, python: or cmd:",
            "Did you mean 'ridge'?",
        ),
        ("", "be a model, a reference, or start with sklearn:, python: or cmd:", ""),
        ("runs/no-such-run", "be a directory that exists", ""),
        (
            "sklearn:Rigde()",
            "name a regressor of scikit-learn",
            "Did you mean 'Ridge'?",
        ),
        ("sklearn:LogisticRegression()", "name a regressor of scikit-learn", "Did you"),
        ("sklearn:Ridge(alpha=exit())", LITERAL, FOR_EXAMPLE),
        ("sklearn:Ridge(alpha=", LITERAL, FOR_EXAMPLE),
        ("sklearn:Ridge(0.3)", LITERAL, FOR_EXAMPLE),
        ("sklearn:Ridge(**{})", LITERAL, FOR_EXAMPLE),
        ("sklearn:linear_model.Ridge()", LITERAL, FOR_EXAMPLE),
        ("sklearn:", LITERAL, FOR_EXAMPLE),
        ("python:mine", "be python:module:function", "For example: python:my_module"),
        ("python::f", "be python:module:function", "For example: python:my_module"),
        ("cmd:", "name a program that can be run", "Give its path, or make it exec"),
        (
            "cmd:no-such-program a",
            "name a program that can be run",
            "Give its path, or",
        ),
        ("cmd:python 'a", "be a command as a shell reads it", "No closing quotation."),
    ],
)
def test_a_target_that_cannot_be_is_refused(text, rule, remedy):
    message = f"`target` must {rule}, got '{text}'. {remedy}".rstrip()
    with pytest.raises(ValueError, match=rf"\A{re.escape(message)}") as caught:
        load_target(text)
    assert "\n" not in str(caught.value)


def test_unknown_parameters_of_a_regressor_are_refused():
    message = "`target` must use parameters of Ridge, got 'sklearn:Ridge(alfa=1) with"
    with refuses(ValueError, f"{message} alfa'. Did you mean 'alpha'?"):
        load_target("sklearn:Ridge(alfa=1)")
    with pytest.raises(ValueError, match="It raised TypeError: .*'estimator'"):
        load_target("sklearn:MultiOutputRegressor()")


def test_what_is_wrong_with_a_reference_is_said_by_its_parser():
    message = "`penalty` must be positive, got -1.0. For no penalty, use `ols`."
    with refuses(ValueError, message):
        load_target("ridge(-1.0)")
    with pytest.raises(ValueError, match=r"must have the form ridge\(penalty\)"):
        load_target("ridge")


def test_modules_that_do_not_give_a_learner_are_refused(module, tmp_path):
    imported = f"name a module that can be imported from {tmp_path}"
    for name in ("no_such_module_at_all", f"{module}_broken"):
        message = rf"must {re.escape(imported)}, got 'python:{name}:f'\. It raised "
        error = "ModuleNotFoundError: No module named 'no_such_module_at_all' "
        with pytest.raises(ValueError, match=message + error):
            load_target(f"python:{name}:f")
    with refuses(
        ValueError,
        f"`target` must name something in {module}, got 'python:{module}:maen'. "
        "Did you mean 'mean'?",
    ):
        load_target(f"python:{module}:maen")
    rule = r"must name a function f\(X, y, x_query\) or a regressor, got python:"
    for name in ("number", "Other"):
        with pytest.raises(TypeError, match=f"{rule}{module}:{name}"):
            load_target(f"python:{module}:{name}")
    with pytest.raises(ValueError, match="It raised TypeError: .*alpha"):
        load_target(f"python:{module}:Needy")


def test_what_is_no_text_or_no_time_is_refused():
    with refuses(TypeError, "`target` must be text, got 3."):
        load_target(3)  # pyright: ignore[reportArgumentType]
    with refuses(ValueError, "`timeout` must be positive, got 0.0."):
        load_target("ols", timeout=0.0)


def test_what_is_no_box_is_refused():
    message = "`function` must be a function of X, y and x_query, got 3."
    with refuses(TypeError, message):
        FunctionPredictor(3)  # pyright: ignore[reportArgumentType]
    regressor = "`estimator` must be a scikit-learn regressor, got "
    with refuses(TypeError, f"{regressor}Ridge. Make one: Ridge()."):
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


# The documentation.


def blocks(fence: str) -> list[str]:
    found = re.findall(
        rf"^```{fence}\n(.*?)^```$", DOCUMENT.read_text(), re.MULTILINE | re.DOTALL
    )
    assert found, f"{DOCUMENT.name} has no ```{fence} block"
    return found


@pytest.mark.usefixtures("default_settings")
def test_the_code_of_the_documentation_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (server,) = blocks("python server")
    Path("server.py").write_text(server)
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for block in blocks("python"):
        exec(compile(block, DOCUMENT.name, "exec"), namespace)
    by_function = predict_all(
        FunctionPredictor(namespace["nearest_label"]), namespace["x"], namespace["y"]
    )
    np.testing.assert_array_equal(namespace["nearest"], by_function)
    assert namespace["box"].failures == Failures(0, 15)


def test_the_server_of_the_documentation_replies_as_shown(tmp_path):
    (server,) = blocks("python server")
    (tmp_path / "server.py").write_text(server)
    request, reply = blocks("json")[0].splitlines()
    command = [sys.executable, str(tmp_path / "server.py")]
    printed = subprocess.check_output(command, input=request, text=True)
    assert printed == reply + "\n"
