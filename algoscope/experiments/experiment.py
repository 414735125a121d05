"""What experiments take, said before they are started."""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from algoscope.experiments import experiment
from algoscope.experiments.models import keep_models
from algoscope.experiments.record import Claim, Record, Table
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.machine import provenance
from algoscope.foundation.progress import Progress, shown, silent
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.training.config import TrainingConfig
from algoscope.training.cost import core_seconds

CORES = 2


@dataclass(frozen=True)
class ExperimentCost:
    """The most that an experiment takes."""

    trainings: tuple[TrainingConfig, ...]
    measuring: dict[str, float]  # what: seconds on two cores

    @property
    def seconds(self) -> float:
        """On two cores, if no run is in the store yet."""
        training = sum(map(core_seconds, self.trainings)) / CORES
        return training + sum(self.measuring.values())


def cost_of(
    trainings: Sequence[TrainingConfig], measuring: dict[str, float]
) -> ExperimentCost:
    """Return the cost of distinct runs and of measuring."""
    return ExperimentCost(tuple(dict.fromkeys(trainings)), measuring)


def total(costs: Sequence[ExperimentCost]) -> ExperimentCost:
    """Return the cost of several experiments, which may share runs and measurements."""
    runs = [config for cost in costs for config in cost.trainings]
    return cost_of(runs, {k: v for cost in costs for k, v in cost.measuring.items()})


Config = TypeVar("Config")

SMOKE = "The smoke budget only checks that everything runs."


@dataclass(frozen=True)
class Spent:
    """What measuring took, over all sittings, and the runs that it used."""

    seconds: float = 0.0
    runs: dict[str, str] = field(default_factory=dict)  # id: status

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.seconds + other.seconds, self.runs | other.runs)


@dataclass(frozen=True)
class Place:
    """Where results go and runs are, how to train, and who is told the progress."""

    directory: Path  # of this experiment
    store: Path
    engine: str = "processes"
    workers: int | None = None
    progress: Progress = silent

    def note(self, text: str) -> None:
        """Report a stage that has no steps to count."""
        self.progress(text, 0, None)

    def measure_once(
        self, name: str, identity: dict[str, Any], measure: Callable[[], None]
    ) -> Spent:
        """Write the one file that an experiment measures, unless it is cached."""
        cache = Cache(self.directory)
        seconds = cache.file(name, identity | {"versions": provenance()}, measure)
        cache.keep_only([name])
        return Spent(seconds)


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

    def estimate(self, budget: str) -> ExperimentCost:
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
            directory=place.directory,
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


def reproduce(
    figure: str,
    budget: str = "smoke",
    *,
    out: Path | str | None = None,
    store: Path | str = "runs",
    engine: str = "processes",
    workers: int | None = None,
    progress: Progress | bool = True,
) -> Record:
    """Run one of the paper's experiments: train, measure, judge, and draw.

    `figure` is fig1, …, fig8 or theorems. The budget is `smoke` (minutes, a check that
    everything runs), `cpu` (hours on two cores) or `paper`. Results go to `out/FIGURE`,
    by default below `results` for `cpu` and `results-BUDGET` for the others; runs go to
    `store`. Measurements and runs that are there already are reused.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> record = asc.reproduce("fig7", out=tempfile.mkdtemp())
        >>> record.figures
        ('figure_7',)
    """
    chosen = experiment(figure)
    default = "results" if budget == "cpu" else f"results-{budget}"
    directory = Path(out or default) / figure
    with shown(progress) as report:
        place = Place(directory, Path(store), engine, workers, report)
        return chosen.reproduce(budget, place)
