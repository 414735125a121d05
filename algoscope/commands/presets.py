"""`algoscope presets`: what can be trained by name, and what it costs."""

from dataclasses import asdict, dataclass

from algoscope.configuration import PRESETS
from algoscope.machine import estimated_seconds, num_cores
from algoscope.strict_json import json_text


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
    from algoscope.console import duration, print_table

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
