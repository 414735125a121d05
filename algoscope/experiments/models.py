"""The models of an experiment, beside its results: those that are small enough.

    models/RUN/   the files of the run but its training state, as in the store

What is kept there is not trained again, also where the store is gone or never was.
"""

from collections.abc import Iterable
from pathlib import Path

from algoscope.foundation.files import write_atomically
from algoscope.model.checkpoints import CARD, CONFIG, EVALUATION, WEIGHTS
from algoscope.training.run import METRICS

DIRECTORY = "models"
MOST_BYTES = 2 * 2**20  # of one model's weights
FILES = (CONFIG, WEIGHTS, EVALUATION, METRICS, CARD)  # the card last: all is there


def keep_models(store: Path, runs: Iterable[str], directory: Path) -> None:
    """Copy the small models of these runs to `directory`; remove those of others.

    What another experiment keeps beside `directory` is not kept twice.
    """
    small = {run for run in runs if _is_small(store / run)}
    own = {run for run in small if not _places(run, directory.parent) - {directory}}
    for run in own:
        _copy(store / run, directory / DIRECTORY / run)
    for path in (directory / DIRECTORY).glob("*/"):
        if path.name not in own:
            _remove(path)


def find_model(run: str, results: Path) -> Path | None:
    """Return where the experiments of `results` keep the model of a run, if they do."""
    places = _places(run, results)
    return min(places) / DIRECTORY / run if places else None


def restore_models(store: Path, runs: Iterable[str], results: Path) -> int:
    """Copy kept models of runs that the store does not know; return how many."""
    missing = [run for run in runs if not (store / run).exists()]
    kept = [path for run in missing if (path := find_model(run, results))]
    for path in kept:
        _copy(path, store / path.name)
    return len(kept)


def _places(run: str, results: Path) -> set[Path]:
    """Return the directories of all experiments that keep the model of a run."""
    found = results.glob(f"*/{DIRECTORY}/{run}")
    return {path.parent.parent for path in found if _is_whole(path)}


def _copy(source: Path, target: Path) -> None:
    for name in FILES:
        content = (source / name).read_bytes()
        copy = target / name
        if not copy.exists() or copy.read_bytes() != content:
            write_atomically(copy, content)


def _is_whole(run: Path) -> bool:
    return all((run / name).exists() for name in FILES)


def _is_small(run: Path) -> bool:
    return _is_whole(run) and (run / WEIGHTS).stat().st_size <= MOST_BYTES


def _remove(model: Path) -> None:
    """Delete a model, and its directory if nothing else is in it."""
    for name in FILES:
        (model / name).unlink(missing_ok=True)
    if not any(model.iterdir()):
        model.rmdir()
