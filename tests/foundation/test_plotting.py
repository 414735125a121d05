"""Figures are files that are whole and always the same."""

import io

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image
from support.refusals import refuses

from algoscope.foundation import plotting
from algoscope.foundation.plotting import (
    FORMATS,
    LONGEST_NAME,
    METADATA,
    PNG_COLORS,
    ResultFigure,
    owner_of,
    plain_name,
    render,
    require_ending,
    save_figure,
    save_picture,
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
