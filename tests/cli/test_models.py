"""`algoscope models` and `algoscope presets`."""

import json

from support.commands import run

from algoscope.model.checkpoints import shipped_models
from algoscope.training.config import PRESETS


def test_models_lists_what_ships(capsys):
    status, out, _ = run(capsys, "models", "--json")
    assert status == 0
    assert [fact["model"] for fact in json.loads(out)] == shipped_models()
    status, out, _ = run(capsys, "models")
    assert status == 0
    assert all(name in out for name in shipped_models())


def test_presets_show_their_cost(capsys):
    status, out, _ = run(capsys, "presets", "--json")
    assert status == 0
    assert set(json.loads(out)) == set(PRESETS)
    status, out, _ = run(capsys, "presets")
    assert "paper" in out
    assert "days" in out
