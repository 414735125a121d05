"""Distances: named, over regions of n, saved and loaded."""

from pathlib import Path

import numpy as np
import pytest
from support.experiments import distances, save_distances

from algoscope.experiments.distances import (
    ALL,
    AT,
    OVER,
    UNDER,
    Distances,
    family,
    paper_names,
    regions,
)
from algoscope.foundation.files import read_json, write_json


@pytest.mark.parametrize(
    ("dim", "last", "expected"),
    [
        (8, 20, {UNDER: (1, 7), AT: (8, 8), OVER: (9, 20), ALL: (1, 20)}),
        (1, 20, {UNDER: (1, 1), AT: (1, 1), OVER: (2, 20), ALL: (1, 20)}),
        (4, 4, {UNDER: (1, 3), AT: (4, 4), ALL: (1, 4)}),
        (8, 5, {UNDER: (1, 5), ALL: (1, 5)}),
    ],
)
def test_regions_are_those_that_the_examples_cover(dim: int, last: int, expected: dict):
    assert regions(dim, last) == expected


def test_every_reference_of_the_paper_has_a_family():
    found = {family(name) for name in paper_names()}
    assert found == {"OLS", "ridge", "gradient descent", "nearest neighbors"}
    assert family("fitted ridge") == "ridge"
    assert family("Zero") == "Zero"


def test_saving_keeps_replicates_to_single_precision(tmp_path: Path):
    found = distances({"OLS": 0.1, "Ridge(0.1)": 0.2}, seed=3)
    found.save(tmp_path / "a.json")
    loaded = Distances.load(tmp_path / "a.json")
    assert loaded == found
    assert loaded.replicates is not None
    assert found.replicates is not None
    single = found.replicates.astype(np.float32)
    np.testing.assert_array_equal(loaded.replicates, single)
    column = loaded.column("Ridge(0.1)", ALL)
    np.testing.assert_array_equal(
        column, single[:, 3, found.columns.index("Ridge(0.1)")]
    )


def test_saved_distances_are_read_in_the_order_of_the_cache(tmp_path: Path):
    for name in ("b.json", "a.json"):
        save_distances(tmp_path, name, distances({"OLS": 0.1}, of=name))
    found = Distances.load_all(tmp_path)
    assert [each.about["of"] for each in found] == ["b.json", "a.json"]


def test_distances_that_are_not_finite_are_read_back(tmp_path: Path):
    distances({"OLS": np.inf}).save(tmp_path / "a.json")
    loaded = Distances.load(tmp_path / "a.json")
    assert loaded.to("OLS", ALL).mean == loaded.trimmed[ALL]["OLS"] == np.inf
    assert not np.any(np.isfinite(loaded.column("OLS", ALL)))


def test_distances_without_replicates_are_read(tmp_path: Path):
    distances({"OLS": 0.1}).save(tmp_path / "a.json")
    values = read_json(tmp_path / "a.json")
    for name in ("trimmed", "fitted", "columns", "replicates"):
        del values[name]
    write_json(tmp_path / "a.json", values | {"margins": {ALL: []}})
    loaded = Distances.load(tmp_path / "a.json")
    assert loaded.to("OLS", UNDER).mean == 0.1
    assert loaded.replicates is None
    with pytest.raises(KeyError, match="measured without replicates"):
        loaded.column("OLS", UNDER)
