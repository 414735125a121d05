"""Distributions over regression problems (paper §2.3, §4.2), by name.

To add a task, write its file and a line in `TASKS`. Nothing here imports JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Literal

from algoscope.foundation.validation import require_choice

if TYPE_CHECKING:
    from algoscope.tasks.task import Task

# Each has a method `from_variances(dim, prior_variance, noise_variance)`.
TASKS = {
    "linear": "algoscope.tasks.linear:LinearRegression",
    "control": "algoscope.tasks.linear:FixedWeights",
    "broad": "algoscope.tasks.broad:BroadRegression",
}

if TYPE_CHECKING:
    TaskKind = str
else:
    TaskKind = Literal[tuple(TASKS)]


def make_task(
    kind: str, dim: int, prior_variance: float = 1.0, noise_variance: float = 0.0
) -> "Task":
    """Return a task by name.

    Example:
        >>> make_task("linear", dim=8, noise_variance=0.25)
        LinearRegression(dim=8, prior_variance=1.0, noise_variance=0.25)
    """
    require_choice("task", kind, TASKS)
    module, _, name = TASKS[kind].partition(":")
    task = getattr(import_module(module), name)
    return task.from_variances(dim, prior_variance, noise_variance)
