"""`algoscope identify`, from the command line to the result."""

import json
import shutil
import sys
from functools import partial

import numpy as np
import pytest
import tyro
from support.commands import rejected

from algoscope.cli.console import find_target, regression_for
from algoscope.cli.identify import Identify, load_pool
from algoscope.cli.main import main
from algoscope.cli.probe import Probe
from algoscope.identification import Identification, Survival
from algoscope.model.checkpoints import MODELS
from algoscope.model.learner import InContextLearner
from algoscope.tasks.linear import FixedWeights, LinearRegression

SMALL = ["--dim", "2", "--num-examples", "5"]


def test_identify_answers_in_words_and_in_a_file(capsys, tmp_path):
    path = tmp_path / "found.json"
    few = ["--num-datasets", "16", "--out", str(path)]
    main(["identify", "sklearn:Ridge(alpha=0.3, fit_intercept=False)", *SMALL, *few])
    printed = capsys.readouterr().out
    assert "runs ridge(penalty=0.3) on all kinds of data" in printed
    assert "over-determined (n = 3–5): is; nearest ridge(penalty=0.3)" in printed
    found = Identification.load(path)
    assert found.verdict == "ridge"
    assert found.target == "sklearn:Ridge(alpha=0.3, fit_intercept=False)"


def task_of(target: str, *options: str) -> object:
    words = [target, *options]
    command = tyro.cli(Identify, args=words, config=(tyro.conf.FlagCreatePairsOff,))
    return find_target(command)[1]


@pytest.fixture
def noisy(tmp_path):
    """A model that says it was trained with noise."""
    shutil.copytree(MODELS / "linear-d1", tmp_path / "noisy")
    config = tmp_path / "noisy" / "config.json"
    saved = json.loads(config.read_text())
    saved["training"] |= {"noise_variance": 0.25, "prior_variance": 2.0}
    config.write_text(json.dumps(saved))
    return str(tmp_path / "noisy")


def test_a_model_is_asked_on_the_task_it_was_trained_on(noisy):
    assert task_of(noisy) == LinearRegression(1, 2.0, 0.25)
    assert task_of(noisy, "--noise-variance", "0") == LinearRegression(1, 2.0, 0.0)
    assert task_of("linear-d1") == LinearRegression(1, 1.0, 0.0)
    assert task_of("control-d4") == FixedWeights(4)
    assert task_of("control-d4", "--prior-variance", "1") == LinearRegression(4)
    assert task_of("ols", "--dim", "3") == LinearRegression(3)


def test_the_control_is_probed_where_weights_vary(noisy):
    command, load = (
        tyro.cli(Probe, args=["control-d4"]),
        InContextLearner.from_pretrained,
    )
    assert regression_for(load("control-d4"), command) == LinearRegression(4)
    assert regression_for(load(noisy), command) == LinearRegression(1, 2.0, 0.25)


def test_identify_prints_json_for_programs(capsys):
    main(["identify", "knn(2, uniform)", *SMALL, "--num-datasets", "16", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["verdict"] == "knn"
    assert found["parameters"]["k"] == 2
    assert found["relation"] == "is"
    assert found["answered"] == 1.0
    assert found["ties"] == []
    assert 0 < found["confidence"] <= 1
    assert set(found["suites"]) >= {"task", "outlier"}
    regime = found["regimes"][-1]
    assert {"verdict", "parameters", "first", "last"} <= set(regime)
    assert found["statements"][0]["candidates"][0]["family"] == "knn"
    assert {"ilwd", "influence", "symmetries"} <= set(found["evidence"])


def test_shifts_are_measured_printed_and_saved(capsys, tmp_path):
    out, figure = tmp_path / "found.json", tmp_path / "shifts.svg"
    few = ["--num-datasets", "16", "--shifts", "--out", str(out)]
    main(["identify", "ridge(0.3)", *SMALL, *few, "--figure", str(figure)])
    printed = capsys.readouterr().out
    assert "Does it stay ridge(penalty=0.3)?" in printed
    assert "It survives larger x" in printed
    found = Survival.load(tmp_path / "found.shifts.json")
    assert set(found.boundaries.values()) == {None}
    assert figure.read_bytes().startswith(b"<?xml")


@pytest.mark.parametrize("name", ["pool.npy", "pool.csv"])
def test_a_pool_of_weights_is_read(tmp_path, rng, name):
    pool = rng.standard_normal((3, 2))
    save = np.save if name.endswith("npy") else partial(np.savetxt, delimiter=",")
    save(tmp_path / name, pool)
    np.testing.assert_allclose(load_pool(tmp_path / name), pool)


def test_a_file_without_weights_is_rejected(capsys, tmp_path):
    missing = tmp_path / "pool.npy"
    words = ["identify", "ols", *SMALL, "--pool"]
    assert f"{missing} does not exist." in rejected(capsys, *words, str(missing))
    (tmp_path / "pool.csv").write_text("a, b")
    wrong = rejected(capsys, *words, str(tmp_path / "pool.csv"))
    assert "pool.csv holds no table of numbers" in wrong


def test_a_program_that_never_answers_stops_with_one_line(capsys, tmp_path):
    server = tmp_path / "server.py"
    server.write_text("import sys; sys.stdin.readline(); sys.exit(3)")
    with pytest.raises(SystemExit) as stop:
        main(["identify", f"cmd:{sys.executable} {server}", *SMALL])
    assert stop.value.code == 1
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.count("\n") == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["identify", "linear-d88"], "Did you mean 'linear-d8'?"),
        (["identify", "rigde(0.1)"], "Did you mean 'ridge'?"),
        (["identify", "sklearn:Rigde(alpha=1)"], "Did you mean 'Ridge'?"),
        (["identify", "python:nowhere:f"], "nowhere"),
        (["identify", "cmd:/no/such/program"], "/no/such/program"),
        (
            ["identify", "linear-d2", "--dim", "3"],
            "`dim` must be the model's 2, got 3.",
        ),
        (["identify", "ols", "--timeout", "0"], "`timeout` must be positive, got 0.0."),
    ],
)
def test_bad_input_is_one_line_and_exit_status_2(capsys, arguments, message):
    assert message in rejected(capsys, *arguments)
