"""`algoscope sweep run | status | resume`, and the table of a sweep's runs."""

import json
from dataclasses import replace

import pytest
from support.commands import rejected, run
from support.sweeping import TINY

from algoscope.cli.sweep import RunSweep, print_status, rows
from algoscope.training.config import TrainingConfig, preset
from algoscope.training.sweeps import Grid, RunStatus, SweepStatus


@pytest.fixture
def finishing(monkeypatch):
    """Finish every run without training it."""

    def execute(run, **how):
        run.log.add({"step": 20, "loss": 1.5, "spd_ols": 0.5, "seconds": 3.0})
        for name in ("model.safetensors", "README.md", "evaluation.json"):
            (run.directory / name).touch()

    monkeypatch.setattr("algoscope.training.run.execute", execute)


@pytest.mark.usefixtures("finishing")
def test_the_command_trains_shows_and_resumes(tmp_path, capsys):
    values = ("--hidden-size", "8", "12", "--num-heads", "1", "8", "--steps", "20")
    where = ("--store", str(tmp_path), "--engine", "inline", "--preset", "d1")
    status, out, err = run(capsys, "sweep", "run", *where, *values)
    assert status == 0
    left_out, cost, *lines = err.splitlines()
    assert left_out == (
        "Left out: hidden_size=12 num_heads=8: `num_heads` must divide `hidden_size` "
        "12, got 8."
    )
    axes = {"hidden_size": (8, 12), "num_heads": (1, 8), "steps": (20,)}
    grid = Grid(preset("d1"), axes)
    start = f"Sweep {grid.sweep_id} in {tmp_path}: 3 runs, 3 to train, about"
    assert cost.startswith(start)
    assert len(lines) == 3
    assert "hidden_size=8 num_heads=1  finished  step 20/20  loss 1.5" in lines[0]
    assert "3 runs: 3 finished" in out

    how = ("--engine", "inline", "--json")
    status, resumed, err = run(capsys, "sweep", "resume", str(tmp_path), *how)
    assert status == 0
    assert "3 runs, 0 to train, about 0 s" in err
    status, out, err = run(capsys, "sweep", "status", str(tmp_path), "--json")
    assert (status, err) == (0, "")
    shown = json.loads(out)
    assert shown == json.loads(resumed)
    assert shown["counts"] == {"finished": 3}
    configs = [TrainingConfig.from_dict(each["config"]) for each in shown["runs"]]
    assert tuple(configs) == grid.configs
    assert [each["run_id"] for each in shown["runs"]] == [c.run_id for c in configs]


def test_the_command_fails_if_a_run_does(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("algoscope.training.run.execute", None)
    where = ("--store", str(tmp_path), "--engine", "inline", "--preset", "d1")
    status, out, err = run(capsys, "sweep", "run", *where)
    assert status == 1
    assert "1 runs failed; `algoscope sweep resume` tries them again." in err
    assert "TypeError" in out


def test_a_named_grid_takes_other_values(capsys):
    grid = RunSweep(**{"grid": "paper", "dim": (8,), "seed": (1, 2)}).expanded
    assert len(grid.configs) == 2016 // 7 * 2
    assert {config.dim for config in grid.configs} == {8}
    message = rejected(capsys, "sweep", "run", "--grid", "figure 8")
    assert message == "`grid` must be one of paper, got 'figure 8'."


def test_a_store_without_sweeps_is_rejected(tmp_path, capsys):
    message = f"`store` must hold a saved sweep, got {tmp_path}."
    assert rejected(capsys, "sweep", "status", str(tmp_path)) == message
    assert rejected(capsys, "sweep", "resume", str(tmp_path)) == message


def test_the_table_says_what_varies_how_far_and_why(capsys):
    failed = RunStatus(TINY, "failed", "MemoryError: none left", 20, 1.0, 0.5, 2.0)
    other = replace(TINY, seed=1)
    running = RunStatus(other, "running", "", 100, 0.123, None, 5.0)
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
    print_status(SweepStatus((failed, running), 90.0))
    out = capsys.readouterr().out
    assert "2 runs: 1 running, 1 failed; left 1.5 min" in out
    assert all(cell in out for row in cells for cell in row[:2])
