"""Which textbook algorithm is a learner like? SPD per number of examples (figure 1).

A comparison is data: it is saved, loaded, tabulated and drawn without the models.
"""

import math
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import numpy as np

from algoscope.checkpoints import DamagedFileError, read_json, write_json
from algoscope.evaluation import held_out, predict_all, predict_exactly
from algoscope.metrics import bootstrap_interval, squared_prediction_difference
from algoscope.predictors import Predictor
from algoscope.tasks import Task
from algoscope.validation import InvalidValueError, require_at_least

LABELS = "Y"  # the labels themselves, as the paper's legends write them


@dataclass(frozen=True)
class Curve:
    """SPD(first, second)/d after n = 0, 1, … examples, with a 95 % interval."""

    first: str
    second: str
    mean: list[float]
    low: list[float]
    high: list[float]
    median: list[float]

    def average(self, start: int, stop: int) -> float:
        """Return the mean over n = start, …, stop."""
        return float(np.mean(self.mean[start : stop + 1]))


@dataclass(frozen=True)
class Comparison:
    """A learner against each reference, and each of them against the labels."""

    learner: str
    dim: int
    task: str
    num_datasets: int
    seed: int
    curves: list[Curve]
    versions: dict[str, str]

    @property
    def num_examples(self) -> int:
        """The most examples that a prediction was made from."""
        return len(self.curves[0].mean) - 1

    def against(self, reference: str) -> Curve:
        """Return the curve of the learner against one reference."""
        for curve in self.curves:
            if (curve.first, curve.second) == (self.learner, reference):
                return curve
        known = ", ".join(c.second for c in self.curves if c.first == self.learner)
        raise InvalidValueError("reference", f"be one of {known}", f"'{reference}'")

    def nearest(self, start: int, stop: int) -> list[tuple[str, float]]:
        """Return the references by their mean distance over n = start, …, stop."""
        averages = [
            (curve.second, curve.average(start, stop))
            for curve in self.curves
            if curve.first == self.learner and curve.second != LABELS
        ]
        return sorted(averages, key=lambda pair: (math.isnan(pair[1]), pair[1]))

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
            curves = [Curve(**curve) for curve in values.pop("curves")]
            parts = [p for c in curves for p in (c.mean, c.low, c.high, c.median)]
            if len({len(part) for part in parts}) != 1 or not parts[0]:
                raise KeyError("curves")
            return cls(curves=curves, **values)
        except (KeyError, TypeError) as error:
            raise DamagedFileError(
                str(path), "hold a saved comparison", f"an error in {error}"
            ) from error


def provenance() -> dict[str, str]:
    """Return the versions that decide a number."""
    packages = ("algoscope", "jax", "jaxlib", "numpy")
    return {"python": platform.python_version(), **{p: version(p) for p in packages}}


def compare(
    learner: Predictor,
    references: Sequence[Predictor],
    task: Task,
    *,
    num_examples: int,
    num_datasets: int = 10_000,
    seed: int = 0,
) -> Comparison:
    """Measure SPD/d between the learner and each reference after 0, …, n examples.

    Also measures the learner and the references against the labels (their risk).
    """
    require_at_least("num_examples", num_examples, 1)
    if not references:
        raise InvalidValueError("references", "name at least one predictor", "none")
    names = [LABELS, learner.name, *(reference.name for reference in references)]
    for name in names:
        if names.count(name) > 1:
            rule = f"have a name of its own; {LABELS} stands for the labels"
            raise InvalidValueError("each predictor", rule, f"'{name}' twice")
    x, y = held_out(
        task, num_datasets=num_datasets, num_examples=num_examples + 1, seed=seed
    )
    predictions = {learner.name: predict_all(learner, x, y)}
    for reference in references:
        predictions[reference.name] = predict_exactly(reference, x, y)

    pairs = [(learner.name, reference.name) for reference in references]
    pairs += [(name, LABELS) for name in predictions]
    predictions[LABELS] = y
    spd = np.stack(
        [
            squared_prediction_difference(predictions[a], predictions[b], task.dim)
            for a, b in pairs
        ],
        axis=1,
    )
    low, high = bootstrap_interval(spd, seed=seed)
    columns = (spd.mean(axis=0), low, high, np.median(spd, axis=0))
    curves = [
        Curve(a, b, *(column[index].tolist() for column in columns))
        for index, (a, b) in enumerate(pairs)
    ]
    return Comparison(
        learner=learner.name,
        dim=task.dim,
        task=repr(task),
        num_datasets=num_datasets,
        seed=seed,
        curves=curves,
        versions=provenance(),
    )
