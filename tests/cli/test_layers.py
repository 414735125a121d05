"""`algoscope layers` prints, saves and draws its result."""

import json
from pathlib import Path

import pytest
from support.learners import small_learner

from algoscope.cli.main import main
from algoscope.layerwise import LayersResult

SIZES = ["--num-training", "40", "--num-test", "20"]


def test_the_command_prints_saves_and_draws(tmp_path: Path, capsys):
    model, out = tmp_path / "model", tmp_path / "out"
    small_learner().save_pretrained(model)
    main(["layers", str(model), *SIZES, "--out", str(out)])
    printed = capsys.readouterr().out
    assert "What small would answer after each layer" in printed
    assert "Newton: steps (SPD/d)" in printed
    assert LayersResult.load(out).layer_names[-1] == "layer 2"
    assert (out / "layers.png").read_bytes().startswith(b"\x89PNG")
    main(["layers", str(model), *SIZES, "--out", str(out), "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [row["layer"] for row in found["layers"]] == [0, 1, 2]
    assert set(found["layers"][0]["matches"]) == {
        "GD",
        "conjugate gradients",
        "Newton",
    }


def test_sizes_that_do_not_fit_are_refused(tmp_path: Path, capsys):
    small_learner().save_pretrained(tmp_path)
    with pytest.raises(SystemExit) as stop:
        main(["layers", str(tmp_path), "--num-examples", "9"])
    assert stop.value.code == 2
    assert "`num_examples` must be from 2 to 4" in capsys.readouterr().err
