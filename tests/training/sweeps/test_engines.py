"""Whatever is killed, every run of a sweep exists once and ends with the same bits."""

import os
import signal
import subprocess
import sys
from concurrent.futures import Future

import pytest
from support.refusals import refuses
from support.sweeping import (
    GRID,
    bits,
    blocks_ctrl_c,
    caught,
    finish,
    start,
    statuses,
    wait_for,
)

from algoscope.foundation.locks import is_held, owner
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.training.sweeps import EngineOptions
from algoscope.training.sweeps.engines import Inline, Worker, open_engine

ALL_FINISHED = "finished finished\n"


@pytest.fixture(scope="module")
def cache(tmp_path_factory):
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def inline(cache, tmp_path_factory):
    """The weights of a sweep that nothing disturbed, in one process of two threads."""
    store = tmp_path_factory.mktemp("inline")
    assert finish(start(store, "inline", cache=cache, threads=2)) == ALL_FINISHED
    return bits(store)


def test_a_killed_worker_costs_nothing_but_time(inline, cache, tmp_path):
    sweep = start(tmp_path, "processes", cache=cache)
    config, worker = caught(tmp_path)
    os.kill(worker, signal.SIGKILL)
    assert finish(sweep) == ALL_FINISHED
    holder = owner(tmp_path / config.run_id)
    assert holder is not None
    assert holder[1] != worker
    assert bits(tmp_path) == inline


def test_a_killed_sweep_takes_its_workers_along_and_is_resumed(inline, cache, tmp_path):
    sweep = start(tmp_path, "processes", cache=cache)
    config, worker = caught(tmp_path)
    sweep.kill()
    sweep.communicate()
    wait_for(lambda: not is_held(tmp_path / config.run_id))
    assert {each.state for each in statuses(tmp_path)} >= {"pending"}
    assert finish(start(tmp_path, "processes", cache=cache)) == ALL_FINISHED
    assert bits(tmp_path) == inline


def test_two_sweeps_over_one_store_train_each_run_once(inline, cache, tmp_path):
    store, trainings = tmp_path / "store", tmp_path / "trainings"
    sweeps = [start(store, "processes", str(trainings), cache=cache) for _ in range(2)]
    assert [finish(sweep) for sweep in sweeps] == [ALL_FINISHED] * 2
    trained = trainings.read_text().split()
    assert sorted(trained) == sorted(config.run_id for config in GRID.configs)
    assert bits(store) == inline


@pytest.mark.parametrize("engine", ["inline", "processes"])
def test_ctrl_c_saves_what_is_running(engine, inline, cache, tmp_path):
    sweep = start(tmp_path, engine, cache=cache)
    config, _ = caught(tmp_path)
    sweep.send_signal(signal.SIGINT)
    _, complaint = sweep.communicate()
    assert "SweepInterruptedError: the sweep stopped" in complaint
    states = {each.config: each for each in statuses(tmp_path)}
    assert states[config].state == "pending"
    assert states[config].step >= 100
    assert states[GRID.configs[-1]].step == 0
    assert list(tmp_path.glob("sweeps/*.stop")) == []
    assert finish(start(tmp_path, engine, cache=cache)) == ALL_FINISHED
    assert bits(tmp_path) == inline


def test_a_worker_starts_with_ctrl_c_blocked_and_then_ignores_it(monkeypatch):
    worker = Worker(1)
    with worker.pool as pool:
        assert pool.submit(signal.getsignal, signal.SIGINT).result() == signal.SIG_IGN
        assert not pool.submit(blocks_ctrl_c, 1).result()
    monkeypatch.setattr(
        "algoscope.training.sweeps.engines._prepare_process", blocks_ctrl_c
    )
    worker = Worker(1)
    with worker.pool:
        assert worker.process  # what it returned
    assert not blocks_ctrl_c(1)


@pytest.mark.distributed
def test_a_killed_node_of_a_ray_cluster_costs_nothing_but_time(inline, cache, tmp_path):
    # Ray tells of the lost node in lines of its own, before or after these.
    lines = finish(start(tmp_path, "ray-cluster", cache=cache)).splitlines()
    assert sum(line.startswith("killed the node of run ") for line in lines) == 1
    assert ALL_FINISHED.strip() in lines
    assert bits(tmp_path) == inline


ALONE = """
import os
from pathlib import Path
from support.listening import listening_addresses
from algoscope.training.sweeps.engines import open_engine
with open_engine("ray", Path("."), 1) as engine:
    assert engine.submit(max, 1, 2).result() == 2
    print(*listening_addresses(os.getpid()))
"""


@pytest.mark.distributed
def test_a_ray_cluster_of_this_machine_listens_to_it_only(tmp_path):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}
    words = [sys.executable, "-c", ALONE]
    done = subprocess.run(
        words, cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()
    assert set(done.stdout.split()) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}


@pytest.mark.distributed
@pytest.mark.slow
def test_ray_starts_a_cluster_of_its_own(inline, cache, tmp_path):
    assert finish(start(tmp_path, "ray", cache=cache)) == ALL_FINISHED
    assert bits(tmp_path) == inline


def test_slurm_jobs_end_with_the_same_bits(inline, cache, tmp_path):
    sweep = start(tmp_path, "slurm", cache=cache)
    _, worker = caught(tmp_path)
    os.kill(worker, signal.SIGKILL)
    assert finish(sweep) == ALL_FINISHED
    assert bits(tmp_path) == inline


def test_an_inline_future_holds_the_result_or_the_error():
    with Inline() as executor:
        assert executor.submit(max, 1, 2).result() == 2
        failed: Future = executor.submit(int, "x")
        assert isinstance(failed.exception(), ValueError)


@pytest.mark.parametrize(("package", "engine"), [("ray", "ray"), ("submitit", "slurm")])
def test_an_engine_without_its_package_is_refused(
    package, engine, monkeypatch, tmp_path
):
    monkeypatch.setitem(sys.modules, package, None)
    message = (
        f"`engine` must have the package {package}, got '{engine}' without it. "
        f"Install algoscope[{engine}], or use --engine processes."
    )
    with refuses(InvalidValueError, message):
        open_engine(engine, tmp_path)


def test_options_of_engines_are_checked():
    with refuses(InvalidValueError, "`cpus_per_run` must be at least 1, got 0."):
        EngineOptions(cpus_per_run=0)
    with refuses(InvalidTypeError, "`minutes` must be an integer, got 1.5."):
        EngineOptions(minutes=1.5)  # pyright: ignore[reportArgumentType]
