"""Distances of one learner to references, over regions of n.

`Distances` is what was measured: SPD/d to every reference over a few regions of n, and
bootstrap replicates of these means, from which paired differences follow. Learners that
differ in nothing but their training seed are joined in a `SeedGroup` (seed_groups.py).
"""

import base64
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.comparison.intervals import Estimate, estimate_from_json
from algoscope.experiments.record import Difference
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import parse_number, read_json, reading, write_json
from algoscope.foundation.text import with_interval
from algoscope.predictors import figure_1_references

UNDER, AT, OVER, ALL = "under-determined", "determined", "over-determined", "all n"
IN_WORDS = {UNDER: "n < d", AT: "n = d", OVER: "n > d", ALL: "all n"}
FITTED_RIDGE, FITTED_GD = "fitted ridge", "fitted GD"
RISKS = ("risk of zero", "risk of Bayes")  # columns beside the distances

FAMILIES = {
    "OLS": "OLS",
    "Ridge": "ridge",
    "GD": "gradient descent",
    "SGD": "gradient descent",
    "OptimalGD": "gradient descent",
    "KNN": "nearest neighbors",
    "Newton": "Newton",
    "ConjugateGradients": "conjugate gradients",
    FITTED_RIDGE: "ridge",
    FITTED_GD: "gradient descent",
}

Replicates = Float[np.ndarray, "resamples regions columns"]


def family(name: str) -> str:
    """Return the family of a reference by its name.

    Example:
        >>> family("Ridge(0.1)"), family("GD(0.01, steps=4)"), family("OLS")
        ('ridge', 'gradient descent', 'OLS')
    """
    return FAMILIES.get(name.split("(")[0], name)


def paper_names() -> tuple[str, ...]:
    """Return the names of the paper's references."""
    return tuple(reference.name for reference in figure_1_references())


def regions(dim: int, last: int) -> dict[str, tuple[int, int]]:
    """Return the first and last n of each region that n = 1, …, `last` covers.

    For d = 1 there is no n < d; n = 1 stands for it, as in the paper's figure 8.

    Example:
        >>> regions(8, 20)["over-determined"], regions(1, 20)["under-determined"]
        ((9, 20), (1, 1))
    """
    spans = {
        UNDER: (1, max(1, min(dim - 1, last))),
        AT: (dim, dim),
        OVER: (dim + 1, last),
        ALL: (1, last),
    }
    return {name: (a, b) for name, (a, b) in spans.items() if a <= b <= last}


def in_text(estimate: Estimate | Difference) -> str:
    """Return a number with its interval, as text."""
    return with_interval(estimate.mean, estimate.low, estimate.high)


@dataclass(frozen=True)
class Distances:
    """SPD/d of one learner to each reference and to the labels, over regions of n."""

    learner: str
    about: dict[str, Any]  # what distinguishes the learner, such as L and H
    num_datasets: int
    spans: dict[str, list[int]]  # region: first and last n
    means: dict[str, list[Estimate]]
    trimmed: dict[str, dict[str, float]] = field(default_factory=dict)
    fitted: dict[str, str] = field(default_factory=dict)  # their names with parameters
    columns: list[str] = field(default_factory=list)  # of the replicates
    replicates: Replicates | None = field(default=None, compare=False)

    def to(self, reference: str, region: str) -> Estimate:
        """Return the distance to one reference over a region."""
        return next(e for e in self.means[region] if e.second == reference)

    def column(self, name: str, region: str) -> Float[np.ndarray, " resamples"]:
        """Return the replicates of a mean over a region: of a distance or a risk."""
        if self.replicates is None:
            raise KeyError(f"{self.learner} was measured without replicates")
        place = list(self.spans).index(region), self.columns.index(name)
        return self.replicates[:, *place]

    def save(self, path: Path) -> None:
        """Write the distances, with six digits: more would be noise."""
        values = _rounded({**asdict(self), "replicates": None})
        if self.replicates is not None:
            packed = self.replicates.astype("<f4").tobytes()
            values["replicates"] = base64.b64encode(packed).decode()
        write_json(path, values)

    @classmethod
    def load(cls, path: Path) -> "Distances":
        """Read what `save` wrote."""
        values = read_json(path)
        with reading(path, "does not hold distances"):
            return cls._from_fields(values)

    @classmethod
    def _from_fields(cls, values: dict[str, Any]) -> "Distances":
        values.pop("margins", None)  # of measurements without replicates
        values["means"] = {
            region: [estimate_from_json(each) for each in estimates]
            for region, estimates in values["means"].items()
        }
        values["trimmed"] = {
            region: {name: parse_number(each) for name, each in trimmed.items()}
            for region, trimmed in values.get("trimmed", {}).items()
        }
        if packed := values.get("replicates"):
            shape = (-1, len(values["spans"]), len(values["columns"]))
            flat = np.frombuffer(base64.b64decode(packed), "<f4")
            values["replicates"] = flat.reshape(shape).astype(np.float64)
        return cls(**values)

    @classmethod
    def load_all(cls, directory: Path) -> "list[Distances]":
        """Read the distances of all learners that an experiment measured."""
        return [cls.load(directory / name) for name in Cache(directory).names]


def _rounded(value: Any) -> Any:
    """Return floats with six significant digits."""
    if isinstance(value, dict):
        return {key: _rounded(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return float(f"{value:.6g}") if isinstance(value, float) else value
