"""`algoscope patch` prints, saves and draws its result."""

from pathlib import Path

from support.learners import small_learner

from algoscope.cli.main import main
from algoscope.patching import PatchingResult


def test_the_command_prints_saves_and_draws(tmp_path: Path, capsys):
    model = tmp_path / "model"
    small_learner().save_pretrained(model)
    out = tmp_path / "out"
    words = ["patch", str(model), "--budget", "smoke", "--num-examples", "2"]
    main([*words, "--out", str(out)])
    printed = capsys.readouterr().out
    assert "What small uses at the query after 2 examples" in printed
    assert PatchingResult.load(out).num_examples == 2
    assert (out / "patching.png").read_bytes().startswith(b"\x89PNG")
