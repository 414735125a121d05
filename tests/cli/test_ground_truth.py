"""`algoscope ground-truth` and `algoscope train --from`, as a user types them."""

import json
from pathlib import Path

import jax
import pytest
from support.commands import rejected

from algoscope.cli.main import main
from algoscope.foundation.files import read_json
from algoscope.model.learner import InContextLearner


@pytest.fixture(autouse=True)
def _precision_stays():
    """The commands set the precision of the whole program."""
    yield
    jax.config.update("jax_enable_x64", True)


def test_learners_are_written_with_an_index_and_load_like_any_other(tmp_path, capsys):
    main(["ground-truth", "--out", str(tmp_path), "--only", "gd-d2-n4", "--json"])
    assert json.loads(capsys.readouterr().out)["learners"] == ["gd-d2-n4"]
    (entry,) = read_json(tmp_path / "index.json")["learners"]
    assert (entry["name"], entry["num_layers"], entry["form"]) == (
        "gd-d2-n4",
        5,
        "plain",
    )
    learner = InContextLearner.from_pretrained(tmp_path / "gd-d2-n4")
    assert learner.max_examples == entry["num_examples"]
    truth = read_json(tmp_path / "gd-d2-n4" / "truth.json")
    assert truth["format"] == "algoscope ground truth"
    assert truth["labels"]["quantities"][0]["name"] == "token"


def test_unknown_learners_are_rejected(tmp_path, capsys):
    said = rejected(capsys, "ground-truth", "--out", str(tmp_path), "--only", "lasso")
    assert said.startswith("`only` must name learners of the collection")


def devices() -> tuple[str, str]:
    """Return as many devices as this process has: they cannot be changed any more."""
    return "--devices", str(jax.local_device_count())


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("built")
    options = ("--dim", "1", "--num-examples", "2", "--steps", "1", "--trainable")
    main(["build", "gd", *options, "--out", str(out)])
    return out


def test_a_construction_is_trained_further(built, tmp_path, capsys):
    short = ("--steps", "2", "--steps-per-call", "2", *devices())
    every = ("--evaluate-every", "2", "--save-every", "2", "--evaluation-datasets", "4")
    start = (
        "--from",
        str(built),
        "--random-layers",
        "3",
        "--out",
        str(tmp_path / "run"),
    )
    capsys.readouterr()
    main(["train", *start, *short, *every, "--json"])
    assert json.loads(capsys.readouterr().out)["step"] == 2
    assert InContextLearner.from_pretrained(tmp_path / "run").num_layers == 3
    assert (tmp_path / "run" / "start" / "model.safetensors").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--dim", "3"), "`dim` must be left out beside --from"),
        (("--random-layers", "9"), "`layers` must name layers from 1 to 3"),
    ],
)
def test_sizes_beside_a_start_are_rejected(built, capsys, options, message):
    start = ("--from", str(built), *devices())
    assert message in rejected(capsys, "train", *start, *options)


def test_random_layers_need_a_start(capsys):
    said = rejected(capsys, "train", "--random-layers", "1")
    assert said.startswith("`random_layers` must come together with --from")
