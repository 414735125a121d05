"""The result of `compare`: curves with intervals, without the models behind them."""

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

LABELS = "Y"  # stands for the labels themselves, as in the paper's legends


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
        from algoscope.comparison.figures import comparison_figure

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
