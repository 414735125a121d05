"""A sweep trains each run to its end, whatever becomes of the others."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.progress import Reports
from support.refusals import refuses
from support.sweeping import TINY, lose_worker

from algoscope.foundation.validation import InvalidValueError
from algoscope.training.config import TrainingConfig
from algoscope.training.sweeps import SweepStatus, train_all
from algoscope.training.sweeps.engines import Inline, open_engine
from algoscope.training.sweeps.store import read_outcome, record_outcome
from algoscope.training.sweeps.sweep import Job, run_jobs

DIVERGING = replace(TINY, learning_rate=1e30, clip=0.0, steps=20, save_every=10)


def sweep_of(config: TrainingConfig, store: Path, **how):
    """Return how one run ends that is trained in this process."""
    (outcome,) = train_all(
        [config], store, engine="inline", evaluation_datasets=20, **how
    )
    return outcome


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    store = tmp_path_factory.mktemp("diverged")
    return store, sweep_of(DIVERGING, store)


def test_a_diverged_run_is_recorded_and_left_alone_unless_asked(diverged, monkeypatch):
    store, outcome = diverged
    assert outcome.status == "diverged"
    assert outcome.reason.startswith("The loss is not finite at step ")
    assert read_outcome(DIVERGING, outcome.directory) == outcome
    monkeypatch.setattr("algoscope.training.run.execute", None)
    assert sweep_of(DIVERGING, store) == outcome
    again = sweep_of(DIVERGING, store, retry=True)
    assert (again.status, again.seconds) == ("failed", 0.0)
    assert again.reason == "TypeError: 'NoneType' object is not callable"


def test_a_failed_run_stops_no_other_and_is_tried_again(tmp_path, monkeypatch):
    other = replace(TINY, seed=1)

    def execute(run, **how):
        if run.config == TINY:
            raise MemoryError("none left")
        for name in ("model.safetensors", "README.md", "evaluation.json"):
            (run.directory / name).touch()

    monkeypatch.setattr("algoscope.training.run.execute", execute)
    seen: list[SweepStatus] = []
    ended = train_all([TINY, other, TINY], tmp_path, engine="inline", watch=seen.append)
    assert [outcome.status for outcome in ended] == ["failed", "finished", "failed"]
    assert ended[0].reason == "MemoryError: none left"
    assert seen[-1].counts == {"failed": 1, "finished": 1}
    record = json.loads((ended[0].directory / "outcome.json").read_text())
    assert "raise MemoryError" in record["traceback"]
    monkeypatch.setattr(
        "algoscope.training.run.execute",
        lambda run, **how: execute(type(run)(run.directory, other), **how),
    )
    assert sweep_of(TINY, tmp_path).status == "finished"
    assert not (ended[0].directory / "outcome.json").exists()


@pytest.mark.parametrize("part", ["", "lock"])
def test_a_run_that_cannot_be_locked_stops_no_other(tmp_path, monkeypatch, part):
    other = replace(TINY, seed=1)

    def execute(run, **how):
        for name in ("model.safetensors", "README.md", "evaluation.json"):
            (run.directory / name).touch()

    monkeypatch.setattr("algoscope.training.run.execute", execute)
    if part:
        (tmp_path / TINY.run_id / part).mkdir(parents=True)
    else:
        (tmp_path / TINY.run_id).touch()
    failed, finished = train_all(
        [TINY, other], tmp_path, engine="inline", progress=False
    )
    assert (failed.status, finished.status) == ("failed", "finished")
    assert "is a directory" in failed.reason or "xists" in failed.reason


def test_a_run_that_another_trains_is_waited_for(tmp_path, monkeypatch):
    job = Job(TINY, tmp_path, 20, False, tmp_path / "stop")
    monkeypatch.setattr("algoscope.training.sweeps.sweep.POLL", 0.01)
    asked = iter([True, False, True, False])
    monkeypatch.setattr(
        "algoscope.training.sweeps.sweep.is_held", lambda path: next(asked)
    )
    answers = iter(["locked", "settled"])

    def train(job):
        if next(answers) == "locked":
            return "locked"
        return record_outcome(job.config, job.directory, "diverged", "too steep")

    ended = run_jobs([job], Inline(), train)
    assert ended[TINY].reason == "too steep"
    assert (list(asked), list(answers)) == ([], [])


def test_a_job_that_loses_every_worker_is_a_failed_run(tmp_path):
    job = Job(TINY, tmp_path, 20, False, tmp_path / "stop")
    with open_engine("processes", tmp_path, 1) as executor:
        ended = run_jobs([job], executor, lose_worker)
    assert ended[TINY].status == "failed"
    assert ended[TINY].reason == (
        "WorkerLostError: 3 workers were lost with it, the last one because: its "
        "process was killed"
    )


@pytest.mark.parametrize(
    ("how", "message"),
    [
        (
            {"engine": "procesess"},
            "`engine` must be one of inline, processes, ray, slurm, got 'procesess'. "
            "Did you mean 'processes'?",
        ),
        ({"workers": 0}, "`workers` must be at least 1, got 0."),
        (
            {"evaluation_datasets": 0},
            "`evaluation_datasets` must be at least 1, got 0.",
        ),
    ],
)
def test_bad_choices_are_refused_before_anything_is_written(how, message, tmp_path):
    with refuses(InvalidValueError, message):
        train_all([TINY], tmp_path / "store", **how)
    assert not (tmp_path / "store").exists()


def test_progress_receives_the_steps_of_all_runs(tmp_path, monkeypatch):
    def execute(run, **how):
        run.log.add({"step": run.config.steps, "loss": 1.5, "seconds": 3.0})
        for name in ("model.safetensors", "README.md", "evaluation.json"):
            (run.directory / name).touch()

    monkeypatch.setattr("algoscope.training.run.execute", execute)
    reports = Reports()
    configs = [TINY, replace(TINY, seed=1)]
    train_all(configs, tmp_path, engine="inline", progress=reports)
    assert reports[-1] == ("training 2 runs", 2000, 2000, "2 finished")
    done = [report[1] for report in reports]
    assert done == sorted(done)
