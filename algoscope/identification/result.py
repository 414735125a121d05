"""The result of `identify`: ranked hypotheses, the answer, and what it rests on."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from algoscope.foundation.files import parse_number
from algoscope.foundation.plotting import COLORS, ResultFigure, owner_of, plain_name
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import short

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

NEARLY_OLS = 0.01  # with this penalty or less, ridge regression is close to OLS

NUM_SHOWN = 8  # hypotheses


@dataclass(frozen=True)
class Candidate:
    """A fitted hypothesis, and how far it is from the predictor."""

    family: str
    name: str
    parameters: dict[str, Any]
    distance: float  # ρ of `fitting`, on datasets that were not fitted
    low: float  # 95 % bootstrap interval of the distance
    high: float
    regimes: dict[str, float]  # ρ per regime
    median_spd: dict[str, float]  # SPD/d per regime, the median over datasets


@dataclass(frozen=True)
class Regime:
    """The answer for one range of the number of examples."""

    name: str
    first: int
    last: int
    verdict: str
    nearest: str
    distance: float


@dataclass(frozen=True, repr=False)
class Identification(SavedResult):
    """Which algorithm a predictor runs: the verdict, and the ranked hypotheses.

    `verdict` is the name of a family, or "none" if no hypothesis is nearer than
    `threshold`; `confidence` is how often its family is nearest over resampled
    datasets; `parameter_ranges` are over disjoint parts of the data.

    Example:
        >>> import algoscope as asc
        >>> task = asc.LinearRegression(dim=2)
        >>> found = asc.identify(asc.zero, task, num_examples=8, num_datasets=32)
        >>> found.verdict
        'zero'
    """

    kind: ClassVar[str] = "identification"

    target: str
    verdict: str
    parameters: dict[str, Any]
    parameter_ranges: dict[str, tuple[float, float]]
    confidence: float
    candidates: list[Candidate]
    regimes: list[Regime]
    domain: str
    threshold: float
    task: str
    dim: int
    num_examples: int
    num_datasets: int
    seed: int
    versions: dict[str, str]
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def nearest(self) -> Candidate:
        """The nearest candidate, also if it is too far away to be the answer."""
        return self.candidates[0]

    @property
    def runner_up(self) -> Candidate:
        """The nearest candidate of another family."""
        family = self.nearest.family
        return next(c for c in self.candidates if c.family != family)

    @property
    def sentence(self) -> str:
        """The answer in words."""
        first, second = self.nearest, self.runner_up
        where = "on its task" if self.domain == "task" else "on all kinds of data"
        if self.verdict == "none":
            return (
                f"{self.target} runs none of the known algorithms {where}. The nearest "
                f"is {first.name} at distance {short(first.distance)}; at most "
                f"{self.threshold:g} would count as the same algorithm."
            )
        small = first.family == "ridge" and first.parameters["penalty"] <= NEARLY_OLS
        remark = (
            "; a ridge penalty this small is close to least squares (OLS)"
            if small
            else ""
        )
        return (
            f"{self.target} runs {first.name} {where}: distance "
            f"{short(first.distance)} (95 % interval {short(first.low)} to "
            f"{short(first.high)}){remark}. The nearest other family is {second.name} "
            f"at {short(second.distance)}."
        )

    def rows(self) -> list[Row]:
        """Return the hypotheses, the nearest first, with distances per regime."""
        return [
            {
                "hypothesis": each.name,
                "family": each.family,
                "distance": each.distance,
                "low": each.low,
                "high": each.high,
                **each.regimes,
            }
            for each in self.candidates
        ]

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw the distances of the nearest hypotheses, with their intervals."""
        from algoscope.identification.result import identification_figure

        return identification_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        return asdict(self), {}

    @classmethod
    def from_fields(
        cls, values: Row, arrays: dict[str, np.ndarray]
    ) -> "Identification":
        candidates = [_candidate(c) for c in values.pop("candidates")]
        regimes = [
            Regime(**r | {"distance": parse_number(r["distance"])})
            for r in values.pop("regimes")
        ]
        ranges = {k: tuple(v) for k, v in values.pop("parameter_ranges").items()}
        return cls(
            candidates=candidates, regimes=regimes, parameter_ranges=ranges, **values
        )


def _candidate(values: dict[str, Any]) -> Candidate:
    restored: dict[str, Any] = {
        name: parse_number(values[name]) for name in ("distance", "low", "high")
    }
    for name in ("regimes", "median_spd"):
        restored[name] = {key: parse_number(each) for key, each in values[name].items()}
    return Candidate(**values | restored)


def identification_figure(
    found: Identification, axes: Axes | None = None, *, num_shown: int = NUM_SHOWN
) -> Figure:
    """Return the distances of the nearest hypotheses, over all n and per regime.

    Large dots are the distances over all n, with 95 % intervals; small dots are those
    of the regimes. A hypothesis right of the dotted line is too far away to count as
    the same algorithm. Distances of 0 are drawn at the left edge.
    """
    shown = [c for c in found.candidates if np.isfinite(c.distance)][:num_shown]
    own = (
        ResultFigure(figsize=(8, 1.2 + 0.4 * len(shown))).subplots()
        if axes is None
        else axes
    )
    rows = np.arange(len(shown))
    # On a log scale a distance of 0 needs a place: a tenth of the smallest other one.
    floor = min([c.distance for c in shown if c.distance > 0], default=1e-16) / 10
    for color, regime in zip(COLORS[1:], found.regimes, strict=False):
        values = [max(c.regimes[regime.name], floor) for c in shown]
        own.plot(values, rows, "o", ms=3, color=color, label=regime.name)
    means = np.array([max(c.distance, floor) for c in shown])
    lengths: Any = np.array(
        [
            [max(m - c.low, 0.0) for m, c in zip(means, shown, strict=True)],
            [max(c.high - m, 0.0) for m, c in zip(means, shown, strict=True)],
        ]
    )
    own.errorbar(
        means, rows, xerr=lengths, fmt="o", color=COLORS[0], capsize=3, label="all n"
    )
    own.axvline(found.threshold, color="0.5", lw=0.8, ls=":")
    own.set_xscale("log")
    own.set_yticks(rows, [plain_name(c.name) for c in shown], fontsize=8)
    own.invert_yaxis()
    own.set_xlabel("distance ρ (dotted: the most that counts as the same algorithm)")
    own.spines[["top", "right"]].set_visible(False)
    own.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.02, 0.5))
    figure = owner_of(own)
    if axes is None:
        own.set_title(f"Which algorithm is {plain_name(found.target)}?", fontsize=10)
        figure.tight_layout()
    return figure
