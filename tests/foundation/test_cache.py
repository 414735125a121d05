"""A finished measurement is reused exactly while its identity is unchanged."""

import json
import math

import numpy as np
import pytest
from support.refusals import refuses

from algoscope.foundation.cache import INDEX, Cache
from algoscope.foundation.files import DamagedFileError, read_json

IDENTITY = {"config": {"seed": 3, "spans": (1, 2)}, "learner": "a1", "rate": math.inf}


class Measurement:
    """Writes a file and counts how often it was called."""

    def __init__(self, path):
        self.path, self.calls = path, 0

    def __call__(self) -> None:
        self.calls += 1
        self.path.write_text(f"measurement {self.calls}")


@pytest.fixture
def measure(tmp_path):
    return Measurement(tmp_path / "a.json")


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path)


# Whole files.


def test_a_file_is_measured_once(cache, measure):
    took = cache.file("a.json", IDENTITY, measure)
    assert took >= 0
    assert cache.file("a.json", IDENTITY, measure) == took
    assert measure.calls == 1
    assert cache.names == ["a.json"]


def test_another_process_reuses_it_and_its_duration(cache, measure, tmp_path):
    cache.file("a.json", IDENTITY, measure)
    index = read_json(tmp_path / INDEX)
    index["a.json"]["seconds"] = 123.4
    (tmp_path / INDEX).write_text(json.dumps(index))
    assert Cache(tmp_path).file("a.json", IDENTITY, measure) == 123.4
    assert measure.calls == 1


@pytest.mark.parametrize(
    "changed",
    [
        {**IDENTITY, "learner": "b2"},
        {**IDENTITY, "config": {"seed": 4, "spans": (1, 2)}},
        {"learner": "a1"},
        {**IDENTITY, "more": None},
    ],
    ids=["value", "nested value", "missing key", "another key"],
)
def test_a_changed_identity_is_measured_again(cache, measure, changed):
    cache.file("a.json", IDENTITY, measure)
    assert cache.seconds("a.json", changed) is None
    cache.file("a.json", changed, measure)
    assert measure.calls == 2
    assert cache.seconds("a.json", changed) is not None
    assert cache.seconds("a.json", IDENTITY) is None


def test_a_deleted_file_is_measured_again(cache, measure):
    cache.file("a.json", IDENTITY, measure)
    measure.path.unlink()
    assert cache.seconds("a.json", IDENTITY) is None
    cache.file("a.json", IDENTITY, measure)
    assert measure.calls == 2


def test_a_failed_measurement_is_not_cached(cache):
    def fail() -> None:
        raise RuntimeError("no data")

    with pytest.raises(RuntimeError, match="no data"):
        cache.file("a.json", IDENTITY, fail)
    assert cache.names == []


def test_one_key_can_be_ignored(cache, measure):
    took = cache.file("a.json", IDENTITY, measure)
    without = {key: value for key, value in IDENTITY.items() if key != "learner"}
    assert cache.seconds("a.json", without) is None
    assert cache.seconds("a.json", without, ignore="learner") == took
    other = {**IDENTITY, "learner": "b2"}
    assert cache.seconds("a.json", other, ignore="learner") == took
    assert cache.seconds("a.json", other, ignore="config") is None


def test_files_of_other_names_are_deleted(cache, tmp_path):
    for name in ("a.json", "b.json", "c.json"):
        cache.file(name, IDENTITY, Measurement(tmp_path / name))
    (tmp_path / "mine.txt").write_text("not in the index")
    (tmp_path / "c.json").unlink()
    cache.keep_only(["b.json", "z.json"])
    assert cache.names == ["b.json"]
    assert sorted(path.name for path in tmp_path.iterdir()) == [
        "b.json",
        INDEX,
        "mine.txt",
    ]
    assert cache.seconds("b.json", IDENTITY) is not None


def test_nothing_is_written_if_all_are_kept(cache, measure, tmp_path):
    cache.file("a.json", IDENTITY, measure)
    before = (tmp_path / INDEX).stat().st_mtime_ns
    cache.keep_only(["a.json"])
    assert (tmp_path / INDEX).stat().st_mtime_ns == before


