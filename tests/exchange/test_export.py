"""Exports are what they say, computed by the programs that they are for."""

import json
import re
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from support.commands import rejected, run
from support.learners import small_learner
from support.refusals import refuses
from support.torch_present import require
from support.transformers import MODERN, draw_tokens, draw_transformer, with_block
from support.transformers import run as run_in_jax

import algoscope as asc
from algoscope.exchange.gpt2 import ACTIVATIONS
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.layer import Block
from algoscope.model.learner import InContextLearner
from algoscope.model.tokens import example_tokens

# What a GPT-2 computes exactly: each head has H/M keys and values.
SQUARE = {"hidden": 8, "heads": 2, "key": 4, "value": 4}


def gpt2_learner(rng: Any, dtype: str = "float32", **block: Any) -> InContextLearner:
    chosen = Block(pre_norm=True, **block)
    return InContextLearner(draw_transformer(rng, chosen, dtype, **SQUARE), "mine")


def ask_gpt2(directory: Path, tokens: np.ndarray) -> np.ndarray:
    """Return the outputs of a `GPT2Model` between its read-in and read-out."""
    torch, transformers = require(), require("transformers")
    load_file = require("safetensors.torch").load_file
    reads = load_file(directory / "reads.safetensors")
    model = transformers.GPT2Model.from_pretrained(directory).eval()
    with torch.no_grad():
        embedded = torch.tensor(tokens) @ reads["read_in.weight"].T
        states = model(inputs_embeds=embedded).last_hidden_state
        output = states @ reads["read_out.weight"].T + reads["read_out.bias"]
    return output[..., 0].numpy()


@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_a_gpt2_predicts_the_same(rng, tmp_path, activation):
    learner = gpt2_learner(rng, activation=activation, attention_scale=0.3)
    tokens = np.asarray(draw_tokens(rng, 3), np.float32)
    expected = run_in_jax(learner.transformer, jnp.asarray(tokens)).output
    found = ask_gpt2(asc.export(learner, tmp_path, to="gpt2"), tokens)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


def test_a_gpt2_in_float64_predicts_the_same(rng, tmp_path):
    learner = gpt2_learner(rng, "float64", attention_scale=0.3)
    tokens = np.asarray(draw_tokens(rng, 3))
    expected = run_in_jax(learner.transformer, jnp.asarray(tokens)).output
    found = ask_gpt2(asc.export(learner, tmp_path, to="gpt2"), tokens)
    np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-11)


@pytest.mark.optimized
def test_a_shipped_model_is_a_gpt2(tmp_path):
    learner = InContextLearner.from_pretrained("linear-d2")
    tokens = example_tokens(2, 12, 8).astype(np.float32)
    expected = run_in_jax(learner.transformer, jnp.asarray(tokens)).output
    found = ask_gpt2(asc.export("linear-d2", tmp_path, to="gpt2"), tokens)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_gpt2_comes_back_as_it_was(rng, tmp_path, dtype):
    learner = gpt2_learner(rng, dtype, attention_scale=1 / 2)
    back = asc.import_model(asc.export(learner, tmp_path, to="gpt2"))
    assert back.digest == learner.digest
    assert back.name == "mine"


@pytest.mark.parametrize(
    ("block", "sizes", "problem"),
    [
        ({"pre_norm": False}, {}, "the paper's block, where attention reads h itself"),
        ({"imaginary_timestep": True}, {}, "an imaginary timestep"),
        ({"activation": "softplus"}, {}, "the activation softplus"),
        (
            {"precision": "float64"},
            {},
            "weights written by hand, which rely on the order of additions",
        ),
        (
            {},
            {"key": 5},
            "2 heads of key size 5 and value size 4 beside 8 hidden units",
        ),
    ],
)
def test_what_no_gpt2_computes_is_refused(rng, tmp_path, block, sizes, problem):
    chosen = replace(Block(pre_norm=True), **block)
    learner = InContextLearner(draw_transformer(rng, chosen, **SQUARE | sizes))
    out = tmp_path / "out"
    expected = (
        "`model` must be a pre-norm learner that GPT-2 computes exactly, got one with "
        f"{problem}. Export it to torch, which computes every learner."
    )
    with refuses(InvalidValueError, expected):
        asc.export(learner, out, to="gpt2")
    assert not out.exists()


def test_a_damaged_gpt2_is_refused(rng, tmp_path):
    asc.export(gpt2_learner(rng), tmp_path, to="gpt2")
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    for change, message in (
        ({"n_layer": 3}, "it has no h.2.mlp.c_fc.bias"),
        ({"n_head": 3}, "3 heads for 8 hidden units"),
        ({"activation_function": "mish"}, "field 'mish' is missing or damaged"),
        ({"n_layer": None}, "int() argument must be"),
    ):
        path.write_text(json.dumps(config | change))
        start = re.escape(f"{tmp_path} does not hold a GPT-2 ({message}")
        with pytest.raises(DamagedFileError, match=start):
            asc.import_model(tmp_path)
    (tmp_path / "reads.safetensors").unlink()
    with pytest.raises(InvalidValueError, match="without reads.safetensors"):
        asc.import_model(tmp_path)


