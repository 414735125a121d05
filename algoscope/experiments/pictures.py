"""Figures as SVG for pages and PNG for everything else."""

from io import BytesIO
from pathlib import Path

from matplotlib.figure import Figure
from PIL import Image

from algoscope.canvas import render
from algoscope.checkpoints import write_atomically

FORMATS = (".svg", ".png")
COLORS = 128  # of a PNG: a third of the bytes, and no difference to see


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
        .quantize(COLORS, dither=Image.Dither.NONE)
    )
    image.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()
