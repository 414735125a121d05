"""`algoscope reproduce`: the paper's figures again, with a verdict on each claim."""

import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro

from algoscope.cli import UsageError, complain, note, show
from algoscope.cli.console import use_cores
from algoscope.cli.destinations import require_directory
from algoscope.foundation.files import json_text
from algoscope.foundation.validation import (
    InvalidValueError,
    require_at_least,
    require_choice,
)
from algoscope.training.config import TrainingConfig

EVERYTHING = "all"

Figures = Annotated[
    tyro.conf.Positional[tuple[str, ...]],
    tyro.conf.arg(
        metavar="FIGURE", help="fig1, …, fig8, theorems, shifts, leaving, or all."
    ),
]

EXAMPLES = """
algoscope reproduce fig1 --budget smoke                  # a check, in minutes
algoscope reproduce fig1 fig2
algoscope reproduce all --workers 2
algoscope reproduce fig8 --budget paper --engine slurm
algoscope reproduce fig3 --finished                      # a verdict before the end
algoscope reproduce fig3 --redraw
"""


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
    """Only judge and draw again, from the saved measurements."""
    finished: bool = False
    """Train nothing: judge with the runs that are finished, and say how many are
    not."""
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
        (['fig2', 'fig1'], 11)
    """
    from algoscope.experiments import MODULES

    if not names:
        everything = "`algoscope reproduce all` runs all of them."
        raise UsageError(f"No figure given. {everything}")
    for name in names:
        require_choice("figure", name, [*MODULES, EVERYTHING])
    return list(MODULES) if EVERYTHING in names else list(dict.fromkeys(names))


def run_reproduce(command: Reproduce) -> None:
    """Say the cost, run what is not done yet, and print what was found."""
    names = chosen_figures(command.figures)
    if command.workers is not None:
        require_at_least("workers", command.workers, 1)
    from algoscope.training.sweeps import ENGINES

    require_choice("engine", command.engine, ENGINES)
    if command.redraw:
        _redraw(names, command)
        return
    from algoscope.experiments import find_experiment
    from algoscope.experiments.learners import NoLearnerError

    require_directory("out", command.results)
    require_directory("store", command.store)
    use_cores()
    experiments = [find_experiment(name) for name in names]
    for each in experiments:
        each.reject_other_budgets(command.budget, command.results / each.name)
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
        stop = "interrupted; the same command resumes it."
        raise KeyboardInterrupt(stop) from None
    if command.json:
        print(json_text([record.to_fields()[0] for record in records]))


def _run(each: Any, command: Reproduce) -> Any:
    from algoscope.experiments.experiment import reproduce
    from algoscope.foundation.progress import shown

    with shown(True, plain=True) as progress:

        def tell(stage: str, done: int, total: int | None, note: str = "") -> None:
            progress(f"{each.name}: {stage}", done, total, note)

        return reproduce(
            each.name,
            command.budget,
            out=command.results,
            store=command.store,
            engine=command.engine,
            workers=command.workers,
            finished=command.finished,
            progress=tell,
        )


def _redraw(names: list[str], command: Reproduce) -> None:
    from algoscope.experiments import find_experiment
    from algoscope.experiments.record import RESULT

    drawn = {}
    for name in names:
        directory = command.results / name
        if not (directory / RESULT).exists():
            remedy = f"`algoscope reproduce {name}` makes them."
            rule = f"hold the results of {name}"
            raise InvalidValueError("out", rule, str(directory), remedy)
        drawn[name] = list(find_experiment(name).redraw(directory).figures)
    if command.json:
        print(json_text(drawn))
        return
    for name, figures in drawn.items():
        for figure in figures:
            show(f"{command.results / name / figure}.svg and .png")


def _say_costs(experiments: list[Any], command: Reproduce) -> None:
    from algoscope.experiments.experiment import CORES, total
    from algoscope.foundation.text import duration

    costs = {each.name: each.estimate(command.budget) for each in experiments}
    whole = total(list(costs.values()))
    if len(costs) > 1:
        for name, cost in costs.items():
            runs = f", up to {len(cost.trainings):,} runs" if cost.trainings else ""
            note(f"{name}: at most {duration(cost.seconds_here)}{runs}")
    asked = len(whole.trainings)
    trained = sum(_is_trained(run, command) for run in whole.trainings)
    runs = f"; {trained:,} of {asked:,} runs are trained already" if asked else ""
    paid = replace(whole, trainings=()) if command.finished else whole
    note(
        f"Expected cost with the budget {command.budget}: at most "
        f"{duration(paid.seconds_here)} on {CORES} CPU cores like these{runs}. "
        "It can be interrupted; the same command resumes it."
    )


def _is_trained(run: TrainingConfig, command: Reproduce) -> bool:
    """Return whether the store, or an experiment's results, hold the model of a run."""
    from algoscope.experiments.learners import find_model
    from algoscope.training.sweeps.store import read_outcome

    directory = command.store / run.run_id
    if directory.exists():
        known = read_outcome(run, directory)
        return known is not None and known.status == "finished"
    return find_model(run.run_id, command.results) is not None


def _print_record(record: Any, directory: Path) -> None:
    from algoscope.foundation.text import duration

    spent = duration(record.seconds)
    show(f"\n{record.figure}: {record.title} ({spent} of computing)")
    for finding in record.findings:
        show(f"  {finding}")
    for claim in record.claims:
        reason = f" {claim.reason}" if claim.reason else ""
        show(f"  [{claim.verdict}] {claim.name}.{reason}")
    figures = ", ".join(f"{figure}.svg" for figure in record.figures)
    show(f"  Data and figures: {directory} ({figures})")
