"""Files are written whole or not at all, and damage is reported in one sentence.

A lock has one holder and ends with it, however that ends.
"""

import fcntl
import json
import math
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given
from hypothesis import strategies as st
from support.comparisons import handmade
from support.refusals import refuses

from algoscope.comparison.result import Comparison
from algoscope.foundation.files import (
    DamagedFileError,
    append,
    json_text,
    load_arrays,
    parse_number,
    read_json,
    read_saved,
    save_arrays,
    write_atomically,
    write_json,
    write_saved,
)
from algoscope.foundation.locks import held, is_held, owner


@pytest.fixture
def arrays(rng):
    return {
        "a.b": rng.standard_normal((3, 2)),
        "c": rng.standard_normal(4).astype(np.float32),
        "step": np.array(7, np.int32),
    }


# Arrays.


def test_arrays_come_back_bit_for_bit_with_their_names_and_types(arrays, tmp_path):
    save_arrays(tmp_path / "x.safetensors", arrays, {"run_id": "abc"})
    loaded, metadata = load_arrays(tmp_path / "x.safetensors")
    assert metadata == {"run_id": "abc"}
    assert set(loaded) == set(arrays)
    for name, array in arrays.items():
        assert loaded[name].dtype == array.dtype
        assert loaded[name].tobytes() == array.tobytes()


def test_arrays_in_another_memory_order_come_back(arrays, tmp_path):
    save_arrays(tmp_path / "x.safetensors", {"t": arrays["a.b"].T}, {})
    loaded, _ = load_arrays(tmp_path / "x.safetensors")
    np.testing.assert_array_equal(loaded["t"], arrays["a.b"].T)


@pytest.mark.parametrize("size", [0, 5, 60, -1], ids=lambda size: f"{size} bytes")
def test_a_truncated_file_is_rejected_in_one_line(arrays, tmp_path, size):
    path = tmp_path / "x.safetensors"
    save_arrays(path, arrays, {})
    content = path.read_bytes()[:size]
    path.write_bytes(content)
    message = f"{path} is not a whole safetensors file ({len(content)} bytes)."
    with refuses(DamagedFileError, message):
        load_arrays(path)


def test_a_changed_number_is_detected(arrays, tmp_path):
    path = tmp_path / "x.safetensors"
    save_arrays(path, arrays, {})
    content = bytearray(path.read_bytes())
    content[-3] ^= 1
    path.write_bytes(content)
    with refuses(DamagedFileError, f"{path} was changed after it was written."):
        load_arrays(path)


