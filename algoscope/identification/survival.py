"""Does the match survive? The distance to an algorithm under shifts of growing size.

All shifts change the same x and w (common random numbers), and labels follow from what
results (`growing_shifts`). The distance is E(f − A)² / E y² over n = 1, …, N. Where it
exceeds `LIMIT`, the predictor has left the algorithm.
"""

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from jaxtyping import Float

from algoscope.comparison.compare import DEFAULT_EXAMPLES, asked_on
from algoscope.comparison.predict import (
    Inputs,
    Labels,
    counted,
    diverged_is_infinite,
    draw_datasets,
    held_out,
    is_slow,
    predict_exactly,
)
from algoscope.foundation import provenance
from algoscope.foundation.files import parse_number
from algoscope.foundation.progress import Progress, Steps, shown
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import short
from algoscope.foundation.validation import require_at_least
from algoscope.identification.growing_shifts import (
    GROWING_SHIFTS,
    GrowingShift,
    Rng,
    Weights,
)
from algoscope.identification.hypothesis import Hypothesis
from algoscope.predictors import BlackBox, Predictor
from algoscope.predictors.catalog import parse_predictor
from algoscope.tasks.task import Task

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LIMIT = 0.02  # a larger distance has left the algorithm
FOLD = 2**31 + 7  # of the seed's key: other datasets than those of `identify`
DATASETS, BLACK_BOX_DATASETS = 256, 24
RESAMPLES = 400


@dataclass(frozen=True)
class ShiftedDistance:
    """The distance to the algorithm under one shift of one size."""

    shift: str
    unit: str
    size: float
    distance: float
    low: float  # 95 % bootstrap interval over datasets
    high: float


