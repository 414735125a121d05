"""Files are written whole or not at all, and damage is noticed in one line."""

import json
import os

import numpy as np
import pytest

from algoscope.foundation.files import (
    DamagedFileError,
    load_arrays,
    read_json,
    save_arrays,
    write_atomically,
    write_json,
)
from algoscope.model.checkpoints import named_leaves, restore_leaves


@pytest.fixture
def arrays(rng):
    return {
        "a.b": rng.standard_normal((3, 2)),
        "c": rng.standard_normal(4).astype(np.float32),
        "step": np.array(7, np.int32),
    }


def test_arrays_come_back_bit_for_bit_with_their_names_and_kinds(arrays, tmp_path):
    save_arrays(tmp_path / "x.safetensors", arrays, {"run_id": "abc"})
    loaded, metadata = load_arrays(tmp_path / "x.safetensors")
    assert metadata == {"run_id": "abc"}
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].tobytes() == array.tobytes()


@pytest.mark.parametrize("size", [0, 5, 60, -1], ids=lambda size: f"{size} bytes")
def test_a_truncated_file_is_refused_in_one_line(arrays, tmp_path, size):
    path = tmp_path / "x.safetensors"
    save_arrays(path, arrays, {})
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(DamagedFileError, match="be a whole safetensors file") as caught:
        load_arrays(path)
    assert "\n" not in str(caught.value)


def test_a_changed_number_is_noticed(arrays, tmp_path):
    path = tmp_path / "x.safetensors"
    save_arrays(path, arrays, {})
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="hold the arrays it was written with"):
        load_arrays(path)


def test_a_pickle_is_refused_and_not_executed(tmp_path):
    path = tmp_path / "evil.safetensors"
    path.write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    with pytest.raises(DamagedFileError, match="be a whole safetensors file"):
        load_arrays(path)
    assert not (tmp_path / "executed").exists()


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "kept"
    write_atomically(path, b"old")

    def no_space(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", no_space)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["kept"]


def test_json_comes_back_and_other_files_are_refused(tmp_path):
    write_json(tmp_path / "a.json", {"σ²": 0.25})
    assert read_json(tmp_path / "a.json") == {"σ²": 0.25}
    (tmp_path / "b.json").write_text('{"a": ')
    with pytest.raises(DamagedFileError, match="must be a readable JSON file, got"):
        read_json(tmp_path / "b.json")
    (tmp_path / "c.json").write_text(json.dumps([1]))
    with pytest.raises(DamagedFileError, match="must hold a JSON object, got list"):
        read_json(tmp_path / "c.json")


def test_a_tree_is_restored_by_name_and_a_foreign_one_refused():
    tree = {"w": np.arange(6.0).reshape(2, 3), "inner": [np.ones(2), np.zeros(1)]}
    leaves = named_leaves(tree)
    assert set(leaves) == {"w", "inner.0", "inner.1"}
    restored = restore_leaves(tree, dict(reversed(leaves.items())), "file")
    assert np.array_equal(restored["w"], tree["w"])
    with pytest.raises(DamagedFileError, match="a difference in inner.1"):
        restore_leaves(tree, {k: v for k, v in leaves.items() if k != "inner.1"}, "f")
    wrong = {**leaves, "w": np.ones((3, 2))}
    with pytest.raises(DamagedFileError, match=r"hold w as float64\[2, 3\], got float"):
        restore_leaves(tree, wrong, "file")
