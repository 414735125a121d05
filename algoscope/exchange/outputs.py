"""Directories to write to, and what config.json says of a learner's task."""

import os
from collections.abc import Collection
from dataclasses import asdict
from pathlib import Path
from typing import Any

from algoscope.foundation.files import DamagedFileError, read_json
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.checkpoints import CONFIG
from algoscope.model.learner import InContextLearner
from algoscope.tasks import task_kind


def require_free(
    directory: Path, files: Collection[str], field: str, value: str | None = None
) -> None:
    """Reject a directory that holds anything but an earlier result of the same kind.

    Such a result has only these files, and the field (of this value) in config.json.
    Nothing is created, so a refusal later leaves nothing behind.
    """
    place = directory.absolute()
    nearest = next(each for each in (place, *place.parents) if os.path.lexists(each))
    if not nearest.is_dir() or not os.access(nearest, os.R_OK | os.W_OK | os.X_OK):
        rule = "be a directory that can be written"
        raise InvalidValueError("out", rule, f"'{directory}'")
    found = {path.name for path in nearest.iterdir()} if nearest == place else set()
    try:
        known = read_json(directory / CONFIG).get(field) if found else None
    except (FileNotFoundError, DamagedFileError):
        known = None
    if found and not (found <= set(files) and known and value in (None, known)):
        rule = "be a new or empty directory, or an earlier one of the same kind"
        raise InvalidValueError("out", rule, f"'{directory}' with other files in it")


def task_facts(learner: InContextLearner) -> dict[str, Any]:
    """Return what config.json says of a task, unless it is the default."""
    task: Any = learner.task
    if task == InContextLearner(learner.transformer).task:
        return {}
    kind = task_kind(task)
    if kind is None:
        return {}
    values = {"prior_variance": 1.0, "noise_variance": 0.0} | asdict(task)
    names = ("dim", "prior_variance", "noise_variance")
    return {"training": {"task": kind, **{name: values[name] for name in names}}}
