"""The result of `compare`: curves with intervals, without the models behind them.

Figures 1 and 6 of the paper are drawn from it.
"""

import math
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from algoscope.comparison.intervals import (
    NUMBERS,
    Curve,
    Estimate,
    curve_from_json,
    estimate_from_json,
    regime_spans,
)
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import short
from algoscope.foundation.validation import InvalidValueError, require_choice

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from algoscope.foundation.plotting import Look

LABELS = "Y"  # stands for the labels themselves, as in the paper's legends
TOP = {"spd": 0.8, "ilwd": 0.35}  # where the paper's axes end

Span = tuple[int, int]


@dataclass(frozen=True, repr=False)
class Comparison(SavedResult):
    """A learner against each reference, and each of them against the labels.

    `curves` holds SPD/d, `metrics` the curves of other metrics by name, and `mspd` the
    means of SPD/d over the n of `settings["region"]`. Cosines are similarities, R² is a
    share, a symmetry is a relative change; all others are distances divided by d.

    Example:
        >>> from algoscope.model.checkpoints import MODELS
        >>> found = Comparison.load(MODELS / "linear-d8" / "evaluation.json")
        >>> found.nearest(1, 20)[0][0]
        'OLS'
    """

    kind: ClassVar[str] = "comparison"

    learner: str
    dim: int
    task: str
    num_datasets: int
    seed: int
    curves: list[Curve]
    versions: dict[str, str]
    metrics: dict[str, list[Curve]] = field(default_factory=dict)
    mspd: list[Estimate] = field(default_factory=list)
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def num_examples(self) -> int:
        """The largest number of examples before a prediction."""
        return len(self.curves[0].mean) - 1

    def of(self, metric: str) -> list[Curve]:
        """Return the curves of one metric."""
        known = {"spd": self.curves, **self.metrics}
        require_choice("metric", metric, known)
        return known[metric]

    def against(self, reference: str, metric: str = "spd") -> Curve:
        """Return the curve of the learner against one reference."""
        own = [curve for curve in self.of(metric) if curve.first == self.learner]
        for curve in own:
            if curve.second == reference:
                return curve
        known = ", ".join(curve.second for curve in own)
        raise InvalidValueError("reference", f"be one of {known}", f"'{reference}'")

    def nearest(
        self, start: int, stop: int, metric: str = "spd"
    ) -> list[tuple[str, float]]:
        """Return references and their mean distance over n = start, …, stop, sorted.

        The nearest comes first; for a similarity, the most similar.
        """
        averages = [
            (curve.second, curve.average(start, stop))
            for curve in self.of(metric)
            if curve.first == self.learner and curve.second != LABELS
        ]
        is_similarity = metric.startswith("sim_") or metric.endswith("_cosine")
        sign = -1 if is_similarity else 1
        return sorted(averages, key=lambda pair: (math.isnan(pair[1]), sign * pair[1]))

    @property
    def sentence(self) -> str:
        """The nearest reference and the next, by SPD/d averaged over all n ≥ 1."""
        (first, nearest), *others = self.nearest(1, self.num_examples)
        if not math.isfinite(nearest):
            return f"{self.learner} is like none of these: its SPD/d is not finite."
        most = self.num_examples
        span = (
            f"on average over 1 to {most} examples" if most > 1 else "after 1 example"
        )
        text = (
            f"{self.learner} behaves most like {first}: SPD/d = {short(nearest)} "
            f"{span} ({self.num_datasets:,} datasets)"
        )
        if others:
            second, distance = others[0]
            text += f"; the next is {second}"
            text += f", {_times(distance / nearest)} as far" if nearest else ""
            text += f" ({short(distance)})"
        return text + "."

    @property
    def regimes(self) -> list[tuple[str, int, int]]:
        """The regimes of n that the comparison covers: name, first and last n."""
        spans = regime_spans(self.dim, self.num_examples)
        return [
            ("n = d" if name == "determined" else name, a, b) for name, a, b in spans
        ]

    def summary(self) -> tuple[list[str], list[list[str]]]:
        """Return a header and one row of text per reference, the nearest first.

        Columns are averages over regimes of n. `table()` has every n, with intervals.
        """
        header = ["reference", "all n ≥ 1"]
        header += [
            f"{name} ({a}–{b})" if a < b else name for name, a, b in self.regimes
        ]
        with_weights = "ilwd" in self.metrics
        if with_weights:
            header.append("ILWD, all n ≥ 1")
        rows = []
        for name in [*(name for name, _ in self.nearest(1, self.num_examples)), LABELS]:
            curve = self.against(name)
            spans = [(1, self.num_examples), *((a, b) for _, a, b in self.regimes)]
            cells = [short(curve.average(*span)) for span in spans]
            if with_weights:
                weights = None if name == LABELS else self.against(name, "ilwd")
                cells.append(
                    "–"
                    if weights is None
                    else short(weights.average(1, self.num_examples))
                )
            rows.append([name, *cells])
        return header, rows

    def rows(self) -> list[Row]:
        """Return one row per metric, pair of predictors and n, with its interval."""
        return [
            {
                "metric": metric,
                "first": curve.first,
                "second": curve.second,
                "n": n,
                **{name: getattr(curve, name)[n] for name in NUMBERS},
            }
            for metric in ("spd", *self.metrics)
            for curve in self.of(metric)
            for n in range(len(curve.mean))
        ]

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw figure 1; into given axes, only SPD/d over n."""
        return comparison_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        return asdict(self), {}

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "Comparison":
        curves = [curve_from_json(curve) for curve in values.pop("curves")]
        metrics = {
            name: [curve_from_json(curve) for curve in each]
            for name, each in values.pop("metrics", {}).items()
        }
        mspd = [estimate_from_json(each) for each in values.pop("mspd", [])]
        for name, each in {"curves": curves, **metrics}.items():
            columns = [c for curve in each for c in curve.columns]
            lengths = {len(column) for column in columns}
            if lengths != {len(curves[0].mean) if curves else 0} or 0 in lengths:
                raise KeyError(name)
        return cls(curves=curves, metrics=metrics, mspd=mspd, **values)


def _times(ratio: float) -> str:
    """Return a ratio as text.

    Example:
        >>> _times(2.5), _times(12345.0), _times(1e7)
        ('2.5 times', '12,345 times', 'over a million times')
    """
    if ratio >= 1e6:
        return "over a million times"
    return f"{short(ratio)} times" if ratio < 10 else f"{ratio:,.0f} times"


def comparison_figure(
    comparison: Comparison,
    axes: "Axes | None" = None,
    *,
    labeled: tuple[str, ...] = (),
    spans: dict[str, Span] | None = None,
) -> "Figure":
    """Return figure 1: SPD/d and ILWD/d to each reference per number of examples.

    Dashed lines are the risks of the learner and of the references in `labeled`. If
    ILWD was not measured, the right panel shows SPD/d on a logarithmic scale. `spans`
    limits the n of a metric. Bands are 95 % bootstrap intervals. With `axes`, only
    SPD/d is drawn, into them.
    """
    from algoscope.foundation.plotting import (
        ResultFigure,
        label_lines,
        looks,
        owner_of,
        plain_name,
    )

    own = [c.second for c in comparison.curves if c.first == comparison.learner]
    drawn = looks([name for name in own if name != LABELS])
    if axes is not None:
        _draw_metric(axes, comparison, "spd", drawn, labeled)
        axes.legend(title=f"{plain_name(comparison.learner)} and", fontsize=7)
        return owner_of(axes)
    figure = ResultFigure(figsize=(10.4, 3.9))
    left, right = figure.subplots(1, 2)
    measured_weights = "ilwd" in comparison.metrics
    _draw_metric(left, comparison, "spd", drawn, labeled)
    _draw_metric(right, comparison, "ilwd" if measured_weights else "spd", drawn)
    spans = spans or {}
    if "spd" in spans:
        left.set_xlim(spans["spd"])
    if not measured_weights:
        right.set_ylim(auto=True)
        right.set_yscale("log")
    elif "ilwd" in spans:
        right.set_xlim(spans["ilwd"])
    sizes = f"{comparison.num_datasets:,} datasets"
    if measured_weights:
        sizes += f" (ILWD: {comparison.settings['num_costly_datasets']:,})"
    name = plain_name(comparison.learner)
    title = (
        f"{name} and textbook algorithms, d = {comparison.dim}: {sizes}; bands: 95 %"
    )
    figure.suptitle(title, fontsize=10)
    figure.tight_layout()
    for panel in (left, right):
        label_lines(panel)
    figure.tight_layout()
    return figure


def linearity_figure(comparison: Comparison, axes: "Axes | None" = None) -> "Figure":
    """Return figure 6: R² of the linear fit to the predictions, per number of examples.

    A linear algorithm has R² = 1 for every n. Bands are 95 % bootstrap intervals.
    """
    from algoscope.foundation.plotting import (
        ResultFigure,
        label_lines,
        looks,
        owner_of,
        plain_name,
    )

    if "r2" not in comparison.metrics:
        measured = ", ".join(["spd", *comparison.metrics])
        remedy = 'Measure it with `compare(..., metrics=("r2",))`.'
        raise InvalidValueError("comparison", "hold the metric r2", measured, remedy)
    panel = ResultFigure(figsize=(5.4, 3.9)).subplots() if axes is None else axes
    curves = comparison.of("r2")
    drawn = looks([curve.first for curve in curves])
    for curve in curves:
        _draw_curve(panel, curve, drawn[curve.first], plain_name(curve.first))
    _finish(panel, comparison, "R² of the linear fit")
    panel.set_ylim(0, 1.05)
    label_lines(panel)
    figure = owner_of(panel)
    if axes is None:
        figure.suptitle(
            f"How linear is {plain_name(comparison.learner)}?  d = {comparison.dim}, "
            f"{comparison.settings['num_costly_datasets']:,} datasets, "
            f"{comparison.settings['num_queries']:,} queries",
            fontsize=11,
        )
        figure.tight_layout()
    return figure


def _draw_metric(
    axes: "Axes",
    comparison: Comparison,
    metric: str,
    drawn: "dict[str, Look]",
    labeled: tuple[str, ...] = (),
) -> None:
    from matplotlib.ticker import MaxNLocator

    from algoscope.foundation.plotting import Look, plain_name

    for reference, look in drawn.items():
        curve = comparison.against(reference, metric)
        _draw_curve(axes, curve, look, plain_name(reference))
    if metric == "spd":
        for first in (comparison.learner, *labeled):
            pair = (first, LABELS)
            curve = next(c for c in comparison.curves if (c.first, c.second) == pair)
            color = drawn[first].color if first in drawn else "0.5"
            label = f"risk of {plain_name(first)}"
            _draw_curve(axes, curve, Look(color, "--", ""), label)
    _finish(axes, comparison, f"{metric.upper()} / d")
    axes.set_ylim(0, TOP[metric])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))


def _draw_curve(axes: "Axes", curve: Curve, look: "Look", label: str) -> None:
    """Draw a curve and its band for n ≥ 1."""
    numbers = range(1, len(curve.mean))
    low, high = curve.low[1:], curve.high[1:]
    axes.plot(numbers, curve.mean[1:], label=label, **look.line)
    axes.fill_between(numbers, low, high, color=look.color, alpha=0.2, lw=0)


def _finish(axes: "Axes", comparison: Comparison, label: str) -> None:
    axes.set_ylabel(label)
    axes.axvline(comparison.dim, color="gray", lw=0.8, ls=":")
    axes.set_xlabel("number of examples n (dotted: n = d)")
    axes.spines[["top", "right"]].set_visible(False)
