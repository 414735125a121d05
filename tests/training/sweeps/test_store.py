"""A store says how far its runs are and how they ended."""

import json
import time
from dataclasses import asdict, replace

import pytest
from support.sweeping import TINY

from algoscope.foundation.locks import held
from algoscope.training.config import core_seconds
from algoscope.training.sweeps import RunStatus, SweepStatus
from algoscope.training.sweeps.store import (
    Watcher,
    read_outcome,
    read_run,
    read_sweep,
    record_outcome,
    watching,
)


def test_a_directory_tells_the_state_of_its_run(tmp_path):
    directory = tmp_path / TINY.run_id
    assert read_run(TINY, tmp_path) == RunStatus(TINY, "pending")
    assert read_outcome(TINY, directory) is None
    with held(directory):
        assert read_run(TINY, tmp_path).state == "running"
    lines = ['{"step": 10, "loss": 2.0, "spd_ols": 0.5, "seconds": 1.0}']
    lines += ['{"step": 20, "loss": 1.0, "seconds": 2.0}', '{"step": 3']
    (directory / "metrics.jsonl").write_text("\n".join(lines))
    cut_off = RunStatus(TINY, "pending", "", 20, 1.0, 0.5, 2.0)
    assert read_run(TINY, tmp_path) == cut_off
    record_outcome(TINY, directory, "failed", "no memory")
    failed = replace(cut_off, state="failed", reason="no memory")
    assert read_run(TINY, tmp_path) == failed
    assert cut_off.work_left == pytest.approx(0.98 * core_seconds(TINY))
    assert failed.work_left == 0.0


def test_the_time_left_is_the_work_left_at_the_pace_so_far(tmp_path, monkeypatch):
    narrow, wide = replace(TINY, seed=1), replace(TINY, hidden_size=64)
    watcher = Watcher([TINY, narrow, wide], tmp_path)
    (tmp_path / TINY.run_id).mkdir()

    def seconds_left(now: float, step: int) -> float | None:
        row = {"step": step, "loss": 1.0, "seconds": now}
        (tmp_path / TINY.run_id / "metrics.jsonl").write_text(json.dumps(row))
        monkeypatch.setattr("time.monotonic", lambda: now)
        return watcher.read().seconds_left

    assert seconds_left(40.0, 0) is None  # compiling
    assert seconds_left(60.0, 200) is None
    weight = core_seconds(wide) / core_seconds(TINY)
    assert seconds_left(65.0, 300) == pytest.approx(5.0 * (7 + 10 + 10 * weight))


def test_a_sweep_is_summed_up_by_what_matters_first(tmp_path):
    other = replace(TINY, seed=1)
    record_outcome(other, tmp_path / other.run_id, "diverged", "too steep")
    status = read_sweep([TINY, other], tmp_path)
    assert status.counts == {"pending": 1, "diverged": 1}
    assert status.headline == "1 diverged, 1 pending"
    assert replace(status, seconds_left=90.0).headline.endswith("; left 1.5 min")
    assert asdict(status)["runs"][1]["reason"] == "too steep"


def test_seconds_are_those_of_the_last_whole_row(tmp_path):
    rows = [{"step": step, "loss": 1.0, "seconds": step / 4} for step in range(3000)]
    text = "\n".join(map(json.dumps, rows)) + '\n{"step": 3'
    (tmp_path / "metrics.jsonl").write_text(text)
    outcome = record_outcome(TINY, tmp_path, "failed", "no memory")
    assert outcome.seconds == 2999 / 4
    assert read_outcome(TINY, tmp_path) == outcome


def test_a_store_is_watched_at_least_once_at_the_end(tmp_path):
    seen: list[SweepStatus] = []
    with watching([TINY], tmp_path, seen.append):
        record_outcome(TINY, tmp_path / TINY.run_id, "failed", "no memory")
    assert seen[-1].counts == {"failed": 1}
    with watching([TINY], tmp_path, None):
        pass


@pytest.mark.parametrize(
    "content",
    [b"\xff\xfe", b'{"step": null, "loss": 1, "seconds": 1}\n', b"[" * 99_999, b"3\n"],
    ids=["not text", "no step", "deep", "a number"],
)
def test_odd_rows_are_skipped(content, tmp_path):
    directory = tmp_path / TINY.run_id
    directory.mkdir()
    good = b'{"step": 10, "loss": 2.0, "seconds": 1.0}\n'
    (directory / "metrics.jsonl").write_bytes(good + content)
    assert read_run(TINY, tmp_path).step == 10


def test_one_damaged_run_is_failed_with_its_reason(tmp_path):
    other = replace(TINY, seed=1)
    directory = tmp_path / TINY.run_id
    directory.mkdir()
    (directory / "lock").symlink_to(tmp_path)
    found, pending = read_sweep([TINY, other], tmp_path).runs
    assert found.state == "failed"
    assert "lock is a link" in found.reason
    assert pending.state == "pending"
    (directory / "lock").unlink()
    (directory / "outcome.json").write_text("{")
    assert "outcome.json is not a readable JSON file" in read_run(TINY, tmp_path).reason
    (tmp_path / other.run_id).touch()
    assert read_run(other, tmp_path).reason == (
        f"{tmp_path / other.run_id} is not a directory."
    )


def test_an_outcome_that_cannot_be_written_is_returned(tmp_path):
    directory = tmp_path / TINY.run_id
    directory.mkdir()
    (directory / "outcome.json").mkdir()
    outcome = record_outcome(TINY, directory, "failed", "no memory")
    assert outcome.reason.startswith("no memory (which could not be written: ")


def test_the_status_of_many_long_runs_is_read_from_their_ends(tmp_path):
    row = b'{"step": 10, "loss": 2.0, "spd_ols": 0.5, "seconds": 1.0}\n'
    configs = [replace(TINY, seed=seed) for seed in range(200)]
    for config in configs:
        (tmp_path / config.run_id).mkdir()
        (tmp_path / config.run_id / "metrics.jsonl").write_bytes(row * 10_000)
    start = time.process_time()
    assert all(run.step == 10 for run in read_sweep(configs, tmp_path).runs)
    assert time.process_time() - start < 2.0  # of 10 for the paper's 2,016 runs
