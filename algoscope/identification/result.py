"""The result of `identify`: statements, ranked hypotheses, and what they rest on."""

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from algoscope.foundation.files import parse_number
from algoscope.foundation.result import Row, SavedResult
from algoscope.foundation.text import short
from algoscope.identification.regimes import Regime
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

    @property
    def nearest(self) -> Candidate:
        """The candidate that is named, or would be."""
        return self.candidates[0]

    @property
    def runner_up(self) -> Candidate | None:
        """The nearest candidate of a family that can be told apart."""
        known = {self.nearest.family, *self.ties}
        return next((c for c in self.candidates if c.family not in known), None)

    def sentence(self, target: str, limit: float) -> str:
        """Return the statement in words."""
        first = self.nearest
        where = "on its task" if self.domain == "task" else "on all kinds of data"
        sure = f"confidence {self.confidence:.0%}"
        if self.relation == "none":
            return (
                f"{target} is none of the known algorithms {where} ({sure}). The "
                f"nearest is {first.name} at distance {above(first.distance, limit)}; "
                f"{self._too_far(limit)}."
            )
        if self.relation == "is":
            words = f"{target} runs {first.name} {where}: no answer differs by more "
            words += "than rounding or its own noise"
        else:
            words = f"{target} behaves like {first.name} {where}: distance "
            words += f"{short(first.distance)} ({short(first.low)} to "
            words += f"{short(first.high)})"
        words += f" ({sure})."
        if self.ties:
            names = self._tied_names()
            more = f" and {len(names) - 3} more" if len(names) > 3 else ""
            words += f" Not told apart from it: {', '.join(names[:3])}{more}."
        other = self.runner_up
        if other is not None and np.isfinite(other.distance):
            words += f" Next is {other.name} at {short(other.distance)}."
        return words

    def _too_far(self, limit: float) -> str:
        if self.domain == "task":
            return f"at most {limit:g} would count"
        bad = ", ".join(KINDS[name] for name in self.fails_on)
        return f"it is farther away than {limit:g} on {bad or 'some kinds'}"

    def _tied_names(self) -> list[str]:
        found = {}
        for each in self.candidates:
            if each.family in self.ties:
                found.setdefault(each.family, each.name)
        return list(found.values())


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
        main = self.statements[0]
        # What is the same on all kinds of data is the same on its task.
        whole = main.relation == "is" and main.domain == "everywhere"
        told = self.statements[:1] if whole else self.statements
        parts = [each.sentence(self.target, self.limit) for each in told]
        if self.changes_at is not None:
            one, two = self.regimes
            parts.append(
                f"It changes its algorithm: {one.nearest} up to n = {one.last}, "
                f"{two.nearest} from n = {two.first} on."
            )
        if main.relation != "none" and main.fails_on:
            good = ", ".join(KINDS[name] for name in main.holds_on)
            bad = ", ".join(
                f"{KINDS[name]} ({short(main.suites[name])})" for name in main.fails_on
            )
            parts.append(f"It holds on {good}; not on {bad}.")
        for name, change in self.broken_symmetries.items():
            parts.append(
                f"It is not {main.nearest.family}: it breaks a symmetry of that, "
                f"{name}, by {change:.0%}."
            )
        parts.append(self._coverage())
        return " ".join(parts)

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
