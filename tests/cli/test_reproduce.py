"""`algoscope reproduce`: all figures at the smoke budget, interrupted and redrawn."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from support.commands import rejected
from support.compiling import QUICKLY, SHARED

from algoscope.cli.main import main
from algoscope.experiments import MODULES
from algoscope.experiments.record import RESULT

COMMAND = [sys.executable, "-m", "algoscope.cli", "reproduce"]
SMOKE = ["--budget", "smoke"]


def start(*arguments: str, cwd: Path) -> subprocess.Popen:
    environment = os.environ | QUICKLY | SHARED | {"NPROC": "1"}
    return subprocess.Popen(
        [*COMMAND, *arguments],
        cwd=cwd,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def run(*arguments: str, cwd: Path) -> tuple[str, str]:
    process = start(*arguments, cwd=cwd)
    out, told = process.communicate(timeout=1200)
    assert process.returncode == 0, told
    return out, told


@pytest.mark.timeout(1500)
def test_everything_runs_once_at_the_smoke_budget(tmp_path: Path):
    out, told = run("all", *SMOKE, "--json", cwd=tmp_path)
    assert "Expected cost with the budget smoke: at most" in told
    records = json.loads(out)
    assert [record["figure"] for record in records] == list(MODULES)
    pictures = {}
    for record in records:
        directory = tmp_path / "results-smoke" / record["figure"]
        saved = json.loads((directory / RESULT).read_text())
        assert saved.pop("format") == "algoscope experiment"
        assert saved == record
        assert record["figures"]
        assert record["findings"]
        assert {claim["verdict"] for claim in record["claims"]} == {"not testable"}
        assert set(record["runs"].values()) <= {"finished"}
        for name in record["figures"]:
            for ending in ("svg", "png"):
                path = directory / f"{name}.{ending}"
                assert path.stat().st_size < 300_000
                pictures[path] = path.read_bytes()
    kept = [path.name for path in tmp_path.glob("results-smoke/*/models/*")]
    assert sorted(kept) == sorted({run for record in records for run in record["runs"]})
    models = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert len(list((tmp_path / "runs").rglob("model.safetensors"))) == 5

    some = [record for record in records if record["figure"] in ("fig2", "fig4")]
    again, told = run("fig2", "fig4", *SMOKE, "--json", cwd=tmp_path)
    assert json.loads(again) == some  # the seconds too: nothing was measured again
    assert "1 of 1 runs are trained already" in told
    found = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.safetensors")}
    assert found == models

    for path in pictures:
        if path.parent.name in ("fig2", "fig4"):
            path.unlink()
    drawn, _ = run("fig2", "fig4", *SMOKE, "--redraw", "--json", cwd=tmp_path)
    assert json.loads(drawn) == {r["figure"]: r["figures"] for r in some}
    assert {path: path.read_bytes() for path in pictures} == pictures


@pytest.mark.timeout(900)
def test_an_interrupted_experiment_is_resumed(tmp_path: Path):
    process = start("fig2", *SMOKE, cwd=tmp_path)
    assert process.stderr is not None
    while not list((tmp_path / "runs").glob("*/config.json")):  # until it trains
        assert process.poll() is None, process.stderr.read()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, rest = process.communicate(timeout=300)
    assert process.returncode == 130, rest
    assert rest.splitlines()[-1] == (
        "algoscope: interrupted; the same command resumes it."
    )
    assert not (tmp_path / "results-smoke" / "fig2" / RESULT).exists()
    out, _ = run("fig2", *SMOKE, cwd=tmp_path)
    assert out.startswith("\nfig2: Is it the Bayes predictor when labels are noisy?")
    assert "[not testable] the diagonal of figure 2." in out


def test_a_figure_is_one_of_the_experiments(capsys: pytest.CaptureFixture):
    known = ", ".join([*MODULES, "all"])
    assert rejected(capsys, "reproduce", "fig12") == (
        f"`figure` must be one of {known}, got 'fig12'. Did you mean 'fig2'?"
    )


def test_a_figure_is_asked_for(capsys: pytest.CaptureFixture):
    assert rejected(capsys, "reproduce") == (
        "No figure given. `algoscope reproduce all` runs all of them."
    )


def test_an_engine_is_known(capsys: pytest.CaptureFixture):
    told = rejected(capsys, "reproduce", "fig7", "--engine", "rya")
    assert told.startswith("`engine` must be one of inline, processes")
    assert told.endswith("got 'rya'. Did you mean 'ray'?")


def test_workers_are_counted_from_one(capsys: pytest.CaptureFixture):
    told = rejected(capsys, "reproduce", "fig7", "--workers", "0")
    assert told == "`workers` must be at least 1, got 0."


def test_only_results_are_drawn_again(tmp_path: Path, capsys: pytest.CaptureFixture):
    told = rejected(capsys, "reproduce", "fig7", "--redraw", "--out", str(tmp_path))
    assert told == (
        f"`out` must hold the results of fig7, got {tmp_path / 'fig7'}. "
        "`algoscope reproduce fig7` makes them."
    )


def test_the_findings_and_verdicts_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture
):
    main(["reproduce", "fig7", "--out", str(tmp_path), "--store", str(tmp_path)])
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1].startswith("Expected cost with the budget cpu")
    assert "fig7: Can other non-linearities multiply?" in shown.out
    assert "[reproduced] products through GeLU." in shown.out
    assert "[partly] products through ReLU. The error exceeds 5 %." in shown.out
    assert f"Data and figures: {tmp_path / 'fig7'} (figure_7.svg)" in shown.out