@dataclass(frozen=True, repr=False)
class Survival(SavedResult):
    """How far from an algorithm a predictor is under shifts of growing size.

    Example:
        >>> import algoscope as asc
        >>> task = asc.LinearRegression(dim=2)
        >>> found = asc.survives(asc.ridge(0.01), "ols", task, num_examples=6,
        ...     num_datasets=16)
        >>> found.boundaries["smaller x"], found.boundaries["larger w"]
        (0.3, None)
    """

    kind: ClassVar[str] = "survival"

    target: str
    algorithm: str
    limit: float
    distances: list[ShiftedDistance]
    longer: list[float] | None  # beyond the examples of the task, per n, or None
    num_examples: int
    num_datasets: int
    seed: int
    versions: dict[str, str]

    @property
    def boundaries(self) -> dict[str, float | None]:
        """The first size of each shift at which the algorithm is left, or None."""
        found: dict[str, float | None] = {}
        for each in self.distances:
            found.setdefault(each.shift, None)
            if found[each.shift] is None and not each.distance <= self.limit:
                found[each.shift] = each.size
        return found

    @property
    def sentence(self) -> str:
        """The answer in words."""
        start = self.distances[0].distance
        if not start <= self.limit:
            return (
                f"{self.target} is not {self.algorithm} on its own data: distance "
                f"{short(start)}."
            )
        units = {each.shift: each.unit for each in self.distances}
        left = [
            f"{name} ({units[name]} {size:g})"
            for name, size in self.boundaries.items()
            if size is not None
        ]
        kept = [name for name, size in self.boundaries.items() if size is None]
        words = f"{self.target} is {short(start)} from {self.algorithm} on its task."
        if left:
            words += f" It leaves it under {', '.join(left)}."
        if kept:
            words += f" It survives {', '.join(kept)}."
        return words

    def rows(self) -> list[Row]:
        """Return one row per shift and size."""
        return [
            {**asdict(each), "holds": each.distance <= self.limit}
            for each in self.distances
        ]

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw the distance against the size of every shift."""
        from algoscope.identification.figure import survival_figure

        return survival_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        return asdict(self), {}

    @classmethod
    def from_fields(cls, values: Row, arrays: dict[str, np.ndarray]) -> "Survival":
        numbers = ("size", "distance", "low", "high")
        distances = [
            ShiftedDistance(**d | {name: parse_number(d[name]) for name in numbers})
            for d in values.pop("distances")
        ]
        longer = values.pop("longer")
        longer = None if longer is None else [parse_number(each) for each in longer]
        return cls(distances=distances, longer=longer, **values)


def survives(
    predictor: Predictor | BlackBox,
    algorithm: Predictor | Hypothesis | str,
    task: Task | None = None,
    *,
    num_examples: int | None = None,
    num_datasets: int | None = None,
    seed: int = 0,
    progress: Progress | bool = True,
) -> Survival:
    """Measure whether a predictor stays near an algorithm when the data change.

    Args:
        predictor: a model, a textbook predictor, or a black box.
        algorithm: what it was found to be: a predictor, or a text such as "ols".
        task: the distribution of datasets; a model knows its own.
        num_examples: the most examples before a query, as for `identify`.
        num_datasets: datasets for each shift, by default 256, and 24 for what is asked
            one question at a time.
        seed: of the datasets.
        progress: True for progress bars, False for none, or a function to call.

    Example:
        >>> import algoscope as asc
        >>> task = asc.LinearRegression(dim=2)
        >>> few = {"num_examples": 6, "num_datasets": 16}
        >>> asc.survives(asc.sgd(0.01), "sgd(0.01)", task, **few).sentence[:31]
        'SGD(0.01) is 0 from SGD(0.01) o'
    """
    task, room = asked_on(predictor, task, num_examples)
    num_examples = num_examples or min(room, DEFAULT_EXAMPLES)
    require_at_least("num_examples", num_examples, 2)
    if num_datasets is None:
        num_datasets = BLACK_BOX_DATASETS if is_slow(predictor) else DATASETS
    require_at_least("num_datasets", num_datasets, 2)
    require_at_least("seed", seed, 0)
    if isinstance(algorithm, str):
        algorithm = parse_predictor(algorithm)
    data = draw_datasets(
        task,
        num_datasets=num_datasets,
        num_examples=num_examples + 1,
        seed=seed,
        fold=FOLD,
    )
    x, w = np.asarray(data.x, np.float64), np.asarray(data.w, np.float64)
    total = sum(len(shift.sizes) for shift in GROWING_SHIFTS)
    found = []
    with shown(progress) as report:
        box = counted(predictor, report)
        steps = Steps(report, "shifts", total)
        for place, shift in enumerate(GROWING_SHIFTS):
            for size in shift.sizes:
                rng = np.random.default_rng([seed, place])
                moved, weights, noise = shift.change(rng, x, w, size)
                y = _labels(rng, moved, weights, noise)
                found.append(_measure(box, algorithm, shift, size, moved, y))
                steps.add(note=shift.name)
        longer = None
        if getattr(predictor, "max_examples", None) is None:
            longer = _beyond(box, algorithm, task, num_examples, num_datasets, seed)
    return Survival(
        target=predictor.name,
        algorithm=algorithm.name,
        limit=LIMIT,
        distances=found,
        longer=longer,
        num_examples=num_examples,
        num_datasets=num_datasets,
        seed=seed,
        versions=provenance(),
    )


def _labels(rng: Rng, x: Inputs, w: Weights, noise: float) -> Labels:
    y = np.einsum("bnd,bd->bn", x, w)
    size = np.sqrt(np.mean(y**2, axis=1, keepdims=True))
    return y + noise * size * rng.standard_normal(y.shape)


def _squares(
    predictor: Predictor | BlackBox,
    algorithm: Predictor | Hypothesis,
    x: Inputs,
    y: Labels,
) -> Float[np.ndarray, "datasets queries"]:
    """Return (f − A)² after n ≥ 1 examples; NaN where a black box does not answer."""
    answers = diverged_is_infinite(predictor, predict_exactly(predictor, x, y))
    expected = predict_exactly(algorithm, x, y)
    with np.errstate(invalid="ignore", over="ignore"):
        return (answers - expected)[:, 1:] ** 2


def _measure(
    predictor: Predictor | BlackBox,
    algorithm: Predictor | Hypothesis,
    shift: GrowingShift,
    size: float,
    x: Inputs,
    y: Labels,
) -> ShiftedDistance:
    squares = _squares(predictor, algorithm, x, y)
    known = np.isfinite(squares).any(axis=1)
    per_dataset = np.array([np.nanmean(row) for row in squares[known]])
    signal = np.mean(y**2)
    if not len(per_dataset) or signal == 0:
        return ShiftedDistance(shift.name, shift.unit, size, *[float("nan")] * 3)
    rng = np.random.default_rng(0)
    drawn = rng.integers(0, len(per_dataset), (RESAMPLES, len(per_dataset)))
    means = per_dataset[drawn].mean(axis=1) / signal
    low, high = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    return ShiftedDistance(
        shift.name,
        shift.unit,
        size,
        float(per_dataset.mean() / signal),
        float(low),
        float(high),
    )


def _beyond(
    predictor: Predictor | BlackBox,
    algorithm: Predictor | Hypothesis,
    task: Task,
    num_examples: int,
    num_datasets: int,
    seed: int,
) -> list[float]:
    """Return the distance after n = 1, …, 2N examples, twice as many as asked for."""
    x, y = held_out(
        task,
        num_datasets=num_datasets,
        num_examples=2 * num_examples + 1,
        seed=seed,
        fold=FOLD,
    )
    x, y = x.astype(np.float64), y.astype(np.float64)
    squares = _squares(predictor, algorithm, x, y)
    return [
        float(np.nanmean(column) / np.mean(y**2))
        if np.isfinite(column).any()
        else float("nan")
        for column in squares.T
    ]
