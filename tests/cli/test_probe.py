"""`algoscope probe` saves its result and figures, and resumes."""

import json
from pathlib import Path

import pytest
from support.learners import small_learner

from algoscope.cli.main import main
from algoscope.probing import ProbingResult


def test_the_command_probes_saves_draws_and_resumes(tmp_path: Path, capsys):
    model, out = tmp_path / "model", tmp_path / "out"
    small_learner().save_pretrained(model)
    words = ["probe", str(model), "--budget", "smoke", "--out", str(out)]
    words += ["--prefixes", "1", "2", "--layers", "0", "1", "--num-training", "64"]
    words += ["--places", "labels", "query", "--kinds", "linear", "--repeats", "1"]
    words += ["--controls", "untrained", "--targets", "moment", "sgd(0.05)"]
    words += ["--inner-size", "4", "--learning-rate", "0.02"]
    main(words)
    printed = capsys.readouterr()
    assert "What small encodes" in printed.out
    assert "about 1 min on two CPU cores like these" in printed.err
    for name in ("layers", "prefixes", "attention", "controls"):
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    chunks = {path: path.stat().st_mtime_ns for path in (out / "chunks").iterdir()}
    main([*words, "--json"])
    summary = json.loads(capsys.readouterr().out)
    found = ProbingResult.load(out)
    assert summary == found.summary()
    sizes = [found.config[name] for name in ("num_training", "inner_size")]
    assert (sizes, found.config["learning_rate"]) == ([64, 4], 0.02)
    assert found.places == ("labels", "query")
    assert {row["target"] for row in summary} == {"moment", "w of SGD(0.05)"}
    assert [row["selectivity"] is None for row in summary] == [True] * 4 + [False] * 4
    assert {path: path.stat().st_mtime_ns for path in chunks} == chunks


def test_steps_are_batches_of_fresh_datasets(tmp_path: Path):
    model, out = tmp_path / "model", tmp_path / "out"
    small_learner().save_pretrained(model)
    words = ["probe", str(model), "--budget", "smoke", "--out", str(out)]
    words += ["--prefixes", "1", "--layers", "0", "--kinds", "linear", "--repeats", "1"]
    words += ["--places", "labels", "--targets", "moment", "--batch-size", "16"]
    main([*words, "--steps", "3"])
    assert ProbingResult.load(out).config["num_training"] == 48


def test_a_bad_target_costs_one_line(tmp_path: Path, capsys):
    model = tmp_path / "model"
    small_learner().save_pretrained(model)
    with pytest.raises(SystemExit) as stop:
        main(["probe", str(model), "--targets", "w_old", "--out", str(tmp_path / "o")])
    assert stop.value.code == 2
    assert "got 'w_old'. Did you mean 'w_ols'?" in capsys.readouterr().err
    assert not (tmp_path / "o").exists()
