"""`algoscope layers`: what would a model answer after each of its layers?"""

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
    stopping_cleanly,
    task_for,
)
from algoscope.cli.destinations import require_directory, write_or_rescue
from algoscope.foundation.files import json_text

EXAMPLES = """
algoscope layers linear-d8
algoscope layers linear-d4 --prefix 8 --out layers-d4 --format svg
algoscope layers torch:my_module:make --dim 20 --max-examples 40 --blocks backbone.h
"""


@dataclass(frozen=True, kw_only=True)
class Layers(ModuleOptions):
    """Read an answer out of every layer, and match it with steps of algorithms."""

    target: Opened
    num_examples: int | None = None
    """Inputs per dataset. By default as many as fit, at most 41."""
    num_training: int | None = None
    """Datasets to which the read-outs are fitted."""
    num_test: int | None = None
    """Held-out datasets on which they are asked."""
    prefix: int | None = None
    """n, the examples after which weights are implied. By default 2d."""
    noise_variance: float | None = None
    """σ² of the data. By default as in training."""
    prior_variance: float | None = None
    """τ² of the data. By default as in training."""
    seed: int | None = None
    """Seed of the data."""
    out: Path = Path("layers")
    """Where the result and the figure go."""
    format: Literal["png", "svg", "pdf"] = "png"
    """File format of the figure."""
    json: bool = False
    """Print the summary as JSON."""

    @property
    def changes(self) -> dict[str, Any]:
        """The sizes that a user gave."""
        names = ("num_examples", "num_training", "num_test", "prefix", "seed")
        return given(self, names)


def run_layers(command: Layers) -> None:
    """Read all layers, save, draw, and print what was found."""
    from algoscope.foundation.plotting import save_figure
    from algoscope.foundation.progress import shown
    from algoscope.layerwise import LayersConfig, layers

    require_directory("out", command.out)
    config = replace(LayersConfig(), **command.changes)
    learner = find_opened(command.target, command)
    task = task_for(learner, command)
    with stopping_cleanly(), shown(True, plain=True) as progress:
        result = layers(learner, task, config, progress=progress)

    def write(out: Path) -> None:
        result.save(out)
        save_figure(result.plot(), out / f"layers.{command.format}")

    write_or_rescue(command.out, write, result.sentence)
    if command.json:
        print(json_text(result.summary()))
        return
    _print(result, command.out)


def _print(result: Any, out: Path) -> None:
    from algoscope.foundation.text import short

    header = ["layer", "risk/d", "SPD(OLS)/d", "cosine to w_OLS"]
    header += [f"{name}: steps (SPD/d)" for name in result.algorithms]
    rows = []
    for row in result.summary()["layers"]:
        matches = [result.match(name, row["layer"]) for name in result.algorithms]
        cells = (row["risk"], row["spd_ols"], row["cosine_w_ols"])
        nearest = [f"{each.shown} ({short(each.distance)})" for each in matches]
        rows.append([row["name"], *map(short, cells), *nearest])
    print_table(f"What {result.learner} would answer after each layer", header, rows)
    show(f"{result.sentence}\nResult and figure: {out}")
