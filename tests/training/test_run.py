"""A run can be killed at any moment and ends with the same weights."""

import json
import os
import platform
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from algoscope.foundation.files import DamagedFileError, load_arrays
from algoscope.model.learner import InContextLearner
from algoscope.training.config import TrainingConfig
from algoscope.training.lock import held
from algoscope.training.run import Run

OPTIONS = [
    *("--preset", "demo", "--dim", "1", "--num-layers", "1", "--hidden-size", "8"),
    *("--num-heads", "1", "--num-examples", "3", "--batch-size", "4", "--devices", "1"),
    *("--steps", "60", "--steps-per-call", "10", "--save-every", "20"),
    *("--evaluate-every", "30", "--evaluation-datasets", "20"),
]

# Each program trains like the command does and dies by a real signal at one moment.
DRIVER = """
import os, signal, sys
import algoscope.checkpoints as checkpoints
import algoscope.runs as runs
from algoscope.cli import main

def die(kind=signal.SIGKILL):
    os.kill(os.getpid(), kind)

{moment}
main(["train", *sys.argv[1:]])
"""
MOMENTS = {
    "between two saves": """
log = runs.Run.log
def dying_log(self, row):
    log(self, row)
    if row["step"] == 30: die()
runs.Run.log = dying_log
""",
    "in the middle of writing a save": """
save = runs.save_arrays
def dying_save(path, arrays, metadata):
    if int(arrays["step"]) == 40:
        with open(path.with_name(".state.safetensors.1.partial"), "wb") as file:
            file.write(b"half"); file.flush()
            die()
    save(path, arrays, metadata)
runs.save_arrays = dying_save
""",
    "between writing a save and renaming it": """
replace = os.replace
def dying_replace(source, target):
    if str(target).endswith("state.safetensors"): die()
    replace(source, target)
os.replace = dying_replace
""",
    "in the middle of a line of metrics": """
log = runs.Run.log
def dying_log(self, row):
    if row["step"] == 50:
        with open(self.directory / "metrics.jsonl", "a") as file:
            file.write('{{"step": 5'); file.flush()
            die()
    log(self, row)
runs.Run.log = dying_log
""".replace("{{", "{"),
    "while the finished model is written": """
write = checkpoints.write_atomically
def dying_write(path, content):
    if path.name == "README.md": die()
    write(path, content)
import algoscope.pretrained
algoscope.pretrained.write_atomically = dying_write
""",
}
INTERRUPT = """
log = runs.Run.log
def interrupted_log(self, row):
    log(self, row)
    if row["step"] == 30: die(signal.SIGINT)
runs.Run.log = interrupted_log
"""


def start(out: Path, moment: str = "", *more: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", DRIVER.format(moment=moment), *OPTIONS, *more]
        + ["--out", str(out)],
        capture_output=True,
        text=True,
        timeout=240,
    )


def bits(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_arrays(path)[0].items()}


