"""A run can be killed at any moment and ends with the same weights."""

import json
import os
import platform
import re
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import jax
import numpy as np
import pytest
from support.compiling import QUICKLY, SHARED
from support.forking import Done, Forker
from support.progress import Reports
from support.refusals import refuses

from algoscope.comparison.predict import held_out, predict_all, predict_exactly
from algoscope.foundation.files import DamagedFileError, load_arrays
from algoscope.foundation.locks import held, is_held, owner
from algoscope.model.learner import InContextLearner
from algoscope.predictors import ols, ridge
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.loop import initial_state, task_of
from algoscope.training.run import (
    InterruptedRunError,
    Run,
    evaluator,
    locked,
    train,
)

OPTIONS = [
    *("--preset", "demo", "--dim", "1", "--num-layers", "1", "--hidden-size", "8"),
    *("--num-heads", "1", "--num-examples", "3", "--batch-size", "4", "--devices", "1"),
    *("--steps", "60", "--steps-per-call", "10", "--save-every", "20"),
    *("--evaluate-every", "30", "--evaluation-datasets", "20"),
]

# Each program trains like the command does and dies by a real signal at one moment.
SETUP = """
import os, signal, sys
import algoscope.model.checkpoints as checkpoints
import algoscope.training.run as runs

def die(kind=signal.SIGKILL):
    os.kill(os.getpid(), kind)

"""
DRIVER = """
from algoscope.cli.main import main
main(["train", *sys.argv[1:]])
"""
MOMENTS = {
    "between two saves": """
log = runs.TrainingLog.add
def dying_log(self, row):
    log(self, row)
    if row["step"] == 30: die()
runs.TrainingLog.add = dying_log
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
log = runs.TrainingLog.add
def dying_log(self, row):
    if row["step"] == 50:
        with open(self.path, "a") as file:
            file.write('{{"step": 5'); file.flush()
            die()
    log(self, row)
runs.TrainingLog.add = dying_log
""".replace("{{", "{"),
    "while the finished model is written": """
write = checkpoints.write_atomically
def dying_write(path, content):
    if path.name == "README.md": die()
    write(path, content)
checkpoints.write_atomically = dying_write
""",
}
STOP = """
log = runs.TrainingLog.add
def interrupted_log(self, row):
    log(self, row)
    if row["step"] == 30: die(signal.{kind})
runs.TrainingLog.add = interrupted_log
"""


@pytest.fixture(scope="module")
def start():
    """Return a function that trains in a program of its own, which a moment may end."""
    with Forker(SHARED) as forker:

        def run(out: Path, moment: str = "", *more: str) -> Done:
            words = ["train", *OPTIONS, *more, "--out", str(out)]
            return forker.run(words, out.parent, SETUP + moment)

        yield run


def bits(path: Path) -> dict[str, bytes]:
    return {name: array.tobytes() for name, array in load_arrays(path)[0].items()}


def metrics(run: Path) -> list[dict]:
    return [
        json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()
    ]


@pytest.fixture(scope="module")
def uninterrupted(start, tmp_path_factory):
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
def test_a_run_killed_and_resumed_ends_bit_identically(
    start, moment, uninterrupted, tmp_path
):
    killed = start(tmp_path / "run", moment)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert not Run(tmp_path / "run", TrainingConfig()).finished
    resumed = start(tmp_path / "run", "", "--resume")
    assert resumed.returncode == 0, resumed.stderr
    for name in ("model.safetensors", "state.safetensors"):
        assert bits(tmp_path / "run" / name) == bits(uninterrupted / name)
    steps = [row["step"] for row in metrics(tmp_path / "run")]
    assert steps == [10, 20, 30, 40, 50, 60]


@pytest.mark.parametrize("kind", ["SIGINT", "SIGTERM", "SIGHUP"])
def test_an_interrupt_saves_says_so_and_exits_130(start, kind, uninterrupted, tmp_path):
    if signal.getsignal(getattr(signal, kind)) == signal.SIG_IGN:
        pytest.skip("this process ignores the signal, as under nohup, and so do others")
    stopped = start(tmp_path / "run", STOP.format(kind=kind))
    assert stopped.returncode == 130, stopped.stderr
    assert "stopped at step 30, saved. Continue with --resume." in stopped.stderr
    assert "Traceback" not in stopped.stderr
    state, _ = load_arrays(tmp_path / "run" / "state.safetensors")
    assert int(state["step"]) == 30
    assert start(tmp_path / "run", "", "--resume").returncode == 0
    assert bits(tmp_path / "run/model.safetensors") == bits(
        uninterrupted / "model.safetensors"
    )


