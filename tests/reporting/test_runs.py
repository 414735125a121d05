"""Runs and constructions are shown with the command that reproduces them."""

import re
import shlex
import shutil
from dataclasses import asdict, replace

import numpy as np
import pytest
import tyro
from support.results import save_run

from algoscope.cli.build import Build
from algoscope.cli.main import main
from algoscope.cli.train import Train
from algoscope.construction.algorithms import ALGORITHMS, GD, SGD
from algoscope.construction.build import Construction, save_construction
from algoscope.foundation.files import DamagedFileError, write_json
from algoscope.reporting import report
from algoscope.reporting.report import MOST_RUNS
from algoscope.reporting.runs import build_command, train_command, training_figure
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.sweeps.store import record_outcome

CONSTRUCTIONS = [
    Construction(SGD(0.05, 0.1), dim=2, num_examples=2),
    Construction(GD(0.02, steps=2), 1, 2, "float64", "silu", 1e-9),
    Construction(SGD(), 1, 2, pre_norm=True),
]


def test_a_store_of_runs_is_a_table(tmp_path):
    store = tmp_path / "store"
    for seed in range(MOST_RUNS + 1):
        config = TrainingConfig(dim=2, seed=seed)
        directory = store / f"run-{seed}"
        about = {"format": "algoscope", "training": vars(config)}
        write_json(directory / "config.json", about)
    record_outcome(TrainingConfig(dim=2), store / "run-0", "diverged", "loss nan")
    rows = '{"step": 50, "loss": 0.25, "seconds": 9.0}\n{"step": 100, "lo'
    (store / "run-1" / "metrics.jsonl").write_text(rows)
    report([store], tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert "13 runs: 1 diverged, 12 unfinished." in text
    row = "| run-1 | linear | 2 | 1 | 0 | 8 | 64 | 4 | 0.01 | 1 | 50 of 14,000 | 0.25 |"
    assert f"{row} – | – | unfinished |\n" in text
    assert "Training run" not in text.replace("Training runs", "")
    shutil.rmtree(store / "run-12")
    report([store], tmp_path / "report.md")
    text = (tmp_path / "report.md").read_text()
    assert text.count("## Training run run-") == MOST_RUNS
    assert "Diverged after 0 of 14,000 steps: loss nan\n" in text


@pytest.mark.parametrize("name", PRESETS)
@pytest.mark.parametrize(
    "changes", [{}, {"curriculum": True, "learning_rate": 3e-3}, {"seed": 7, "dim": 3}]
)
def test_the_command_of_a_run_trains_that_run(name, changes):
    config = replace(PRESETS[name], **changes)
    words = shlex.split(train_command(config, "a 'b"))
    assert words[:2] == ["algoscope", "train"]
    settings = (tyro.conf.FlagCreatePairsOff, tyro.conf.DisallowNone)
    command = tyro.cli(Train, args=words[2:], config=settings)
    assert (command.config, command.name) == (config, "a 'b")


@pytest.mark.parametrize("construction", CONSTRUCTIONS, ids=lambda each: each.name)
def test_a_construction_is_shown_with_the_command_that_writes_it(
    construction, tmp_path, monkeypatch
):
    directory = tmp_path / "mine"
    save_construction(construction, construction.compile(), directory)
    out = tmp_path / "page.md"
    assert report([tmp_path], out).sections == 1
    text = out.read_text()
    assert f"Written by hand: {construction.name}" in text.replace("\\_", "_")
    assert text.count("| attention |") + text.count("| MLP |") == len(
        construction.arrange().listing
    )
    command = build_command(construction, "mine")
    assert command in text
    saved = (directory / "config.json").read_text()
    shutil.rmtree(directory)
    monkeypatch.chdir(tmp_path)
    main(shlex.split(command)[1:])
    assert (directory / "config.json").read_text() == saved


@pytest.mark.parametrize("name", ALGORITHMS)
def test_the_command_of_a_construction_holds_all_its_parameters(name):
    algorithm = ALGORITHMS[name]()
    words = shlex.split(build_command(Construction(algorithm), "mine"))
    command = tyro.cli(Build, args=words[2:], config=(tyro.conf.FlagCreatePairsOff,))
    assert (command.algorithm, command.parameters) == (name, asdict(algorithm))


def test_the_figure_of_a_run_leaves_out_what_a_logarithmic_axis_cannot_show():
    losses = (4.0, 0.0, None, float("nan"), float("inf"), 2.0)
    rows = [{"step": step, "loss": loss} for step, loss in enumerate(losses)]
    left, right = training_figure([*rows, {"step": 9, "spd_ols": 0.5}]).axes
    (curve,) = left.lines
    assert np.array_equal(curve.get_xydata(), [[0, 4.0], [5, 2.0]])
    assert [line.get_label() for line in right.lines] == ["(OLS, learner)"]


def test_damaged_runs_are_rejected_by_name(tmp_path):
    run, out = save_run(tmp_path / "run"), tmp_path / "report.html"
    (run / "metrics.jsonl").write_bytes(b'\xff\xfe\n{"step": 1}\n[1]\n{"step": null}\n')
    report(run, out)  # what is no row is skipped
    out.unlink()
    write_json(run / "config.json", {"format": "algoscope", "training": {"dim": 1}})
    problem = re.escape(f"{run} is a damaged result of kind 'run' (")
    with pytest.raises(DamagedFileError, match=problem):
        report(run, out)
    assert not out.exists()


def test_one_damaged_run_does_not_hide_the_others(tmp_path):
    store, out = tmp_path / "store", tmp_path / "report.md"
    for seed in range(3):
        config = TrainingConfig(dim=2, seed=seed)
        about = {"format": "algoscope", "training": vars(config)}
        write_json(store / f"run-{seed}" / "config.json", about)
    damaged = {"format": "algoscope", "training": {"dim": "two"}}
    write_json(store / "run-1" / "config.json", damaged)
    (store / "run-2" / "metrics.jsonl").write_bytes(b"\xff\xfe")
    write_json(store / "run-3" / "config.json", {})
    (store / "run-3" / "config.json").write_text("{")
    report([store], out)
    text = out.read_text()
    assert "3 runs: 1 damaged, 2 unfinished." in text
    assert "Damaged: run-1" in text
    assert "config.json is not a readable JSON file (JSONDecodeError)" in text
