"""A model without a digest says so, and `algoscope import` is the way to trust it."""

import shutil
from pathlib import Path

import pytest
import safetensors.numpy
from support.commands import rejected, run
from support.refusals import refuses

import algoscope as asc
from algoscope.foundation.files import DamagedFileError
from algoscope.model.checkpoints import MODELS, WEIGHTS

REFUSED = (
    "{} holds no digest of its arrays, so damage to it would not be noticed. "
    "If you trust it, `algoscope import DIR --out NEW` writes one."
)


@pytest.fixture
def unsigned(tmp_path) -> Path:
    """A shipped model whose weights another program has written again."""
    place = tmp_path / "unsigned"
    shutil.copytree(MODELS / "control-d4", place)
    weights = place / WEIGHTS
    safetensors.numpy.save_file(safetensors.numpy.load_file(weights), weights)
    return place


def test_a_model_without_a_digest_is_not_loaded(unsigned):
    with refuses(DamagedFileError, REFUSED.format(unsigned / WEIGHTS)):
        asc.InContextLearner.from_pretrained(unsigned)


@pytest.mark.parametrize(
    "command",
    ["identify", "compare", "layers", "probe", "patch", "play", "export"],
)
def test_no_command_loads_it(unsigned, tmp_path, capsys, command):
    # Each has to refuse before it writes anything.
    out = tmp_path / "out"
    outputs = ("--out", str(out)) if command != "play" else ("--out", f"{out}.html")
    if command in ("identify", "compare", "layers"):
        outputs = ()
    message = rejected(capsys, command, str(unsigned), *outputs)
    assert message == REFUSED.format(unsigned / WEIGHTS)
    assert not out.with_suffix(".html").exists()
    assert not out.exists() or not any(out.iterdir())


def test_an_import_makes_it_an_ordinary_model(unsigned, tmp_path, capsys):
    out = tmp_path / "imported"
    status, printed, _ = run(capsys, "import", str(unsigned), "--out", str(out))
    assert status == 0
    assert printed.startswith("control-d4: d = 4, ")
    shipped = asc.InContextLearner.from_pretrained("control-d4")
    found = asc.InContextLearner.from_pretrained(out)
    assert (found.digest, found.name) == (shipped.digest, shipped.name)
    assert found.task == shipped.task  # the control task, not the usual one
    assert asc.import_model(unsigned).digest == shipped.digest


def test_an_import_checks_what_it_reads(unsigned, tmp_path, capsys):
    weights = unsigned / WEIGHTS
    arrays = safetensors.numpy.load_file(weights)
    arrays["w_o"] = arrays["w_o"] * float("nan")
    safetensors.numpy.save_file(arrays, weights)
    arguments = ("import", str(unsigned), "--out", str(tmp_path / "out"))
    message = rejected(capsys, *arguments)
    assert message.startswith(f"{unsigned} does not hold a saved transformer (")
    assert "w_o holds NaN or infinity" in message
    shutil.copy(MODELS / "control-d4" / WEIGHTS, weights)
    content = bytearray(weights.read_bytes())
    content[-3] ^= 1
    weights.write_bytes(content)  # a digest that is there has to be right
    assert (
        rejected(capsys, *arguments) == f"{weights} was changed after it was written."
    )
    assert not (tmp_path / "out").exists()
