"""Plug-ins on the command line: the example package, and packages that are broken."""

import json
import os
import subprocess
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from support.commands import rejected, run
from support.compiling import QUICKLY
from support.plugins import install, install_example

from algoscope.cli import main as cli
from algoscope.foundation import plugins
from algoscope.identification.families import FAMILIES, all_families
from algoscope.model.learner import InContextLearner
from algoscope.predictors import ols, parse_predictor
from algoscope.tasks import make_task, task_kind
from algoscope.training.loop import task_of

SMALL = ("--dim", "2", "--num-examples", "4", "--num-datasets", "20")
MODULES = ("algoscope_fading", "broken_plugin", "other_plugin")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A folder on the path, where packages can be installed."""
    folder = tmp_path / "site"
    folder.mkdir()
    monkeypatch.syspath_prepend(folder)
    monkeypatch.chdir(tmp_path)
    for cached in (plugins.installed, all_families):
        cached.cache_clear()
    yield folder
    for cached in (plugins.installed, all_families):
        cached.cache_clear()
    for name in MODULES:
        sys.modules.pop(name, None)


def broken(site: Path, code: str, group: str = plugins.PREDICTORS) -> None:
    install(site, "broken-plugin", {group: {"wrong": "broken_plugin:wrong"}}, code)


def named(kind: str) -> str:
    return f"The {kind} 'wrong', a plug-in of the package broken-plugin 1.0.0, "


def test_the_predictor_of_the_example_is_compared(capsys, site):
    install_example(site)
    options = (*SMALL, "--metrics", "spd", "--json")
    status, out, err = run(
        capsys, "compare", "fading_mean(0.5)", "--with", "FadingMean(0.9)", *options
    )
    assert status == 0, err
    found = json.loads(out)
    assert found["learner"] == "FadingMean(0.5)"
    assert found["curves"][0]["second"] == "FadingMean(0.9)"


def test_the_task_of_the_example_can_be_trained_and_is_known_to_its_models(site, key):
    install_example(site)
    config = cli._parse(["train", "--task", "sparse", "--dim", "5"]).config
    task = task_of(config)
    assert task_kind(task) == "sparse"
    drawn = jax.vmap(lambda key: task.sample(key, 3))(jax.random.split(key, 20))
    assert set(jnp.sum(drawn.w != 0, axis=1).tolist()) == {2}
    assert jnp.allclose(drawn.y, jnp.einsum("bnd,bd->bn", drawn.x, drawn.w))


@pytest.mark.slow
def test_the_task_of_the_example_is_trained(site):
    install_example(site)
    sizes = ("--dim", "2", "--num-examples", "4", "--num-layers", "1", "--steps", "2")
    small = ("--hidden-size", "8", "--num-heads", "1", "--batch-size", "4")
    often = ("--steps-per-call", "2", "--evaluate-every", "2", "--save-every", "2")
    few = ("--evaluation-datasets", "10", "--out", "run")
    options = (*sizes, *small, *often, *few)
    path = os.pathsep.join([str(site), str(Path(__file__).parents[2])])
    subprocess.run(
        [sys.executable, "-m", "algoscope", "train", "--task", "sparse", *options],
        env={**os.environ, **QUICKLY, "PYTHONPATH": path},
        check=True,
        capture_output=True,
    )
    learner = InContextLearner.from_pretrained("run")
    assert type(learner.task).__name__ == "SparseRegression"
    assert learner.task.dim == 2


def test_the_family_of_the_example_is_identified(capsys, site):
    install_example(site)
    options = (*SMALL, "--domain", "task", "--json")
    status, out, err = run(capsys, "identify", "fading_mean(0.7)", *options)
    assert status == 0, err
    nearest = json.loads(out)["statements"][0]["candidates"][0]
    assert nearest["family"] == "fading_mean"
    assert nearest["parameters"]["decay"] == pytest.approx(0.7, abs=1e-3)


def test_plugins_are_listed_with_their_package(capsys, site):
    install_example(site)
    broken(site, "import nothing_like_this")
    listed = json.loads(run(capsys, "plugins", "--json")[1])
    states = {(row["plug-in"], row["kind"]): row["state"] for row in listed}
    assert states[("sparse", "task")] == "works"
    assert states[("fading_mean", "family")] == "works"
    assert states[("wrong", "predictor")].startswith(named("predictor"))
    assert "broken-plugin" in run(capsys, "plugins")[1]


def test_help_and_other_commands_import_no_plugin(capsys, site):
    broken(site, "raise SystemExit('never imported')")
    for arguments in (
        ["--help"],
        ["train", "--help"],
        ["models", "--json"],
        ["build", "--list"],
    ):
        assert run(capsys, *arguments)[0] == 0
    assert "broken_plugin" not in sys.modules
    install_example(site)
    assert run(capsys, "compare", "--help")[0] == 0
    assert "algoscope_fading" not in sys.modules


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (
            "import nothing_like_this",
            "cannot be loaded: ModuleNotFoundError: No module",
        ),
        ("raise SystemExit(3)", "cannot be loaded: SystemExit: 3"),
        ("right = 1", "cannot be loaded: AttributeError: module 'broken_plugin' has"),
        (
            "wrong = 3",
            "is no predictor and no function that returns one: <class 'int'>",
        ),
        ("def wrong(): return 3", "returned no predictor but <class 'int'>"),
        ("def wrong(): return 1 / 0", "failed: ZeroDivisionError: division by zero"),
    ],
)
def test_a_broken_predictor_is_named_in_one_sentence(capsys, site, code, why):
    broken(site, code)
    status, out, err = run(capsys, "compare", "wrong", "--num-datasets", "2")
    assert (status, out, err.count("\n")) == (1, "", 1)
    assert err.startswith(f"algoscope: {named('predictor')}{why}")


def test_a_broken_task_is_named_in_one_sentence(site):
    broken(site, "wrong = 3", plugins.TASKS)
    with pytest.raises(plugins.PluginError) as raised:
        make_task("wrong", dim=2)
    assert str(raised.value) == f"{named('task')}has no method from_variances."


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import nothing_like_this", "cannot be loaded: ModuleNotFoundError"),
        ("wrong = 3", "must be a Family or several, got int"),
        (
            "from algoscope.identification.family import Family\n"
            "wrong = [Family('wrong', lambda prefixes, points, choice: 1 / 0)]",
            "failed: ZeroDivisionError: division by zero",
        ),
        (
            "from algoscope.identification.family import Family\n"
            "wrong = Family('wrong', lambda prefixes, *_: prefixes.y[None, :, 1:])",
            "must return answers of shape (1, 2, 4), got (1, 2, 3)",
        ),
    ],
)
def test_a_broken_family_is_left_out_with_one_warning(site, code, why):
    broken(site, code, plugins.FAMILIES)
    with pytest.warns(UserWarning, match="It is left out") as told:
        assert all_families() == FAMILIES
    assert len(told) == 1
    assert str(told[0].message).startswith(named("family") + why)


def test_a_plugin_cannot_take_a_name_of_algoscope(site):
    points = {plugins.PREDICTORS: {"ols": "other_plugin:ols"}}
    install(site, "other-plugin", points, "raise RuntimeError")
    assert parse_predictor("ols") is ols


def test_two_packages_with_one_name_are_both_named(capsys, site):
    broken(site, "")
    points = {plugins.PREDICTORS: {"wrong": "other_plugin:wrong"}}
    install(site, "other-plugin", points, "")
    _, _, err = run(capsys, "compare", "wrong")
    assert "The predictor 'wrong' is a plug-in of " in err
    assert "package broken-plugin 1.0.0" in err
    assert "package other-plugin 1.0.0" in err


def test_an_unknown_name_is_rejected_with_those_of_plugins(capsys, site):
    install_example(site)
    told = rejected(capsys, "compare", "fading_man(0.5)")
    assert told.endswith("got 'fading_man'. Did you mean 'fading_mean'?")
    told = rejected(capsys, "train", "--task", "sparce")
    assert told == (
        "`task` must be one of linear, control, broad, sparse, got 'sparce'. "
        "Did you mean 'sparse'?"
    )
    assert "Did you mean 'fading_mean'?" in rejected(capsys, "compare", "fading_maen")
