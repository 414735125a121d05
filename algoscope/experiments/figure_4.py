"""Figure 4: what probes read out of hidden states and in which layer, d = 4 (§5).

Judges the learner; `probings` measures for figures 4 and 5, and `figure_5` judges the
controls. The rules are in docs/verdicts.md; errors are relative to the target's
variance, and differences are paired over seeds and test datasets (`Evidence`).
"""

from dataclasses import replace
from pathlib import Path

import numpy as np

from algoscope.experiments.experiment import Experiment, Judgment
from algoscope.experiments.probings import (
    ProbedModels,
    in_text,
    layer_tables,
    load_evidence,
    load_others,
    load_probing,
    measure,
    measuring,
    sample_sizes,
    trainings,
    weakest,
)
from algoscope.experiments.record import Claim, Table, Verdict
from algoscope.foundation.plotting import save_picture
from algoscope.foundation.text import listed, number
from algoscope.probing import ProbingResult, find_budget
from algoscope.probing.evidence import Evidence, Margin
from algoscope.probing.figures import attention_figure, layers_figure, prefixes_figure
from algoscope.probing.places import place_symbol
from algoscope.probing.targets import symbol
from algoscope.training.config import preset

FIXED = ("last_label", "query", "labels")
REGIONS = ("n ≤ d", "n > d", "all n")
BOTH_SIDES = "It takes prefixes n > 1 on both sides of d."


def judge(config: ProbedModels, directory: Path) -> Judgment:
    """Say in which layer, by which probes and at which places targets are read."""
    evidence, others = load_evidence(directory), load_others(directory)
    claims = (
        moment_before_weights(evidence),
        nonlinear_is_better(evidence),
        encoded_deep(evidence),
        weights_are_encoded(evidence),
        read_at_labels(evidence),
    )
    findings = (*_sentences(evidence), flatness(evidence), *map(_about_other, others))
    tables = (
        *layer_tables(evidence.first, evidence.first.learner),
        *floor_tables(evidence),
    )
    return Judgment(tuple(findings), tables, claims)


def _sentence(text: str) -> str:
    """Return the text with a capital letter."""
    return text[0].upper() + text[1:]


def floor_tables(evidence: Evidence) -> tuple[Table, ...]:
    """Return the error of MLP probes and all floors for every n, a table per target."""
    tables = []
    for target in evidence.first.targets:
        rows = []
        names: tuple[str, ...] = ()
        for n in evidence.first.prefixes:
            own = evidence.error(target, "mlp", [n])
            floors = evidence.floors(target, "mlp", [n])
            cells = {floor.of: in_text(floor.margin) for floor, _ in floors}
            names = names or tuple(dict.fromkeys((*cells, "(d+1)/(n+d+1)")))
            texts = (cells.get(name, "–") for name in names)
            rows.append((str(n), in_text(own.margin), *texts))
        title = f"{symbol(target)}: MLP probes in the best layer, and floors"
        tables.append(Table(title, ("n", "probe", *names), tuple(rows)))
    return tuple(tables)


def _sentences(evidence: Evidence) -> list[str]:
    """Return the best layer and its error for every target, kind and learned place."""
    result, sentences = evidence.first, []
    region = list(result.prefixes)
    for target in result.targets:
        for kind in result.kinds:
            texts = [
                f"{place_symbol(place)} "
                f"{in_text(evidence.error(target, kind, region, place=place).margin)}"
                for place in result.places
            ]
            layers = evidence.best_layers(target, kind, region)
            sentences.append(
                f"{symbol(target)}, {kind} probes of {result.learner}: best layers by "
                f"seed {listed(layers)}; relative errors by place: "
                f"{', '.join(texts)} ({sample_sizes(evidence)})."
            )
    return sentences


def flatness(evidence: Evidence) -> str:
    """Say how much validation errors changed over the last quarter of training."""
    changes = []
    for result in evidence.results:
        for each in result.measurements:
            if each.history is not None and each.kind == "mlp":
                past = each.history / each.variance[:, None, None]
                changes.append(float((past[:, -2] - past[:, -1]).mean()))
    if not changes:
        return "The validation errors of training were not saved."
    return (
        "Over the last quarter of training, the validation error of MLP probes fell by "
        f"{number(float(np.mean(changes)))} on average, and by at most "
        f"{number(max(changes))} for one place and target."
    )


