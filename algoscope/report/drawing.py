"""Pictures of results that have none on disk yet, as SVG text."""

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from matplotlib.figure import Figure

from algoscope.canvas import save_figure
from algoscope.figures import COLORS
from algoscope.report.markup import visible
from algoscope.report.sections import Picture


def drawn(title: str, source: str, draw: Callable[[Path], None]) -> Picture:
    """Return what `draw` draws to the path that it is given."""
    with TemporaryDirectory() as directory, warnings.catch_warnings():
        # A name may have letters that the figure's font has not; the page shows it.
        warnings.filterwarnings("ignore", message="Glyph .* missing from font")
        path = Path(directory) / "figure.svg"
        draw(path)
        return Picture(title, visible(path.read_text(encoding="utf-8")), source)


def draw_training(metrics: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw the loss and SPD/d to OLS and to the Bayes predictor over the steps."""
    figure = Figure(figsize=(10, 3.4))
    left, right = figure.subplots(1, 2)
    curves = (
        (left, "loss", "loss", "-"),
        (right, "spd_ols", "(OLS, learner)", "-"),
        (right, "spd_bayes", "(Bayes, learner)", "--"),  # the same without noise
    )
    for color, (axes, name, label, style) in zip(COLORS, curves, strict=False):
        points = [(row["step"], row[name]) for row in metrics if name in row]
        points = [point for point in points if _can_be_drawn(point[1])]
        if points:
            axes.plot(*zip(*points, strict=True), style, color=color, label=label)
            axes.set_yscale("log")
    left.set_ylabel("training loss")
    right.set_ylabel("SPD / d, mean over n ≥ 1")
    if right.lines:
        right.legend(fontsize=7)
    for axes in (left, right):
        axes.set_xlabel("step")
        axes.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    save_figure(figure, path)


def _can_be_drawn(value: float | None) -> bool:
    return value is not None and math.isfinite(value) and value > 0
