"""Whether a match survives: distances under shifts of growing size."""

from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.boxes import Boxed, ridge_answers
from support.refusals import refuses

import algoscope as asc
from algoscope.identification.growing_shifts import GROWING_SHIFTS
from algoscope.identification.survival import Survival

TASK = asc.LinearRegression(dim=3)


def measured(predictor: Any = asc.ols, algorithm: Any = "ols", **options) -> Survival:
    return asc.survives(
        predictor,
        algorithm,
        TASK,
        num_examples=6,
        num_datasets=40,
        progress=False,
        **options,
    )


def test_an_algorithm_survives_everything_as_itself():
    found = measured()
    assert {each.shift for each in found.distances} == {s.name for s in GROWING_SHIFTS}
    assert max(each.distance for each in found.distances) < 1e-9
    assert set(found.boundaries.values()) == {None}
    assert "It survives larger x, smaller x" in found.sentence


def test_ridge_leaves_least_squares_where_the_penalty_matters():
    found = measured(asc.ridge(0.01), "ols")
    curve = [d.distance for d in found.distances if d.shift == "smaller x"]
    assert curve == sorted(curve)
    assert found.boundaries["smaller x"] is not None
    assert found.boundaries["larger w"] is None  # both are linear in the labels
    assert "It leaves it under" in found.sentence


@pytest.mark.parametrize("shift", GROWING_SHIFTS, ids=lambda shift: shift.name)
def test_the_first_size_of_a_shift_changes_nothing(shift, rng):
    x, w = rng.standard_normal((5, 7, 3)), rng.standard_normal((5, 3))
    moved, weights, noise = shift.change(rng, x, w, shift.sizes[0])
    turned = shift.name in ("skewed covariance", "subspace")  # by a random rotation
    lengths = np.sum(moved**2, axis=2) if turned else moved
    expected = np.sum(x**2, axis=2) if turned else x
    np.testing.assert_allclose(lengths, expected, atol=1e-12)
    np.testing.assert_array_equal(weights, w)
    assert noise == 0


def test_the_distance_is_relative_to_the_labels():
    found = measured(asc.zero, "ols")
    start = found.distances[0].distance
    larger = [d.distance for d in found.distances if d.shift == "larger x"]
    np.testing.assert_allclose(larger, start)
    assert found.sentence.startswith("Zero is not OLS on its own data: distance 0.")


def test_a_black_box_is_asked_about_longer_contexts_too():
    found = measured(Boxed("box", ridge_answers), "ridge(0.5)")
    assert found.longer is not None
    assert len(found.longer) == 12
    assert max(found.longer) < 1e-12


def test_a_result_is_saved_tabulated_and_drawn(tmp_path):
    found = measured(asc.ridge(0.01), "ols")
    found.save(tmp_path / "found.json")
    assert Survival.load(tmp_path / "found.json") == found
    assert found.rows()[0]["holds"]
    figure = found.plot()
    assert isinstance(figure, Figure)
    visible = [axes for axes in figure.axes if axes.get_visible()]
    assert [axes.get_title() for axes in visible] == [s.name for s in GROWING_SHIFTS]


def test_bad_input_is_rejected():
    with refuses(ValueError, "`num_datasets` must be at least 2, got 1."):
        asc.survives(asc.ols, "ols", TASK, num_datasets=1)
    with refuses(ValueError, "`num_examples` must be at least 2, got 1."):
        asc.survives(asc.ols, "ols", TASK, num_examples=1)
