"""`probe`, `patch` and `layers` take PyTorch modules, and refuse what has no layers."""

import json
import sys

import pytest
from support.commands import rejected, run
from support.learners import small_learner
from support.torch_present import require

from algoscope.exchange import export

require()

MODELS = """
import torch
from pathlib import Path

def exported():
    import importlib.util
    spec = importlib.util.spec_from_file_location("model", "exported/model.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load("exported")

class Bare(torch.nn.Module):
    dim, max_examples = 2, 3
    def forward(self, x, y):
        return 0 * y

class Untold(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = exported()
    def forward(self, x, y):
        return self.inner.predict_prefixes(x, y)

bare, untold = Bare(), Untold
opened = exported()
def function(x, y, query):
    return 0.0
"""
SIZES = {
    "probe": "--budget smoke --prefixes 1 2 --kinds linear --repeats 1 --places query "
    "--targets moment --num-training 64 --controls untrained",
    "patch": "--budget smoke --num-examples 2 --num-pairs 4",
    "layers": "--num-training 40 --num-test 20",
}


@pytest.fixture
def zoo(tmp_path, monkeypatch):
    """A directory with a module of models, which is the current one."""
    export(small_learner(), tmp_path / "exported")
    small_learner().save_pretrained(tmp_path / "ours")
    (tmp_path / "zoo.py").write_text(MODELS)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return tmp_path


@pytest.mark.parametrize("command", SIZES)
def test_an_exported_module_is_opened_like_our_own(zoo, capsys, command):
    found = {}
    for target in ("ours", "torch:zoo.py:exported"):
        words = [command, target, *SIZES[command].split(), "--json"]
        status, out, err = run(capsys, *words, "--out", f"out-{len(found)}")
        assert status == 0, err
        found[target] = json.loads(out)
    ours, theirs = found.values()
    assert_near(ours, theirs, command)


def assert_near(ours, theirs, command) -> None:
    """The same numbers, but for those of the controls, whose weights are others."""
    if command == "probe":
        ours, theirs = ours[:1], theirs[:1]  # the learner's own
        errors = [each[0]["error"][0] for each in (ours, theirs)]
    elif command == "patch":
        errors = [[row["query"] for row in each["layers"]] for each in (ours, theirs)]
        parts = [[row["spd_ols"] for row in each["parts"]] for each in (ours, theirs)]
        assert parts[0] == pytest.approx(parts[1], abs=1e-5)
        assert len(parts[0]) == 4
    else:
        errors = [[row["risk"] for row in each["layers"]] for each in (ours, theirs)]
    assert errors[0] == pytest.approx(errors[1], abs=1e-4)


def test_options_tell_what_a_module_does_not(zoo, capsys):
    words = ["layers", "torch:zoo.py:untold", *SIZES["layers"].split(), "--json"]
    assert "`dim` must be given with `layers`" in rejected(capsys, *words)
    words += ["--dim", "2", "--max-examples", "3", "--blocks", "inner.layers"]
    status, out, err = run(capsys, *words)
    assert status == 0, err
    assert len(json.loads(out)["layers"]) == 3


@pytest.mark.parametrize(
    ("target", "message"),
    [
        (
            "ridge(0.1)",
            "`target` must be a learner whose hidden states can be seen, go",
        ),
        ("python:zoo.py:function", "`target` must be a learner whose hidden states ca"),
        ("sklearn:Ridge()", "`target` must be a learner whose hidden states can be se"),
        ("torch:zoo.py:bare", "`blocks` must be the path of the blocks of a module th"),
        ("torch:zoo.py:nothing", "`target` must name something in zoo.py, got"),
        ("torch:zoo.py", "`target` must be torch:module:function"),
        ("torch:model.pt", "`target` must name a Python module and what makes the mod"),
    ],
)
@pytest.mark.parametrize("command", SIZES)
def test_what_cannot_be_opened_is_refused(zoo, capsys, command, target, message):
    assert rejected(capsys, command, target).startswith(message)
    assert not (zoo / command).exists()


def test_options_of_modules_are_refused_for_our_own(zoo, capsys):
    message = rejected(capsys, "layers", "ours", "--dim", "3")
    assert (
        message == "`dim` must be left out for a learner that is open already, got 3."
    )
