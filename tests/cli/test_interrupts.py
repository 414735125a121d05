"""Ctrl-C, SIGTERM and SIGHUP end every long command with status 130, at any moment."""

import contextlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from algoscope.cli.interrupts import stopping_on_request

RESULTS = str(Path(__file__).parents[2] / "results")
LONG = {
    "identify": ["identify", "linear-d2"],
    "compare": ["compare", "linear-d2", "--num-datasets", "200000"],
    "patch": ["patch", "linear-d2"],
    "probe": ["probe", "linear-d2"],
    "layers": ["layers", "linear-d2", "--num-training", "100000"],
    "reproduce": ["reproduce", "fig1", "--budget", "smoke"],
    "train": ["train", "--preset", "demo", "--steps", "100000"],
    "build": ["build", "conjugate_gradients", "--dim", "4"],
    "sweep": ["sweep", "run", "--preset", "demo", "--steps", "100000", "--seed", "0"],
    "report": ["report", RESULTS, "--out", "page.html"],
    "play": ["play", "linear-d2", "--out", "page.html"],
    "ground-truth": ["ground-truth", "--out", "learners"],
}
FAST = [("identify", 2.0), ("compare", 3.5), ("train", 6.0)]
SLOW = [(name, seconds) for name in LONG for seconds in (0.6, 1.5, 3.0, 5.0, 8.0)]


def interrupted(
    command: str, seconds: float, place: Path, number: int = signal.SIGINT
) -> tuple[int, str]:
    """Return how a command ends that gets a signal after some seconds."""
    words = [sys.executable, "-m", "algoscope", *LONG[command]]
    process = subprocess.Popen(
        words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    with process:
        time.sleep(seconds)
        process.send_signal(number)
        _, err = process.communicate(timeout=120)
    return process.returncode, err.decode()


@pytest.mark.parametrize(("command", "seconds"), FAST)
def test_ctrl_c_ends_with_130(tmp_path, command, seconds):
    status, err = interrupted(command, seconds, tmp_path)
    assert status == 130, err
    assert err.splitlines()[-1].startswith("algoscope: ")


@pytest.mark.parametrize(
    ("before", "status"), [("default_int_handler", 130), ("SIG_IGN", 0)]
)
def test_ctrl_c_ends_with_130_before_the_command_is_read(before, status):
    """Where it is ignored, as in the background of a script, it remains so."""
    code = f"import os, signal; signal.signal(signal.SIGINT, signal.{before}); "
    code += "import algoscope.cli.__main__; os.kill(os.getpid(), signal.SIGINT)"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert ended.returncode == status
    assert ended.stderr == (b"algoscope: interrupted.\n" if status else b"")


@pytest.mark.slow
@pytest.mark.parametrize(("command", "seconds"), SLOW)
def test_ctrl_c_ends_with_130_at_any_moment(tmp_path, command, seconds):
    status, err = interrupted(command, seconds, tmp_path)
    # In its first and last moments Python is not ready: the signal itself ends the
    # process, which a shell shows as 130 too.
    assert status in (0, 130, -signal.SIGINT), err
    assert "Traceback" not in err or "Exception ignored" in err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_requests_to_stop_are_the_same(tmp_path, number):
    if signal.getsignal(number) == signal.SIG_IGN:
        pytest.skip("this process ignores the signal, as under nohup, and so do others")
    status, err = interrupted("identify", 4.0, tmp_path, number)
    assert status == 130, err


def test_a_request_that_is_lost_is_repeated(monkeypatch):
    monkeypatch.setattr("algoscope.cli.interrupts.PATIENCE", 0.05)
    with stopping_on_request() as requests:
        with contextlib.suppress(KeyboardInterrupt):  # as code in C does
            signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            time.sleep(5)
        requests.end()
    assert requests.made


def test_a_command_that_saves_is_not_asked_again(monkeypatch):
    monkeypatch.setattr("algoscope.cli.interrupts.PATIENCE", 0.05)
    with stopping_on_request() as requests:
        try:
            signal.raise_signal(signal.SIGINT)
        except KeyboardInterrupt:
            time.sleep(0.3)  # saving
            requests.end()
    assert requests.made


def test_a_command_that_saves_for_long_says_so_once(monkeypatch, capsys):
    monkeypatch.setattr("algoscope.cli.interrupts.PATIENCE", 0.05)
    with stopping_on_request(is_process=True) as requests:
        try:
            requests.stop(signal.SIGINT, None)
        except KeyboardInterrupt:
            time.sleep(0.3)  # saving
            requests.end()
    assert capsys.readouterr().err == (
        "Stopping: waiting for what still runs, so that it is saved.\n"
    )


def test_what_is_ignored_remains_so():
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with stopping_on_request():
            signal.raise_signal(signal.SIGHUP)
    finally:
        signal.signal(signal.SIGHUP, before)
