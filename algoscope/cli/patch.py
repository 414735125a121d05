"""`algoscope patch`: does a model use what probes read in it?"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from algoscope.cli import show
from algoscope.cli.console import (
    ModuleOptions,
    Opened,
    find_opened,
    given,
    print_table,
    regression_for,
    stopping_cleanly,
)
from algoscope.cli.destinations import require_directory, write_or_rescue
from algoscope.foundation.files import json_text

EXAMPLES = """
algoscope patch linear-d4 --budget smoke
algoscope patch linear-d4 --target 'sgd(0.05)' --num-examples 8 --out patching-sgd
algoscope patch torch:my_module:make --dim 20 --max-examples 40 --blocks backbone.h
"""


@dataclass(frozen=True, kw_only=True)
class Patch(ModuleOptions):
    """Test causally where a model holds its weights: swap states, edit, ablate."""

    learner: Opened
    target: str = "w_ols"
    """The weights that edits read and move: w_ols, w_ridge, w, or those of an algorithm
    such as sgd(0.05)."""
    budget: Literal["smoke", "cpu"] = "cpu"
    """How many datasets: a glance, or a result."""
    num_examples: int | None = None
    """n, the examples before the query. By default 2d."""
    num_pairs: int | None = None
    """Pairs of datasets whose states are swapped."""
    noise_variance: float | None = None
    """σ² of the data. By default as in training."""
    prior_variance: float | None = None
    """τ² of the data. By default as in training."""
    seed: int | None = None
    """Seed of the data."""
    out: Path = Path("patching")
    """Where the result and the figure go."""
    format: Literal["png", "svg", "pdf"] = "png"
    """File format of the figure."""
    json: bool = False
    """Print the summary as JSON."""

    @property
    def changes(self) -> dict[str, Any]:
        """The choices that differ from the budget's."""
        return given(self, ("num_examples", "num_pairs", "seed"))


def run_patch(command: Patch) -> None:
    """Patch, save, draw, and print what was found."""
    from algoscope.foundation.plotting import save_figure
    from algoscope.foundation.progress import shown
    from algoscope.patching import find_budget, patch

    require_directory("out", command.out)
    config = replace(find_budget(command.budget), **command.changes)
    learner = find_opened(command.learner, command)
    task = regression_for(learner, command)
    with stopping_cleanly(), shown(True, plain=True) as progress:
        result = patch(learner, task, config, target=command.target, progress=progress)

    def write(out: Path) -> None:
        result.save(out)
        save_figure(result.plot(), out / f"patching.{command.format}")

    write_or_rescue(command.out, write, result.sentence)
    if command.json:
        print(json_text(result.summary()))
        return
    _print(result, command.out)


COLUMNS = {
    "layer": "layer",
    "query": "swap the query",
    "examples": "swap all examples",
    "error": "probe's error",
    "weights": "edit",
    "pattern": "edit, likely",
    "random": "edit, random",
}


def _print(result: Any, out: Path) -> None:
    from algoscope.foundation.text import short

    found = result.summary()
    rows = [
        [str(row["layer"]), *(short(row[name]) for name in list(COLUMNS)[1:])]
        for row in found["layers"]
    ]
    title = (
        f"What {result.learner} uses at the query after {result.num_examples} examples"
    )
    print_table(title, list(COLUMNS.values()), rows)
    largest = [f"{a['without']} {short(a['spd_ols'])}" for a in found["parts"][:3]]
    without = f"; it is largest without {', '.join(largest)}" if largest else ""
    show(f"SPD(OLS)/d is {short(found['intact'])}{without}.\nResult and figure: {out}")