@pytest.mark.parametrize("to", ["torch", "gpt2"])
def test_the_command_writes_the_files_that_it_says(capsys, tmp_path, to):
    arguments = ("export", "linear-d1", "--to", to, "--out", str(tmp_path), "--json")
    status, printed, _ = run(capsys, *arguments)
    assert status == 0
    facts = json.loads(printed)
    assert (facts["model"], facts["format"], facts["L"]) == ("linear-d1", to, 4)
    code = {"torch": "model.py", "gpt2": "reads.safetensors"}[to]
    files = {"README.md", "config.json", "model.safetensors", code}
    assert {path.name for path in tmp_path.iterdir()} == files
    status, printed, _ = run(capsys, *arguments[:-1])  # an earlier export is replaced
    assert status == 0
    assert printed.startswith("linear-d1: d = 1, up to 20 examples, L = 4, H = 32, M")


def test_an_export_to_torch_is_a_saved_learner_with_all_that_is_known(tmp_path):
    out = asc.export("control-d4", tmp_path)
    saved = InContextLearner.from_pretrained("control-d4")
    again = InContextLearner.from_pretrained(out)
    assert (again.digest, again.task) == (saved.digest, saved.task)
    assert json.loads((out / "config.json").read_text())["training"]["steps"] > 0


def test_the_lines_of_a_card_run(tmp_path, monkeypatch):
    torch = require()
    require("transformers")
    x, y = torch.randn(2, 4, 1), torch.randn(2, 4)
    found = {}
    for to in ("torch", "gpt2"):
        out = asc.export("linear-d1", tmp_path / to, to=to)  # pyright: ignore
        monkeypatch.chdir(out)
        monkeypatch.syspath_prepend(out)
        monkeypatch.delitem(sys.modules, "model", raising=False)
        code = re.findall(r"```python\n(.*?)```", (out / "README.md").read_text(), re.S)
        names = {"x": x, "y": y, "tokens": _encode(torch, x, y)}
        exec(code[0], names)
        found[to] = names["predictions"].detach().numpy()
    assert found["torch"].shape == (2, 4)
    np.testing.assert_allclose(found["torch"], found["gpt2"], atol=1e-5)


def _encode(torch: Any, x: Any, y: Any) -> Any:
    zeros = torch.zeros_like(y)[..., None]
    pairs = (
        torch.cat([zeros, x], -1),
        torch.cat([y[..., None], torch.zeros_like(x)], -1),
    )
    return torch.stack(pairs, 2).flatten(1, 2)[:, :-1]


def test_foreign_directories_are_not_written_to(capsys, tmp_path):
    def refusal(out: Path) -> str:
        return rejected(capsys, "export", "linear-d1", "--out", str(out))

    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "README.md").write_text("mine")
    taken = (
        "`out` must be a new or empty directory, or an earlier one of the same kind, "
        "got '{}' with other files in it."
    )
    assert refusal(foreign) == taken.format(foreign)
    assert (foreign / "README.md").read_text() == "mine"
    saved = tmp_path / "saved"
    small_learner().save_pretrained(saved)
    assert refusal(saved) == taken.format(saved)  # a model, but no export
    other = asc.export("linear-d1", tmp_path / "other", to="gpt2")
    assert refusal(other) == taken.format(other)
    file = tmp_path / "file"
    file.write_text("")
    for place in (file, file / "below"):
        message = f"`out` must be a directory that can be written, got '{place}'."
        assert refusal(place) == message


def test_unknown_models_and_formats_are_rejected(capsys, tmp_path):
    out = tmp_path / "out"
    message = rejected(capsys, "export", "linear-d3", "--out", str(out))
    assert message.startswith("`name` must be one of control-d4, linear-d1, ")
    assert "--to" in rejected(
        capsys, "export", "linear-d1", "--to", "tf", "--out", str(out)
    )
    with refuses(InvalidValueError, "`to` must be one of torch, gpt2, onnx, got 'tf'."):
        asc.export("linear-d1", out, to="tf")  # pyright: ignore[reportArgumentType]
    assert not out.exists()


def onnx_session(path: Path):
    """Return a function that runs a graph, or skip the test without the packages."""
    for name in ("torch", "onnx", "onnxscript", "onnxruntime"):
        pytest.importorskip(name, reason=f"no {name} here: ONNX is not checked")
    import onnxruntime  # pyright: ignore[reportMissingImports]

    return onnxruntime.InferenceSession(path)


