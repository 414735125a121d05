"""Figures are files that are whole and always the same."""

import pytest
from matplotlib.figure import Figure
from support.refusals import refuses

from algoscope.foundation import plotting as canvas
from algoscope.foundation.plotting import METADATA, save_figure
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


def test_an_unknown_ending_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(canvas, "render", None)
    rule = "`path ending` must be one of .png, .svg, .pdf, got '.gif'."
    with refuses(InvalidValueError, rule):
        save_figure(drawn(), tmp_path / "a.gif")
