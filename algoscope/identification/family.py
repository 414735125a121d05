"""What a family is: an algorithm with free parameters, asked for many of them at once.

A family has continuous parameters, which are searched in a range, and choices such as a
number of neighbors, which are all tried. Iterative families have a number of steps:
`iterates` yields what computes the predictions after 1, 2, … steps, and the search for
the number has no upper end.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count, islice
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from algoscope.identification.prefixes import Answers, Column, Filters, Prefixes

NEAR_ZERO = 0.01  # where the grid of a parameter that may be 0 becomes geometric

Points = dict[str, Float[np.ndarray, " points"]]  # values of the parameters by name
Predict = Callable[[Prefixes, Points, dict[str, Any]], Answers]
Iterates = Callable[[Prefixes, Points], Iterator[Callable[[], Answers]]]


@dataclass(frozen=True)
class Parameter:
    """A continuous parameter, and the range in which it is searched."""

    name: str
    low: float
    high: float
    scale: Literal["log", "linear", "from zero"] = "log"

    def grid(self, size: int) -> Float[np.ndarray, " size"]:
        """Return coordinates over the whole range; on a log scale, logarithms."""
        if self.scale == "from zero":
            steps = np.linspace(0, math.log1p(self.high / NEAR_ZERO), size)
            return NEAR_ZERO * np.expm1(steps)
        spaced = np.geomspace if self.scale == "log" else np.linspace
        points = spaced(self.low, self.high, size)
        return np.log(points) if self.scale == "log" else points

    def value(self, coordinate: Any) -> Any:
        """Return the values at coordinates."""
        return np.exp(coordinate) if self.scale == "log" else coordinate

    def coordinate(self, value: float) -> float:
        """Return the coordinate of a value."""
        return math.log(value) if self.scale == "log" else value


def one_choice(prefixes: Prefixes) -> tuple[dict[str, Any], ...]:
    """Return the choices of a family that has none."""
    return ({},)


@dataclass(frozen=True, eq=False)
class Family:
    """A learning algorithm with free parameters.

    `fixed` are parameters of this variant. An iterative family has `iterates` in place
    of `predict`; with `max_steps` steps at most if more make no difference. Choices in
    `tie_breaks` are the same algorithm too, with ties broken in another way.
    """

    name: str
    predict: Predict | None = None
    parameters: tuple[Parameter, ...] = ()
    choices: Callable[[Prefixes], tuple[dict[str, Any], ...]] = one_choice
    fixed: tuple[tuple[str, Any], ...] = ()
    iterates: Iterates | None = None
    max_steps: int = 4096
    tie_breaks: tuple[dict[str, Any], ...] = ()

    @property
    def complexity(self) -> int:
        """How many parameters distinguish it: continuous, discrete and fixed ones."""
        discrete = self.iterates is not None or self.choices is not one_choice
        return len(self.parameters) + discrete + len(self.fixed)

    def answers(
        self, prefixes: Prefixes, points: Points, choice: dict[str, Any]
    ) -> Answers:
        """Return the predictions at points of the parameters, for one choice."""
        if self.iterates is None:
            assert self.predict is not None
            return self.predict(prefixes, points, choice)
        with np.errstate(all="ignore"):  # a large rate diverges
            after = islice(self.iterates(prefixes, points), choice["steps"] - 1, None)
            return next(after)()


def column(values: Float[np.ndarray, " points"]) -> Column:
    """Return parameters shaped so that they multiply filters."""
    return values[:, None, None, None]


def filtered(
    rule: Callable[..., Filters | np.ndarray], *, intercept: bool = False
) -> Predict:
    """Return `predict` of a family that is a filter.

    `rule(spectrum, prefixes, **parameters)` returns f(λ).
    """

    def predict(prefixes: Prefixes, points: Points, choice: dict[str, Any]) -> Answers:
        spectrum = prefixes.centered if intercept else prefixes.spectrum
        columns = {name: column(values) for name, values in points.items()}
        with np.errstate(all="ignore"):
            filters = rule(spectrum, prefixes, **columns, **choice)
        shape = (count_points(points), *spectrum.values.shape)
        return spectrum.predict(np.broadcast_to(filters, shape))

    return predict


def filter_iterates(rule: Callable[..., Iterator[Filters | np.ndarray]]) -> Iterates:
    """Return `iterates` of a family whose every step is a filter."""

    def iterates(prefixes: Prefixes, points: Points) -> Iterator[Callable[[], Answers]]:
        spectrum = prefixes.spectrum
        columns = {name: column(values) for name, values in points.items()}
        shape = (count_points(points), *spectrum.values.shape)
        for filters in rule(spectrum, prefixes, **columns):
            yield lambda f=filters: spectrum.predict(np.broadcast_to(f, shape))

    return iterates


def filter_after(rule: Callable[..., Filters]) -> Iterates:
    """Return `iterates` of a family whose filter after k steps has a formula.

    Then thousands of steps cost as much as one: nothing is computed until it is asked.
    """

    def iterates(prefixes: Prefixes, points: Points) -> Iterator[Callable[[], Answers]]:
        columns = {name: column(values) for name, values in points.items()}
        for steps in count(1):
            yield lambda k=steps: prefixes.spectrum.predict(
                rule(prefixes.spectrum, prefixes, k, **columns)
            )

    return iterates


def count_points(points: Points) -> int:
    """Return how many points there are; one for a family without parameters."""
    return len(next(iter(points.values()))) if points else 1
