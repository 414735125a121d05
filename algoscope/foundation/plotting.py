"""Looks and names that all figures share, and figures as files.

An algorithm has one color and one marker everywhere; its settings differ in dashes.
The same data give the same bytes, and a file is written whole or not at all.
"""

from collections import Counter
from collections.abc import Sequence
from io import BytesIO
from itertools import cycle
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Polygon
from matplotlib.transforms import Bbox, BboxBase
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
# The same on dark paper, where black is the color of the text.
DARK_COLORS = ("#4AA3DF", "#F08A4B", "#35C79A", "#E3A0C8", "#F0B83F", "#9AD8FA", "")
INK, PAPER, FRAME, FAINT = "#000000", "#ffffff", "#cccccc", "#bfbfbf"  # of all figures
# Text on a colored cell, which stays as it is on dark paper.
ON_BRIGHT, ON_DARK = "#101010", "#fafafa"

# The place of an algorithm in `COLORS` and `MARKERS`; names end before a parenthesis,
# and spaces, underscores and capitals do not count.
ALGORITHMS = {
    "ols": 0,
    "minimumnorm": 0,
    "ridge": 1,
    "fittedridge": 1,
    "gd": 2,
    "optimalgd": 2,
    "fittedgd": 2,
    "sgd": 3,
    "knn": 4,
    "newton": 5,
    "conjugategradients": 6,
    "cg": 6,
}
MARKERS = ("o", "s", "^", "v", "D", "P", "X")  # one for each color
STYLES: tuple[Any, ...] = (
    "-",
    (0, (5, 1.5)),
    (0, (1.2, 1.2)),
    (0, (5, 1.2, 1.2, 1.2)),
    (0, (9, 2)),
    (0, (3, 1.2, 1, 1.2, 1, 1.2)),
    (0, (2.5, 2.5)),
)
LONGEST_NAME = 40  # characters; a predictor can be named after a long command
LABEL_SIZE = 8  # points, of labels beside lines
GAP = 3.0  # points around a panel


class Look(NamedTuple):
    """How a line is drawn."""

    color: str
    style: Any
    marker: str

    @property
    def line(self) -> dict[str, Any]:
        """The options of `Axes.plot`."""
        marker = {"marker": self.marker, "markersize": 3.5}
        return {"color": self.color, "linestyle": self.style, "lw": 1.4, **marker}


def color_of(algorithm: str) -> str:
    """Return the color that an algorithm has in every figure.

    Example:
        >>> color_of("OLS") == color_of("ols") == COLORS[0]
        True
        >>> color_of("conjugate_gradients(steps=3)") == color_of("CG")
        True
    """
    return COLORS[ALGORITHMS[_algorithm(algorithm)]]


def looks(names: Sequence[str]) -> dict[str, Look]:
    """Return a look for each name; up to 49 of one algorithm, no two are alike.

    Algorithms have their own color and marker; other names take those that are free.

    Example:
        >>> found = looks(["OLS", "Ridge(0.1)", "Ridge(0.5)", "mine"])
        >>> [(look.marker, look.color) for look in found.values()][:2]
        [('o', '#0072B2'), ('s', '#D55E00')]
        >>> found["Ridge(0.1)"].style, found["Ridge(0.5)"].style
        ('-', (0, (5, 1.5)))
        >>> found["mine"].color
        '#009E73'
    """
    known = [ALGORITHMS.get(_algorithm(name)) for name in names]
    free = [p for p in range(len(COLORS)) if p not in known]
    others = cycle(free or range(len(COLORS)))
    members: Counter[int] = Counter()
    found = {}
    for name, own in zip(names, known, strict=True):
        place = next(others) if own is None else own
        marks, style = divmod(members[place], len(STYLES))
        members[place] += 1
        marker = MARKERS[(place + marks) % len(MARKERS)]
        found[name] = Look(COLORS[place], STYLES[style], marker)
    return found


def _algorithm(name: str) -> str:
    return name.partition("(")[0].lower().replace("_", "").replace(" ", "")


def label_lines(axes: Axes, size: float = LABEL_SIZE) -> None:
    """Write the label of every line beside its right end, instead of a legend.

    Labels are moved apart where lines end close together, and joined to their ends by a
    thin line. Call it when the limits of the axes are final.
    """
    first, last = axes.get_xlim()
    ends = []
    for line in axes.get_lines():
        x, y = (np.asarray(each, float) for each in line.get_data())
        seen = (x >= min(first, last)) & (x <= max(first, last)) & np.isfinite(y)
        if not str(line.get_label()).startswith("_") and seen.any():
            x_end, y_end = x[seen][-1], y[seen][-1]
            to_axes = axes.transData + axes.transAxes.inverted()
            place = to_axes.transform((x_end, y_end))
            ends.append((line, float(np.clip(place[1], 0, 1)), float(place[0])))
    if not ends:
        return
    ends.sort(key=lambda end: end[1])
    height = axes.get_window_extent().height * 72 / owner_of(axes).dpi
    step = min(1.15 * size / height, 1 / max(1, len(ends) - 1))
    places = spread([end[1] for end in ends], step)
    size = min(size, step * height) if len(ends) > 1 else size
    for (line, y, x), place in zip(ends, places, strict=True):
        joint = [(x, y), (1.1, place), (1.12, place)]
        thin = {"ec": line.get_color(), "lw": 0.7, "clip_on": False, "fill": False}
        whole: Any = {"closed": False, "transform": axes.transAxes, **thin}
        axes.add_patch(Polygon(joint, **whole))
        label = str(line.get_label())
        axes.text(1.13, place, label, size=size, va="center", transform=axes.transAxes)


