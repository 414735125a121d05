"""`algoscope models`, `presets` and `plugins`: what there is to use and to train."""

from dataclasses import asdict, dataclass

from algoscope.foundation import num_cores
from algoscope.foundation.files import json_text
from algoscope.training.config import PRESETS, estimated_seconds

EXAMPLES = """
algoscope models
algoscope models --json
algoscope presets
algoscope presets --json
algoscope plugins
algoscope plugins --json
"""


@dataclass(frozen=True)
class Models:
    """List the models that come with algoscope."""

    json: bool = False
    """Print the list as JSON."""


def run_models(command: Models) -> None:
    """Print the shipped models."""
    from algoscope.cli.console import print_table
    from algoscope.foundation.text import short
    from algoscope.model.checkpoints import shipped_models
    from algoscope.training.card import model_facts

    facts = [model_facts(name) for name in shipped_models()]
    if command.json:
        print(json_text(facts))
        return
    header = ["model", "task", "d", "examples", "L", "H", "M", "SPD(OLS)/d"]
    rows = [
        [*(str(fact[name]) for name in header[:-1]), short(float(fact["spd_ols"]))]
        for fact in facts
    ]
    print_table("Models that come with algoscope", header, rows)


@dataclass(frozen=True)
class Presets:
    """List the training presets and what they cost."""

    json: bool = False
    """Print the list as JSON."""


def run_presets(command: Presets) -> None:
    """Print the presets with their estimated cost."""
    if command.json:
        print(json_text({name: asdict(config) for name, config in PRESETS.items()}))
        return
    from algoscope.cli.console import print_table
    from algoscope.foundation.text import duration

    header = ["preset", "d", "n", "L", "H", "M", "parameters", "steps", "cost here"]
    rows = [
        [
            name,
            *map(
                str, (c.dim, c.num_examples, c.num_layers, c.hidden_size, c.num_heads)
            ),
            f"{c.num_parameters:,}",
            f"{c.steps:,}",
            f"about {duration(estimated_seconds(c))}",
        ]
        for name, c in PRESETS.items()
    ]
    print_table(f"Training presets, on {num_cores()} cores", header, rows)


@dataclass(frozen=True)
class Plugins:
    """List what installed packages add: predictors, tasks and families."""

    json: bool = False
    """Print the list as JSON."""


def run_plugins(command: Plugins) -> None:
    """Print the plug-ins, each after it was loaded."""
    from algoscope.cli import show
    from algoscope.cli.console import print_table
    from algoscope.foundation.plugins import GROUPS, PluginError, installed, load_plugin

    rows = []
    for group, kind in GROUPS.items():
        for each in installed(group):
            state = "works"
            try:
                load_plugin(group, each.name)
            except PluginError as error:
                state = str(error)
            package = "" if each.dist is None else each.dist.name
            rows.append([each.name, kind, package, each.value, state])
    header = ["plug-in", "kind", "package", "where", "state"]
    if command.json:
        print(json_text([dict(zip(header, row, strict=True)) for row in rows]))
    elif rows:
        print_table("Plug-ins of installed packages", header, rows)
    else:
        show(
            "No installed package adds anything; docs/how_to_add_a_predictor.md says "
            "how one does."
        )
