"""An experiment: one figure of the paper that anyone can rerun, and what it costs.

An experiment trains its runs, measures them, judges the paper's claims by the saved
measurements, and draws its figures from them. Judging and drawing never need a model,
so both can be repeated at any time (`Experiment.redraw`).
"""

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Generic, TypeVar

from algoscope.experiments import find_experiment
from algoscope.experiments.learners import UNFINISHED, Place, Spent, keep_models
from algoscope.experiments.record import Claim, Record, Table
from algoscope.foundation import provenance, slowness
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.progress import Progress, shown
from algoscope.foundation.validation import InvalidValueError, require_choice
from algoscope.training.config import TrainingConfig, core_seconds

CORES = 2
SMOKE = "The smoke budget only checks that everything runs."

Config = TypeVar("Config")


@dataclass(frozen=True)
class ExperimentCost:
    """The most that an experiment takes, on cores of `foundation.CORE_FLOPS`."""

    trainings: tuple[TrainingConfig, ...]  # distinct
    measuring: dict[str, float]  # experiment: seconds on two cores

    @property
    def seconds(self) -> float:
        """The time on two cores if nothing is trained or measured yet."""
        training = sum(map(core_seconds, self.trainings)) / CORES
        return training + sum(self.measuring.values())

    @property
    def seconds_here(self) -> float:
        """The same on two cores of this machine."""
        return self.seconds * slowness()


def total(costs: Sequence[ExperimentCost]) -> ExperimentCost:
    """Return the cost of several experiments, which may share runs and measurements."""
    runs = [config for cost in costs for config in cost.trainings]
    measuring = {k: v for cost in costs for k, v in cost.measuring.items()}
    return ExperimentCost(tuple(dict.fromkeys(runs)), measuring)


@dataclass(frozen=True)
class Judgment:
    """What the measurements say, in words."""

    findings: tuple[str, ...]
    tables: tuple[Table, ...] = ()
    claims: tuple[Claim, ...] = ()


@dataclass(frozen=True)
class Experiment(Generic[Config]):
    """One figure of the paper: its sizes, and how it is measured, judged and drawn."""

    name: str
    title: str
    budgets: dict[str, Config]
    trainings: Callable[[Config], Sequence[TrainingConfig]]  # at most
    measuring: Callable[[Config], float]  # seconds on two cores
    measure: Callable[[Config, Place], Spent]
    judge: Callable[[Config, Path], Judgment]
    draw: Callable[[Path], tuple[str, ...]]  # the names of the figures
    shared: str = ""  # the experiment whose measurements this one reads, if another's

    def config(self, budget: str) -> Config:
        """Return the configuration of a budget."""
        require_choice("budget", budget, self.budgets)
        return self.budgets[budget]

    def estimate(self, budget: str) -> ExperimentCost:
        """Return the most that it will take."""
        config = self.config(budget)
        measuring = {self.shared or self.name: self.measuring(config)}
        return total([ExperimentCost(tuple(self.trainings(config)), measuring)])

    def reject_other_budgets(self, budget: str, directory: Path) -> None:
        """Raise an error if `directory` holds results of another budget."""
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
        """Measure what is not measured yet, judge, draw, and save the record."""
        self.reject_other_budgets(budget, place.directory)
        config = self.config(budget)
        spent = self.measure(config, place)
        judgment = self.judge(config, place.directory)
        option = " --finished" if place.finished else ""
        record = Record(
            figure=self.name,
            title=self.title,
            budget=budget,
            command=f"algoscope reproduce {self.name} --budget {budget}{option}",
            config=_as_json(config),
            versions=provenance(),
            seconds=round(spent.seconds, 1),
            findings=(*judgment.findings, *unfinished_runs(spent.runs)),
            figures=self.draw(place.directory),
            tables=judgment.tables,
            claims=_at_budget(judgment.claims, budget),
            runs=spent.runs,
            directory=place.directory,
        )
        keep_models(place.store, spent.runs, place.directory)
        record.save(place.directory)
        return record

    def is_current(self, record: Record) -> bool:
        """Return whether a record has the settings that its budget has now."""
        return _as_json(self.config(record.budget)) == record.config

    def redraw(self, directory: Path) -> Record:
        """Judge and draw the saved measurements again, without measuring anything.

        Findings, tables and claims stay as they are if they were made with other
        settings than the budget has now.
        """
        record = Record.load(directory)
        if self.is_current(record):
            judgment = self.judge(self.config(record.budget), directory)
            record = replace(
                record,
                findings=(*judgment.findings, *unfinished_runs(record.runs)),
                tables=judgment.tables,
                claims=_at_budget(judgment.claims, record.budget),
            )
        record = replace(record, figures=self.draw(directory))
        record.save(directory)
        return record


def reproduce(
    figure: str,
    budget: str = "smoke",
    *,
    out: Path | str | None = None,
    store: Path | str = "runs",
    engine: str = "processes",
    workers: int | None = None,
    finished: bool = False,
    progress: Progress | bool = True,
) -> Record:
    """Run one of the paper's experiments: train, measure, judge, and draw.

    `figure` is fig1, …, fig8, theorems, shifts or leaving. The budget is `smoke`
    (minutes, a check that everything runs), `cpu` (hours on two cores) or `paper`.
    Results go to `out/FIGURE`, by default below `results` for `cpu` and
    `results-BUDGET` for the others; runs go to `store`. Existing measurements and runs
    are reused. With `finished` nothing is trained: the claims are judged with the runs
    that are finished, and the record says how many are not.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> record = asc.reproduce("fig7", out=tempfile.mkdtemp())
        >>> record.figures
        ('figure_7',)
    """
    chosen = find_experiment(figure)
    default = "results" if budget == "cpu" else f"results-{budget}"
    directory = Path(out or default) / figure
    with shown(progress) as report:
        place = Place(directory, Path(store), engine, workers, report, finished)
        return chosen.reproduce(budget, place)


def unfinished_runs(runs: dict[str, str]) -> tuple[str, ...]:
    """Say how many runs the verdicts do without."""
    count = list(runs.values()).count(UNFINISHED)
    if not count:
        return ()
    return (
        f"{count} of {len(runs)} runs are not trained to their end; the verdicts rest "
        "on the others.",
    )


def _at_budget(claims: tuple[Claim, ...], budget: str) -> tuple[Claim, ...]:
    """Return the claims; the smoke budget is too small to test any."""
    if budget != "smoke":
        return claims
    return tuple(replace(c, verdict="not testable", reason=SMOKE) for c in claims)


def _as_json(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration as JSON has them."""
    return _plain(asdict(config))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    return value
