"""The paper's figures as experiments that anyone can rerun (paper §4, §5, app. C–F).

`shifts` and `leaving` go beyond them: what holds outside the training distribution, and
does training leave an algorithm that was written by hand?

This is the catalog: an experiment is a file that defines `EXPERIMENT`, and one line in
`MODULES`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from algoscope.foundation.validation import require_choice

if TYPE_CHECKING:
    from algoscope.experiments.experiment import Experiment

MODULES = {
    "fig1": "figure_1",
    "fig2": "figure_2",
    "fig3": "figure_3",
    "fig4": "figure_4",
    "fig5": "figure_5",
    "fig6": "figure_6",
    "fig7": "figure_7",
    "fig8": "figure_8",
    "theorems": "theorems",
    "shifts": "shifts",
    "leaving": "leaving",
}
BUDGETS = ("smoke", "cpu", "paper")


def find_experiment(name: str) -> "Experiment[Any]":
    """Return the experiment of this name.

    Example:
        >>> find_experiment("fig7").title
        'Can other non-linearities multiply?'
    """
    require_choice("figure", name, MODULES)
    return import_module(f"algoscope.experiments.{MODULES[name]}").EXPERIMENT
