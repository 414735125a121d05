"""Figure 5: what probes find in models that do not learn in context (paper app. E).

The controls are a model that was trained where w is always 1, as in the paper, and an
untrained network. They are probed together with the learner: see `probings`.
"""

from dataclasses import replace
from pathlib import Path

from algoscope.experiments import figure_4
from algoscope.experiments.experiment import Judgment
from algoscope.experiments.probings import (
    ProbedModels,
    in_text,
    layer_tables,
    load_evidence,
    load_probing,
    sample_sizes,
    weakest,
)
from algoscope.experiments.record import Claim
from algoscope.foundation.plotting import save_picture
from algoscope.probing.evidence import Evidence
from algoscope.probing.figures import controls_figure
from algoscope.probing.targets import symbol


def judge(config: ProbedModels, directory: Path) -> Judgment:
    """Say how much worse probes of the controls are."""
    evidence = load_evidence(directory)
    names = evidence.first.controls
    claims = [controls_are_worse(evidence, control) for control in names]
    tables = [each for name in names for each in layer_tables(evidence.first, name)]
    findings = tuple(claim.measured for claim in claims)
    about_paper = tuple(claims[:1])  # the paper has no untrained network
    return Judgment(findings, tuple(tables), about_paper)


def controls_are_worse(evidence: Evidence, control: str) -> Claim:
    """Judge the best probes of a control against the best of the learner."""
    region = list(evidence.first.prefixes)
    margins, texts = [], []
    for target in evidence.first.targets:
        for kind in evidence.first.kinds:
            own = evidence.error(target, kind, region)
            other = evidence.error(target, kind, region, who=control)
            gap = other.minus(own)
            name = f"{symbol(target)}, {kind}"
            margins.append(gap._replace(of=f"{name}: {control} − learner"))
            texts.append(
                f"{name}: {in_text(other.margin)} against {in_text(own.margin)}"
            )
    holds = [margin.is_positive for margin in margins]
    return Claim.of_parts(
        f"probes of {control} are worse",
        "Probes applied to models that were trained with a fixed w perform "
        "significantly worse (§5, app. E, figure 5).",
        f"Relative errors in the best layers, of {control} against "
        f"{evidence.first.learner}: {'; '.join(texts)} ({sample_sizes(evidence)}).",
        holds,
        f"Significantly worse in {sum(holds)} of {len(holds)} cases.",
        seeds=evidence.seeds,
        difference=weakest(margins),
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the error per layer of the controls."""
    figure = controls_figure(load_probing(directory))
    return (save_picture(figure, directory, "figure_5"),)


EXPERIMENT = replace(
    figure_4.EXPERIMENT,
    name="fig5",
    title="What do probes find where nothing was learned in context?",
    judge=judge,
    draw=draw,
    shared="fig4",
)
