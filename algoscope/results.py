"""A comparison as data: saved, loaded, tabulated and drawn without the models."""

import math
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from algoscope.checkpoints import DamagedFileError, read_json, write_json
from algoscope.curves import (
    Curve,
    Estimate,
    curve_from_json,
    estimate_from_json,
)
from algoscope.validation import InvalidValueError, require_choice

LABELS = "Y"  # the labels themselves, as the paper's legends write them


@dataclass(frozen=True)
class Comparison:
    """A learner against each reference, and each of them against the labels.

    `curves` holds SPD/d; `metrics` holds curves of what else was measured, and `mspd`
    the mean of SPD/d over the n of `settings["region"]`. Cosines are similarities,
    R² is a share, a symmetry is a relative change, the rest are distances, over d.
    """

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
        """The most examples that a prediction was made from."""
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
        """Return the references by their mean distance over n = start, …, stop.

        By a similarity, the most similar comes first.
        """
        averages = [
            (curve.second, curve.average(start, stop))
            for curve in self.of(metric)
            if curve.first == self.learner and curve.second != LABELS
        ]
        similar = metric.startswith("sim_") or metric.endswith("_cosine")
        sign = -1 if similar else 1
        return sorted(averages, key=lambda pair: (math.isnan(pair[1]), sign * pair[1]))

    def save(self, path: Path) -> None:
        """Write the comparison as JSON."""
        write_json(path, {"format": "algoscope comparison", **asdict(self)})

    @classmethod
    def load(cls, path: Path) -> "Comparison":
        """Read a comparison that `save` wrote."""
        values = read_json(path)
        try:
            if values.pop("format") != "algoscope comparison":
                raise KeyError("format")
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
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise DamagedFileError(
                str(path), "hold a saved comparison", f"an error in {error}"
            ) from error
