"""Figures as files: the same data give the same bytes, written whole or not at all."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from PIL import Image

from algoscope.foundation.files import write_atomically
from algoscope.foundation.validation import require_choice

# No dates, no random identifiers.
METADATA = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
SETTINGS: Any = {"svg.hashsalt": "algoscope"}

# Okabe and Ito's palette: distinguishable for color-blind readers.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
STYLES = ("-", "-.", ":")
LONGEST_NAME = 40  # characters; a command can be longer than a figure is wide


def plain_name(name: str) -> str:
    """Return a name, not too long, whose dollars are not read as mathematics."""
    short = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return short.replace("$", r"\$")


def owner_of(axes: Axes) -> Figure:
    """Return the figure that axes are part of."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    return figure


def require_ending(path: Path) -> None:
    """Refuse a path whose ending names no format of a figure."""
    require_choice("path ending", path.suffix, METADATA)


def render(figure: Figure, ending: str, **how: Any) -> bytes:
    """Return a figure in the format of an ending such as .svg."""
    drawn = BytesIO()
    with matplotlib.rc_context(SETTINGS):
        metadata = METADATA[ending]
        figure.savefig(drawn, format=ending[1:], metadata=metadata, **how)
    return drawn.getvalue()


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file, whose ending decides the format."""
    require_ending(path)
    write_atomically(path, render(figure, path.suffix, dpi=150))


FORMATS = (".svg", ".png")
PNG_COLORS = 128  # of a PNG: a third of the bytes, and no difference to see


def save_picture(figure: Figure, directory: Path, name: str) -> str:
    """Write the figure in both formats; the same data give the same files."""
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
