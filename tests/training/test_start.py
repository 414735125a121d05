"""Training from a construction: moderate weights, resumed runs, refusals."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import algoscope as asc
from algoscope.construction import Construction, load_construction, save_construction
from algoscope.construction.algorithms import GD, SGD, Ridge
from algoscope.foundation.files import load_arrays
from algoscope.model.tokens import encode_context
from algoscope.training.config import PRESETS, TrainingConfig
from algoscope.training.loop import initial_state, objective, task_of
from algoscope.training.run import Run
from algoscope.training.start import load_start, redraw, starting_from

GOAL = GD(learning_rate=0.05, steps=1)
SHORT = replace(
    PRESETS["tune"], steps=4, steps_per_call=2, evaluate_every=2, save_every=2
)


@pytest.fixture(scope="module")
def written() -> asc.InContextLearner:
    return asc.build(GOAL, 1, 3, trainable=True)


@pytest.mark.parametrize(
    "algorithm", [GOAL, SGD(0.05), Ridge(2.0)], ids=lambda a: a.name
)
def test_a_trainable_construction_has_moderate_weights_and_is_nearly_exact(algorithm):
    learner = asc.build(algorithm, 2, 3, trainable=True)
    assert load_start(learner) is learner
    tokens = algorithm.examples(2, 3, 64, seed=1)
    x, y = tokens[:, ::2, 1:], np.pad(tokens[:, 1::2, 0], ((0, 0), (0, 1)))
    exact = jax.vmap(algorithm.reference.predict_prefixes)(x, y)
    found = learner.transformer.outputs(
        encode_context(jnp.asarray(x), jnp.asarray(y)), slice(0, None, 2)
    )
    error = np.sqrt(np.mean((np.asarray(found) - exact) ** 2))
    assert 0 < error < 0.03 * np.std(exact)


def test_every_kind_of_weight_has_a_gradient(written):
    config = starting_from(SHORT, written)
    keys = jax.random.split(jax.random.key(0), 16)
    data = jax.vmap(lambda key: task_of(config).sample(key, 4))(keys)
    gradient = jax.grad(objective)(written.transformer, data)
    for name in ("w_q", "w_k", "w_v", "w_f", "w_2", "w_1"):
        size = float(jnp.abs(getattr(gradient.layers, name)).max())
        assert 1e-6 < size < 1e4, name


def test_the_sizes_are_those_of_the_start(written):
    config = starting_from(PRESETS["tune"], written)
    assert (config.dim, config.num_examples, config.num_layers) == (1, 4, 3)
    assert config.hidden_size == written.hidden_size
    assert len(config.start) == 12
    state = initial_state(config, start=written.transformer)
    assert state.transformer is written.transformer
    assert TrainingConfig.from_dict(vars(config)) == config


def test_an_interrupted_run_from_a_construction_ends_with_the_same_weights(
    written, tmp_path: Path
):
    runs = [tmp_path / name for name in ("whole", "resumed")]
    options: dict[str, Any] = {
        "start": written,
        "evaluation_datasets": 8,
        "progress": False,
    }
    asc.train(SHORT, runs[0], **options)
    config = starting_from(SHORT, written)
    run = Run.open(runs[1], config, start=written)
    state, _ = run.load_state()
    np.testing.assert_array_equal(state.transformer.w_e, written.transformer.w_e)
    learner = asc.train(SHORT, runs[1], **options)
    whole, resumed = (load_arrays(each / "model.safetensors")[0] for each in runs)
    assert all(np.array_equal(whole[name], resumed[name]) for name in whole)
    assert not np.array_equal(whole["layers.w_1"], written.transformer.layers.w_1)
    assert learner.operands is None
    other = redraw(written)
    with pytest.raises(ValueError, match="`out` must be new or hold run"):
        asc.train(SHORT, runs[1], start=other, progress=False)


def test_a_damaged_start_is_noticed(written, tmp_path: Path):
    config = starting_from(SHORT, written)
    run = Run.open(tmp_path, config, start=written)
    redraw(written).save_pretrained(tmp_path / "start")
    with pytest.raises(ValueError, match="holds other weights than those the run"):
        run.load_state()
    (tmp_path / "start" / "model.safetensors").unlink()
    with pytest.raises(ValueError, match="is missing, which the run started from"):
        run.load_state()


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_weights_that_training_cannot_change_are_refused(dtype):
    rule = "hold float32 weights" if dtype == "float64" else "hold weights of at most"
    learner = asc.build(GOAL, 1, 2, dtype=dtype)
    with pytest.raises(ValueError, match=rf"`start` must {rule}.*trainable=True"):
        load_start(learner)


def test_some_layers_are_redrawn_and_the_others_stay(written):
    partly = redraw(written, [2], seed=3)
    old, new = written.transformer.layers, partly.transformer.layers
    for name in ("w_q", "w_1"):
        same = [
            np.array_equal(*pair)
            for pair in zip(getattr(old, name), getattr(new, name), strict=True)
        ]
        assert same == [True, False, True]
    assert np.array_equal(partly.transformer.w_e, written.transformer.w_e)
    whole = redraw(written).transformer
    assert not np.array_equal(whole.w_e, written.transformer.w_e)
    assert whole.num_parameters == written.transformer.num_parameters
    with pytest.raises(ValueError, match="`layers` must name layers from 1 to 3"):
        redraw(written, [4])


def test_a_trainable_construction_is_saved_and_loaded(tmp_path: Path):
    built = Construction(GOAL, 1, 2, dtype="float32", trainable=True)
    save_construction(built, built.compile(), tmp_path)
    learner, found = load_construction(tmp_path)
    assert found == built
    assert learner.operands is None
    with pytest.raises(ValueError, match="`dtype` must be float32 to be trained"):
        Construction(GOAL, 1, 2, trainable=True)
