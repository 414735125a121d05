"""Fitting families to the answers of a predictor: a grid, then Gauss-Newton steps.

The distance between a hypothesis A and the predictor f is

    ρ = mean over datasets i and prefixes n ≥ 1 of (f − A)² / cᵢ,

where cᵢ is the mean square of the labels of dataset i plus that of the predictions, so
that a dataset does not count more because its numbers are large. ρ = 0 means that both
are the same function.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from algoscope.comparison.predict import Inputs, Labels
from algoscope.foundation.progress import Progress, Steps
from algoscope.foundation.validation import InvalidValueError
from algoscope.identification.families import FAMILIES
from algoscope.identification.family import Family, Points, one_choice
from algoscope.identification.prefixes import Prefixes
from algoscope.predictors import Question

GRID_SIZE = {0: 1, 1: 41, 2: 9}  # points per parameter, by the number of parameters
SCANNED_STEPS = 64  # of iterative families, on the grid; the search goes on from there
STARTS = 2  # choices or numbers of steps that are polished
FIRST_ROUND, LAST_ROUND = 5, 15  # Gauss-Newton steps
SMALLEST_GAIN = 1e-3  # a step that reduces ρ by a smaller share is the last
DIFFERENCE = 1e-6  # for numerical derivatives
FOUND = 1e-14  # at a smaller ρ the algorithm is found, and others need not be tried
ALWAYS_POLISHED = 8  # nearest families, polished even if the algorithm is found
FAR = 10.0  # times the nearest: too far after the first round to be polished further
CLEAR = 1e-6  # a smaller ρ is not used to leave others out: they may be exact
HOPELESS = 30.0  # times the nearest: too far on the grid to be polished
LARGEST_RESIDUAL = 1e6  # larger residuals, and NaN, count as this
DAMPINGS = (0.0, 1e-3, 0.1, 10.0, 1e3)


@dataclass(frozen=True, eq=False)
class Observations:
    """Datasets by suite, and what the predictor answered at every position of each."""

    x: Inputs
    y: Labels
    predictions: Labels  # NaN where there is no answer
    suite: tuple[str, ...]
    again: Labels | None = None  # a second answer to the same question, or NaN

    @cached_property
    def noise(self) -> Labels:
        """(f − f′)²/2cᵢ of two answers to one question, NaN where it was asked once."""
        if self.again is None:
            return np.full_like(self.predictions, np.nan)
        twice = (self.predictions - self.again) ** 2 / (2 * self.scales[:, None])
        return np.where(self.counted, twice, np.nan)

    @cached_property
    def prefixes(self) -> Prefixes:
        """The datasets, as families see them."""
        return Prefixes(self.x, self.y)

    @cached_property
    def counted(self) -> Bool[np.ndarray, "datasets examples"]:
        """Where there is an answer that counts."""
        counted = np.isfinite(self.predictions)
        counted[:, 0] = False  # before the first example nothing has been learned
        return counted

    @cached_property
    def scales(self) -> Float[np.ndarray, " datasets"]:
        """cᵢ, the size of the numbers of each dataset."""
        size = np.where(self.counted, self.predictions, 0) ** 2
        sums = np.sum(size, axis=1) / np.maximum(self.counted.sum(axis=1), 1)
        scale = sums + np.mean(self.y**2, axis=1)
        return np.where(scale > 0, scale, 1)

    @cached_property
    def suites(self) -> dict[str, Int[np.ndarray, " some"]]:
        """The indices of the datasets of every suite that has answers."""
        names = dict.fromkeys(self.suite)
        answered = np.asarray(self.counted.any(axis=1))
        found = {
            name: np.array(
                [i for i, s in enumerate(self.suite) if s == name and answered[i]], int
            )
            for name in names
        }
        return {name: rows for name, rows in found.items() if len(rows)}

    @cached_property
    def shares(self) -> Float[np.ndarray, " datasets"]:
        """What each dataset counts: every suite the same, 1 in total."""
        shares = np.zeros(len(self.x))
        for rows in self.suites.values():
            shares[rows] = 1 / (len(rows) * len(self.suites))
        return shares

    def squares(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets examples"]:
        """Return (A − f)²/cᵢ, 0 where there is no answer."""
        return self.residuals(hypotheses) ** 2

    def residuals(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets examples"]:
        """Return (A − f)/√cᵢ, 0 where there is no answer."""
        with np.errstate(invalid="ignore", over="ignore"):
            differences = hypotheses - np.where(self.counted, self.predictions, 0)
            differences = differences / np.sqrt(self.scales)[:, None]
        numbers = np.nan_to_num(differences, nan=LARGEST_RESIDUAL)
        bounded = np.clip(numbers, -LARGEST_RESIDUAL, LARGEST_RESIDUAL)
        return np.where(self.counted, bounded, 0.0)

    def distances(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some datasets"]:
        """Return the mean over prefixes of (f − A)²/cᵢ for every dataset."""
        counted = np.maximum(self.counted.sum(axis=1), 1)
        return np.sum(self.squares(hypotheses), axis=-1) / counted

    def weighted(
        self, hypotheses: Float[np.ndarray, "*some datasets examples"]
    ) -> Float[np.ndarray, "*some values"]:
        """Return residuals whose sum of squares is ρ, every suite counting the same."""
        counted = np.maximum(self.counted.sum(axis=1), 1)
        factors = np.sqrt(self.shares / counted)
        flat = self.residuals(hypotheses) * factors[:, None]
        return flat.reshape(*flat.shape[:-2], -1)

    def take(self, index: slice | np.ndarray) -> "Observations":
        """Return the datasets at these indices."""
        rows = np.arange(len(self.x))[index]
        return Observations(
            self.x[rows],
            self.y[rows],
            self.predictions[rows],
            tuple(self.suite[i] for i in rows),
            None if self.again is None else self.again[rows],
        )

    def only(self, *suites: str) -> "Observations":
        """Return the datasets of these suites."""
        return self.take(np.array([s in suites for s in self.suite], bool))

    def between(self, first: int, last: int) -> "Observations":
        """Return the same datasets, answered after `first` to `last` examples only."""
        kept = np.full_like(self.predictions, np.nan)
        part = slice(first, last + 1)
        kept[:, part] = self.predictions[:, part]
        found = Observations(self.x, self.y, kept, self.suite, self.again)
        object.__setattr__(found, "prefixes", self.prefixes)
        return found

    def join(self, other: "Observations") -> "Observations":
        """Return the datasets of both."""
        return Observations(
            np.concatenate([self.x, other.x]),
            np.concatenate([self.y, other.y]),
            np.concatenate([self.predictions, other.predictions]),
            self.suite + other.suite,
            None
            if self.again is None
            else np.concatenate([self.again, np.full_like(other.y, np.nan)]),
        )


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


def hypothesis_of(name: str, parameters: dict[str, Any]) -> Hypothesis:
    """Return the member of a family with these parameters, as a result names them.

    Example:
        >>> hypothesis_of("ridge", {"penalty": 0.3}).name
        'ridge(penalty=0.3)'
    """
    for family in FAMILIES:
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


@dataclass(frozen=True, eq=False)
class Scan:
    """What a grid found: all members that were tried, and their ρ at every n."""

    family: Family
    members: list[Hypothesis]
    squares: Float[np.ndarray, "members examples"]  # per n, weighted by suite

    def starts(
        self, first: int = 1, last: int | None = None
    ) -> list[tuple[float, Hypothesis]]:
        """Return each choice at its best point for a span of n, the nearest first."""
        part = slice(first, None if last is None else last + 1)
        losses = self.squares[:, part].sum(axis=1)
        losses = losses / max(len(range(*part.indices(self.squares.shape[1]))), 1)
        best: dict[tuple, tuple[float, Hypothesis]] = {}
        for loss, member in zip(losses, self.members, strict=True):
            key = tuple(member.choice.items())
            if key not in best or loss < best[key][0]:
                best[key] = (float(loss), member)
        return sorted(best.values(), key=lambda pair: pair[0])


def scan(family: Family, observations: Observations) -> Scan:
    """Return the members of a family on a grid, with their ρ."""
    size = GRID_SIZE[len(family.parameters)]
    grids = [p.grid(size) for p in family.parameters]
    coordinates = np.array(list(product(*grids))).reshape(
        size ** len(grids), len(grids)
    )
    points = points_at(family, coordinates)
    weights = observations.shares / np.maximum(observations.counted.mean(axis=1), 1e-9)
    members, squares = [], []
    for choice, answers in _tried(family, observations.prefixes, points):
        found = observations.squares(answers)
        squares.append(np.einsum("pbn,b->pn", found, weights))
        members += [Hypothesis(family, choice, each) for each in coordinates]
    return Scan(family, members, np.concatenate(squares))


def _tried(family: Family, prefixes: Prefixes, points: Points):
    """Yield every choice with its predictions at all points."""
    if family.iterates is None:
        for choice in family.choices(prefixes):
            yield choice, family.answers(prefixes, points, choice)
        return
    last = min(family.max_steps, SCANNED_STEPS)
    steps = family.iterates(prefixes, points)
    for k in range(1, last + 1):
        yield {"steps": k}, next(steps)


def polish(
    starts: list[tuple[float, Hypothesis]],
    observations: Observations,
    nearest: float = np.inf,
) -> tuple[float, Hypothesis]:
    """Return the nearest member of a family, and its ρ.

    The best choices take a few Gauss-Newton steps from their grid points, then the
    number of steps of an iterative family is varied while that helps, then the nearest
    takes more Gauss-Newton steps. What is then still far from `nearest`, the smallest ρ
    of another family, is left as it is.
    """
    family = starts[0][1].family
    refined = [refine(start, observations, FIRST_ROUND) for _, start in starts[:STARTS]]
    best = min(refined, key=lambda pair: pair[0])
    if best[0] > FAR * nearest:
        return best
    if family.iterates is not None and family.parameters:
        best = _climb(best, observations)
    if not family.parameters:
        return best
    return refine(best[1], observations, LAST_ROUND)


def _climb(
    best: tuple[float, Hypothesis], observations: Observations
) -> tuple[float, Hypothesis]:
    """Return a better number of steps, if there is one: first far away, then near.

    α·k is held constant at the start: k steps are then nearly the same function.
    """
    for stride in (16, 4, 1):
        improved = True
        while improved:
            improved = False
            for sign in (1, -1):
                moved = _with_steps(best[1], best[1].choice["steps"] + sign * stride)
                if moved is None:
                    continue
                tried = refine(moved, observations, FIRST_ROUND)
                if tried[0] < best[0] * (1 - SMALLEST_GAIN):
                    best, improved = tried, True
                    break
    return best


def _with_steps(hypothesis: Hypothesis, steps: int) -> Hypothesis | None:
    family = hypothesis.family
    if not 1 <= steps <= family.max_steps:
        return None
    coordinates = hypothesis.coordinates.copy()
    names = [p.name for p in family.parameters]
    if "learning_rate" in names:
        place = names.index("learning_rate")
        coordinates[place] += np.log(hypothesis.choice["steps"] / steps)
    return Hypothesis(family, {"steps": steps}, coordinates)


def refine(
    start: Hypothesis, observations: Observations, iterations: int = LAST_ROUND
) -> tuple[float, Hypothesis]:
    """Return the hypothesis after Gauss-Newton steps on its parameters, and its ρ.

    Each step uses the damping that reduces ρ most.
    """
    family, prefixes = start.family, observations.prefixes
    if not family.parameters:
        rest = observations.weighted(start.predict(prefixes))
        return float(rest @ rest), start
    lows, highs = np.transpose([p.grid(2) for p in family.parameters])
    best = np.clip(start.coordinates, lows, highs)

    def residuals(points: Float[np.ndarray, "points parameters"]) -> np.ndarray:
        values = points_at(family, points)
        return observations.weighted(family.answers(prefixes, values, start.choice))

    size = len(best)
    moves = np.concatenate([np.zeros((1, size)), DIFFERENCE * np.eye(size)])
    moves[1:] *= np.where(best + DIFFERENCE > highs, -1, 1)[:, None]
    loss = np.inf
    for _ in range(iterations):
        here = residuals(best + moves)
        center = here[0]
        loss = float(center @ center)
        signs = np.diag(moves[1:])
        jacobian = ((here[1:] - center) / signs[:, None]).T
        normal, slope = jacobian.T @ jacobian, jacobian.T @ center
        scale = np.diag(np.maximum(np.diag(normal), 1e-30))
        steps = [np.linalg.lstsq(normal + a * scale, slope)[0] for a in DAMPINGS]
        tried = np.clip(best - np.array(steps), lows, highs)
        losses = np.sum(residuals(tried) ** 2, axis=1)
        winner = int(np.argmin(losses))
        if not losses[winner] < loss:
            break
        best, gained = tried[winner], losses[winner] < loss * (1 - SMALLEST_GAIN)
        loss = float(losses[winner])
        if not gained:
            break
    return loss, Hypothesis(family, start.choice, best)


def fit_families(
    observations: Observations, progress: Progress
) -> tuple[list[Hypothesis], list[Scan]]:
    """Return the nearest member of every family, in the order of `FAMILIES`.

    Families are polished in the order of their distance on the grid. Once the algorithm
    is found, only the nearest families are still polished.
    """
    scans = []
    steps = Steps(progress, "trying families", len(FAMILIES))
    for family in FAMILIES:
        scans.append(scan(family, observations))
        steps.add(note=family.name)
    starts = [each.starts() for each in scans]
    nearest, found, hypotheses = np.inf, np.inf, {}
    steps = Steps(progress, "fitting families", len(FAMILIES))
    order = sorted(range(len(scans)), key=lambda index: starts[index][0][0])
    for place, index in enumerate(order):
        loss, hypothesis = starts[index][0]
        family = hypothesis.family
        known = max(nearest, CLEAR)
        hopeless = len(family.parameters) < 2 and loss > HOPELESS * known
        needed = family.complexity < found and not hopeless
        if place < ALWAYS_POLISHED or needed:
            loss, hypothesis = polish(starts[index], observations, known)
            for start in _nested_starts(family, hypotheses.values()):
                tried = refine(start, observations, LAST_ROUND)
                loss, hypothesis = min((loss, hypothesis), tried, key=lambda p: p[0])
        steps.add(note=family.name)
        nearest = min(nearest, loss)
        if loss < FOUND:
            found = min(found, family.complexity)
        hypotheses[index] = hypothesis
    return [hypotheses[index] for index in range(len(scans))], scans


def _nested_starts(
    family: Family, hypotheses: Iterable[Hypothesis]
) -> Iterator[Hypothesis]:
    """Yield fitted members of simpler variants, as members of this family.

    A parameter that the simpler variant does not have starts near its low end.
    """
    names = {p.name for p in family.parameters}
    for each in hypotheses:
        fewer = {p.name for p in each.family.parameters}
        if each.family.name == family.name and fewer < names:
            order = [p.name for p in each.family.parameters]
            known = dict(zip(order, each.coordinates, strict=True))
            coordinates = [known.get(p.name, p.grid(9)[1]) for p in family.parameters]
            yield Hypothesis(family, each.choice, np.array(coordinates))