def test_divergence_exits_1_with_one_line_and_keeps_the_state(start, tmp_path):
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
    with pytest.raises(
        ValueError, match=r"holds this run\. Add --resume to resume it\."
    ):
        Run.open(run.directory, run.config)
    Run.open(run.directory, run.config, resume=True)
    other = TrainingConfig(num_layers=2, hidden_size=8, num_heads=1)
    message = f"got run {run.config.run_id} in {run.directory}, which has num_layers=1."
    with pytest.raises(ValueError, match=re.escape(message)):
        Run.open(run.directory, other, resume=True)


def test_a_run_that_another_process_trains_is_refused(start, tmp_path):
    out = tmp_path / "run"
    with held(out):
        refused = start(out)
    assert refused.returncode == 2
    assert refused.stderr == (
        f"algoscope: `out` must be a run that no other process is training, got {out}, "
        f"which process {os.getpid()} on {platform.node()} is training.\n"
    )


def test_a_run_whose_config_was_not_written_is_not_finished(run, monkeypatch):
    def fail(path, value):
        raise OSError("no space")

    (run.directory / "evaluation.json").touch()
    monkeypatch.setattr("algoscope.model.checkpoints.write_json", fail)
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
    with pytest.raises(
        DamagedFileError, match=r"is not a whole safetensors file \(\d+ bytes\)\."
    ):
        run.load_state()
    path.write_bytes(content)
    changed = TrainingConfig(num_layers=1, hidden_size=8, num_heads=1, seed=5)
    with pytest.raises(
        DamagedFileError, match=f"is not the training state of run {changed.run_id}"
    ):
        Run(run.directory, changed).load_state()


