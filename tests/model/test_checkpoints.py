"""Saved transformers come back bit for bit, and damage is reported in one sentence."""

import json

import jax
import numpy as np
import pytest
from support.refusals import only_own_checks, refuses
from support.transformers import MODERN, draw_transformer

from algoscope.foundation.files import DamagedFileError, load_arrays, save_arrays
from algoscope.model.checkpoints import (
    CARD,
    CONFIG,
    MODELS,
    WEIGHTS,
    load_transformer,
    locate,
    named_leaves,
    restore_leaves,
    save_transformer,
    shipped_models,
)


@pytest.fixture
def saved(tmp_path):
    """A directory with a small transformer in double precision."""
    transformer = draw_transformer(np.random.default_rng(0), MODERN)
    about = {"training": {"seed": 3}}
    save_transformer(tmp_path, transformer, name="m", card="# m\n", about=about)
    return tmp_path, transformer


def test_a_directory_holds_configuration_weights_and_card(saved):
    directory, transformer = saved
    names = sorted(path.name for path in directory.iterdir())
    assert names == sorted([CARD, CONFIG, WEIGHTS])
    assert (directory / CARD).read_text() == "# m\n"
    config = json.loads((directory / CONFIG).read_text())
    assert list(config) == ["format", "name", "block", "training"]
    assert config["block"]["attention_scale"] == MODERN.attention_scale


@pytest.mark.parametrize("x64", [True, False])
def test_weights_come_back_bit_for_bit_whatever_jax_is_set_to(saved, x64):
    directory, transformer = saved
    with jax.enable_x64(x64):
        loaded, config = load_transformer(directory)
    assert (config["name"], config["training"]) == ("m", {"seed": 3})
    assert loaded.block == MODERN
    found, expected = named_leaves(loaded), named_leaves(transformer)
    assert list(found) == list(expected)
    for name, leaf in expected.items():
        assert found[name].dtype == "float64"
        assert found[name].tobytes() == leaf.tobytes()


def change_config(directory, **changes):
    config = json.loads((directory / CONFIG).read_text()) | changes
    kept = {key: value for key, value in config.items() if value is not None}
    (directory / CONFIG).write_text(json.dumps(kept))


def test_a_configuration_without_a_block_is_rejected(saved):
    directory, _ = saved
    change_config(directory, block=None)
    message = (
        f"{directory} does not hold a saved transformer (field 'block' is missing or "
        "damaged)."
    )
    with refuses(DamagedFileError, message):
        load_transformer(directory)


def test_a_block_with_an_unknown_choice_is_rejected(saved):
    directory, _ = saved
    change_config(directory, block={"depth": 3})
    with pytest.raises(
        DamagedFileError, match="does not hold a saved transformer"
    ) as e:
        load_transformer(directory)
    assert "unexpected keyword argument 'depth'" in str(e.value)


@pytest.mark.parametrize("value", [None, "false", 0, []])
@pytest.mark.parametrize("name", ["pre_norm", "imaginary_timestep"])
def test_a_choice_that_is_neither_true_nor_false_is_rejected(saved, name, value):
    directory, _ = saved
    change_config(directory, block={"pre_norm": True} | {name: value})
    with (
        only_own_checks(),
        pytest.raises(DamagedFileError, match=f"`{name}` must be True or False, got"),
    ):
        load_transformer(directory)


def test_a_block_that_does_not_say_where_it_normalizes_is_rejected(saved):
    directory, _ = saved
    change_config(directory, block={"activation": "gelu"})
    with (
        only_own_checks(),
        pytest.raises(DamagedFileError, match="`pre_norm` must be True or False"),
    ):
        load_transformer(directory)


@pytest.mark.parametrize("kind", [None, "algoscope comparison", 3])
def test_a_configuration_of_another_format_is_rejected(saved, kind):
    directory, _ = saved
    change_config(directory, format=kind)
    problem = f"{CONFIG} is not the configuration of a saved transformer"
    with pytest.raises(DamagedFileError, match=problem):
        load_transformer(directory)


@pytest.mark.parametrize("name", ["layers.w_q", "w_e"])
def test_missing_weights_are_rejected(saved, name):
    directory, _ = saved
    arrays, metadata = load_arrays(directory / WEIGHTS)
    del arrays[name]
    save_arrays(directory / WEIGHTS, arrays, metadata)
    with pytest.raises(DamagedFileError, match=f"saved transformer .*{name}"):
        load_transformer(directory)


def test_truncated_weights_are_rejected(saved):
    directory, _ = saved
    (directory / WEIGHTS).write_bytes(b"not weights")
    message = f"{directory / WEIGHTS} is not a whole safetensors file (11 bytes)."
    with refuses(DamagedFileError, message):
        load_transformer(directory)


# Where models are.


