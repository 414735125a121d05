"""Figure 7: products through GeLU, tanh and ReLU on [−0.1, 0.1] (paper app. G)."""

from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from algoscope.construction.product_figure import (
    SquareApproximations,
    SquareCurve,
    approximate_squares,
    draw_squares,
)
from algoscope.experiments.experiment import Experiment, Judgment, Place, Spent
from algoscope.experiments.measured import forget_others, once
from algoscope.experiments.pictures import FORMATS
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.experiments.words import number
from algoscope.provenance import provenance

FILE = "squares.json"
GOOD, FAIR = 0.05, 0.25  # largest error over largest square


@dataclass(frozen=True)
class Figure7:
    """The size of figure 7."""

    num_points: int = 401


def measure(config: Figure7, place: Place) -> Spent:
    """Compute the approximations."""

    def save() -> None:
        approximate_squares(config.num_points).save(place.directory / FILE)

    identity = {"config": asdict(config), "versions": provenance()}
    seconds = once(place.directory, FILE, identity, save)
    forget_others(place.directory, [FILE])
    return Spent(seconds)


def _largest_error(found: SquareApproximations, curve: SquareCurve) -> float:
    """Return max |error| over max x², which is 0.01."""
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
        f"The paper's formula through {curve.panel} ({curve.num_units} units) misses "
        f"x² by at most {100 * error:.2g} % of 0.01, at {len(found.x)} points; the "
        f"best here, {best.name} ({best.num_units} units), by "
        f"{100 * _largest_error(found, best):.2g} %.",
        verdict,
        "" if error < GOOD else f"The error exceeds {100 * GOOD:g} %.",
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the squares and their errors."""
    found = SquareApproximations.load(directory / FILE)
    for ending in FORMATS:
        draw_squares(found, directory / f"figure_7{ending}")
    return ("figure_7",)


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