def metrics(run: Path) -> list[dict]:
    return [
        json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    out = tmp_path_factory.mktemp("runs") / "uninterrupted"
    done = start(out)
    assert done.returncode == 0, done.stderr
    return out


def test_a_finished_run_holds_everything(uninterrupted):
    names = {path.name for path in uninterrupted.iterdir()}
    assert names == {
        *("config.json", "metrics.jsonl", "state.safetensors", "lock"),
        *("model.safetensors", "README.md", "evaluation.json"),
    }
    rows = metrics(uninterrupted)
    assert [row["step"] for row in rows] == [10, 20, 30, 40, 50, 60]
    assert [row["step"] for row in rows if "spd_ols" in row] == [30, 60]
    config = json.loads((uninterrupted / "config.json").read_text())
    assert TrainingConfig(**config["training"]).run_id == config["run_id"]
    assert {"jax", "numpy", "python", "algoscope"} <= set(config["versions"])
    learner = InContextLearner.from_pretrained(uninterrupted)
    assert (learner.dim, learner.max_examples) == (1, 2)


@pytest.mark.parametrize("moment", MOMENTS.values(), ids=MOMENTS)
def test_a_run_killed_and_resumed_ends_bit_identically(moment, uninterrupted, tmp_path):
    killed = start(tmp_path / "run", moment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not Run(tmp_path / "run", TrainingConfig()).finished
    resumed = start(tmp_path / "run", "", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    for name in ("model.safetensors", "state.safetensors"):
        assert bits(tmp_path / "run" / name) == bits(uninterrupted / name)
    steps = [row["step"] for row in metrics(tmp_path / "run")]
    assert steps == [10, 20, 30, 40, 50, 60]


def test_an_interrupt_saves_says_so_and_exits_130(uninterrupted, tmp_path):
    stopped = start(tmp_path / "run", INTERRUPT)
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped at step 30, saved. --resume goes on." in stopped.stderr
    assert "Traceback" not in stopped.stderr
    state, _ = load_arrays(tmp_path / "run" / "state.safetensors")
    assert int(state["step"]) == 30
    assert start(tmp_path / "run", "", "--resume").returncode == 0
    assert bits(tmp_path / "run/model.safetensors") == bits(
        uninterrupted / "model.safetensors"
    )


def test_divergence_exits_1_with_one_line_and_keeps_the_state(tmp_path):
    options = ("--learning-rate", "1e30", "--clip", "0", "--recipe", "paper")
    failed = start(tmp_path / "run", "", *options)
    assert failed.returncode == 1
    assert "training diverged. The state of step" in failed.stderr
    assert "Traceback" not in failed.stderr
    state, _ = load_arrays(tmp_path / "run" / "state.safetensors")
    assert all(np.all(np.isfinite(array)) for array in state.values())


@pytest.fixture
def run(tmp_path):
    config = TrainingConfig(num_layers=1, hidden_size=8, num_heads=1)
    return Run.open(tmp_path / "run", config)


def test_a_directory_in_use_is_refused(run):
    with pytest.raises(ValueError, match="holds this run. Add --resume to go on"):
        Run.open(run.directory, run.config)
    Run.open(run.directory, run.config, resume=True)
    other = TrainingConfig(num_layers=2, hidden_size=8, num_heads=1)
    message = f"got run {run.config.run_id} in {run.directory}, which has num_layers=1."
    with pytest.raises(ValueError, match=re.escape(message)):
        Run.open(run.directory, other, resume=True)


def test_a_run_that_another_process_trains_is_refused(tmp_path):
    out = tmp_path / "run"
    with held(out):
        refused = start(out)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"algoscope: `out` must be a run that no other process trains now, got {out}, "
        f"which process {os.getpid()} on {platform.node()} trains.\n"
    )


def test_a_run_whose_config_was_not_written_is_not_finished(run, monkeypatch):
    def fail(path, value):
        raise OSError("no space")

    (run.directory / "evaluation.json").touch()
    monkeypatch.setattr("algoscope.pretrained.write_json", fail)
    transformer = run.load_state()[0].transformer
    with pytest.raises(OSError, match="no space"):
        InContextLearner(transformer).save_pretrained(run.directory, card="# Card")
    assert not run.finished


def test_a_state_that_is_cut_off_or_of_another_run_is_refused(run, tmp_path):
    state, seconds = run.load_state()
    assert seconds == 0.0
    run.save_state(state, 1.5)
    assert run.load_state()[1] == 1.5
    path = run.directory / "state.safetensors"
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    with pytest.raises(DamagedFileError, match="be a whole safetensors file"):
        run.load_state()
    path.write_bytes(content)
    changed = TrainingConfig(num_layers=1, hidden_size=8, num_heads=1, seed=5)
    with pytest.raises(DamagedFileError, match=f"of run {changed.run_id}, got"):
        Run(run.directory, changed).load_state()


@pytest.mark.distributed
def test_two_processes_find_the_weights_that_one_finds(uninterrupted, tmp_path):
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    together = [
        subprocess.Popen(
            [sys.executable, "-c", DRIVER.format(moment=""), *OPTIONS]
            + ["--out", str(tmp_path / "run"), "--coordinator", address]
            + ["--num-processes", "2", "--process-id", str(index)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "GLOO_SOCKET_IFNAME": "lo"},
        )
        for index in range(2)
    ]
    results = [process.communicate(timeout=240) for process in together]
    for process, (_, errors) in zip(together, results, strict=True):
        assert process.returncode == 0, errors
    one, _ = load_arrays(uninterrupted / "model.safetensors")
    two, _ = load_arrays(tmp_path / "run" / "model.safetensors")
    for name, array in one.items():
        assert np.allclose(array, two[name], atol=1e-5), name
