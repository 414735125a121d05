"""Figures 1 and 6 show the numbers of a comparison, the same way each time."""

from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib import pyplot as plt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from support.comparisons import curve as made_curve
from support.comparisons import handmade
from support.drawings import bands, labels, legend_of, xs, ys
from support.refusals import refuses

from algoscope.comparison.result import Comparison, comparison_figure, linearity_figure
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import color_of, looks, render, save_figure

MEANS = {"OLS": [0.0, 0.02, 0.01], "GD(0.01)": [0.0, 0.5, 0.7]}
COMPARISON = handmade(MEANS)
NAN = float("nan")
MEASURED = handmade(
    MEANS,
    metrics={
        "ilwd": [
            made_curve("ICL", "OLS", [NAN, 0.1, 0.05]),
            made_curve("ICL", "GD(0.01)", [NAN, 0.3, 0.2]),
        ],
        "r2": [
            made_curve("ICL", "linear fit", [NAN, 0.7, 0.9]),
            made_curve("OLS", "linear fit", [NAN, 1.0, 1.0]),
        ],
    },
    settings={"num_costly_datasets": 1500, "num_queries": 32},
)


def svg_of(comparison: Comparison) -> str:
    return render(comparison_figure(comparison), ".svg").decode()


def curves_in(axes: Axes) -> list[Line2D]:
    """Return the lines but for the last, which marks n = d."""
    *lines, at_dim = axes.lines
    assert xs(at_dim) == [COMPARISON.dim] * 2
    assert len(lines) == len(axes.collections)  # each has its band
    return lines


def names_beside(axes: Axes) -> list[str]:
    """Return the names that are written beside the ends of lines."""
    return [text.get_text() for text in axes.texts]


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_ending_decides_the_format_and_the_same_comparison_gives_the_same_file(
    ending, start, tmp_path
):
    paths = [tmp_path / "new" / f"{n}.{ending}" for n in range(2)]
    for path in paths:
        save_figure(comparison_figure(COMPARISON), path)
    first, again = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == again
    assert b"Date" not in first  # both were drawn within a second


# Figure 1.


def test_both_axes_show_the_learner_s_curves_from_one_example_on():
    figure = comparison_figure(COMPARISON)
    linear, logarithmic = figure.axes
    assert (linear.get_yscale(), logarithmic.get_yscale()) == ("linear", "log")
    assert linear.get_ylim() == (0, 0.8)  # the paper's
    to_references = COMPARISON.curves[:2]
    risk = COMPARISON.against("Y")
    names = {"OLS": "OLS", "GD(0.01)": "GD(0.01)", "Y": "risk of ICL"}
    for axes in figure.axes:
        assert axes.get_ylabel() == "SPD / d"
        for line, band, curve in zip(
            curves_in(axes), bands(axes), [*to_references, risk], strict=True
        ):
            assert line.get_label() == names[curve.second]
            assert xs(line) == [1, 2]
            assert ys(line) == curve.mean[1:]
            assert band == (min(curve.low[1:]), max(curve.high[1:]))


def test_figure_1_has_spd_left_and_ilwd_right_where_it_was_measured():
    figure = comparison_figure(MEASURED)
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("SPD / d", "ILWD / d")
    assert (left.get_ylim(), right.get_ylim()) == ((0, 0.8), (0, 0.35))
    assert len(curves_in(right)) == 2
    for line, same, expected in zip(
        curves_in(right), left.lines, MEASURED.of("ilwd"), strict=False
    ):
        assert ys(line) == expected.mean[1:]
        assert line.get_label() == same.get_label() == expected.second
        assert line.get_color() == same.get_color()
    assert sorted(names_beside(right)) == ["GD(0.01)", "OLS"]
    assert sorted(names_beside(left)) == ["GD(0.01)", "OLS", "risk of ICL"]
    assert figure.get_suptitle() == (
        "ICL and textbook algorithms, d = 2: 12,345 datasets (ILWD: 1,500); bands: 95 %"
    )


def test_figure_1_shows_the_risks_of_chosen_references_and_limits_n():
    spans = {"spd": (1, 2), "ilwd": (2, 3)}
    figure = comparison_figure(MEASURED, labeled=("OLS",), spans=spans)
    left, right = figure.axes
    assert (left.get_xlim(), right.get_xlim()) == ((1, 2), (2, 3))
    ols, _, _, risk = curves_in(left)
    assert risk.get_label() == "risk of OLS"
    assert ys(risk) == [0.0, 0.0]
    assert (risk.get_linestyle(), risk.get_color()) == ("--", ols.get_color())


def test_figure_1_is_drawn_into_given_axes():
    ours, _ = Figure().subplots(1, 2)
    figure = comparison_figure(MEASURED, ours)
    assert figure is ours.get_figure()
    assert figure.get_suptitle() == ""
    assert labels(curves_in(ours)) == ["OLS", "GD(0.01)", "risk of ICL"]
    assert legend_of(ours) == ["ICL and", "OLS", "GD(0.01)", "risk of ICL"]


def test_the_title_gives_the_sizes():
    title = comparison_figure(COMPARISON).get_suptitle()
    assert title == "ICL and textbook algorithms, d = 2: 12,345 datasets; bands: 95 %"


def test_the_labels_are_dashed_and_no_two_references_look_alike():
    names = [f"GD({n})" for n in range(9)]
    figure = comparison_figure(handmade({name: [0.0, 0.1] for name in names}))
    *lines, risk = curves_in(figure.axes[0])
    assert (risk.get_linestyle(), risk.get_marker()) == ("--", "")
    assert {line.get_color() for line in lines} == {color_of("GD")}
    assert len(set(looks(names).values())) == len(names)