def test_arrays_without_a_digest_are_loaded_only_on_request(arrays, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(safetensors.numpy.save(arrays))
    message = (
        f"{path} holds no digest of its arrays, so damage to it would not be noticed. "
        "If you trust it, `algoscope import DIR --out NEW` writes one."
    )
    with refuses(DamagedFileError, message):
        load_arrays(path)
    loaded, metadata = load_arrays(path, signed=False)
    assert (set(loaded), metadata) == (set(arrays), {})


def with_header(header: object) -> bytes:
    text = json.dumps(header).encode() if not isinstance(header, bytes) else header
    return len(text).to_bytes(8, "little") + text


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff" * 8,
        (2**62).to_bytes(8, "little") + b"{}",
        with_header([]),
        with_header({"__metadata__": 3}),
        with_header({"__metadata__": {"sha256": 3}}),
        with_header({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 4]}}),
        with_header({"a": {"dtype": "F32", "shape": "x", "data_offsets": [0, 4]}}),
        with_header({"a": {"dtype": "F9", "shape": [], "data_offsets": [0, 4]}}),
        with_header({"a": None}),
        with_header(b'{"a":' * 100_000),
    ],
    ids=lambda content: repr(content[:40]),
)
def test_headers_that_lie_are_rejected_before_anything_is_allocated(content, tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(content)
    with pytest.raises(DamagedFileError, match="is not a whole safetensors file"):
        load_arrays(path, signed=False)


def test_metadata_may_be_null(tmp_path):
    path = tmp_path / "x.safetensors"
    path.write_bytes(with_header({"__metadata__": None}))
    assert load_arrays(path, signed=False) == ({}, {})


def test_a_pickle_is_rejected_and_not_executed(tmp_path):
    path = tmp_path / "evil.safetensors"
    path.write_bytes(b"cos\nsystem\n(S'touch executed'\ntR.")
    with pytest.raises(DamagedFileError, match="is not a whole safetensors file"):
        load_arrays(path)
    assert not (tmp_path / "executed").exists()


# Writing.


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


# JSON.


def strictly(text: str):
    """Return what a parser that knows only JSON reads."""

    def reject(word: str):
        raise AssertionError(f"{word} is not JSON")

    return json.loads(text, parse_constant=reject)


@given(st.floats())
def test_every_number_comes_back(value):
    read = parse_number(strictly(json_text([value]))[0])
    assert read == value or (math.isnan(read) and math.isnan(value))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_everything_else_is_as_json_writes_it(value):
    assert json_text(value) == json.dumps(value)


@pytest.mark.parametrize("word", ["NaN", "Infinity", "-Infinity"])
def test_files_hold_no_word_that_is_not_json(word, tmp_path):
    write_json(tmp_path / "file.json", {"deep": [(1.0, {"value": float(word)})]})
    value = strictly((tmp_path / "file.json").read_text())["deep"][0][1]["value"]
    assert str(parse_number(value)) == str(float(word))
    assert read_json(tmp_path / "file.json")["deep"][0][0] == 1.0


def test_a_comparison_with_what_diverged_is_loaded(tmp_path):
    diverged = handmade({"A": [0.0, math.inf], "B": [0.0, 1.0]})
    diverged.save(tmp_path / "out.json")
    assert Comparison.load(tmp_path / "out.json") == diverged
    saved = strictly((tmp_path / "out.json").read_text())
    assert saved["curves"][0]["mean"] == [0.0, "Infinity"]


def test_json_comes_back_and_other_files_are_rejected(tmp_path):
    write_json(tmp_path / "a.json", {"σ²": 0.25})
    assert read_json(tmp_path / "a.json") == {"σ²": 0.25}
    (tmp_path / "b.json").write_text('{"a": ')
    message = f"{tmp_path / 'b.json'} is not a readable JSON file (JSONDecodeError)."
    with refuses(DamagedFileError, message):
        read_json(tmp_path / "b.json")
    (tmp_path / "c.json").write_text(json.dumps([1]))
    message = f"{tmp_path / 'c.json'} is not a JSON object (it holds a list)."
    with refuses(DamagedFileError, message):
        read_json(tmp_path / "c.json")
    (tmp_path / "d.json").write_bytes(b"\xff\xfe")
    message = f"{tmp_path / 'd.json'} is not a readable JSON file (UnicodeDecodeError)."
    with refuses(DamagedFileError, message):
        read_json(tmp_path / "d.json")


def test_a_missing_file_and_a_directory_are_told_apart(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_json(tmp_path / "missing.json")
    with pytest.raises(DamagedFileError, match=r" is not a regular file\.$"):
        read_json(tmp_path)


# Saved objects.


def test_saved_fields_come_back_without_their_format(tmp_path):
    path = tmp_path / "x.json"
    write_saved(path, "identification", {"verdict": "ridge", "distance": math.inf})
    assert read_json(path)["format"] == "algoscope identification"
    fields = read_saved(path, "identification", dict)
    assert fields == {"verdict": "ridge", "distance": "Infinity"}


@pytest.mark.parametrize(
    ("values", "problem"),
    [
        ({}, "field 'format' is missing"),
        ({"format": "algoscope comparison"}, "its format is 'algoscope comparison'"),
        ({"format": ["x"]}, "its format is ['x']"),
    ],
)
def test_a_file_of_another_kind_is_rejected(tmp_path, values, problem):
    path = tmp_path / "x.json"
    write_json(path, values)
    message = f"{path} is not a saved identification ({problem})."
    with refuses(DamagedFileError, message):
        read_saved(path, "identification", dict)


@pytest.mark.parametrize(
    ("build", "problem"),
    [
        (lambda fields: fields["verdict"], "field 'verdict' is missing or damaged"),
        (lambda fields: fields["n"].items(), "'int' object has no attribute 'items'"),
        (lambda fields: fields["n"] + "1", "unsupported operand type(s) for +: "),
        (lambda fields: [][fields["n"]], "list index out of range"),
        (lambda fields: float("x"), "could not convert string to float: 'x'"),
        (lambda fields: load_arrays(fields["path"] / "a"), "missing"),
    ],
    ids=["key", "attribute", "type", "index", "value", "file"],
)
def test_fields_that_cannot_be_used_are_rejected_in_one_sentence(
    tmp_path, build, problem
):
    path = tmp_path / "x.json"
    write_saved(path, "record", {"n": 3})
    with pytest.raises(DamagedFileError) as caught:
        read_saved(path, "record", lambda fields: build(fields | {"path": tmp_path}))
    message = str(caught.value)
    assert message.startswith(f"{path} is not a saved record (")
    assert problem in message
    assert message.endswith(").")
    assert "\n" not in message


def test_damage_found_while_building_keeps_its_own_message(tmp_path):
    def build(fields):
        raise DamagedFileError("weights", "are damaged", "Delete them.")

    write_saved(tmp_path / "x.json", "record", {})
    with refuses(DamagedFileError, "weights are damaged. Delete them."):
        read_saved(tmp_path / "x.json", "record", build)


def test_a_lock_has_one_owner_and_ends_with_it(tmp_path):
    program = (
        "import sys; from pathlib import Path\n"
        "from algoscope.foundation.locks import held\n"
        "with held(Path(sys.argv[1])) as free:\n"
        "    print(free, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", program, str(tmp_path)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "True\n"
        holder = owner(tmp_path)
        assert holder is not None
        assert holder[1] == process.pid
        assert is_held(tmp_path)
        with held(tmp_path) as free:
            assert not free
        process.kill()
    assert not is_held(tmp_path)
    with held(tmp_path) as free:
        assert free
        with held(tmp_path) as free:
            assert not free


def test_a_directory_that_was_never_locked_is_free(tmp_path):
    assert not is_held(tmp_path)
    assert owner(tmp_path) is None
    (tmp_path / "lock").write_text("half a")
    assert owner(tmp_path) is None


def test_a_file_system_without_locks_is_rejected(tmp_path, monkeypatch):
    def fail(file, kind):
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", fail)
    message = (
        f"`store` must be on a file system with file locks, got {tmp_path} "
        "(Operation not supported)."
    )
    with refuses(ValueError, message), held(tmp_path):
        pytest.fail("held without a lock")


# Nothing but regular files.


def test_nothing_but_a_regular_file_is_replaced(tmp_path):
    victim, link = tmp_path / "victim", tmp_path / "link"
    victim.write_text("mine")
    link.symlink_to(victim)
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name, kind in (
        ("link", "a link"),
        ("pipe", "a device or a pipe"),
        ("folder", "a directory"),
    ):
        problem = f"is {kind}, not a regular file, and is left as it is"
        message = f"{tmp_path / name} {problem}. Choose another path."
        for write in (write_atomically, append):
            with refuses(DamagedFileError, message):
                write(tmp_path / name, b"x")
    assert victim.read_text() == "mine"
    assert link.is_symlink()


def test_the_null_device_stays_a_device():
    with pytest.raises(DamagedFileError, match="/dev/null is a device or a pipe"):
        write_atomically(Path("/dev/null"), b"x")
    assert stat.S_ISCHR(os.lstat("/dev/null").st_mode)


def test_a_lock_is_not_opened_through_a_link(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    run = tmp_path / "run"
    run.mkdir()
    (run / "lock").symlink_to(victim)
    with pytest.raises(DamagedFileError, match="lock is a link"), held(run):
        pytest.fail("held a link")
    with pytest.raises(DamagedFileError, match="lock is a link"):
        is_held(run)
    assert victim.read_text() == "mine"


def test_a_pipe_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "x.json")
    with pytest.raises(DamagedFileError, match="is not a regular file"):
        read_json(tmp_path / "x.json")
    with pytest.raises(DamagedFileError, match="is not a regular file"):
        load_arrays(tmp_path / "x.json")


def test_unfinished_files_of_the_dead_are_removed_when_a_lock_is_taken(tmp_path):
    dead = subprocess.Popen([sys.executable, "-c", ""])
    dead.wait()
    stale = tmp_path / f".state.{dead.pid}-{'0' * 16}.partial"
    alive = tmp_path / f".state.{os.getpid()}-{'0' * 16}.partial"
    for path in (stale, alive, tmp_path / ".mine.partial"):
        path.write_text("half")
    with held(tmp_path):
        left = {path.name for path in tmp_path.iterdir()}
    assert left == {alive.name, ".mine.partial", "lock"}


def test_no_partial_file_can_be_placed_in_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr("secrets.token_hex", lambda size: "0" * 16)
    placed = tmp_path / f".x.{os.getpid()}-{'0' * 16}.partial"
    victim = tmp_path / "victim"
    victim.write_text("mine")
    placed.symlink_to(victim)
    with pytest.raises(FileExistsError):
        write_atomically(tmp_path / "x", b"y")
    assert victim.read_text() == "mine"


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, "\x00", "3", "é"])
def test_odd_json_is_rejected(text, tmp_path):
    path = tmp_path / "x.json"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(DamagedFileError, match=r"x\.json is not a "):
        read_json(path)


def test_json_that_is_too_large_is_rejected_before_it_is_read(tmp_path):
    path = tmp_path / "x.json"
    with open(path, "wb") as file:
        file.truncate(2**40)  # a sparse file
    with pytest.raises(DamagedFileError, match=r"is too large \(1,099,511,627,776 "):
        read_json(path)
    with pytest.raises(DamagedFileError, match="is too large"):
        load_arrays(path)
