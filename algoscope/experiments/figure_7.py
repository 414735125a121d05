"""Figure 7: squares through GeLU, tanh and ReLU, and better formulas (paper app. G).

The paper's formulas for x² and those of the compiler are computed at points of
[−0.1, 0.1]; the judgment is by the largest error over the largest square.
"""

from dataclasses import asdict, dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.construction.compiler.activations import shift_without
from algoscope.construction.compiler.products import (
    PAPER_SQUARE,
    PiecewiseSquare,
    Product,
    paper_difference,
    paper_product,
    piecewise_square,
    quarter_square,
    richardson,
    shifted,
    uniform_square,
)
from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.learners import Place, Spent
from algoscope.experiments.record import Claim, Difference, Table, Verdict
from algoscope.foundation.files import read_saved, write_saved
from algoscope.foundation.plotting import COLORS, STYLES, save_picture
from algoscope.foundation.text import number
from algoscope.foundation.validation import require_at_least

FILE = "squares.json"
KIND = "squares"  # of the saved file
GOOD, FAIR = 0.05, 0.25  # largest error over largest square

ERRORS = (1e-13, 1e-2)  # the range of the lower axes


@dataclass(frozen=True)
class Figure7:
    """The size of figure 7."""

    num_points: int = 401


@dataclass(frozen=True)
class SquareCurve:
    """One approximation of x², with its values and its number of hidden units."""

    panel: str  # of the figure: GeLU, tanh or ReLU
    name: str
    num_units: int
    values: list[float]


@dataclass(frozen=True)
class SquareApproximations:
    """The points x, and the value of every approximation there."""

    x: list[float]
    curves: list[SquareCurve]

    def save(self, path: Path) -> None:
        """Write the approximations as JSON."""
        write_saved(path, KIND, asdict(self))

    @classmethod
    def load(cls, path: Path) -> "SquareApproximations":
        """Read approximations that `save` wrote."""

        def build(values: dict[str, Any]) -> SquareApproximations:
            curves = [SquareCurve(**curve) for curve in values.pop("curves")]
            if any(len(curve.values) != len(values["x"]) for curve in curves):
                raise KeyError("values")
            return cls(curves=curves, **values)

        return read_saved(path, KIND, build)


def approximate_squares(num_points: int = 400) -> SquareApproximations:
    """Return the approximations of x² for |x| ≤ 0.1, in double precision.

    A product multiplies x by itself, at the scale S = 1 of the paper's figure.
    """
    require_at_least("num_points", num_points, 2)
    even = "even part at b = {:.2f}".format
    squares: dict[str, dict[str, Product | PiecewiseSquare]] = {
        "GeLU": {
            "paper": paper_product(1.0),
            even(0): quarter_square("gelu", 1.0),
            even(shift_without(4, "gelu")): shifted("gelu", 1.0),
            "even parts, 3 scales": richardson("gelu", 3, 1.0),
        },
        "tanh": {
            "paper, δ = 0.001": paper_difference(1e-3),
            even(shift_without(3, "tanh")): quarter_square("tanh", 1.0),
            even(shift_without(4, "tanh")): shifted("tanh", 1.0),
            "even parts, 3 scales": richardson("tanh", 3, 1.0),
        },
        "ReLU": {
            "paper": PAPER_SQUARE,
            "paper's knots, best weights": piecewise_square(
                PAPER_SQUARE.knots, PAPER_SQUARE.end
            ),
            "equal pieces": uniform_square(3, PAPER_SQUARE.end),
            "more equal pieces": uniform_square(12, PAPER_SQUARE.end),
        },
    }
    x = np.linspace(-PAPER_SQUARE.end, PAPER_SQUARE.end, num_points)
    curves = [
        SquareCurve(
            panel,
            name,
            square.num_units,
            (square(x, x) if isinstance(square, Product) else square(x)).tolist(),
        )
        for panel, each in squares.items()
        for name, square in each.items()
    ]
    return SquareApproximations(x.tolist(), curves)


def measure(config: Figure7, place: Place) -> Spent:
    """Compute the approximations."""

    def save() -> None:
        approximate_squares(config.num_points).save(place.directory / FILE)

    return place.measure_once(FILE, {"config": asdict(config)}, save)


def _largest_error(found: SquareApproximations, curve: SquareCurve) -> float:
    """Return max |error| / max x²; the latter is 0.01."""
    exact = np.square(found.x)
    return float(np.max(np.abs(np.asarray(curve.values) - exact)) / np.max(exact))


