"""`algoscope probe`: what is encoded in which layer of a model (figures 4 and 5)."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from algoscope.cli import note, show
from algoscope.cli.console import (
    ModuleOptions,
    Opened,
    find_opened,
    given,
    print_table,
    regression_for,
    stopping_cleanly,
    use_cores,
)
from algoscope.cli.destinations import require_directory, write_or_rescue
from algoscope.foundation.files import json_text
from algoscope.foundation.text import short
from algoscope.foundation.validation import InvalidValueError, require_at_least

UNTRAINED = "untrained"
FIGURES = ("layers", "prefixes", "attention", "controls")

EXAMPLES = """
algoscope probe linear-d4 --budget smoke                 # a minute
algoscope probe linear-d4 --controls control-d4 untrained
algoscope probe linear-d4 --targets w_ols 'sgd(0.05)' --prefixes 4 8 --kinds linear
algoscope probe torch:my_module:make --dim 20 --max-examples 40 --blocks backbone.h
"""


@dataclass(frozen=True, kw_only=True)
class Probe(ModuleOptions):
    """Read intermediate quantities out of a model's hidden states, with controls."""

    learner: Opened
    targets: tuple[str, ...] = ("moment", "w_ols")
    """What to look for: moment (XᵀY), w_ols, gram (XᵀX), w_ridge, residual, w, or the
    weights of an algorithm such as sgd(0.05)."""
    controls: tuple[str, ...] = ()
    """Models to probe alike, such as control-d4; untrained: random weights, which for
    a PyTorch module are its own, shuffled."""
    budget: Literal["smoke", "cpu", "paper"] = "cpu"
    """How many probes, how large and how long: seconds, half an hour for each model
    of 8 layers and 64 units, days."""
    out: Path = Path("probing")
    """Where results, figures and finished parts go; a rerun reuses them."""
    prefixes: tuple[int, ...] | None = None
    """The numbers of examples n, one probe each. By default those of the budget that
    fit into the model's context."""
    layers: tuple[int, ...] | None = None
    """The layers, 0 being the input. By default all."""
    kinds: tuple[Literal["linear", "mlp"], ...] | None = None
    """Linear probes, MLPs, or both."""
    places: (
        tuple[
            Literal["learned", "unmasked", "last_label", "query", "labels", "all"], ...
        ]
        | None
    ) = None
    """Where probes read: at yₙ (last_label), at the query, at all labels or positions
    equally, or with learned attention up to the query, or unmasked over all positions.
    The first is the one that figures show."""
    inner_size: int | None = None
    """The hidden units of an MLP; the paper has 512."""
    learning_rate: float | None = None
    """Highest learning rate of Adam."""
    num_training: int | None = None
    """Datasets to train on, all fresh."""
    steps: int | None = None
    """Steps of Adam: as many batches, if --num-training is not given."""
    num_learned: int | None = None
    """Further datasets to train on, for learned attention."""
    batch_size: int | None = None
    """Datasets per step of Adam."""
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
    """File format of the figures."""
    json: bool = False
    """Print the summary as JSON."""

    @property
    def changes(self) -> dict[str, Any]:
        """The choices that differ from the budget's."""
        names = ("prefixes", "layers", "kinds", "places", "inner_size")
        names += ("learning_rate", "num_training", "num_learned", "batch_size")
        names += ("repeats", "solver", "seed")
        return given(self, names)


def run_probe(command: Probe) -> None:
    """Probe, save, draw, and print what was found."""
    use_cores()
    from algoscope.foundation.plotting import save_figure
    from algoscope.foundation.progress import shown
    from algoscope.probing import estimate_cost, find_budget, probe
    from algoscope.probing.figures import (
        attention_figure,
        controls_figure,
        prefixes_figure,
    )
    from algoscope.probing.targets import find_targets, target_sizes

    require_directory("out", command.out)
    learner = find_opened(command.learner, command)
    config = find_budget(command.budget, learner.max_examples)
    config = replace(config, **command.changes)
    if command.steps is not None and command.num_training is None:
        require_at_least("steps", command.steps, 1)
        config = replace(config, num_training=command.steps * config.batch_size)
    targets = find_targets(command.targets)
    controls = [_control(name, learner, command) for name in command.controls]
    task = regression_for(learner, command)
    sizes = target_sizes(targets, task)
    for each in (learner, *controls):
        note(f"{each.name}: {estimate_cost(each, config, target_sizes=sizes)}.")
    with stopping_cleanly(), shown(True, plain=True) as progress:
        result = probe(
            learner,
            task,
            config,
            targets=targets,
            controls=controls,
            directory=command.out / "chunks",
            progress=progress,
        )

    def write(out: Path) -> None:
        result.save(out)
        places = {name: out / f"{name}.{command.format}" for name in FIGURES}
        save_figure(result.plot(), places["layers"])
        by_prefix = prefixes_figure(result, kind=result.kinds[-1])
        save_figure(by_prefix, places["prefixes"])
        attention = attention_figure(result, kind=result.kinds[-1])
        save_figure(attention, places["attention"])
        if controls:
            save_figure(controls_figure(result), places["controls"])

    write_or_rescue(command.out, write, result.sentence)
    if command.json:
        print(json_text(result.summary()))
        return
    _print(result, command.out)


def _control(name: str, learner: Any, command: Probe) -> Any:
    """Return a learner to probe alike, by its name or with random weights."""
    if name != UNTRAINED:
        return find_opened(name, command)
    from algoscope.model.learner import InContextLearner
    from algoscope.probing import untrained

    if isinstance(learner, InContextLearner):
        return untrained(learner)
    if hasattr(learner, "shuffled"):
        return learner.shuffled()
    rule = "name learners, as this one cannot be given random weights"
    raise InvalidValueError("controls", rule, name)


def _print(result: Any, out: Path) -> None:
    from algoscope.probing.places import place_symbol

    rows = [
        [
            f"{row['target']}, {row['kind']}",
            row["learner"],
            place_symbol(row["place"]),
            str(row["best_layer"]),
            _range(row["error"]),
            "–" if row["input"] is None else short(row["input"]),
            "–" if row["selectivity"] is None else _range(row["selectivity"]),
        ]
        for row in result.summary()
    ]
    header = ["target, probe", "learner", "place", "best layer"]
    header += ["error/variance (95 %)"]
    header += ["at the input", "control − learner (95 %)"]
    print_table(f"What {result.learner} encodes", header, rows)
    show(f"Result and figures: {out}")


def _range(interval: list[float]) -> str:
    mean, low, high = interval
    if low != low:  # one repeat has no interval
        return short(mean)
    return f"{short(mean)} ({short(low)}…{short(high)})"
