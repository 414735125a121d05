"""Grids expand to runs; a store says where they are and how they ended."""

import json
import subprocess
import sys
from concurrent.futures import Future
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.refusals import refuses
from support.sweeping import TINY, lose_worker

from algoscope.cli.sweep import Resume, Run, Status, Sweep, run_sweep
from algoscope.cli.sweep_table import headline, rows
from algoscope.foundation.files import DamagedFileError, write_json
from algoscope.foundation.validation import InvalidTypeError, InvalidValueError
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.cost import core_seconds
from algoscope.training.lock import held, is_held, owner
from algoscope.training.sweeps import (
    GRIDS,
    EngineOptions,
    Grid,
    RunProgress,
    SavedSweep,
    SweepProgress,
    train_all,
)
from algoscope.training.sweeps.engines import Inline, open_engine
from algoscope.training.sweeps.grid import saved_sweeps
from algoscope.training.sweeps.store import read_outcome, read_run, record_outcome
from algoscope.training.sweeps.sweep import Job, Watcher, run_jobs

DIVERGING = replace(TINY, learning_rate=1e30, clip=0.0, steps=20, save_every=10)


def sweep_of(config: TrainingConfig, store: Path, **how):
    """Return how one run ends that is trained in this process."""
    (outcome,) = train_all(
        [config], store, engine="inline", evaluation_datasets=20, **how
    )
    return outcome


def test_the_paper_trained_2016_runs():
    grid = GRIDS["paper"]
    assert len(set(grid.configs)) == len({c.run_id for c in grid.configs}) == 2016
    assert grid.left_out == ()
    assert grid.configs[0] == replace(
        preset("paper"), dim=1, num_layers=1, hidden_size=16, num_heads=1
    )


numbers = st.sets(st.integers(1, 12), max_size=3)


@given(numbers, numbers)
def test_a_grid_holds_each_combination_that_can_be_trained(sizes, heads):
    axes = {"num_heads": (*heads - {1}, 1), "hidden_size": tuple(sizes | {6})}
    grid = Grid(TINY, axes)
    found = [(config.hidden_size, config.num_heads) for config in grid.configs]
    every = [(h, m) for h in axes["hidden_size"] for m in axes["num_heads"]]
    assert found == [(h, m) for h, m in every if h % m == 0]
    assert len(found) + len(grid.left_out) == len(every)


def test_equal_grids_have_equal_ids_however_they_are_written():
    one = Grid(TINY, {"noise_variance": (0, 1), "num_layers": (1, 2)})
    other = Grid(TINY, {"num_layers": (1, 2), "noise_variance": (0.0, 1.0)})
    assert one == other
    assert one.sweep_id == other.sweep_id
    assert one.configs == other.configs
    assert one.sweep_id != Grid(TINY, {"num_layers": (1, 2)}).sweep_id


@pytest.mark.parametrize(
    ("axes", "message"),
    [
        (
            {"num_layer": (1,)},
            "`axis` must be one of task, dim, prior_variance, noise_variance, "
            "num_examples, num_layers, hidden_size, num_heads, block, activation, "
            "initialization, recipe, learning_rate, weight_decay, warmup, clip, steps, "
            "batch_size, curriculum, seed, steps_per_call, evaluate_every, save_every, "
            "got 'num_layer'. Did you mean 'num_layers'?",
        ),
        ({"seed": ()}, "`seed` must have at least one value, got none."),
        ({"seed": (1, 1)}, "`seed` must have each value once, got 1, 1."),
        (
            {"hidden_size": (5,), "num_heads": (2, 3)},
            "`grid` must leave at least one run, got none: num_heads=2: `num_heads` "
            "must divide `hidden_size` 5, got 2.",
        ),
    ],
)
def test_a_grid_that_makes_no_sense_is_refused(axes, message):
    with refuses(InvalidValueError, message):
        Grid(TINY, axes)


