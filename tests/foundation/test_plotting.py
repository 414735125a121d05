"""Figures are files that are whole and always the same."""

import io
import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from matplotlib.figure import Figure
from PIL import Image
from support.refusals import refuses

from algoscope.foundation import plotting
from algoscope.foundation.plotting import (
    ALGORITHMS,
    COLORS,
    DARK_COLORS,
    FORMATS,
    LONGEST_NAME,
    MARKERS,
    METADATA,
    PNG_COLORS,
    ResultFigure,
    color_of,
    label_lines,
    looks,
    owner_of,
    plain_name,
    render,
    render_panels,
    require_ending,
    save_figure,
    save_picture,
    spread,
)
from algoscope.foundation.validation import InvalidValueError


def drawn() -> Figure:
    figure = Figure(figsize=(2, 2))
    figure.subplots().plot([1, 2], [3, 5])
    return figure


@pytest.mark.parametrize("ending", METADATA)
def test_the_same_figure_gives_the_same_file(ending, tmp_path):
    first, second = tmp_path / "new" / f"a{ending}", tmp_path / f"b{ending}"
    save_figure(drawn(), first)
    save_figure(drawn(), second)
    assert first.read_bytes() == second.read_bytes()
    assert len(first.read_bytes()) > 1000


@pytest.mark.parametrize(
    ("ending", "start"), [(".png", b"\x89PNG"), (".svg", b"<?xml"), (".pdf", b"%PDF")]
)
def test_the_ending_decides_the_format(ending, start):
    assert render(drawn(), ending).startswith(start)


def test_a_figure_that_cannot_be_drawn_leaves_the_old_one(tmp_path, monkeypatch):
    path = tmp_path / "a.svg"
    path.write_text("old")
    figure = drawn()

    def fail(*arguments, **choices):
        arguments[0].write(b"half")
        raise RuntimeError("killed")

    monkeypatch.setattr(figure, "savefig", fail)
    with pytest.raises(RuntimeError, match="killed"):
        save_figure(figure, path)
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["a.svg"]


def test_an_unknown_ending_is_rejected(tmp_path, monkeypatch):
    monkeypatch.setattr(plotting, "render", None)
    rule = "`path ending` must be one of .png, .svg, .pdf, got '.gif'."
    with refuses(InvalidValueError, rule):
        save_figure(drawn(), tmp_path / "a.gif")
    with refuses(InvalidValueError, rule):
        require_ending(tmp_path / "a.gif")


def test_a_picture_of_an_experiment_is_saved_in_all_formats(tmp_path):
    for directory in (tmp_path / "a", tmp_path / "b"):
        assert save_picture(drawn(), directory, "figure_3") == "figure_3"
        names = sorted(path.name for path in directory.iterdir())
        assert names == sorted(f"figure_3{ending}" for ending in FORMATS)
    for ending in FORMATS:
        first, second = (tmp_path / d / f"figure_3{ending}" for d in "ab")
        assert first.read_bytes() == second.read_bytes()


def test_a_png_of_an_experiment_has_few_colors_and_looks_the_same(tmp_path):
    save_picture(drawn(), tmp_path, "a")
    small = Image.open(tmp_path / "a.png").convert("RGB")
    assert len(small.getcolors(2**24) or []) <= PNG_COLORS
    content = render(drawn(), ".png", dpi=120, bbox_inches="tight")
    whole = Image.open(io.BytesIO(content)).convert("RGB")
    difference = np.asarray(small, float) - np.asarray(whole, float)
    assert np.abs(difference).max() < 40
    assert len((tmp_path / "a.png").read_bytes()) < len(content)


def test_axes_know_their_figure():
    figure = drawn()
    assert owner_of(figure.axes[0]) is figure
    part = figure.add_subfigure(figure.add_gridspec(1, 1)[0])
    assert owner_of(part.subplots()) is figure


@pytest.mark.parametrize("length", [1, LONGEST_NAME, LONGEST_NAME + 1, 1000])
def test_long_names_are_shortened(length):
    name = "x" * length
    shown = plain_name(name)
    assert len(shown) <= LONGEST_NAME
    assert (shown == name) == (length <= LONGEST_NAME)


def test_dollar_signs_do_not_start_a_formula():
    assert plain_name("cmd:echo $HOME $x") == r"cmd:echo \$HOME \$x"
    figure = Figure(figsize=(1, 1))
    figure.subplots().set_title(plain_name(r"$\broken{$"))
    render(figure, ".png")


def test_a_notebook_shows_the_figure_of_a_result_without_pyplot():
    figure = ResultFigure(figsize=(2, 2))
    figure.subplots().plot([1, 2], [3, 5])
    shown = figure._repr_png_()
    assert Image.open(io.BytesIO(shown)).format == "PNG"
    assert shown == figure._repr_png_()


def test_an_algorithm_has_its_color_whatever_is_drawn_beside_it():
    alone = looks(["Ridge(0.1)"])["Ridge(0.1)"]
    names = ["mine", "KNN(3)", "OLS", "Ridge(0.5)", "Ridge(0.1)"]
    found = looks(names)
    assert found["Ridge(0.1)"].color == alone.color == color_of("ridge")
    assert found["Ridge(0.1)"].marker == alone.marker == found["Ridge(0.5)"].marker
    assert found["Ridge(0.1)"].style != found["Ridge(0.5)"].style
    assert len(set(found.values())) == len(names)


def test_no_two_of_many_names_look_alike():
    runs = [f"run {n}" for n in range(49)]
    newtons = [f"Newton({n})" for n in range(49)]
    for names in (runs, newtons, [*runs[:18], "OLS", "GD"]):
        assert len(set(looks(names).values())) == len(names)
    assert len(COLORS) == len(MARKERS) == len(DARK_COLORS)
    assert set(ALGORITHMS.values()) == set(range(len(COLORS)))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=20).map(sorted),
    st.floats(0.001, 0.05),
)
def test_labels_are_moved_apart_in_order_and_stay_inside(places, step):
    moved = spread(places, step)
    assert len(moved) == len(places)
    assert all(b - a >= step - 1e-6 for a, b in pairwise(moved))
    assert moved[0] >= -1e-9
    assert moved[-1] <= 1 + 1e-9
    if all(b - a > step for a, b in pairwise(places)):
        np.testing.assert_allclose(moved, places)


def test_every_line_with_a_name_is_labeled_at_its_end_and_no_other():
    axes = Figure().subplots()
    axes.plot([0, 1], [0, 0.2], label="low")
    axes.plot([0, 1], [0, 0.9], label="high")
    axes.plot([0, 1], [0, np.nan], label="ends early")
    axes.plot([5, 6], [0, 1], label="outside")
    axes.axvline(0.5)
    axes.set(xlim=(0, 1), ylim=(0, 1))
    label_lines(axes)
    places = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert list(places) == ["ends early", "low", "high"]
    assert list(places.values()) == pytest.approx([0, 0.2, 0.9])


def test_panels_of_one_row_are_equally_high_and_a_figure_without_any_has_none():
    assert b"<view" not in render_panels(Figure())
    figure = Figure()
    left, right = figure.subplots(1, 2)
    left.set_title("two\nlines")
    right.set_xlabel("x")
    text = render_panels(figure).decode()
    boxes = re.findall(r'<view id="view.panel_\d" viewBox="(.*)"/>', text)
    (_, top, _, height), (_, same, _, equal) = (each.split() for each in boxes)
    assert (top, height) == (same, equal)
