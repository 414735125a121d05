"""Figures 4 and 5: what probes read out of hidden states, d = 4 (paper §5, app. E).

Both figures come from one probing of the learner, of the control model, which was
trained where w is always 1, and of an untrained network. It is kept beside figure 4.
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from algoscope.experiments.experiment import Experiment, Judgment, Place, Spent
from algoscope.experiments.learners import model_or_run
from algoscope.experiments.readings import (
    controls_are_worse,
    decoded_accurately,
    deep_not_input,
    moment_before_weights,
    nonlinear_is_better,
    read_at_labels,
    sentences,
    tables,
)
from algoscope.foundation.cache import Cache
from algoscope.foundation.machine import provenance
from algoscope.foundation.plotting import FORMATS, save_figure
from algoscope.probing import (
    ProbingConfig,
    ProbingResult,
    find_budget,
    probe,
    untrained,
)
from algoscope.probing.figures import attention_figure, controls_figure, layers_figure
from algoscope.tasks.linear import LinearRegression
from algoscope.training.config import TrainingConfig, preset

PROBED = "probing.json"


@dataclass(frozen=True)
class Figure4:
    """The sizes of figures 4 and 5."""

    probing: ProbingConfig
    model: str = "linear-d4"
    control: str = "control-d4"
    training: TrainingConfig | None = None  # to train, in place of the models
    targets: tuple[str, ...] = ("moment", "w_ols")


def _controlled(config: Figure4) -> TrainingConfig | None:
    return replace(config.training, task="control") if config.training else None


def trainings(config: Figure4) -> list[TrainingConfig]:
    """Return the learner's run and the control's, unless models are taken."""
    return [run for run in (config.training, _controlled(config)) if run is not None]


def measure(config: Figure4, place: Place) -> Spent:
    """Probe the learner and its controls on the same datasets."""
    learner, spent = model_or_run(place, config.model, config.training)
    control, more = model_or_run(place, config.control, _controlled(config))
    kept = _probing(place.directory)

    def save() -> None:
        place.note(f"probing {learner.name}, {control.name} and an untrained network")
        probe(
            learner,
            LinearRegression(learner.dim),
            config.probing,
            targets=config.targets,
            controls=[control, untrained(learner)],
            directory=kept / "chunks",
            progress=place.progress,
        ).save(kept)

    identity: dict[str, Any] = {
        "probing": config.probing.as_dict(),
        "targets": config.targets,
        "learners": [each.digest for each in (learner, control)],
        "versions": provenance(),
    }
    return spent + more + Spent(Cache(kept).file(PROBED, identity, save))


def _probing(directory: Path) -> Path:
    """Return where the probing of both figures is."""
    return directory.parent / "fig4"


def _load(directory: Path) -> ProbingResult:
    return ProbingResult.load(_probing(directory))


def judge_layers(config: Figure4, directory: Path) -> Judgment:
    """Say what figure 4 shows: where and how targets are encoded."""
    found = _load(directory)
    claims = (
        moment_before_weights(found),
        nonlinear_is_better(found),
        deep_not_input(found),
        decoded_accurately(found),
        read_at_labels(found),
    )
    return Judgment(sentences(found), tables(found, found.learner), claims)


def judge_controls(config: Figure4, directory: Path) -> Judgment:
    """Say what figure 5 shows: how much worse probes of the controls are."""
    found = _load(directory)
    claims = tuple(controls_are_worse(found, control) for control in found.controls)
    shown = tuple(each for name in found.controls for each in tables(found, name))
    findings = tuple(claim.measured for claim in claims)
    return Judgment(findings, shown, claims[:1])  # the paper has no untrained network


def draw_fourth(directory: Path) -> tuple[str, ...]:
    """Draw the error per layer, and where the probes of each kind look."""
    found = _load(directory)
    names = ["figure_4_layers"]
    for ending in FORMATS:
        save_figure(layers_figure(found), directory / f"{names[0]}{ending}")
    for kind in found.kinds:
        names.append(f"figure_4_attention_{kind}")
        for ending in FORMATS:
            figure = attention_figure(found, kind=kind)
            save_figure(figure, directory / f"{names[-1]}{ending}")
    return tuple(names)


def draw_fifth(directory: Path) -> tuple[str, ...]:
    """Draw the error per layer of the controls."""
    for ending in FORMATS:
        save_figure(controls_figure(_load(directory)), directory / f"figure_5{ending}")
    return ("figure_5",)


def measuring(config: Figure4) -> float:
    """Return the seconds that probing takes: three learners of the same size."""
    from algoscope.model.learner import InContextLearner
    from algoscope.probing import estimate_cost
    from algoscope.training.loop import initial_state

    if config.training is None:
        like = InContextLearner.from_pretrained(config.model)
    else:
        like = InContextLearner(initial_state(config.training).transformer)
    sizes = (like.dim,) * len(config.targets)
    return 3 * estimate_cost(like, config.probing, target_sizes=sizes).seconds


PAPER = replace(preset("paper"), dim=4, num_examples=41)  # prefixes end at 40
BUDGETS = {
    "smoke": Figure4(find_budget("smoke")),
    "cpu": Figure4(find_budget("cpu")),
    "paper": Figure4(find_budget("paper"), training=PAPER),
}

EXPERIMENT = Experiment(
    name="fig4",
    title="What do hidden states encode, and in which layer?",
    budgets=BUDGETS,
    trainings=trainings,
    measuring=measuring,
    measure=measure,
    judge=judge_layers,
    draw=draw_fourth,
)