def test_a_saved_sweep_is_read_back(tmp_path):
    sweep = SavedSweep(Grid(TINY, {"learning_rate": (1e-4, 2.5e-4)}), 20)
    sweep.save(tmp_path)
    assert saved_sweeps(tmp_path) == {sweep.grid.sweep_id: sweep}


def test_a_damaged_sweep_and_an_empty_store_are_refused(tmp_path):
    message = f"`store` must hold a saved sweep, got {tmp_path}."
    with refuses(InvalidValueError, message):
        saved_sweeps(tmp_path)
    path = tmp_path / "sweeps" / "x.json"
    write_json(path, {"format": "algoscope sweep", "grid": 3})
    with refuses(
        DamagedFileError,
        f"`{path}` must hold a saved sweep, got an error: `grid` must be an object of "
        "base and axes, got 3..",
    ):
        saved_sweeps(tmp_path)


def test_a_lock_has_one_owner_and_ends_with_it(tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from algoscope.sweeps.locks import held\n"
        "with held(Path(sys.argv[1])) as free:\n"
        "    print(free, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        holder = owner(tmp_path)
        assert holder is not None
        assert holder[1] == process.pid
        assert is_held(tmp_path)
        with held(tmp_path) as free:
            assert not free
        process.kill()
    assert not is_held(tmp_path)
    with held(tmp_path) as free:
        assert free
        with held(tmp_path) as free:
            assert not free


def test_a_directory_tells_the_state_of_its_run(tmp_path):
    directory = tmp_path / TINY.run_id
    assert read_run(TINY, tmp_path) == RunProgress(TINY, "pending")
    assert read_outcome(TINY, directory) is None
    with held(directory):
        assert read_run(TINY, tmp_path).state == "running"
    lines = ['{"step": 10, "loss": 2.0, "spd_ols": 0.5, "seconds": 1.0}']
    lines += ['{"step": 20, "loss": 1.0, "seconds": 2.0}', '{"step": 3']
    (directory / "metrics.jsonl").write_text("\n".join(lines))
    cut_off = RunProgress(TINY, "pending", "", 20, 1.0, 0.5, 2.0)
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


@pytest.fixture(scope="module")
def diverged(tmp_path_factory):
    store = tmp_path_factory.mktemp("diverged")
    return store, sweep_of(DIVERGING, store)


def test_a_diverged_run_is_recorded_and_left_alone_unless_asked(diverged, monkeypatch):
    store, outcome = diverged
    assert outcome.status == "diverged"
    assert outcome.reason.startswith("The loss is not finite at step ")
    assert read_outcome(DIVERGING, outcome.directory) == outcome
    monkeypatch.setattr("algoscope.runs.execute", None)
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

    monkeypatch.setattr("algoscope.runs.execute", execute)
    seen: list[SweepProgress] = []
    ended = train_all([TINY, other, TINY], tmp_path, engine="inline", watch=seen.append)
    assert [outcome.status for outcome in ended] == ["failed", "finished", "failed"]
    assert ended[0].reason == "MemoryError: none left"
    assert seen[-1].counts == {"failed": 1, "finished": 1}
    record = json.loads((ended[0].directory / "outcome.json").read_text())
    assert "raise MemoryError" in record["traceback"]
    monkeypatch.setattr(
        "algoscope.runs.execute",
        lambda run, **how: execute(type(run)(run.directory, other), **how),
    )
    assert sweep_of(TINY, tmp_path).status == "finished"
    assert not (ended[0].directory / "outcome.json").exists()


def test_a_run_that_another_trains_is_waited_for(tmp_path, monkeypatch):
    job = Job(TINY, tmp_path, 20, False, tmp_path / "stop")
    asked = iter([True, False, True, False])
    monkeypatch.setattr("algoscope.sweeps.sweep.is_held", lambda path: next(asked))
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


def test_options_of_engines_are_checked():
    with refuses(InvalidValueError, "`cpus_per_run` must be at least 1, got 0."):
        EngineOptions(cpus_per_run=0)
    with refuses(InvalidTypeError, "`minutes` must be an integer, got 1.5."):
        EngineOptions(minutes=1.5)  # pyright: ignore[reportArgumentType]


def test_the_command_trains_shows_and_resumes(tmp_path, capsys, monkeypatch):
    def execute(run, **how):
        run.log({"step": 20, "loss": 1.5, "spd_ols": 0.5, "seconds": 3.0})
        for name in ("model.safetensors", "README.md", "evaluation.json"):
            (run.directory / name).touch()

    monkeypatch.setattr("algoscope.runs.execute", execute)
    action = Run(
        store=tmp_path,
        engine="inline",
        preset="d1",
        hidden_size=(8, 12),
        num_heads=(1, 8),
        steps=(20,),
    )
    run_sweep(Sweep(action))
    printed = capsys.readouterr()
    left_out, cost, *lines = printed.err.splitlines()
    assert left_out == (
        "Left out: hidden_size=12 num_heads=8: `num_heads` must divide `hidden_size` "
        "12, got 8."
    )
    sweep_id = action.expanded.sweep_id
    assert cost.startswith(f"Sweep {sweep_id} in {tmp_path}: 3 runs, 3 to train, about")
    assert len(lines) == 3
    assert "hidden_size=8 num_heads=1  finished  step 20/20  loss 1.5" in lines[0]
    assert "3 runs: 3 finished" in printed.out
    run_sweep(Sweep(Resume(store=tmp_path, engine="inline", json=True)))
    resumed = capsys.readouterr()
    assert "3 runs, 0 to train, about 0 s" in resumed.err
    run_sweep(Sweep(Status(tmp_path, json=True)))
    shown = json.loads(capsys.readouterr().out)
    assert shown == json.loads(resumed.out)
    assert shown["counts"] == {"finished": 3}
    configs = [TrainingConfig.from_dict(run["config"]) for run in shown["runs"]]
    assert tuple(configs) == action.expanded.configs
    assert [run["run_id"] for run in shown["runs"]] == [c.run_id for c in configs]


def test_the_command_fails_if_a_run_does(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("algoscope.runs.execute", None)
    with pytest.raises(SystemExit, match="^1$"):
        run_sweep(Sweep(Run(store=tmp_path, engine="inline", preset="d1")))
    printed = capsys.readouterr()
    assert "1 runs failed; `algoscope sweep resume` tries them again." in printed.err
    assert "TypeError" in printed.out


def test_a_named_grid_takes_other_values():
    grid = Run(grid="paper", dim=(8,), seed=(1, 2)).expanded
    assert len(grid.configs) == 2016 // 7 * 2
    with refuses(InvalidValueError, "`grid` must be one of paper, got 'figure 8'."):
        Run(grid="figure 8").expanded  # noqa: B018


def test_the_table_says_what_varies_how_far_and_why():
    failed = RunProgress(TINY, "failed", "MemoryError: none left", 20, 1.0, 0.5, 2.0)
    other = replace(TINY, seed=1)
    running = RunProgress(other, "running", "", 100, 0.123, None, 5.0)
    header, cells = rows([failed, running], ["seed"])
    assert header[:5] == ["run", "seed", "state", "step", "loss"]
    assert header[5:] == ["SPD(OLS)/d", "left", "reason"]
    assert cells == [
        [
            *(TINY.run_id, "0", "failed", "20/1000", "1", "0.5", "–"),
            "MemoryError: none left",
        ],
        [other.run_id, "1", "running", "100/1000", "0.12", "–", "45 s", ""],
    ]
    progress = SweepProgress((failed, running), 90.0)
    assert headline(progress) == "2 runs: 1 running, 1 failed; left 1.5 min"
    assert asdict(progress)["runs"][0]["reason"] == "MemoryError: none left"
