"""The result of `identify`: statements, ranked hypotheses, and what they rest on."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from algoscope.foundation.files import parse_number
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import short
from algoscope.identification.regimes import Regime
from algoscope.identification.scores import UNEXPLAINED
from algoscope.identification.suites import KINDS

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Candidate:
    """A fitted hypothesis, and how far it is from the predictor."""

    family: str
    name: str
    parameters: dict[str, Any]
    bounds: dict[str, str]  # parameters at the end of their range
    distance: float  # ρ on datasets that were not fitted, the mean over suites
    low: float  # 95 % bootstrap interval of the distance
    high: float
    suites: dict[str, float]  # ρ per suite
    untrimmed: dict[str, float]  # with the datasets that fit worst
    per_n: list[float | None]  # ρ after n = 0, 1, … examples, None without answers


@dataclass(frozen=True)
class Statement:
    """What is said about one domain: the task, or all kinds of data.

    `relation` is "is" if the hypothesis equals the predictor up to rounding or up to
    its noise, "behaves like" if it is near, "none" if nothing is. `confidence` is the
    probability that the statement is right. `holds_on` and `fails_on` are suites.
    """

    domain: str
    relation: str
    verdict: str
    confidence: float
    candidates: list[Candidate]  # the named or nearest one first
    ties: list[str]  # families that cannot be told apart from it
    suites: dict[str, float]  # its distance on every suite that was asked
    holds_on: list[str]
    fails_on: list[str]
    unexplained: float = 0.0  # the share of its answers that the nearest leaves

    @property
    def nearest(self) -> Candidate:
        """The candidate that is named, or would be."""
        return self.candidates[0]

    @property
    def runner_up(self) -> Candidate | None:
        """The nearest candidate of a family that can be told apart."""
        known = {self.nearest.family, *self.ties}
        return next((c for c in self.candidates if c.family not in known), None)

    def sentence(self, subject: str, limit: float, *, partly: bool = False) -> str:
        """Return the statement in words; `partly` if there is more to say."""
        first, sure = self.nearest, f"confidence {self.confidence:.0%}"
        if self.relation == "none":
            far = above(first.distance, limit) if partly else self._distances(limit)
            return (
                f"{subject} is none of the known algorithms {self.where} ({sure}). The "
                f"nearest is {first.name} at distance {far}."
            )
        if self.relation == "is":
            verb = "gives the answers of" if partly else "runs"
            words = f"{subject} {verb} {first.name} {self.where}: no answer differs by "
            words += f"more than rounding or its own noise ({sure})."
        else:
            words = f"{subject} behaves like {first.name} {self.where}: distance "
            words += f"{short(first.distance)} ({short(first.low)} to "
            words += f"{short(first.high)}), {sure}."
        if subject == "It":  # not the main statement
            return words
        if self.ties:
            names = self._tied_names()
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            words += f" Not told apart from it: {', '.join(names[:3])}{more}."
        other = self.runner_up
        if other is not None and np.isfinite(other.distance):
            words += f" Next is {other.name} at {short(other.distance)}."
        return words

    @property
    def where(self) -> str:
        """The domain in words."""
        return "on its task" if self.domain == "task" else "on all kinds of data"

    def elsewhere(self, limit: float) -> str:
        """Say on which other kinds of data it is as near, and on which not."""
        good = [KINDS[name] for name in self.holds_on if name != "task"]
        bad = [
            f"{KINDS[name]} ({above(self.suites[name], limit)})"
            for name in self.fails_on
        ]
        if not bad:
            return ""
        if not good:
            return f"It is not within {limit:g} of that on {listed(bad)}."
        return (
            f"It is within {limit:g} of that on {listed(good)} too, but not on "
            f"{listed(bad)}."
        )

    def _distances(self, limit: float) -> str:
        """Say how far the nearest is, and on which kinds of data it is too far."""
        distance = above(self.nearest.distance, limit)
        asked = self.nearest.suites
        far = [name for name, rho in asked.items() if not rho <= limit]
        if len(far) == len(asked):
            more = " on every kind" if len(asked) > 1 else ""
            return f"{distance}, more than {limit:g}{more}"
        if not far and self.unexplained > UNEXPLAINED:
            share = f"{self.unexplained:.0%} of the size of its answers"
            return f"{distance}, which is {share}"
        if not far:
            return distance
        bad = [f"{KINDS[name]} ({above(asked[name], limit)})" for name in far]
        return f"{distance}, farther away than {limit:g} on {listed(bad)}"

    def _tied_names(self) -> list[str]:
        found = {}
        for each in self.candidates:
            if each.family in self.ties:
                found.setdefault(each.family, each.name)
        return list(found.values())


def listed(words: list[str]) -> str:
    """Return words as a list in a sentence.

    Example:
        >>> listed(["noise", "outliers", "shifts"])
        'noise, outliers and shifts'
    """
    return " and ".join([*([", ".join(words[:-1])] if words[1:] else []), *words[-1:]])


def above(value: float, limit: float) -> str:
    """Return a number with enough digits to differ from the limit that it exceeds."""
    for digits in range(2, 12):
        text = f"{value:.{digits}g}"
        if value <= limit or float(text) > limit:
            return text
    return repr(value)


@dataclass(frozen=True, repr=False)
class Identification(SavedResult):
    """Which algorithm a predictor runs: statements about its task and about all data.

    `verdict`, `relation`, `parameters`, `confidence`, `ties`, `distance` and `suites`
    are those of the main statement: that about all kinds of data if it names an
    algorithm, otherwise that about the task; for a model, which has a task, that about
    the task unless the algorithm is the same everywhere. `answered` is the share of
    questions with an answer.

    Example:
        >>> import algoscope as asc
        >>> task = asc.LinearRegression(dim=2)
        >>> found = asc.identify(asc.zero, task, num_examples=8, num_datasets=32)
        >>> found.relation, found.verdict
        ('is', 'zero')
    """

    kind: ClassVar[str] = "identification"

    target: str
    verdict: str
    relation: str
    parameters: dict[str, Any]
    parameter_ranges: dict[str, tuple[float, float]]
    confidence: float
    ties: list[str]
    distance: float
    suites: dict[str, float]
    domain: str
    statements: list[Statement]  # the main one first
    regimes: list[Regime]
    changes_at: int | None  # the last n of the first of two algorithms
    broken_symmetries: dict[str, float]  # that the named algorithm has
    limit: float  # the largest distance that is called "behaves like"
    answered: float
    first_n: int
    last_n: int
    noise: float  # the predictor's own, as a distance
    task: str
    dim: int
    num_examples: int
    num_datasets: int
    num_questions: int
    seed: int
    versions: dict[str, str]
    evidence: dict[str, Any] = field(default_factory=dict)
    answers: dict[str, list[float]] = field(default_factory=dict)  # some, for figures

    @property
    def candidates(self) -> list[Candidate]:
        """The hypotheses of the main statement, the named or nearest first."""
        return self.statements[0].candidates

    @property
    def nearest(self) -> Candidate:
        """The nearest candidate, also if it is too far away to be the answer."""
        return self.candidates[0]

    @property
    def sentence(self) -> str:
        """The answer in words."""
        main, *others = self.statements
        partly = bool(others) and main.domain == "task"
        words = main.sentence(self.target, self.limit, partly=partly)
        parts = [self._about_n(words)]
        for name, change in self.broken_symmetries.items():
            family = main.nearest.family
            parts.append(f"It breaks a symmetry of {family}, {name}, by {change:.0%}.")
        if main.relation != "none" and main.domain == "task":
            parts.append(main.elsewhere(self.limit))
        # What is the same on all kinds of data is the same on its task.
        whole = main.relation == "is" and main.domain == "everywhere"
        switch = main.relation == "none" and self.changes_at is not None
        if not whole and not switch:
            parts += [each.sentence("It", self.limit, partly=True) for each in others]
        parts.append(self._coverage())
        return " ".join(part for part in parts if part)

    def _about_n(self, words: str) -> str:
        """Return the first words, with how it changes its algorithm, if it does."""
        if self.changes_at is None:
            return words
        main, (one, two) = self.statements[0], self.regimes
        change = (
            f"{one.nearest} up to n = {one.last}, {two.nearest} from n = {two.first} on"
        )
        if main.relation != "none":
            return f"{words} It changes with n: nearer is {change}."
        return (
            f"{self.target} changes its algorithm with n {main.where}: {change} "
            f"(confidence {self.confidence:.0%} that it is no single one). The nearest "
            f"for all n is {main.nearest.name} at distance "
            f"{short(main.nearest.distance)}."
        )

    def _coverage(self) -> str:
        asked = f"{self.num_questions:,} questions, n = {self.first_n}–{self.last_n}"
        if self.answered > 0.9995:
            return f"Asked: {asked}."
        return f"Asked: {asked}; {self.answered:.1%} were answered."

    def rows(self) -> list[Row]:
        """Return the hypotheses, the nearest first, with distances per suite."""
        return [
            {
                "hypothesis": each.name,
                "family": each.family,
                "distance": each.distance,
                "low": each.low,
                "high": each.high,
                **each.suites,
            }
            for each in self.candidates
        ]

    def plot(self, axes: "Axes | None" = None) -> "Figure":
        """Draw distances per suite and per n; into given axes, those per suite."""
        from algoscope.identification.figure import identification_figure

        return identification_figure(self, axes)

    def to_fields(self) -> tuple[Row, dict[str, np.ndarray]]:
        return asdict(self), {}

    @classmethod
    def from_fields(
        cls, values: Row, arrays: dict[str, np.ndarray]
    ) -> "Identification":
        statements = [
            Statement(
                **s
                | {
                    "candidates": [_candidate(c) for c in s["candidates"]],
                    "suites": {k: parse_number(v) for k, v in s["suites"].items()},
                    "unexplained": parse_number(s.get("unexplained", 0.0)),
                }
            )
            for s in values.pop("statements")
        ]
        regimes = [
            Regime(**r | {"distance": parse_number(r["distance"])})
            for r in values.pop("regimes")
        ]
        ranges = {k: tuple(v) for k, v in values.pop("parameter_ranges").items()}
        numbers: Row = {k: parse_number(values.pop(k)) for k in ("distance", "noise")}
        suites = {k: parse_number(v) for k, v in values.pop("suites").items()}
        answers = {
            name: [parse_number(each) for each in column]
            for name, column in values.pop("answers").items()
        }
        return cls(
            statements=statements,
            regimes=regimes,
            parameter_ranges=ranges,
            suites=suites,
            answers=answers,
            **numbers,
            **values,
        )


def _candidate(values: dict[str, Any]) -> Candidate:
    restored: dict[str, Any] = {
        name: parse_number(values[name]) for name in ("distance", "low", "high")
    }
    for name in ("suites", "untrimmed"):
        restored[name] = {key: parse_number(each) for key, each in values[name].items()}
    restored["per_n"] = [
        None if each is None else parse_number(each) for each in values["per_n"]
    ]
    return Candidate(**values | restored)
