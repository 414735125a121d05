"""Numbers read back from matplotlib's figures, for tests of what is drawn."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D


def xs(line: Line2D) -> list[float]:
    """Return the x of a line's points."""
    return np.asarray(line.get_xdata(), float).tolist()


def ys(line: Line2D) -> list[float]:
    """Return the y of a line's points."""
    return np.asarray(line.get_ydata(), float).tolist()


def labels(lines: Sequence[Line2D]) -> list[str]:
    """Return the labels of lines."""
    return [str(line.get_label()) for line in lines]


def legend_of(axes: Axes) -> list[str]:
    """Return the legend's texts, the title first if there is one."""
    legend = axes.get_legend()
    assert legend is not None
    texts = [legend.get_title(), *legend.get_texts()]
    return [text.get_text() for text in texts if text.get_text()]


def bands(axes: Axes) -> list[tuple[float, float]]:
    """Return the lowest and the highest y of each band between two curves."""
    found = [
        np.asarray(each.get_paths()[0].vertices)[:, 1] for each in axes.collections
    ]
    return [(float(np.nanmin(y)), float(np.nanmax(y))) for y in found]
