"""The exported model.py computes what JAX computes, at every layer."""

import json
from dataclasses import asdict
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any, get_args

import jax.numpy as jnp
import numpy as np
import pytest
from support.torch_present import require
from support.transformers import MODERN, PAPER, draw_tokens, draw_transformer
from support.transformers import run as run_in_jax

import algoscope as asc
from algoscope.model import Activation
from algoscope.model.layer import Block
from algoscope.model.learner import InContextLearner
from algoscope.model.tokens import encode_context, example_tokens

torch = require()

FIELDS = ("output", "hidden", "attention")
TOLERANCE = {"float32": 1e-5, "float64": 1e-11}  # of the largest number


def load(directory: Path) -> Any:
    """Return the model, through the copy of model.py in its directory."""
    spec = spec_from_file_location("exported_model", directory / "model.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.load(directory)


def assert_same(
    learner: InContextLearner, directory: Path, tokens: Any, factor: float = 1
) -> None:
    """Compare a whole run in JAX with one in PyTorch, each relative to its size."""
    dtype = str(learner.transformer.w_e.dtype)
    tokens = np.asarray(tokens, dtype)
    expected = run_in_jax(learner.transformer, jnp.asarray(tokens))
    with torch.no_grad():
        actual = load(asc.export(learner, directory))(torch.tensor(tokens))
    for name in FIELDS:
        ours, theirs = (
            np.asarray(getattr(expected, name)),
            getattr(actual, name).numpy(),
        )
        assert theirs.dtype == dtype
        assert theirs.shape == ours.shape
        error = np.abs(theirs - ours).max() / np.abs(ours).max()
        assert error < factor * TOLERANCE[dtype], (name, error)


def test_the_file_is_short_and_needs_torch_alone():
    source = Path(asc.__file__).parent / "exchange" / "torch_model.py"
    lines = source.read_text().splitlines()
    imports = {
        line.split()[1].partition(".")[0]
        for line in lines
        if line.startswith(("import", "from"))
    }
    assert len(lines) <= 150
    assert imports == {"json", "pathlib", "typing", "torch"}


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "pre_norm"])
def test_both_blocks_agree_with_heads_of_any_size(rng, tmp_path, block: Block, dtype):
    transformer = draw_transformer(rng, block, dtype)
    assert_same(InContextLearner(transformer), tmp_path, draw_tokens(rng, 3))


@pytest.mark.parametrize("activation", get_args(Activation))
def test_every_activation_agrees(rng, tmp_path, activation: Activation):
    block = Block(activation=activation, imaginary_timestep=True)
    transformer = draw_transformer(rng, block, layers=1)
    assert_same(InContextLearner(transformer), tmp_path, 9 * draw_tokens(rng, 2))


@pytest.mark.optimized
@pytest.mark.parametrize("name", ["linear-d2", "control-d4"])
def test_shipped_models_agree(name: str, tmp_path):
    learner = InContextLearner.from_pretrained(name)
    assert_same(learner, tmp_path, example_tokens(learner.dim, 12, 8))


@pytest.mark.optimized
@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("algorithm", ["sgd", "ridge"])
def test_compiled_models_agree(algorithm: str, dtype: Any, tmp_path):
    learner = asc.build(algorithm, 2, 3, dtype=dtype)
    tokens = example_tokens(2, 3, 8)
    # Large numbers cancel: in float32 JAX itself is 1.2e-5 from what the weights mean.
    assert_same(learner, tmp_path, tokens, factor=5)
    with torch.no_grad():
        model = load(tmp_path)
        x, y = tokens[:, ::2, 1:], np.pad(tokens[:, 1::2, 0], ((0, 0), (0, 1)))
        found = model.predict_prefixes(torch.tensor(x), torch.tensor(y)).numpy()
    for row, each in enumerate(found[:2]):
        x_row, y_row = jnp.asarray(x[row], dtype), jnp.asarray(y[row], dtype)
        expected = np.asarray(learner.predict_prefixes(x_row, y_row))
        np.testing.assert_allclose(each, expected, atol=10 * TOLERANCE[dtype])


