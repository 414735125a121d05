"""`algoscope reproduce`: the paper's figures again, with a verdict on each claim."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from algoscope.commands.devices import use_all_cores
from algoscope.commands.messages import complain, note
from algoscope.configuration import TrainingConfig
from algoscope.strict_json import json_text
from algoscope.validation import InvalidValueError, require_at_least, require_choice

EVERYTHING = "all"
PLAIN_SECONDS = 30  # between two lines about training, when nobody sees a bar

Figures = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(metavar="FIGURE", help="fig1, fig2, …, fig8, theorems, or all."),
]


@dataclass(frozen=True)
class Reproduce:
    """Run the paper's experiments: train, measure, draw, and judge its claims."""

    figures: Figures
    budget: Literal["smoke", "cpu", "paper"] = "cpu"
    """smoke: minutes, a check; cpu: hours on two cores; paper: a cluster."""
    out: Path | None = None
    """Where results go, one directory per figure. By default results, or results-smoke
    and results-paper for the other budgets."""
    store: Path = Path("runs")
    """The runs: what is finished there is not trained again."""
    engine: str = "processes"
    """Where runs are trained: inline, processes, ray or slurm."""
    workers: int | None = None
    """Runs at a time. By default one per core."""
    redraw: bool = False
    """Only draw again, from the saved results."""
    json: bool = False
    """Print the records as JSON."""

    @property
    def results(self) -> Path:
        """Where results go."""
        default = "results" if self.budget == "cpu" else f"results-{self.budget}"
        return Path(default) if self.out is None else self.out


def chosen_figures(names: tuple[str, ...]) -> list[str]:
    """Return the names of the experiments, each once.

    Example:
        >>> chosen_figures(("fig2", "fig1", "fig2")), len(chosen_figures(("all",)))
        (['fig2', 'fig1'], 9)
    """
    from algoscope.experiments.registry import MODULES

    if not names:
        remedy = "`algoscope reproduce all` runs all of them."
        raise InvalidValueError("figure", "be given", "none", remedy)
    for name in names:
        require_choice("figure", name, [*MODULES, EVERYTHING])
    return list(MODULES) if EVERYTHING in names else list(dict.fromkeys(names))


def run_reproduce(command: Reproduce) -> None:
    """Say the cost, run what is not done yet, and print what was found."""
    names = chosen_figures(command.figures)
    if command.workers is not None:
        require_at_least("workers", command.workers, 1)
    from algoscope.sweeps import ENGINES

    require_choice("engine", command.engine, ENGINES)
    if command.redraw:
        _redraw(names, command)
        return
    from algoscope.experiments.learners import NoLearnerError
    from algoscope.experiments.registry import experiment

    use_all_cores()
    experiments = [experiment(name) for name in names]
    for each in experiments:
        each.refuse_other_budgets(command.budget, command.results / each.name)
    _say_costs(experiments, command)
    records = []
    try:
        for each in experiments:
            records.append(_run(each, command))
            if not command.json:
                _print_record(records[-1], command.results / each.name)
    except NoLearnerError as error:
        complain(error)
        sys.exit(1)
    except KeyboardInterrupt:
        stop = "interrupted; the same command goes on where it stopped."
        raise KeyboardInterrupt(stop) from None
    if command.json:
        print(json_text([asdict(record) for record in records]))


def _run(each: Any, command: Reproduce) -> Any:
    from algoscope.experiments.experiment import Place

    with _telling(each.name) as (tell, watch):
        place = Place(
            command.results / each.name,
            command.store,
            command.engine,
            command.workers,
            tell,
            watch,
        )
        return each.reproduce(command.budget, place)


def _redraw(names: list[str], command: Reproduce) -> None:
    from algoscope.experiments.record import RESULT, Record
    from algoscope.experiments.registry import experiment

    drawn = {}
    for name in names:
        directory = command.results / name
        if not (directory / RESULT).exists():
            remedy = f"`algoscope reproduce {name}` makes them."
            rule = f"hold the results of {name}"
            raise InvalidValueError("out", rule, str(directory), remedy)
        Record.load(directory)  # refuses a damaged one
        drawn[name] = list(experiment(name).draw(directory))
    if command.json:
        print(json_text(drawn))
        return
    for name, figures in drawn.items():
        for figure in figures:
            print(f"{command.results / name / figure}.svg and .png")


def _say_costs(experiments: list[Any], command: Reproduce) -> None:
    from algoscope.console import duration
    from algoscope.experiments.costs import CORES, total

    costs = {each.name: each.estimate(command.budget) for each in experiments}
    whole = total(list(costs.values()))
    if len(costs) > 1:
        for name, cost in costs.items():
            runs = f", up to {len(cost.trainings):,} runs" if cost.trainings else ""
            note(f"{name}: at most {duration(cost.seconds)}{runs}")
    asked = len(whole.trainings)
    trained = sum(_is_trained(run, command) for run in whole.trainings)
    runs = f"; {trained:,} of {asked:,} runs are trained already" if asked else ""
    note(
        f"Expected cost with the budget {command.budget}: at most "
        f"{duration(whole.seconds)} on {CORES} CPU cores{runs}. "
        "It can be interrupted: the same command goes on."
    )


def _is_trained(run: TrainingConfig, command: Reproduce) -> bool:
    """Return whether the store, or an experiment's results, hold the model of a run."""
    from algoscope.experiments.models import find_model
    from algoscope.sweeps.outcomes import read_outcome

    directory = command.store / run.run_id
    if directory.exists():
        known = read_outcome(run, directory)
        return known is not None and known.status == "finished"
    return find_model(run.run_id, command.results) is not None


@contextmanager
def _telling(
    name: str,
) -> Iterator[tuple[Callable[[str], None], Callable[[Any], None]]]:
    """Yield what to tell about stages and about training: one line that changes, or
    lines now and then when the output is not a terminal.
    """
    from rich.console import Console
    from rich.text import Text

    console = Console(stderr=True)
    if console.is_terminal:
        with console.status(Text(name)) as status:

            def show(text: str) -> None:
                status.update(Text(f"{name}: {text}"))

            yield show, lambda progress: show(_training(progress))
        return
    last = time.monotonic()

    def watch(progress: Any) -> None:
        nonlocal last
        if time.monotonic() - last >= PLAIN_SECONDS:
            last = time.monotonic()
            note(f"{name}: {_training(progress)}")

    yield lambda text: note(f"{name}: {text}"), watch


def _training(progress: Any) -> str:
    """Return how far the runs of a sweep are."""
    from algoscope.console import duration

    counts = progress.counts
    states = ", ".join(f"{count} {state}" for state, count in counts.items())
    steps = sum(run.step for run in progress.runs)
    everything = sum(run.config.steps for run in progress.runs)
    left = ""
    if progress.seconds_left is not None:
        left = f", about {duration(progress.seconds_left)} left"
    return f"training: {states}; {steps:,} of {everything:,} steps{left}"


def _print_record(record: Any, directory: Path) -> None:
    from algoscope.console import duration

    spent = duration(record.seconds)
    print(f"\n{record.figure}: {record.title} ({spent} of computing)")
    for finding in record.findings:
        print(f"  {finding}")
    for claim in record.claims:
        reason = f" {claim.reason}" if claim.reason else ""
        print(f"  [{claim.verdict}] {claim.name}.{reason}")
    figures = ", ".join(f"{figure}.svg" for figure in record.figures)
    print(f"  Data and figures: {directory} ({figures})", flush=True)
