"""Figures show the numbers of a comparison, the same way each time."""

from pathlib import Path
from xml.etree import ElementTree

import matplotlib as mpl
import pytest
from matplotlib import pyplot as plt
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from support.comparisons import curve as made_curve
from support.comparisons import handmade
from support.refusals import refuses

from algoscope.comparison.figures import draw_comparison, draw_linearity
from algoscope.comparison.result import Comparison
from algoscope.foundation.plotting import COLORS

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


def drawn_svg(comparison: Comparison, directory) -> str:
    path = directory / "figure.svg"
    draw_comparison(comparison, path)
    return path.read_text()


@pytest.mark.parametrize(
    ("ending", "start"), [("png", b"\x89PNG"), ("svg", b"<?xml"), ("pdf", b"%PDF")]
)
def test_the_ending_decides_the_format_and_the_same_comparison_gives_the_same_file(
    ending, start, tmp_path
):
    paths = [tmp_path / "new" / f"{n}.{ending}" for n in range(2)]
    for path in paths:
        draw_comparison(COMPARISON, path)
    first, again = (path.read_bytes() for path in paths)
    assert first.startswith(start)
    assert first == again
    assert b"Date" not in first  # both were drawn within a second


@pytest.fixture
def shown(monkeypatch, tmp_path):
    """Return a function that draws a comparison and returns the figure."""

    def draw(comparison: Comparison, drawn=draw_comparison) -> Figure:
        saved: list[Figure] = []
        monkeypatch.setattr(
            Figure, "savefig", lambda self, *args, **options: saved.append(self)
        )
        drawn(comparison, tmp_path / "figure.png")
        (figure,) = saved
        return figure

    return draw


def test_both_axes_show_the_learner_s_curves_from_one_example_on(shown):
    figure = shown(COMPARISON)
    linear, logarithmic = figure.axes
    assert (linear.get_yscale(), logarithmic.get_yscale()) == ("linear", "log")
    expected = [c for c in COMPARISON.curves if c.first == "ICL"]
    for axes in figure.axes:
        *lines, at_dim = axes.lines
        assert at_dim.get_xdata() == [COMPARISON.dim] * 2
        assert len(lines) == len(axes.collections) == len(expected)
        for line, band, curve in zip(lines, axes.collections, expected, strict=True):
            assert line.get_label() == f"({curve.second}, ICL)"
            assert list(line.get_xdata()) == [1, 2]
            assert list(line.get_ydata()) == curve.mean[1:]
            bounds = band.get_paths()[0].vertices[:, 1]
            assert {min(bounds), max(bounds)} == {
                min(curve.low[1:]),
                max(curve.high[1:]),
            }


def test_figure_1_has_spd_left_and_ilwd_right_where_it_was_measured(shown):
    figure = shown(MEASURED)
    left, right = figure.axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("SPD / d", "ILWD / d")
    *lines, _ = right.lines
    for line, same, expected in zip(
        lines, left.lines, MEASURED.of("ilwd"), strict=False
    ):
        assert list(line.get_ydata()) == expected.mean[1:]
        assert line.get_label() == same.get_label() == f"({expected.second}, ICL)"
        assert line.get_color() == same.get_color()
    legend = [text.get_text() for text in right.get_legend().get_texts()]
    assert legend == ["(OLS, ICL)", "(GD(0.01), ICL)", "(Y, ICL)"]
    title = "Which algorithm is ICL?  d = 2, 12,345 datasets (ILWD: 1,500)"
    assert figure.get_suptitle() == title


def test_figure_6_shows_how_linear_each_predictor_is(shown):
    figure = shown(MEASURED, draw_linearity)
    (axes,) = figure.axes
    *lines, _ = axes.lines
    assert [line.get_label() for line in lines] == ["ICL", "OLS"]
    assert [list(line.get_ydata()) for line in lines] == [[0.7, 0.9], [1.0, 1.0]]
    title = "How linear is ICL?  d = 2, 1,500 datasets, 32 queries"
    assert figure.get_suptitle() == title


def test_figure_6_is_a_file_of_its_own(tmp_path):
    path = tmp_path / "new" / "linearity.svg"
    draw_linearity(MEASURED, path)
    ElementTree.fromstring(path.read_text())


