"""`algoscope models`: what comes with the package."""

from dataclasses import dataclass

from algoscope.strict_json import json_text


@dataclass(frozen=True)
class Models:
    """List the models that come with algoscope."""

    json: bool = False
    """Print the list as JSON."""


def run_models(command: Models) -> None:
    """Print the shipped models."""
    from algoscope.cards import model_facts
    from algoscope.console import print_table, small
    from algoscope.pretrained import shipped_models

    facts = [model_facts(name) for name in shipped_models()]
    if command.json:
        print(json_text(facts))
        return
    header = ["model", "task", "d", "examples", "L", "H", "M", "SPD(OLS)/d"]
    rows = [
        [*(str(fact[name]) for name in header[:-1]), small(float(fact["spd_ols"]))]
        for fact in facts
    ]
    print_table("Models that come with algoscope", header, rows)
