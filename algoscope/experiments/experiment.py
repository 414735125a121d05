"""What an experiment is: sizes, a cost, and a run that can be interrupted anywhere.

    measure   trains and measures; what is done already is not done again
    judge     reads the saved measurements and says what they mean for the paper
    draw      draws the saved measurements

`reproduce` does all three, keeps the small models and writes the Record. Models are
seen by `measure` only.
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from algoscope.checkpoints import DamagedFileError
from algoscope.configuration import TrainingConfig
from algoscope.experiments.costs import Cost, cost_of
from algoscope.experiments.models import keep_models
from algoscope.experiments.record import Claim, Record, Table
from algoscope.provenance import provenance
from algoscope.validation import InvalidValueError, require_choice

Config = TypeVar("Config")

SMOKE = "The smoke budget only checks that everything runs."


def _ignore(text: str) -> None:
    """Say nothing."""


@dataclass(frozen=True)
class Place:
    """Where results go and runs are, how to train, and whom to tell."""

    directory: Path  # of this experiment
    store: Path
    engine: str = "processes"
    workers: int | None = None
    note: Callable[[str], None] = _ignore  # is told what is being done
    watch: Any = None  # is told how training goes


@dataclass(frozen=True)
class Spent:
    """What measuring took, over all sittings, and the runs that it used."""

    seconds: float = 0.0
    runs: dict[str, str] = field(default_factory=dict)  # id: status

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.seconds + other.seconds, self.runs | other.runs)


@dataclass(frozen=True)
class Judgment:
    """What the measurements say, in words."""

    findings: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Experiment(Generic[Config]):
    """One figure of the paper."""

    name: str
    title: str
    budgets: dict[str, Config]
    trainings: Callable[[Config], Sequence[TrainingConfig]]  # at most
    measuring: Callable[[Config], float]  # seconds on two cores
    measure: Callable[[Config, Place], Spent]
    judge: Callable[[Config, Path], Judgment]
    draw: Callable[[Path], tuple[str, ...]]  # the names of the figures
    shared: str = ""  # the experiment whose measurements these are, if another's

    def config(self, budget: str) -> Config:
        """Return the configuration of a budget."""
        require_choice("budget", budget, self.budgets)
        return self.budgets[budget]

    def estimate(self, budget: str) -> Cost:
        """Return the most that it will take."""
        config = self.config(budget)
        seconds = {self.shared or self.name: self.measuring(config)}
        return cost_of(self.trainings(config), seconds)

    def refuse_other_budgets(self, budget: str, directory: Path) -> None:
        """Refuse to replace the results of another budget."""
        for name in {self.name, self.shared or self.name}:
            place = directory.parent / name
            try:
                found = Record.load(place).budget
            except (DamagedFileError, FileNotFoundError):
                continue
            if found != budget:
                rule = f"hold no results of another budget than {budget}"
                raise InvalidValueError(
                    "out", rule, f"those of {found} in {place}", "Choose another --out."
                )

    def reproduce(self, budget: str, place: Place) -> Record:
        """Measure what is not measured yet, judge, draw, and write the record."""
        self.refuse_other_budgets(budget, place.directory)
        config = self.config(budget)
        spent = self.measure(config, place)
        judgment = self.judge(config, place.directory)
        record = Record(
            figure=self.name,
            title=self.title,
            budget=budget,
            command=f"algoscope reproduce {self.name} --budget {budget}",
            config=_plain(asdict(config)),  # pyright: ignore[reportArgumentType]
            versions=provenance(),
            seconds=round(spent.seconds, 1),
            findings=judgment.findings,
            figures=self.draw(place.directory),
            tables=judgment.tables,
            claims=_at_budget(judgment.claims, budget),
            runs=spent.runs,
        )
        keep_models(place.store, spent.runs, place.directory)
        record.save(place.directory)
        return record


def _at_budget(claims: tuple[Claim, ...], budget: str) -> tuple[Claim, ...]:
    if budget != "smoke":
        return claims
    return tuple(replace(c, verdict="not testable", reason=SMOKE) for c in claims)


def _plain(value: Any) -> Any:
    """Return a value as JSON has it."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