def test_any_number_of_references_is_drawn():
    names = [f"GD({n})" for n in range(15)]
    figure = comparison_figure(handmade({name: [0.0, 0.1] for name in names}))
    for axes in figure.axes:
        lines = curves_in(axes)
        assert labels(lines) == [*names, "risk of ICL"]
        assert sorted(names_beside(axes)) == sorted([*names, "risk of ICL"])


@pytest.mark.parametrize(
    "means",
    [
        {"OLS": [0.0, 0.1]},
        {"OLS": [0.0, 0.0, 0.0], "GD": [0.0, 0.1, 0.0]},
        {"OLS": [0.0, NAN, 0.1]},
    ],
    ids=["one example", "distances of zero", "not a number"],
)
def test_unusual_comparisons_are_drawn(means):
    comparison = handmade(means)
    figure = comparison_figure(comparison)
    for axes in figure.axes:
        *lines, risk = curves_in(axes)
        assert labels(lines) == list(means)
        for line, mean in zip(lines, means.values(), strict=True):
            np.testing.assert_array_equal(ys(line), mean[1:])
        assert ys(risk) == [10.0] * comparison.num_examples
    assert figure.axes[0].get_ylim() == (0, 0.8)
    low, high = figure.axes[1].get_ylim()
    assert 0 < low < high < np.inf  # a logarithmic axis has no zero
    ElementTree.fromstring(render(figure, ".svg").decode())


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b", "a &amp; b"),
        ("US$ 5", "US$ 5"),
        ("a long {name} " * 8, ("a long {name} " * 8)[:39] + "…"),
    ],
)
def test_any_name_is_drawn_and_escaped(name, escaped):
    svg = svg_of(handmade({"OLS": [0.0, 0.1]}, learner=name))
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert f"{escaped} and textbook algorithms" in svg
    assert f"risk of {escaped}" in svg


@pytest.mark.parametrize("name", ["$x$", r"$\frac$"])
def test_dollars_in_a_name_are_drawn_as_dollars(name):
    svg = svg_of(handmade({"OLS": [0.0, 0.1]}, learner=name))
    # The glyph of a dollar: its index in the font, before Matplotlib 3.11 its code.
    assert 'id="DejaVuSans-7"' in svg or 'id="DejaVuSans-24"' in svg


# Figure 6.


def test_figure_6_shows_how_linear_each_predictor_is():
    figure = linearity_figure(MEASURED)
    (axes,) = figure.axes
    lines = curves_in(axes)
    assert labels(lines) == ["ICL", "OLS"]
    assert [ys(line) for line in lines] == [[0.7, 0.9], [1.0, 1.0]]
    assert axes.get_ylim() == (0, 1.05)
    assert axes.get_ylabel() == "R² of the linear fit"
    title = "How linear is ICL?  d = 2, 1,500 datasets, 32 queries"
    assert figure.get_suptitle() == title


def test_figure_6_is_drawn_into_given_axes():
    axes = Figure().subplots()
    figure = linearity_figure(MEASURED, axes)
    assert figure is axes.get_figure()
    assert figure.get_suptitle() == ""
    assert labels(curves_in(axes)) == ["ICL", "OLS"]


def test_figure_6_is_a_file_that_names_what_it_shows(tmp_path):
    path = tmp_path / "new" / "linearity.svg"
    save_figure(linearity_figure(MEASURED), path)
    svg = path.read_text()
    ElementTree.fromstring(svg)
    for text in ("How linear is ICL?", "R² of the linear fit", "OLS"):
        assert f"<!-- {text}" in svg


def test_figure_6_of_what_was_not_measured_is_refused():
    message = (
        "`comparison` must hold the metric r2, got spd. "
        'Measure it with `compare(..., metrics=("r2",))`.'
    )
    with refuses(ValueError, message):
        linearity_figure(COMPARISON)


# Matplotlib and files.


@pytest.fixture
def no_open_figures():
    plt.close("all")
    yield
    plt.close("all")


@pytest.mark.usefixtures("no_open_figures")
def test_no_figure_stays_open():
    comparison_figure(COMPARISON)
    linearity_figure(MEASURED)
    assert plt.get_fignums() == []


def test_a_figure_that_cannot_be_saved_leaves_nothing_behind(tmp_path):
    path = tmp_path / "figure.png"
    path.mkdir()
    with pytest.raises(DamagedFileError, match="is a directory, not a regular file"):
        save_figure(comparison_figure(COMPARISON), path)
    assert list(tmp_path.iterdir()) == [path]


def test_drawing_leaves_the_settings_of_matplotlib_alone():
    with mpl.rc_context({"svg.hashsalt": None}):
        svg_of(COMPARISON)
        assert mpl.rcParams["svg.hashsalt"] is None


@pytest.mark.parametrize("name", ["figure.webp", "figure", "figure.svg.gz", "a.png/b"])
def test_another_ending_is_refused_before_anything_is_written(name, tmp_path):
    path = tmp_path / "new" / name
    message = "`path ending` must be one of .png, .svg, .pdf"
    with refuses(ValueError, f"{message}, got {path.suffix!r}."):
        save_figure(comparison_figure(COMPARISON), path)
    assert list(tmp_path.iterdir()) == []


def test_a_near_ending_is_refused_with_the_nearest():
    message = "`path ending` must be one of .png, .svg, .pdf, got '.jpg'."
    with refuses(ValueError, f"{message} Did you mean '.png'?"):
        save_figure(comparison_figure(COMPARISON), Path("figure.jpg"))