@pytest.mark.parametrize(
    "entry", [3, {}, {"identity": {}}, {"identity": [], "seconds": 1.0}], ids=str
)
def test_a_damaged_entry_is_reported_with_a_remedy(cache, measure, tmp_path, entry):
    (tmp_path / INDEX).write_text(json.dumps({"a.json": entry}))
    message = (
        f"{tmp_path / INDEX} has a damaged entry for a.json. "
        "Delete the file to recompute its measurements."
    )
    with refuses(DamagedFileError, message):
        cache.file("a.json", IDENTITY, measure)
    assert measure.calls == 0


def test_a_damaged_index_is_reported(cache, measure, tmp_path):
    (tmp_path / INDEX).write_text("{")
    message = f"{tmp_path / INDEX} is not a readable JSON file (JSONDecodeError)."
    with refuses(DamagedFileError, message):
        cache.file("a.json", IDENTITY, measure)


# Parts.


@pytest.fixture
def part(rng):
    return {"error": rng.standard_normal((2, 3)), "n": np.array(4)}


def test_a_part_is_found_by_its_label_and_identity(cache, part):
    assert cache.find("probe", {"seed": 1, "layer": 2}) is None
    cache.keep("probe", {"seed": 1, "layer": 2}, part)
    found = cache.find("probe", {"layer": 2, "seed": 1})
    assert set(found) == set(part)
    for name, array in part.items():
        np.testing.assert_array_equal(found[name], array)
    assert cache.find("probe", {"seed": 2, "layer": 2}) is None
    assert cache.find("other", {"seed": 1, "layer": 2}) is None


def test_labels_become_readable_names_of_files(cache, part, tmp_path):
    cache.keep("linear-d4 / w: ../x", {"seed": 1}, part)
    (path,) = tmp_path.iterdir()
    assert path.name.startswith("linear-d4-w-..-x-")
    assert path.suffix == ".safetensors"
    assert cache.find("linear-d4 / w: ../x", {"seed": 1}) is not None


def test_a_truncated_part_is_reported(cache, part, tmp_path):
    cache.keep("probe", {"seed": 1}, part)
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:50])
    message = f"{path} is not a whole safetensors file (50 bytes)."
    with refuses(DamagedFileError, message):
        cache.find("probe", {"seed": 1})


def test_a_part_under_the_name_of_another_is_reported(cache, part, tmp_path):
    cache.keep("probe", {"seed": 1}, part)
    (first,) = tmp_path.iterdir()
    cache.keep("probe", {"seed": 2}, part)
    (second,) = set(tmp_path.iterdir()) - {first}
    first.replace(second)
    message = f"{second} holds another measurement than its name says. Delete it."
    with refuses(DamagedFileError, message):
        cache.find("probe", {"seed": 2})


# No directory.


def test_without_a_directory_nothing_is_cached(part, measure):
    cache = Cache(None)
    for _ in range(2):
        assert cache.file("a.json", IDENTITY, measure) >= 0
    assert measure.calls == 2
    assert cache.names == []
    assert cache.seconds("a.json", IDENTITY) is None
    cache.keep_only([])
    assert measure.path.exists()
    cache.keep("probe", {"seed": 1}, part)
    assert cache.find("probe", {"seed": 1}) is None


def test_a_directory_that_does_not_exist_is_made(tmp_path, part):
    cache = Cache(tmp_path / "new" / "place")
    assert cache.names == []
    assert cache.find("probe", {"seed": 1}) is None
    cache.keep("probe", {"seed": 1}, part)
    assert cache.find("probe", {"seed": 1}) is not None


@pytest.mark.parametrize("name", ["../mine", "/tmp/mine", "a\0b", "..", ""])
def test_an_index_names_no_other_directory(tmp_path, name):
    entry = {"identity": {}, "seconds": 1.0}
    (tmp_path / INDEX).write_text(json.dumps({name: entry}))
    with pytest.raises(DamagedFileError, match="has a damaged entry for"):
        Cache(tmp_path).keep_only([])
