"""Figures as files: the same data give the same bytes, written whole or not at all."""

from io import BytesIO
from pathlib import Path
from typing import Any

import matplotlib
from matplotlib.figure import Figure

from algoscope.checkpoints import write_atomically
from algoscope.validation import require_choice

# No dates, no random identifiers.
METADATA = {".png": None, ".svg": {"Date": None}, ".pdf": {"CreationDate": None}}
SETTINGS: Any = {"svg.hashsalt": "algoscope"}


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
