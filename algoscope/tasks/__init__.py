"""Distributions over regression problems (paper §2.3, §4.2), by name.

To add a task, write its file and a line in `TASKS`; other packages add theirs as
plug-ins (docs/how_to_add_a_predictor.md). Nothing here imports JAX.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from algoscope.foundation import plugins
from algoscope.foundation.validation import require_choice

if TYPE_CHECKING:
    from algoscope.tasks.task import Task

# Each has a method `from_variances(dim, prior_variance, noise_variance)`.
TASKS = {
    "linear": "algoscope.tasks.linear:LinearRegression",
    "control": "algoscope.tasks.linear:FixedWeights",
    "broad": "algoscope.tasks.broad:BroadRegression",
}


def require_task(kind: str) -> None:
    """Reject a name that is neither in `TASKS` nor that of a plug-in."""
    if kind not in TASKS:
        require_choice("task", kind, plugins.names_with_plugins(plugins.TASKS, TASKS))


def make_task(
    kind: str, dim: int, prior_variance: float = 1.0, noise_variance: float = 0.0
) -> "Task":
    """Return a task by name.

    Example:
        >>> make_task("linear", dim=8, noise_variance=0.25)
        LinearRegression(dim=8, prior_variance=1.0, noise_variance=0.25)
    """
    require_task(kind)
    if kind in TASKS:
        module, _, name = TASKS[kind].partition(":")
        task = getattr(import_module(module), name)
    else:
        task = _plugin(kind)
    return task.from_variances(dim, prior_variance, noise_variance)


def task_kind(task: "Task") -> str | None:
    """Return the name under which `make_task` makes tasks of this kind, if it does.

    Example:
        >>> task_kind(make_task("broad", dim=2))
        'broad'
    """
    home = f"{type(task).__module__}:{type(task).__name__}"
    added = {each.name: each.value for each in plugins.installed(plugins.TASKS)}
    kinds = [kind for kind, known in {**added, **TASKS}.items() if known == home]
    return kinds[0] if kinds else None


def _plugin(kind: str) -> Any:
    """Return the class of a plug-in."""
    found = plugins.load_plugin(plugins.TASKS, kind)
    if not hasattr(found, "from_variances"):
        plugin = plugins.plugin_named(plugins.TASKS, kind)
        raise plugins.broken(plugin, "has no method from_variances")
    return found