def test_a_shipped_model_is_found_by_name(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    assert locate("linear-d8") == MODELS / "linear-d8"
    assert "linear-d8" in shipped_models()


def test_a_directory_goes_before_a_shipped_model(saved, monkeypatch):
    directory, _ = saved
    directory.rename(directory.parent / "linear-d8")
    monkeypatch.chdir(directory.parent)
    assert str(locate("linear-d8")) == "linear-d8"


def test_an_unknown_name_suggests_the_nearest():
    names = ", ".join(shipped_models())
    with pytest.raises(ValueError, match=f"`name` must be one of {names}, got 'linear"):
        locate("linear-d9")
    with pytest.raises(ValueError, match="got 'linear-d9'. Did you mean 'linear-d"):
        locate("linear-d9")


def test_a_path_without_a_model_is_rejected(tmp_path):
    missing = tmp_path / "nothing"
    for name in (missing, str(missing)):
        rule = "be a directory that holds a saved learner"
        with refuses(ValueError, f"`name` must {rule}, got '{missing}'."):
            locate(name)


@pytest.mark.parametrize("part", [CONFIG, WEIGHTS])
def test_an_unfinished_directory_is_rejected(saved, part):
    directory, _ = saved
    (directory / part).unlink()
    message = (
        f"`name` must be a directory with {CONFIG} and {WEIGHTS}, got '{directory}' "
        f"without {part}. A training run has them once it is finished."
    )
    with refuses(ValueError, message):
        locate(directory)


# Trees of arrays.


def test_a_tree_is_restored_by_name(tmp_path):
    tree = {"w": np.arange(6.0).reshape(2, 3), "inner": [np.ones(2), np.zeros(1)]}
    leaves = named_leaves(tree)
    assert set(leaves) == {"w", "inner.0", "inner.1"}
    restored = restore_leaves(tree, dict(reversed(leaves.items())), tmp_path)
    assert jax.tree.structure(restored) == jax.tree.structure(tree)
    for mine, other in zip(
        jax.tree.leaves(restored), jax.tree.leaves(tree), strict=True
    ):
        np.testing.assert_array_equal(mine, other)


def test_a_tree_of_other_arrays_is_rejected(tmp_path):
    tree = {"w": np.ones((2, 3)), "inner": [np.ones(2), np.zeros(1)]}
    leaves, source = named_leaves(tree), tmp_path / "state"
    fewer = {name: leaf for name, leaf in leaves.items() if name != "inner.1"}
    with refuses(
        DamagedFileError, f"{source} has other arrays than expected: inner.1."
    ):
        restore_leaves(tree, fewer, source)
    more = leaves | {f"z{i}": np.ones(1) for i in range(4)}
    with refuses(
        DamagedFileError, f"{source} has other arrays than expected: z0, z1, z2, …."
    ):
        restore_leaves(tree, more, source)


@pytest.mark.parametrize(
    ("wrong", "found"),
    [(np.ones((3, 2)), "float64[3, 2]"), (np.ones((2, 3), "int32"), "int32[2, 3]")],
    ids=["shape", "type"],
)
def test_an_array_of_another_shape_or_type_is_rejected(tmp_path, wrong, found):
    tree, source = {"w": np.ones((2, 3))}, tmp_path / "state"
    with refuses(DamagedFileError, f"{source} has w as {found}, not float64[2, 3]."):
        restore_leaves(tree, {"w": wrong}, source)


# Weights that do not fit.


@pytest.mark.parametrize(
    ("name", "change", "problem"),
    [
        ("w_o", lambda w: w[:-1], "w_o is float64[7], but hidden is 8"),
        ("w_e", lambda w: w[None], "w_e is float64[1, 8, 3], not float64[hidden, tok"),
        ("layers.b_q", lambda w: w.astype("float32"), "layers.b_q is float32["),
        ("layers.w_1", lambda w: w * np.nan, "layers.w_1 holds NaN or infinity"),
        ("positions", lambda w: w + np.inf, "positions holds NaN or infinity"),
        ("b_o", lambda w: w.reshape(1), "b_o is float64[1], not float64[]"),
        ("w_e", lambda w: w.astype("int64"), "its weights are int64"),
        ("layers.w_q", lambda w: w[:0], "layers.w_q is float64[0"),
        ("extra", lambda w: np.zeros(3), "it has other arrays: extra"),
    ],
)
def test_weights_that_do_not_fit_are_rejected(saved, name, change, problem):
    directory, _ = saved
    arrays, metadata = load_arrays(directory / WEIGHTS)
    arrays[name] = np.ascontiguousarray(change(arrays.get(name)))
    save_arrays(directory / WEIGHTS, arrays, metadata)
    with pytest.raises(DamagedFileError) as caught:
        load_transformer(directory)
    message = f"{directory} does not hold a saved transformer ({problem}"
    assert str(caught.value).startswith(message)


@pytest.mark.parametrize("field", ["dim", "num_layers", "hidden_size", "num_heads"])
def test_a_configuration_of_other_sizes_is_rejected(saved, field):
    directory, _ = saved
    change_config(directory, training={field: 77})
    with pytest.raises(DamagedFileError, match=f"says {field} = 77, but the weights"):
        load_transformer(directory)
