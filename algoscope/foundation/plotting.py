"""Colors and names that all figures share, and figures as files.

The same data give the same bytes, and a file is written whole or not at all.
"""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from algoscope.foundation.files import write_atomically
from algoscope.foundation.validation import require_choice

# Without dates and random identifiers, so that files can be compared.
METADATA = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
SETTINGS: Any = {"svg.hashsalt": "algoscope"}

FORMATS = (".svg", ".png")  # of the figures of experiments
PNG_COLORS = 128  # in the PNG of an experiment: a third of the bytes, looks the same

# Okabe and Ito's palette: distinguishable for color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")
LONGEST_NAME = 40  # characters; a predictor can be named after a long command


def plain_name(name: str) -> str:
    """Return a name, shortened, whose dollar signs do not start a formula."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short.replace("$", r"\$")


class ResultFigure(Figure):
    """A figure that a notebook shows, whether pyplot is imported or not."""

    def _repr_png_(self) -> bytes:
        return render(self, ".png", dpi=100, bbox_inches="tight")


def owner_of(axes: Axes) -> Figure:
    """Return the figure that axes are part of."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def require_ending(path: Path) -> None:
    """Reject a path whose ending is not a known figure format."""
    require_choice("path ending", path.suffix, METADATA)


def render(figure: Figure, ending: str, **how: Any) -> bytes:
    """Return a figure in the format of an ending such as .svg."""
    drawn = BytesIO()
    with matplotlib.rc_context(SETTINGS):
        metadata = METADATA[ending]
        figure.savefig(drawn, format=ending[1:], metadata=metadata, **how)
    return drawn.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file; the ending of `path` decides the format."""
    require_ending(path)
    write_atomically(path, render(figure, path.suffix, dpi=150))


def save_picture(figure: Figure, directory: Path, name: str) -> str:
    """Write an experiment's figure in all `FORMATS`, and return its name."""
    for ending in FORMATS:
        drawn = render(figure, ending, dpi=120, bbox_inches="tight")
        content = drawn if ending == ".svg" else _with_few_colors(drawn)
        write_atomically(directory / f"{name}{ending}", content)
    return name


def _with_few_colors(drawn: bytes) -> bytes:
    smaller = BytesIO()
    image = (
        Image.open(BytesIO(drawn))
        .convert("RGB")
        .quantize(PNG_COLORS, dither=Image.Dither.NONE)
    )
    image.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()
