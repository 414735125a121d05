"""The models of an experiment, beside its results: those that are small enough.

models/RUN/   the files of the run but its training state, as in the store
"""

from collections.abc import Iterable
from pathlib import Path

from algoscope.checkpoints import write_atomically
from algoscope.pretrained import CARD, CONFIG, EVALUATION, WEIGHTS
from algoscope.runs import METRICS

DIRECTORY = "models"
MOST_BYTES = 2 * 2**20  # of one model's weights
FILES = (CONFIG, WEIGHTS, CARD, EVALUATION, METRICS)


def keep_models(store: Path, runs: Iterable[str], directory: Path) -> None:
    """Copy the small models of these runs to `directory`; remove those of others."""
    small = {run for run in runs if _is_small(store / run)}
    for run in small:
        for name in FILES:
            content = (store / run / name).read_bytes()
            copy = directory / DIRECTORY / run / name
            if not copy.exists() or copy.read_bytes() != content:
                write_atomically(copy, content)
    for path in (directory / DIRECTORY).glob("*/"):
        if path.name not in small:
            _remove(path)


def _is_small(run: Path) -> bool:
    whole = all((run / name).exists() for name in FILES)
    return whole and (run / WEIGHTS).stat().st_size <= MOST_BYTES


def _remove(model: Path) -> None:
    """Delete a model, and its directory if nothing else is in it."""
    for name in FILES:
        (model / name).unlink(missing_ok=True)
    if not any(model.iterdir()):
        model.rmdir()