TINY = TrainingConfig(
    dim=2,
    noise_variance=0.25,
    num_examples=4,
    num_layers=1,
    hidden_size=8,
    num_heads=1,
    recipe="paper",
    batch_size=4,
    steps=30,
    steps_per_call=10,
    evaluate_every=20,
    save_every=10,
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run that `train` finished, the learner, and what was reported on the way."""
    out, reports = tmp_path_factory.mktemp("train") / "tiny", Reports()
    jax.config.update("jax_enable_x64", False)
    try:
        learner = train(TINY, out, evaluation_datasets=20, progress=reports)
    finally:
        jax.config.update("jax_enable_x64", True)
    return out, learner, reports


def test_train_returns_a_learner_that_knows_its_task(trained):
    out, learner, _ = trained
    assert learner.task == LinearRegression(2, noise_variance=0.25)
    assert (learner.name, learner.max_examples) == ("d2", 3)
    assert (out / "README.md").read_text().startswith("# d2\n")


def test_train_reports_the_steps_of_all_with_the_loss(trained):
    _, _, reports = trained
    assert [report[:3] for report in reports] == [
        ("training d2", step, 30) for step in (10, 20, 30)
    ]
    losses = [f"loss {row['loss']:.4f}" for row in metrics(trained[0])]
    assert [report[3].partition("  ")[0] for report in reports] == losses
    assert reports[0][3].endswith("SPD(OLS)/d –")  # not measured yet
    measured = f"SPD(OLS)/d {metrics(trained[0])[1]['spd_ols']:.2g}"
    assert reports[1][3].endswith(measured)


def test_train_loads_a_finished_run(trained, monkeypatch):
    out, learner, reports = trained
    monkeypatch.setattr("algoscope.training.run.train_steps", None)
    again = train(TINY, str(out), progress=reports)
    assert len(reports) == 3
    assert again.digest == learner.digest


@pytest.mark.usefixtures("default_settings")
def test_train_resumes_an_interrupted_run_bit_identically(tmp_path):
    def interrupt(stage, done, total, note=""):
        if done == 10:
            os.kill(os.getpid(), signal.SIGINT)

    def train_tiny(name, progress):
        train(TINY, tmp_path / name, evaluation_datasets=20, progress=progress)

    train_tiny("whole", False)
    with pytest.raises(InterruptedRunError, match=r"stopped at step 20, saved\."):
        train_tiny("interrupted", interrupt)
    reports = Reports()
    train_tiny("interrupted", reports)
    assert [done for _, done, _, _ in reports] == [30]
    for name in ("model.safetensors", "state.safetensors"):
        assert bits(tmp_path / "interrupted" / name) == bits(tmp_path / "whole" / name)


def test_train_rejects_a_run_that_is_being_trained(tmp_path):
    out = tmp_path / "run"
    with (
        held(out),
        refuses(
            ValueError,
            f"`out` must be a run that no other process is training, got {out}, which "
            f"process {os.getpid()} on {platform.node()} is training.",
        ),
    ):
        train(TINY, out)


def test_train_rejects_another_run_and_no_datasets_before_it_trains(trained):
    with pytest.raises(ValueError, match=f"got run {TINY.run_id} in "):
        train("demo", trained[0])
    with refuses(ValueError, "`evaluation_datasets` must be at least 1, got 0."):
        train(TINY, trained[0], evaluation_datasets=0)


@pytest.mark.parametrize(
    ("how", "name"),
    [
        ({}, "demo"),
        ({"config": "d4"}, "d4"),
        ({"config": TINY}, "d2"),
        ({"config": TINY, "name": "mine"}, "mine"),
    ],
)
def test_train_saves_by_default_under_the_name_and_the_id(
    how, name, trained, tmp_path, monkeypatch
):
    seen = []

    def finish(run, **how):
        seen.append((run.directory, how["name"]))
        shutil.copytree(trained[0], run.directory, dirs_exist_ok=True)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("algoscope.training.run.execute", finish)
    train(**how, progress=False)
    config = TINY if how.get("config") is TINY else preset(how.get("config", "demo"))
    assert seen == [(Path("runs") / f"{name}-{config.run_id}", name)]


@pytest.mark.usefixtures("default_settings")
@pytest.mark.parametrize("task", ["linear", "control"])
def test_the_curve_is_the_mean_distance_to_ols_and_to_the_bayes_predictor(task):
    config = replace(TINY, task=task)
    transformer = initial_state(config).transformer
    found = evaluator(config)(transformer)
    x, y = held_out(task_of(config), num_datasets=1000, num_examples=4, seed=0)
    predictions = predict_all(InContextLearner(transformer), x, y)
    best = x.sum(axis=-1) if task == "control" else predict_exactly(ridge(0.25), x, y)
    for name, reference in (("ols", predict_exactly(ols, x, y)), ("bayes", best)):
        squares = (predictions.astype(float) - reference) ** 2 / 2
        assert found[f"spd_{name}"] == pytest.approx(squares[:, 1:].mean(), rel=1e-6)


LISTEN = """
from support.listening import listening_addresses
log = runs.TrainingLog.add
def telling_log(self, row):
    log(self, row)
    if row["step"] == 30:
        print("listens on", *listening_addresses(os.getpid()), flush=True)
runs.TrainingLog.add = telling_log
"""
LOOPBACK = {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.mark.distributed
def test_two_processes_find_the_weights_that_one_finds(uninterrupted, tmp_path):
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    together = [
        subprocess.Popen(
            [sys.executable, "-c", SETUP + LISTEN + DRIVER, *OPTIONS]
            + ["--out", str(tmp_path / "run"), "--coordinator", address]
            + ["--num-processes", "2", "--process-id", str(index)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | QUICKLY | {"PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for index in range(2)
    ]
    results = [process.communicate(timeout=240) for process in together]
    for process, (_, errors) in zip(together, results, strict=True):
        assert process.returncode == 0, errors
    (told,) = re.findall("listens on (.*)", results[0][0])
    assert set(told.split()) <= LOOPBACK
    one, _ = load_arrays(uninterrupted / "model.safetensors")
    two, _ = load_arrays(tmp_path / "run" / "model.safetensors")
    for name, array in one.items():
        assert np.allclose(array, two[name], atol=1e-5), name


def test_a_locked_run_is_rejected_with_the_process_that_trains_it(tmp_path):
    message = (
        f"`out` must be a run that no other process is training, got {tmp_path}, which "
        f"process {os.getpid()} on {platform.node()} is training."
    )
    with locked(tmp_path):
        assert owner(tmp_path) == (platform.node(), os.getpid())
        with refuses(ValueError, message), locked(tmp_path):
            pytest.fail("locked twice")
    assert not is_held(tmp_path)
