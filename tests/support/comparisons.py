"""Comparisons written by hand, for tests of code that reads them."""

from collections.abc import Mapping, Sequence
from typing import Any

from algoscope.comparison.intervals import Curve
from algoscope.comparison.result import LABELS, Comparison


def curve(first: str, second: str, mean: Sequence[float]) -> Curve:
    """Return a curve whose four columns all differ."""
    low, median, high = ([share * m for m in mean] for share in (0.5, 0.75, 1.5))
    return Curve(first, second, list(mean), low, high, median)


def handmade(
    means: Mapping[str, Sequence[float]], learner: str = "ICL", **changes: Any
) -> Comparison:
    """Return a comparison with these mean SPD/d, in the form that `compare` gives it.

    The distances to the labels are 10 for the learner and 0 for the references, so that
    code which mistakes their curves for the learner's gives another answer.
    """
    num_prefixes = len(next(iter(means.values())))
    curves = [curve(learner, name, mean) for name, mean in means.items()]
    curves.append(curve(learner, LABELS, [10.0] * num_prefixes))
    curves += [curve(name, LABELS, [0.0] * num_prefixes) for name in means]
    values: dict[str, Any] = {
        "learner": learner,
        "dim": 2,
        "task": "LinearRegression(dim=2)",
        "num_datasets": 12_345,
        "seed": 7,
        "curves": curves,
        "versions": {"algoscope": "0.1.0"},
    }
    return Comparison(**values | changes)