def test_figure_6_of_what_was_not_measured_is_refused(tmp_path):
    message = (
        "`comparison` must hold the metric r2, got spd. "
        'Measure it with `compare(..., metrics=("r2",))`.'
    )
    with refuses(ValueError, message):
        draw_linearity(COMPARISON, tmp_path / "linearity.svg")
    message = "`path ending` must be one of .png, .svg, .pdf, got '.txt'."
    with refuses(ValueError, message):
        draw_linearity(MEASURED, tmp_path / "linearity.txt")
    assert list(tmp_path.iterdir()) == []


def test_the_title_asks_the_question_and_gives_the_sizes(shown):
    title = shown(COMPARISON).get_suptitle()
    assert title == "Which algorithm is ICL?  d = 2, 12,345 datasets"


def test_the_labels_are_dashed_and_no_two_references_look_alike(shown):
    names = [f"GD({n})" for n in range(9)]
    figure = shown(handmade({name: [0.0, 0.1] for name in names}))
    *lines, _ = figure.axes[0].lines
    styles = [(line.get_linestyle(), to_hex(line.get_color())) for line in lines]
    assert [style for style, _ in styles].index("--") == len(names)
    assert len(set(styles)) == len(names) + 1
    assert {color for _, color in styles} == {color.lower() for color in COLORS}


def test_any_number_of_references_is_drawn(tmp_path):
    means = {f"GD({n})": [0.0, 0.1] for n in range(15)}
    drawn_svg(handmade(means), tmp_path)


@pytest.mark.parametrize(
    "means",
    [
        {"OLS": [0.0, 0.1]},
        {"OLS": [0.0, 0.0, 0.0], "GD": [0.0, 0.1, 0.0]},
        {"OLS": [0.0, float("nan"), 0.1]},
    ],
    ids=["one example", "distances of zero", "not a number"],
)
def test_unusual_comparisons_are_drawn(means, tmp_path):
    ElementTree.fromstring(drawn_svg(handmade(means), tmp_path))


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;alert(1)&lt;/script&gt;"),
        ("a & b", "a &amp; b"),
        ("US$ 5", "US$ 5"),
        ("a long {name} " * 8, ("a long {name} " * 8)[:39] + "…"),
    ],
)
def test_any_name_is_drawn_and_escaped(name, escaped, tmp_path):
    svg = drawn_svg(handmade({"OLS": [0.0, 0.1]}, learner=name), tmp_path)
    ElementTree.fromstring(svg)
    assert "<script" not in svg
    assert f"Which algorithm is {escaped}?" in svg
    assert f"(OLS, {escaped})" in svg


@pytest.mark.parametrize("name", ["$x$", r"$\frac$"])
def test_dollars_in_a_name_are_drawn_as_dollars(name, tmp_path):
    svg = drawn_svg(handmade({"OLS": [0.0, 0.1]}, learner=name), tmp_path)
    assert 'id="DejaVuSans-7"' in svg  # the glyph


@pytest.fixture
def no_open_figures():
    plt.close("all")
    yield
    plt.close("all")


@pytest.mark.usefixtures("no_open_figures")
def test_no_figure_stays_open(tmp_path):
    drawn_svg(COMPARISON, tmp_path)
    assert plt.get_fignums() == []


@pytest.mark.usefixtures("no_open_figures")
def test_no_figure_stays_open_when_it_cannot_be_saved(tmp_path):
    path = tmp_path / "figure.png"
    path.mkdir()
    with pytest.raises(IsADirectoryError):
        draw_comparison(COMPARISON, path)
    assert plt.get_fignums() == []


def test_drawing_leaves_the_settings_of_matplotlib_alone(tmp_path):
    with mpl.rc_context({"svg.hashsalt": None}):
        drawn_svg(COMPARISON, tmp_path)
        assert mpl.rcParams["svg.hashsalt"] is None


@pytest.mark.parametrize("name", ["figure.webp", "figure", "figure.svg.gz", "a.png/b"])
def test_another_ending_is_refused_before_anything_is_written(name, tmp_path):
    path = tmp_path / "new" / name
    message = "`path ending` must be one of .png, .svg, .pdf"
    with refuses(ValueError, f"{message}, got {path.suffix!r}."):
        draw_comparison(COMPARISON, path)
    assert list(tmp_path.iterdir()) == []


def test_a_near_ending_is_refused_with_the_nearest():
    message = "`path ending` must be one of .png, .svg, .pdf, got '.jpg'."
    with refuses(ValueError, f"{message} Did you mean '.png'?"):
        draw_comparison(COMPARISON, Path("figure.jpg"))
