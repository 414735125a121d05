"""Figure 7: squares through non-linearities, computed, saved, judged and drawn."""

from pathlib import Path

import numpy as np
import pytest
from support.refusals import refuses

from algoscope.experiments.figure_7 import (
    FILE,
    Figure7,
    SquareApproximations,
    SquareCurve,
    approximate_squares,
    judge,
    squares_figure,
)
from algoscope.foundation.files import DamagedFileError, read_json, write_json
from algoscope.foundation.plotting import save_figure

pytestmark = pytest.mark.optimized  # Rounding is the matter.


@pytest.fixture(scope="module")
def squares() -> SquareApproximations:
    return approximate_squares(100)


def test_the_figure_holds_the_papers_squares_and_better_ones(squares):
    x = np.array(squares.x)
    assert (x[0], x[-1]) == (-0.1, 0.1)
    errors: dict[str, list[float]] = {}
    for curve in squares.curves:
        error = float(np.max(np.abs(curve.values - x**2)))
        errors.setdefault(curve.panel, []).append(error)
    assert list(errors) == ["GeLU", "tanh", "ReLU"]
    found = [paper for paper, *_ in errors.values()]
    np.testing.assert_allclose(found, [1.16e-4, 4.59e-4, 1.88e-3], rtol=0.01)
    for each in errors.values():
        assert each == sorted(each, reverse=True)
    with refuses(ValueError, "`num_points` must be at least 2, got 1."):
        approximate_squares(1)


def test_squares_are_saved_and_loaded(squares, tmp_path):
    path = tmp_path / "squares.json"
    squares.save(path)
    assert SquareApproximations.load(path) == squares


@pytest.mark.parametrize(
    "change",
    [
        {"format": "algoscope comparison"},
        {"x": [0.0]},
        {"curves": None},  # left out
        {"curves": [{"panel": "GeLU"}]},
        {"extra": 1},
    ],
    ids=["format", "values", "curves", "curve", "extra"],
)
def test_damaged_squares_are_rejected(change, squares, tmp_path):
    path = tmp_path / "squares.json"
    squares.save(path)
    values = {**read_json(path), **change}
    write_json(path, {name: value for name, value in values.items() if value})
    with pytest.raises(DamagedFileError, match=r"squares\.json is not a saved squares"):
        SquareApproximations.load(path)


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_same_squares_give_the_same_file(ending, start, squares, tmp_path):
    paths = [tmp_path / "new" / f"{n}.{ending}" for n in range(2)]
    one = SquareApproximations(squares.x, squares.curves[:1])  # is drawn fast
    for path in paths:
        save_figure(squares_figure(one), path)
    first, second = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == second


def test_the_figure_shows_the_values_above_and_the_errors_below(squares):
    figure = squares_figure(squares)
    above, below = figure.axes[:3], figure.axes[3:]
    assert [axes.get_title() for axes in above] == ["GeLU", "tanh", "ReLU"]
    for top, bottom in zip(above, below, strict=True):
        assert bottom.get_yscale() == "log"
        exact, *lines = top.lines
        curves = [each for each in squares.curves if each.panel == top.get_title()]
        np.testing.assert_allclose(np.asarray(exact.get_ydata()), np.square(squares.x))
        for line, error, curve in zip(lines, bottom.lines, curves, strict=True):
            assert line.get_label() == f"{curve.name} ({curve.num_units} units)"
            assert np.asarray(line.get_ydata()).tolist() == curve.values
            expected = np.abs(np.array(curve.values) - np.square(squares.x))
            shown = np.nan_to_num(np.asarray(error.get_ydata()))
            np.testing.assert_array_equal(shown, expected)


def test_another_ending_is_rejected_before_anything_is_written(squares, tmp_path):
    message = "`path ending` must be one of .png, .svg, .pdf, got '.txt'."
    with refuses(ValueError, message):
        save_figure(squares_figure(squares), tmp_path / "new" / "squares.txt")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("error", "verdict", "reason"),
    [
        (0.04, "reproduced", ""),
        (0.06, "partly", "The error exceeds 5 %."),
        (0.3, "not reproduced", "The error exceeds 5 %."),
    ],
)
def test_a_formula_is_judged_by_its_largest_error(
    tmp_path: Path, error: float, verdict: str, reason: str
):
    x = np.linspace(-0.1, 0.1, 5)
    curves = [
        SquareCurve("GeLU", "paper", 3, (x**2 + error * 0.01).tolist()),
        SquareCurve("GeLU", "another", 4, (x**2 + 0.0001).tolist()),
    ]
    SquareApproximations(x.tolist(), curves).save(tmp_path / FILE)
    judgment = judge(Figure7(), tmp_path)
    (claim,) = judgment.claims
    assert (claim.verdict, claim.reason) == (verdict, reason)
    assert claim.seeds == 0  # nothing was trained
    assert claim.difference is not None
    assert claim.difference.of == "largest error / largest square − 0.05"
    assert claim.difference.low == claim.difference.high == pytest.approx(error - 0.05)
    assert judgment.findings == (
        f"The largest error of the paper's formula through GeLU (3 units) is "
        f"{100 * error:.2g} % of the largest square, 0.01, at 5 points; that of the "
        "best formula here, another (4 units), is 1 %.",
    )
