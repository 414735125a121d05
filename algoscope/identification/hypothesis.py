"""A hypothesis: one member of a family, which can be asked like any predictor."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

from algoscope.comparison.predict import Inputs, Labels
from algoscope.foundation.validation import InvalidValueError
from algoscope.identification.families import all_families
from algoscope.identification.family import Family, Points, one_choice
from algoscope.identification.observations import Observations
from algoscope.identification.prefixes import Prefixes
from algoscope.predictors import Question


@dataclass(frozen=True, eq=False)
class Hypothesis:
    """One member of a family: a choice, and coordinates of its parameters."""

    family: Family
    choice: dict[str, Any]
    coordinates: Float[np.ndarray, " parameters"]

    @property
    def parameters(self) -> dict[str, Any]:
        """The values of all parameters by name."""
        continuous = {
            p.name: float(p.value(c))
            for p, c in zip(self.family.parameters, self.coordinates, strict=True)
        }
        return {**self.choice, **continuous, **dict(self.family.fixed)}

    @property
    def name(self) -> str:
        """For example `gd(steps=3, learning_rate=0.02)` or `ridge(penalty ≤ 1e-06)`."""
        bounds = self.bounds
        inside = ", ".join(
            f"{key} {bounds[key]}"
            if key in bounds
            else f"{key}={value:.4g}"
            if isinstance(value, float)
            else f"{key}={value}"
            for key, value in self.parameters.items()
        )
        return f"{self.family.name}({inside})" if inside else self.family.name

    @property
    def bounds(self) -> dict[str, str]:
        """The parameters that were fitted at the end of their range, as "≤ 1e-06"."""
        found = {}
        for p, c in zip(self.family.parameters, self.coordinates, strict=True):
            low, high = p.grid(2)
            if p.scale != "from zero" and c <= low + 1e-9:
                found[p.name] = f"≤ {p.low:g}"
            elif c >= high - 1e-9:
                found[p.name] = f"≥ {p.high:g}"
        return found

    def predict(self, prefixes: Prefixes) -> Labels:
        """Return the predictions at every position of every dataset."""
        points = points_at(self.family, self.coordinates[None])
        return self.family.answers(prefixes, points, self.choice)[0]

    def squares(self, observations: Observations) -> Labels:
        """Return (A − f)²/cᵢ; where A breaks a tie, of the nearer answer."""
        squares = observations.squares(self.predict(observations.prefixes))
        for other in self.family.tie_breaks:
            twin = Hypothesis(self.family, {**self.choice, **other}, self.coordinates)
            answers = twin.predict(observations.prefixes)
            squares = np.minimum(squares, observations.squares(answers))
        return squares

    def batches(self, x: Inputs, y: Labels, /) -> Iterator[Labels]:
        """Yield the predictions, so that a hypothesis is asked like any black box."""
        yield self.predict(Prefixes(x.astype(np.float64), y.astype(np.float64)))

    def answers(self, questions, /) -> Iterator[np.ndarray]:
        """Yield the answers to single questions."""
        for question in questions:
            yield self._answer(question)

    def _answer(self, question: Question) -> np.ndarray:
        n, count = len(question.x), len(question.queries)
        x = np.concatenate(
            [np.repeat(question.x[None], count, 0), question.queries[:, None]], axis=1
        )
        y = np.zeros((count, n + 1))
        y[:, :n] = question.y
        return self.predict(Prefixes(x.astype(np.float64), y))[:, n]


def hypothesis_of(
    name: str, parameters: dict[str, Any], families: tuple[Family, ...] | None = None
) -> Hypothesis:
    """Return the member of a family with these parameters, as a result names them.

    Example:
        >>> hypothesis_of("ridge", {"penalty": 0.3}).name
        'ridge(penalty=0.3)'
    """
    for family in families or all_families():
        fixed = dict(family.fixed)
        names = {p.name for p in family.parameters} | set(fixed)
        choice = {k: v for k, v in parameters.items() if k not in names}
        if family.iterates is not None:
            matches = set(choice) == {"steps"}
        else:
            matches = bool(choice) == (family.choices is not one_choice)
        if (
            family.name == name
            and names <= set(parameters)
            and all(parameters[key] == value for key, value in fixed.items())
            and matches
        ):
            coordinates = [p.coordinate(parameters[p.name]) for p in family.parameters]
            return Hypothesis(family, choice, np.array(coordinates, float))
    raise InvalidValueError("hypothesis", "be one that `identify` found", name)


def points_at(
    family: Family, coordinates: Float[np.ndarray, "points parameters"]
) -> Points:
    """Return the values of the parameters at coordinates of the search."""
    return {p.name: p.value(coordinates[:, i]) for i, p in enumerate(family.parameters)}