# onnxruntime has no erf in float64, and gelu_tanh gets constants of float32.
@pytest.mark.parametrize(
    ("dtype", "activation", "off"),
    [("float32", "gelu", 1e-4), ("float64", "silu", 1e-11)],
)
def test_onnx_runs_constructions_whose_mlps_differ_in_width(
    dtype, activation, off, tmp_path
):
    pytest.importorskip("onnxscript", reason="no onnxscript here: ONNX is not checked")
    learner = asc.build("ridge", 1, 2, dtype=dtype, activation=activation)
    assert len(set(learner.transformer.layers.inner_sizes or ())) > 1
    out = asc.export(learner, tmp_path, to="onnx")
    tokens = example_tokens(1, 2, 3, seed=1).astype(dtype)
    output, *_ = onnx_session(out / "model.onnx").run(None, {"tokens": tokens})
    expected = run_in_jax(learner.transformer, jnp.asarray(tokens)).output
    np.testing.assert_allclose(output, expected, rtol=0, atol=off)


def test_onnx_computes_the_same(rng, tmp_path):
    pytest.importorskip("onnxscript", reason="no onnxscript here: ONNX is not checked")
    learner = InContextLearner(draw_transformer(rng, MODERN, "float32"), "mine")
    out = asc.export(learner, tmp_path, to="onnx")
    session = onnx_session(out / "model.onnx")
    for shape in ((1, 1), (2, 3), (5, 9)):
        tokens = np.asarray(draw_tokens(rng, shape[0], time=shape[1]), np.float32)
        found = session.run(None, {"tokens": tokens})
        expected = run_in_jax(learner.transformer, jnp.asarray(tokens))
        for name, array in zip(("output", "hidden", "attention"), found, strict=True):
            ours = np.asarray(getattr(expected, name))
            np.testing.assert_allclose(array, ours, rtol=1e-5, atol=1e-5)
    (out / "notes").write_text("mine")
    with pytest.raises(InvalidValueError, match="with other files in it"):
        asc.export(learner, tmp_path, to="onnx")


def test_onnx_without_its_packages_is_refused(rng, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxscript", None)
    learner = InContextLearner(with_block(draw_transformer(rng), pre_norm=True))
    out = tmp_path / "out"
    with refuses(
        InvalidValueError,
        "`to` must be a format whose packages are installed, got onnx without "
        "onnxscript. Install torch, onnx and onnxscript: "
        "pip install 'algoscope[onnx]'.",
    ):
        asc.export(learner, out, to="onnx")
    assert not out.exists()


PAGE = Path(__file__).parents[2] / "docs" / "exchange.md"


def test_the_python_of_the_page_runs(tmp_path, monkeypatch):
    require()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    names: dict[str, Any] = {}
    for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S):
        exec(code, names)
    assert names["predictions"].shape == (8, 5)
    assert names["run"].hidden.shape == (8, 5, 9, 64)


def test_nnsight_reads_and_replaces_hidden_states(tmp_path, monkeypatch):
    torch = pytest.importorskip("torch", reason="no torch here")
    pytest.importorskip("nnsight", reason="no nnsight here: its example is not checked")
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.delitem(sys.modules, "model", raising=False)
    (code,) = re.findall(r"```python nnsight\n(.*?)```", PAGE.read_text(), re.S)
    asc.export("linear-d2", tmp_path / "linear-d2-torch")
    monkeypatch.chdir(tmp_path)
    # nnsight reads the source of the code that it traces, so it must be in a file.
    script = tmp_path / "example.py"
    script.write_text(code)
    names: dict[str, Any] = {"__file__": str(script), "__name__": "example"}
    exec(compile(code, str(script), "exec"), names)
    assert torch.equal(names["state"], names["plain"].hidden[:, 3])
    assert not torch.allclose(names["changed"].output, names["plain"].output)


def test_a_compiled_rule_is_exported_without_its_program_and_again(tmp_path):
    learner = asc.compile(
        lambda w, x, y: w + 0.1 * x * y, jnp.dot, np.zeros(2), dim=2, num_examples=2
    )
    for _ in range(2):  # the second replaces the first
        out = asc.export(learner, tmp_path / "rule")
        names = {path.name for path in out.iterdir()}
        assert names == {"model.py", "model.safetensors", "config.json", "README.md"}
    learner.save_pretrained(tmp_path / "saved", card="# mine\n", about={"by": "me"})
    saved = json.loads((tmp_path / "saved" / "config.json").read_text())
    assert saved["by"] == "me"
    assert "construction" in saved
    assert (tmp_path / "saved" / "README.md").read_text() == "# mine\n"
