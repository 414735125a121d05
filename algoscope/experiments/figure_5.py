"""Figure 5: what probes find in models that do not learn in context (paper app. E).

The controls are a model that was trained where w is always 1, as in the paper, and an
untrained network. They are probed together with the learner: see `figure_4`.
"""

from dataclasses import replace
from pathlib import Path

from algoscope.experiments import figure_4
from algoscope.experiments.experiment import Judgment
from algoscope.experiments.figure_4 import (
    best_errors,
    is_above,
    layer_tables,
    load_probing,
    mean_text,
    sample_sizes,
)
from algoscope.experiments.record import Claim
from algoscope.foundation.plotting import FORMATS, save_figure
from algoscope.probing import ProbingResult
from algoscope.probing.figures import controls_figure
from algoscope.probing.targets import symbol


def judge(config: figure_4.Figure4, directory: Path) -> Judgment:
    """Say how much worse probes of the controls are."""
    found = load_probing(directory)
    claims = [controls_are_worse(found, control) for control in found.controls]
    tables = [each for name in found.controls for each in layer_tables(found, name)]
    findings = tuple(claim.measured for claim in claims)
    about_paper = tuple(claims[:1])  # the paper has no untrained network
    return Judgment(findings, tuple(tables), about_paper)


def controls_are_worse(result: ProbingResult, control: str) -> Claim:
    """Judge the best probes of a control against the best of the learner."""
    holds, texts = [], []
    for target in result.targets:
        for kind in result.kinds:
            own = best_errors(result.of(target, kind))
            other = best_errors(result.of(target, kind, control))
            holds.append(is_above(other - own))
            texts.append(
                f"{symbol(target)}, {kind}: {mean_text(other)} against {mean_text(own)}"
            )
    return Claim.of_parts(
        f"probes of {control} are worse",
        "Probes applied to models that were trained with a fixed w perform "
        "significantly worse (§5, app. E, figure 5).",
        f"Relative errors in the best layers, of {control} against {result.learner}: "
        f"{'; '.join(texts)} ({sample_sizes(result)}).",
        holds,
        f"Significantly worse in {sum(holds)} of {len(holds)} cases.",
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the error per layer of the controls."""
    figure = controls_figure(load_probing(directory))
    for ending in FORMATS:
        save_figure(figure, directory / f"figure_5{ending}")
    return ("figure_5",)


EXPERIMENT = replace(
    figure_4.EXPERIMENT,
    name="fig5",
    title="What do probes find where nothing was learned in context?",
    judge=judge,
    draw=draw,
    shared="fig4",
)