def spread(places: Sequence[float], step: float) -> list[float]:
    """Return sorted places in [0, 1] moved as little as needed to be `step` apart.

    Example:
        >>> spread([0.5, 0.5, 1.0], 0.25)
        [0.375, 0.625, 1.0]
    """
    groups: list[list[float]] = []  # places that touch

    def center(group: list[float]) -> float:
        half = step * (len(group) - 1) / 2
        return float(np.clip(np.mean(group), half, max(half, 1 - half)))

    for place in places:
        groups.append([place])
        while len(groups) > 1:
            below, above = groups[-2:]
            apart = step * (len(below) + len(above)) / 2
            if center(above) - center(below) >= apart - 1e-9:
                break
            groups[-2:] = [below + above]
    return [
        center(group) + step * (place - (len(group) - 1) / 2)
        for group in groups
        for place in range(len(group))
    ]


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
    drawn = render(figure, ".png", dpi=120, bbox_inches="tight")
    contents = {".svg": render_panels(figure), ".png": _with_few_colors(drawn)}
    for ending in FORMATS:
        write_atomically(directory / f"{name}{ending}", contents[ending])
    return name


def render_panels(figure: Figure) -> bytes:
    """Return a figure as SVG that a page can show panel by panel.

    Each panel and each legend of the figure has a `view` element. Its id names the
    groups that draw it, as in view.panel_0.panel_1, and its box is where they are. The
    title of the figure is the title of the file.
    """
    figure.draw_without_rendering()
    tight = figure.get_tightbbox().padded(GAP / 72)  # in inches
    boxes = _panel_boxes(figure)
    title = {"Title": figure.get_suptitle()} if figure.get_suptitle() else {}
    drawn = BytesIO()
    with matplotlib.rc_context(SETTINGS):
        metadata: Any = METADATA[".svg"] | title
        figure.savefig(drawn, format="svg", metadata=metadata, bbox_inches=tight)
    views = []
    for groups, box in boxes.items():
        x, y = 72 * (box.x0 - tight.x0), 72 * (tight.y1 - box.y1)
        sizes = (x, y, 72 * box.width, 72 * box.height)
        view_box = " ".join(f"{each:.1f}" for each in sizes)
        views.append(f' <view id="view.{groups}" viewBox="{view_box}"/>\n')
    return drawn.getvalue().replace(b"</svg>", "".join(views).encode() + b"</svg>")


def _panel_boxes(figure: Figure) -> dict[str, Bbox]:
    """Return where each legend and panel is, in inches, by the ids of its groups.

    A color bar belongs to the panel at its left. Panels in one row are equally high.
    """
    panels: list[tuple[list[str], Bbox, BboxBase]] = []  # ids, whole, frame
    shown = [axes for axes in figure.axes if axes.get_visible() and axes.axison]
    shown.sort(key=lambda axes: axes.get_label() == "<colorbar>")
    for number, axes in enumerate(shown):
        axes.set_gid(f"panel_{number}")
        whole, frame = axes.get_tightbbox(), axes.get_window_extent()
        assert whole is not None
        if axes.get_label() == "<colorbar>":
            left = [p for p in panels if p[2].x0 < frame.x0 and _share_row(p[2], frame)]
            owner = max(left, key=lambda panel: panel[2].x0)
            owner[0].append(f"panel_{number}")
            owner[1].set(Bbox.union([owner[1], whole]))
        else:
            panels.append(([f"panel_{number}"], whole, frame))
    found = {}
    for ids, whole, frame in panels:
        row = [each for _, each, other in panels if _share_row(frame, other)]
        low, high = min(each.y0 for each in row), max(each.y1 for each in row)
        found[".".join(ids)] = Bbox([[whole.x0, low], [whole.x1, high]])
    rows = sorted(found.items(), key=lambda each: (-each[1].y1, each[1].x0))
    for number, legend in enumerate(figure.legends):
        legend.set_gid(f"key_{number}")
        rows.insert(number, (f"key_{number}", legend.get_window_extent()))
    return {
        ids: Bbox(box.padded(GAP * figure.dpi / 72).get_points() / figure.dpi)
        for ids, box in rows
    }


def _share_row(one: BboxBase, other: BboxBase) -> bool:
    shared = min(one.y1, other.y1) - max(one.y0, other.y0)
    return bool(shared > 0.5 * one.height)


def _with_few_colors(drawn: bytes) -> bytes:
    smaller = BytesIO()
    image = (
        Image.open(BytesIO(drawn))
        .convert("RGB")
        .quantize(PNG_COLORS, dither=Image.Dither.NONE)
    )
    image.save(smaller, "PNG", optimize=True)
    return smaller.getvalue()