def judge(config: Figure7, directory: Path) -> Judgment:
    """Say how far each approximation is from the square."""
    found = SquareApproximations.load(directory / FILE)
    rows = tuple(
        (
            curve.panel,
            curve.name,
            str(curve.num_units),
            number(_largest_error(found, curve)),
        )
        for curve in found.curves
    )
    header = ("through", "formula", "units", "largest error / largest square")
    papers = [curve for curve in found.curves if curve.name.startswith("paper")]
    first = {curve.panel: curve for curve in reversed(papers)}
    claims = tuple(_claim(found, curve) for curve in reversed(first.values()))
    return Judgment(
        tuple(claim.measured for claim in claims),
        (Table("Squares on [−0.1, 0.1]", header, rows),),
        claims,
    )


def _claim(found: SquareApproximations, curve: SquareCurve) -> Claim:
    error = _largest_error(found, curve)
    alike = [other for other in found.curves if other.panel == curve.panel]
    best = min(alike, key=lambda other: _largest_error(found, other))
    verdict: Verdict = "not reproduced"
    if error < FAIR:
        verdict = "reproduced" if error < GOOD else "partly"
    return Claim(
        f"products through {curve.panel}",
        f"The formula through {curve.panel} approximates x² on [−0.1, 0.1] (app. G, "
        "figure 7).",
        f"The largest error of the paper's formula through {curve.panel} "
        f"({curve.num_units} units) is {100 * error:.2g} % of the largest square, "
        f"0.01, at {len(found.x)} points; that of the best formula here, {best.name} "
        f"({best.num_units} units), is {100 * _largest_error(found, best):.2g} %.",
        verdict,
        "" if error < GOOD else f"The error exceeds {100 * GOOD:g} %.",
        difference=Difference.exact(
            f"largest error / largest square − {GOOD:g}", error - GOOD
        ),
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the squares and their errors."""
    found = SquareApproximations.load(directory / FILE)
    return (save_picture(squares_figure(found), directory, "figure_7"),)


def squares_figure(result: SquareApproximations) -> Figure:
    """Return the squares above, and their errors on a logarithmic scale below."""
    panels = list(dict.fromkeys(curve.panel for curve in result.curves))
    figure = Figure(figsize=(3.3 * len(panels), 6.6), layout="constrained")
    axes = figure.subplots(2, len(panels), sharex=True, sharey="row", squeeze=False)
    for panel, above, below in zip(panels, *axes, strict=True):
        curves = [curve for curve in result.curves if curve.panel == panel]
        _draw_panel(result.x, curves, above, below)
        above.set_title(panel)
        below.set_xlabel("x")
    for each in axes.ravel():  # each is read alone on a narrow page
        each.tick_params(labelleft=True, labelbottom=True, labelsize=8)
    for above, below in axes.T:
        above.set_ylabel("approximation of x²")
        below.set_ylabel("|error|")
    return figure


def _draw_panel(
    x: list[float], curves: list[SquareCurve], above: Axes, below: Axes
) -> None:
    exact = np.square(x)
    above.plot(x, exact, color="0.8", lw=5, label="x²", solid_capstyle="butt")
    looks = zip(curves, cycle(COLORS), cycle(STYLES), strict=False)
    for curve, color, style in looks:
        label = f"{curve.name} ({curve.num_units} units)"
        above.plot(x, curve.values, color=color, ls=style, lw=1.5, label=label)
        error = np.abs(curve.values - exact)
        error[error == 0] = np.nan  # has no logarithm
        below.plot(x, error, color=color, ls=style, lw=1.3)
    below.set_yscale("log")
    below.set_ylim(*ERRORS)
    for each in (above, below):
        each.spines[["top", "right"]].set_visible(False)
    below.grid(axis="y", color="0.9", lw=0.6)
    place: Any = {"loc": "upper center", "bbox_to_anchor": (0.5, -0.2)}
    handles, labels = above.get_legend_handles_labels()
    below.legend(handles, labels, fontsize=8, frameon=False, **place)


EXPERIMENT = Experiment(
    name="fig7",
    title="Can other non-linearities multiply?",
    budgets={"smoke": Figure7(41), "cpu": Figure7(), "paper": Figure7()},
    trainings=lambda config: [],
    measuring=lambda config: 5.0,
    measure=measure,
    judge=judge,
    draw=draw,
)
