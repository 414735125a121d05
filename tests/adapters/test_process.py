"""Programs answer, misbehave at the fifth question in many ways, and always end."""

import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.boxes import collect, questions, solve_ridge, ten_questions

from algoscope.adapters import Failures, FunctionPredictor, ProcessPredictor, process
from algoscope.adapters.process import Pipe
from algoscope.comparison.predict import predict_all
from algoscope.predictors import Question

DOCUMENT = Path(__file__).parents[2] / "docs" / "bring_your_own_model.md"
DIM = 2


# Failures that cost one question.


@pytest.mark.parametrize(
    ("misbehavior", "reason"),
    [
        ("shape", "predictions of shape (9,) instead of (3,)"),
        ("nan", "a prediction that is NaN or infinite"),
        ("text", "['1.0', '1.0', '1.0'], which is not an array of numbers"),
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


# Failures that end it.


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
            "sent no reply within 4 s (question 5). Allow it more time, or repair it.",
        ),
        (
            "garbage",
            f"sent a line that is not a JSON object: 'step 5 of 10'. {PROTOCOL}",
        ),
        ("list", f"sent a line that is not a JSON object: '[1.0]'. {PROTOCOL}"),
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


# Programs end.

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
    monkeypatch.setattr(process, "GRACE", 0.1)
    (tmp_path / "stay.py").write_text(PID_SERVER + "import time; time.sleep(600)")
    box = ProcessPredictor([sys.executable, str(tmp_path / "stay.py")])
    start = time.monotonic()
    (pids,) = box.answers([two_queries])
    assert time.monotonic() - start < 30
    assert eventually_gone(*pids)


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