def test_predictions_read_only_the_examples_before(rng, tmp_path):
    learner = InContextLearner(draw_transformer(rng, MODERN))
    model = load(asc.export(learner, tmp_path))
    x, y = torch.randn(2, 4, 2).double(), torch.randn(2, 4).double()
    tokens = torch.tensor(encode_context(x.numpy(), y.numpy()))
    predictions = model.predict_prefixes(x, y)
    torch.testing.assert_close(predictions, model(tokens).output[:, ::2])
    y[:, -1] = torch.nan  # no prediction depends on the last label
    torch.testing.assert_close(model.predict_prefixes(x, y), predictions)


def test_a_hook_sees_and_replaces_the_residual_stream(rng, tmp_path):
    learner = InContextLearner(draw_transformer(rng, MODERN, layers=3))
    model = load(asc.export(learner, tmp_path))
    tokens = torch.tensor(np.asarray(draw_tokens(rng, 2)))
    seen = []
    handle = model.layers[1].register_forward_hook(lambda *call: seen.append(call[2]))
    plain = model(tokens)
    torch.testing.assert_close(seen[0], plain.hidden[:, 2])
    handle.remove()
    model.layers[1].register_forward_hook(lambda *call: call[2].flip(0))
    swapped = model(tokens)
    torch.testing.assert_close(swapped.hidden[:, 2], plain.hidden[:, 2].flip(0))
    torch.testing.assert_close(swapped.output, plain.output.flip(0))


def test_all_weights_can_be_trained_further(rng, tmp_path):
    learner = InContextLearner(draw_transformer(rng, MODERN))
    model = load(asc.export(learner, tmp_path))
    weights = list(model.parameters())
    assert sum(w.numel() for w in weights) == learner.transformer.num_parameters
    x, y = torch.randn(8, 4, 2), torch.randn(8, 4)

    def loss() -> Any:
        return (model.predict_prefixes(x, y) - y).square().mean()

    before = loss()
    before.backward()
    assert all(w.grad is not None and w.grad.any() for w in weights)
    torch.optim.SGD(weights, lr=1e-3).step()
    assert loss() < before


def test_a_context_that_is_too_long_is_rejected(rng, tmp_path):
    model = load(asc.export(InContextLearner(draw_transformer(rng)), tmp_path))
    with pytest.raises(ValueError, match="At most 9 tokens fit"):
        model(torch.zeros(1, 10, 3))


def rewrite(path: Path, change: Any) -> None:
    content = path.read_bytes()
    end = 8 + int.from_bytes(content[:8], "little")
    header = json.loads(content[8:end])
    change(header)
    text = json.dumps(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[end:])


@pytest.mark.parametrize("offsets", [(-4, 0), (0, 10**9), (8, 0), (0, 0), (0, 12)])
def test_a_file_whose_tensors_lie_outside_of_it_is_rejected(rng, tmp_path, offsets):
    asc.export(InContextLearner(draw_transformer(rng)), tmp_path)
    path = tmp_path / "model.safetensors"
    rewrite(path, lambda header: header["w_o"].update(data_offsets=offsets))
    with pytest.raises((ValueError, RuntimeError)):
        load(tmp_path)


def test_a_truncated_file_is_rejected(rng, tmp_path):
    asc.export(InContextLearner(draw_transformer(rng)), tmp_path)
    path = tmp_path / "model.safetensors"
    path.write_bytes(path.read_bytes()[:-8])
    with pytest.raises(ValueError, match="damaged"):
        load(tmp_path)


@pytest.mark.parametrize("block", [PAPER, MODERN], ids=["paper", "pre_norm"])
def test_the_round_trip_through_torch_is_bit_identical(rng, tmp_path, block: Block):
    task = asc.LinearRegression(2, noise_variance=0.25)
    transformer = draw_transformer(rng, block, "float32")
    learner = InContextLearner(transformer, "mine", task=task)
    back = asc.import_model(asc.export(learner, tmp_path))
    assert back.digest == learner.digest
    assert (back.name, back.task) == ("mine", task)
    assert asdict(back.transformer.block) == asdict(block)
    weights = load(tmp_path).state_dict()
    for index, layer in enumerate(np.asarray(transformer.layers.w_f)):
        theirs = weights[f"layers.{index}.attention.weights.w_f"].numpy()
        assert theirs.tobytes() == layer.tobytes()