def _about_other(result: ProbingResult) -> str:
    """Say what probes read in a model that decides no verdict."""
    evidence = Evidence((result,))
    region = evidence.regions.get("n > d", list(result.prefixes))
    texts = []
    for target in result.targets:
        margins = evidence.above(target, "mlp", region)
        layers = evidence.best_layers(target, "mlp", region)
        error = in_text(evidence.error(target, "mlp", region).margin)
        below = all(margin.is_positive for margin in margins)
        verdict = "below" if below else "not below"
        texts.append(
            f"{symbol(target)} {error} in layer {layers[0]}, {verdict} all floors that "
            "need no control"
        )
    return f"{result.learner}, MLP probes at the labels, n > d: {'; '.join(texts)}."


def _untestable(name: str, paper: str, reason: str = BOTH_SIDES) -> Claim:
    return Claim(name, paper, "", "not testable", reason)


def moment_before_weights(evidence: Evidence) -> Claim:
    """Judge the order in which the targets become readable."""
    name = "XᵀY before w"
    paper = (
        "XᵀY becomes predictable relatively early, in layer 7 of 16, and w later, "
        "around layer 12 (§5, figure 4)."
    )
    region = evidence.regions.get("all n")
    if region is None:
        return _untestable(name, paper)
    found = {
        kind: evidence.order("moment", "w_ols", kind, region)
        for kind in evidence.first.kinds
    }
    holds = [all(m.is_positive for m in each.values()) for each in found.values()]
    texts = [
        f"with {kind} probes, the {measure} of w_OLS is {in_text(margin)} layers later"
        for kind, each in found.items()
        for measure, margin in each.items()
    ]
    return Claim.of_parts(
        name,
        paper,
        f"{_sentence('; '.join(texts))} ({sample_sizes(evidence)}).",
        holds,
        "XᵀY is not significantly earlier by both measures with every kind of probe.",
        seeds=evidence.seeds,
        difference=weakest([m for each in found.values() for m in each.values()]),
    )


def nonlinear_is_better(evidence: Evidence) -> Claim:
    """Judge MLP probes against linear ones, each in its best layer."""
    region = list(evidence.first.prefixes)
    margins, texts = [], []
    for target in evidence.first.targets:
        linear, mlp = (evidence.error(target, k, region) for k in ("linear", "mlp"))
        gap = linear.minus(mlp)
        margins.append(gap._replace(of=f"{symbol(target)}: linear − MLP"))
        texts.append(
            f"{symbol(target)}: linear {in_text(linear.margin)}, MLP "
            f"{in_text(mlp.margin)}, difference {in_text(gap)}"
        )
    return Claim.of_parts(
        "MLP probes beat linear ones",
        "For both targets a 2-layer MLP probe outperforms a linear probe (§5).",
        f"Relative errors in the best layers: {'; '.join(texts)} "
        f"({sample_sizes(evidence)}).",
        [margin.is_positive for margin in margins],
        "The difference is not significant for every target.",
        seeds=evidence.seeds,
        difference=weakest(margins),
    )


def _nearest_floor(evidence: Evidence, target: str, region: list[int]) -> Margin:
    return min(evidence.above(target, "mlp", region), key=lambda margin: margin.low)


def encoded_deep(evidence: Evidence) -> Claim:
    """Judge that targets are encoded, and in the second half of the network."""
    name = "targets are encoded deep in the network"
    paper = (
        "Both targets are encoded deep in the network and not in its input, where "
        "probes fail; in the paper the best layers are 8 and 12 of 16 (§5, figure 4)."
    )
    regions = evidence.regions
    if set(regions) != set(REGIONS):
        return _untestable(name, paper)
    encoded, deep, margins, texts = [], [], [], []
    for target in evidence.first.targets:
        own = [_nearest_floor(evidence, target, regions[r]) for r in ("n > d", "all n")]
        layers = evidence.best_layers(target, "mlp", regions["all n"])
        depth = max(evidence.first.of(target, "mlp").layers)
        margins += own
        encoded.append(all(margin.is_positive for margin in own))
        deep.append(all(layer >= depth / 2 for layer in layers))
        floors = " and ".join(f"{m.of} = {in_text(m)}" for m in own)
        texts.append(
            f"{symbol(target)}: best layers {listed(layers)} of {depth}; nearest "
            f"floors for n > d and all n: {floors}"
        )
    both = [a and b for a, b in zip(encoded, deep, strict=True)]
    verdict: Verdict = "not reproduced"
    if all(both):
        verdict = "reproduced"
    elif any(both) or all(encoded):
        verdict = "partly"
    names = list(map(symbol, evidence.first.targets))
    known, late = (
        listed([name for name, holds in zip(names, part, strict=True) if holds])
        for part in (encoded, deep)
    )
    reason = f"Encoded: {known}; best in the second half: {late}."
    return Claim(
        name,
        paper,
        f"Errors of MLP probes, {'; '.join(texts)} ({sample_sizes(evidence)}).",
        verdict,
        "" if verdict == "reproduced" else reason,
        evidence.seeds,
        weakest(margins),
    )


