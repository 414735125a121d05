"""`algoscope probe`: what is encoded in which layer of a model (figures 4 and 5)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from algoscope.commands.devices import use_all_cores
from algoscope.commands.given import given
from algoscope.commands.measuring import Model, allow_precision, regression_for
from algoscope.commands.messages import note
from algoscope.strict_json import json_text

UNTRAINED = "untrained"
FIGURES = ("layers", "attention", "controls")


@dataclass(frozen=True)
class Probe:
    """Read intermediate quantities out of a model's hidden states, with controls."""

    model: Model
    targets: tuple[str, ...] = ("moment", "w_ols")
    """What to look for: moment (XᵀY), w_ols, gram (XᵀX), w_ridge, residual, w, or the
    weights of an algorithm such as sgd(0.05)."""
    controls: tuple[str, ...] = ()
    """Models to probe alike, such as control-d4; untrained: random weights."""
    budget: Literal["smoke", "cpu", "paper"] = "cpu"
    """How many probes, how large and how long: seconds, an hour or two, days."""
    out: Path = Path("probing")
    """Where results, figures and finished chunks go; a rerun goes on from there."""
    prefixes: tuple[int, ...] | None = None
    """The numbers of examples n, one probe each."""
    layers: tuple[int, ...] | None = None
    """The layers, 0 being the input. By default all."""
    kinds: tuple[Literal["linear", "mlp"], ...] | None = None
    """Linear probes, MLPs, or both."""
    value_size: int | None = None
    """The rows of W_v; the paper has 512."""
    inner_size: int | None = None
    """The hidden units of an MLP; the paper has 512."""
    learning_rate: float | None = None
    """Of Adam, at the start."""
    steps: int | None = None
    """Steps of Adam."""
    repeats: int | None = None
    """Repeats with other datasets and other initial probes."""
    solver: Literal["adam", "least_squares"] | None = None
    """Train, or solve linear probes of single positions exactly."""
    noise_variance: float | None = None
    """σ² of the data. By default as in training."""
    prior_variance: float | None = None
    """τ² of the data. By default as in training."""
    seed: int | None = None
    """Seed of the data and of the probes."""
    format: Literal["png", "svg", "pdf"] = "png"
    """Of the figures."""
    json: bool = False
    """Print the summary as JSON."""

    @property
    def changes(self) -> dict[str, Any]:
        """The choices that differ from the budget's."""
        names = ("prefixes", "layers", "kinds", "value_size", "inner_size")
        names += ("learning_rate", "steps", "repeats", "solver", "seed")
        return given(self, names)


def run_probe(command: Probe) -> None:
    """Probe, save, draw, and print what was found."""
    use_all_cores()
    from algoscope.console import counting
    from algoscope.learner import InContextLearner
    from algoscope.probing import budget, estimate_cost, probe, untrained
    from algoscope.probing.figures import draw_attention, draw_controls, draw_layers
    from algoscope.probing.targets import find_targets, target_sizes

    config = replace(budget(command.budget), **command.changes)
    targets = find_targets(command.targets)
    learner = InContextLearner.from_pretrained(command.model)
    allow_precision(learner)
    controls = [
        untrained(learner)
        if name == UNTRAINED
        else InContextLearner.from_pretrained(name)
        for name in command.controls
    ]
    task = regression_for(command.model, learner.dim, command)
    sizes = target_sizes(targets, task)
    for each in (learner, *controls):
        note(f"{each.name}: {estimate_cost(each, config, target_sizes=sizes)}.")
    with counting() as start:
        result = probe(
            learner,
            task,
            config,
            targets=targets,
            controls=controls,
            directory=command.out / "chunks",
            progress=start(f"probing {learner.name}"),
        )
    result.save(command.out)
    places = {name: command.out / f"{name}.{command.format}" for name in FIGURES}
    draw_layers(result, places["layers"])
    draw_attention(result, places["attention"], kind=result.kinds[-1])
    if controls:
        draw_controls(result, places["controls"])
    if command.json:
        print(json_text(result.summary()))
        return
    _print(result, command.out)


def _print(result: Any, out: Path) -> None:
    from algoscope.console import print_table, small

    rows = [
        [
            f"{row['target']}, {row['kind']}",
            row["learner"],
            str(row["best_layer"]),
            _range(row["error"], small),
            "–" if row["input"] is None else small(row["input"]),
            "–" if row["selectivity"] is None else _range(row["selectivity"], small),
        ]
        for row in result.summary()
    ]
    header = ["target, probe", "learner", "best layer", "error/variance (95 %)"]
    header += ["at the input", "control − learner (95 %)"]
    print_table(f"What {result.learner} encodes", header, rows)
    print(f"Result and figures: {out}")


def _range(interval: list[float], small: Any) -> str:
    mean, low, high = interval
    if low != low:  # one repeat has no interval
        return small(mean)
    return f"{small(mean)} ({small(low)}…{small(high)})"
