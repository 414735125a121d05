"""The learners of an experiment: where they are trained, kept, and found again.

A learner is a model that comes with algoscope, or a training run. Runs are trained in a
store. Models that are small enough are also kept beside the results of an experiment:

    results/FIGURE/models/RUN/   the files of the run, without its training state

A run whose model is kept there, by this or another experiment, or comes with algoscope
is not trained again: its files are copied into the store. A run whose model is too
large to be kept is not trained again either if its measurements are cached.

A run that diverged gives no learner: the record lists it and figures leave it out. So
does one that is not finished, where nothing is to be trained.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from algoscope.foundation import provenance
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import read_json, write_atomically
from algoscope.foundation.progress import Progress, silent
from algoscope.model.checkpoints import (
    CARD,
    CONFIG,
    EVALUATION,
    WEIGHTS,
    locate,
    shipped_models,
)
from algoscope.model.learner import InContextLearner
from algoscope.training.config import TrainingConfig
from algoscope.training.log import METRICS

MODELS = "models"  # the directory of kept models
MOST_BYTES = 3 * 2**20  # of one kept model's weights
FILES = (CONFIG, WEIGHTS, EVALUATION, METRICS, CARD)  # of a kept model, the card last
EVALUATION_DATASETS = 1000
MEASURED = "measured before: its model is not kept, so its time is not counted"
UNFINISHED = "not trained to its end"


class NoLearnerError(RuntimeError):
    """None of the runs that an experiment needs ended with a model."""

    def __init__(self, runs: dict[str, str]):
        shown = "; ".join(f"{run}: {status}" for run, status in runs.items())
        super().__init__(
            f"No run ended with a model, so there is nothing to measure. {shown}"
        )


@dataclass(frozen=True)
class Spent:
    """The seconds that training and measuring took, over all sessions, and the runs."""

    seconds: float = 0.0
    runs: dict[str, str] = field(default_factory=dict)  # id: status

    def __add__(self, other: "Spent") -> "Spent":
        return Spent(self.seconds + other.seconds, self.runs | other.runs)


@dataclass(frozen=True)
class Place:
    """Where an experiment writes its results, where and how it trains its runs."""

    directory: Path  # of this experiment, such as results/fig3
    store: Path  # of training runs
    engine: str = "processes"
    workers: int | None = None
    progress: Progress = silent
    finished: bool = False  # train nothing: take the runs that are finished

    def note(self, text: str) -> None:
        """Report a stage that has no steps to count."""
        self.progress(text, 0, None)

    def measure_once(
        self, name: str, identity: dict[str, Any], measure: Callable[[], None]
    ) -> Spent:
        """Call `measure`, which writes the only file measured, unless it is cached."""
        cache = Cache(self.directory)
        seconds = cache.file(name, identity | {"versions": provenance()}, measure)
        cache.keep_only([name])
        return Spent(seconds)


@dataclass(frozen=True)
class Trained:
    """A finished run and its model."""

    config: TrainingConfig
    learner: InContextLearner


def train_runs(
    place: Place,
    configs: Sequence[TrainingConfig],
    measured: Collection[TrainingConfig] = (),
) -> tuple[list[Trained], Spent]:
    """Train the runs that are not trained yet; return those that finished.

    Runs in `measured` whose model is gone are only listed, with the status `MEASURED`,
    and so are unfinished ones, as `UNFINISHED`, where nothing is to be trained.
    """
    from algoscope.training.sweeps import train_all
    from algoscope.training.sweeps.store import read_run

    distinct = list(dict.fromkeys(configs))
    results = place.directory.parent
    if kept := restore_models(place.store, [c.run_id for c in distinct], results):
        place.note(f"{kept} of {len(distinct)} runs are trained already")
    gone = {c for c in measured if not (place.store / c.run_id).exists()}
    known = Spent(runs={c.run_id: MEASURED for c in distinct if c in gone})
    distinct = [c for c in distinct if c not in gone]
    if place.finished:
        open_runs = [c for c in distinct if not read_run(c, place.store).ended]
        known += Spent(runs={c.run_id: UNFINISHED for c in open_runs})
        distinct = [c for c in distinct if c not in open_runs]
    if not distinct:
        return [], known
    outcomes = train_all(
        distinct,
        place.store,
        engine=place.engine,
        workers=place.workers,
        evaluation_datasets=EVALUATION_DATASETS,
        progress=place.progress,
    )
    statuses = {
        each.config.run_id: f"{each.status}: {each.reason}"
        if each.reason
        else each.status
        for each in outcomes
    }
    finished = [
        Trained(each.config, InContextLearner.from_pretrained(str(each.directory)))
        for each in outcomes
        if each.status == "finished"
    ]
    return finished, known + Spent(sum(each.seconds for each in outcomes), statuses)


def model_or_run(
    place: Place, model: str, training: TrainingConfig | None
) -> tuple[InContextLearner, Spent]:
    """Return the model of this name, or the model of `training` if it is given."""
    if training is None:
        return InContextLearner.from_pretrained(model), Spent()
    trained, spent = train_runs(place, [training])
    if not trained:
        raise NoLearnerError(spent.runs)
    return trained[0].learner, spent


def models_and_runs(
    place: Place, models: Sequence[str], runs: Sequence[TrainingConfig]
) -> tuple[dict[str, InContextLearner], Spent]:
    """Return the models that ship, of these names, and the trained runs, by name.

    A model that does not ship is left out, and so is a run with the weights of a model.
    """
    shipped = [name for name in models if name in shipped_models()]
    found = {name: InContextLearner.from_pretrained(name) for name in shipped}
    trained, spent = train_runs(place, runs) if runs else ([], Spent())
    for each in trained:
        if all(each.learner.digest != known.digest for known in found.values()):
            found[run_name(each.config)] = each.learner
    if not found:
        raise NoLearnerError(spent.runs)
    return found, spent


def run_name(run: TrainingConfig) -> str:
    """Return a short name that tells runs of one dimension apart.

    Example:
        >>> from algoscope.training.config import preset
        >>> run_name(preset("d8")), run_name(preset("control-d4"))
        ('L12 H64 32,000 steps seed 0', 'control L12 H64 500 steps seed 0')
    """
    task = "" if run.task == "linear" else f"{run.task} "
    size = f"L{run.num_layers} H{run.hidden_size}"
    return f"{task}{size} {run.steps:,} steps seed {run.seed}"


def keep_models(store: Path, runs: Iterable[str], directory: Path) -> None:
    """Copy the small models of these runs to `directory`; remove those of other runs.

    A model that comes with algoscope, or that another experiment keeps already, is not
    copied.
    """
    own = {
        run
        for run in runs
        if _is_small(store / run)
        and find_model(run, directory.parent) in (None, directory / MODELS / run)
    }
    for run in own:
        _copy(store / run, directory / MODELS / run)
    for path in (directory / MODELS).glob("*/"):
        if path.name not in own:
            _remove(path)


def find_model(run: str, results: Path) -> Path | None:
    """Return the directory that holds the model of a run, or None.

    That is a model that comes with algoscope, or a model that is kept below `results`.
    """
    if run in _shipped_runs():
        return _shipped_runs()[run]
    kept = sorted(results.glob(f"*/{MODELS}/{run}"))
    return next((path for path in kept if _is_complete(path)), None)


def restore_models(store: Path, runs: Iterable[str], results: Path) -> int:
    """Copy kept models of runs that are not in the store; return how many."""
    missing = [run for run in runs if not (store / run).exists()]
    kept = {run: path for run in missing if (path := find_model(run, results))}
    for run, path in kept.items():
        _copy(path, store / run)
    return len(kept)


@cache
def _shipped_runs() -> dict[str, Path]:
    """Return the directories of the models that come with algoscope, by their runs."""
    found = {path: read_json(path / CONFIG) for path in map(locate, shipped_models())}
    return {config["run_id"]: path for path, config in found.items()}


def _is_complete(run: Path) -> bool:
    return all((run / name).exists() for name in FILES)


def _is_small(run: Path) -> bool:
    return _is_complete(run) and (run / WEIGHTS).stat().st_size <= MOST_BYTES


def _copy(source: Path, target: Path) -> None:
    for name in FILES:
        content = (source / name).read_bytes()
        copy = target / name
        if not copy.exists() or copy.read_bytes() != content:
            write_atomically(copy, content)


def _remove(model: Path) -> None:
    """Delete a kept model, and its directory if nothing else is in it."""
    for name in FILES:
        (model / name).unlink(missing_ok=True)
    if not any(model.iterdir()):
        model.rmdir()