def weights_are_encoded(evidence: Evidence) -> Claim:
    """Judge w_OLS against all floors, without and with enough examples."""
    name = "w is encoded"
    paper = (
        "The weights can be decoded from hidden states; the paper's errors have no "
        "unit, so that no threshold is taken from them (§5, figure 4)."
    )
    regions = evidence.regions
    if set(regions) != set(REGIONS):
        return _untestable(name, paper)
    margins = [
        _nearest_floor(evidence, "w_ols", regions[r]) for r in ("n ≤ d", "n > d")
    ]
    texts = [
        f"{region}: {in_text(evidence.error('w_ols', 'mlp', regions[region]).margin)}, "
        f"nearest floor {margin.of} = {in_text(margin)}"
        for region, margin in zip(("n ≤ d", "n > d"), margins, strict=True)
    ]
    return Claim.of_parts(
        name,
        paper,
        f"Errors of MLP probes for w_OLS in the best layer, {'; '.join(texts)} "
        f"({sample_sizes(evidence)}).",
        [margin.is_positive for margin in margins],
        "The error is not significantly below every floor in both regions.",
        seeds=evidence.seeds,
        difference=weakest(margins),
    )


def read_at_labels(evidence: Evidence) -> Claim:
    """Judge whether yₙ reads best for n ≤ d, and the labels for n > d."""
    name = "targets are read at yₙ and at the labels"
    paper = (
        "The value of the target after n exemplars is decoded primarily from the "
        "representation of yₙ or, after n = d, uniformly from the labels (figure 4)."
    )
    regions = evidence.regions
    if set(regions) != set(REGIONS) or not set(FIXED) <= set(evidence.first.places):
        return _untestable(name, paper)
    holds, margins, texts = [], [], []
    for target in evidence.first.targets:
        for place, region in (("last_label", "n ≤ d"), ("labels", "n > d")):
            own = evidence.best_place(target, "mlp", place, regions[region])
            holds.append(all(margin.is_positive for margin in own))
            margins += own
            errors = [
                f"{place_symbol(p)} {in_text(sample.margin)}"
                for p in FIXED
                for sample in [evidence.error(target, "mlp", regions[region], place=p)]
            ]
            texts.append(f"{symbol(target)}, {region}: {', '.join(errors)}")
    return Claim.of_parts(
        name,
        paper,
        f"Relative errors of MLP probes at fixed places: {'; '.join(texts)} "
        f"({sample_sizes(evidence)}).",
        holds,
        f"{sum(holds)} of {len(holds)} parts hold.",
        seeds=evidence.seeds,
        difference=weakest(margins),
    )


def draw(directory: Path) -> tuple[str, ...]:
    """Draw the error per layer and per n, and the positions that probes look at."""
    found = load_probing(directory)
    figures = {"figure_4_layers": layers_figure(found)}
    for kind in found.kinds:
        figures[f"figure_4_prefixes_{kind}"] = prefixes_figure(found, kind=kind)
        for place, name in (("learned", kind), ("unmasked", f"{kind}_unmasked")):
            if place in found.places:
                drawn = attention_figure(found, kind=kind, place=place)
                figures[f"figure_4_attention_{name}"] = drawn
    return tuple(
        save_picture(figure, directory, name) for name, figure in figures.items()
    )


PAPER = replace(preset("paper"), dim=4, num_examples=41)  # prefixes end at 40
D4, CONTROL = preset("d4"), preset("control-d4")
WIDE = replace(D4, num_layers=8, hidden_size=256, steps=2000)  # as two cores allow
FEW = replace(
    find_budget("smoke"),
    layers=(0, 4, 8, 12),
    num_training=256,
    num_learned=128,
    repeats=1,
)

EXPERIMENT = Experiment(
    name="fig4",
    title="What do hidden states encode, and in which layer?",
    budgets={
        "smoke": ProbedModels(FEW),
        "cpu": ProbedModels(
            find_budget("cpu"),
            seeds=((replace(D4, seed=1), replace(CONTROL, seed=1)),),
            others=(("paper-block", replace(D4, block="paper")), ("wide", WIDE)),
        ),
        "paper": ProbedModels(find_budget("paper"), training=PAPER),
    },
    trainings=trainings,
    measuring=measuring,
    measure=measure,
    judge=judge,
    draw=draw,
)
