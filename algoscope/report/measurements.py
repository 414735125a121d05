"""Saved comparisons, identifications, probing and patching results as sections."""

from pathlib import Path

from algoscope import verdict
from algoscope.comparison import Comparison
from algoscope.console import small
from algoscope.experiments.record import Table
from algoscope.figures import draw_comparison, draw_linearity
from algoscope.identification import Identification
from algoscope.identification.result import Regime
from algoscope.patching.figures import draw_patching
from algoscope.patching.result import PatchingResult
from algoscope.probing.figures import draw_attention, draw_controls, draw_layers
from algoscope.probing.result import ProbingResult
from algoscope.report.drawing import drawn
from algoscope.report.sections import Section
from algoscope.report.training import comparison_table


def comparison_section(path: Path) -> Section:
    """Return a saved comparison: its curves, its table and its sentence."""
    found, source = Comparison.load(path), str(path)
    pictures = [drawn("Comparison", source, lambda out: draw_comparison(found, out))]
    if "r2" in found.metrics:
        pictures.append(
            drawn("Linearity", source, lambda out: draw_linearity(found, out))
        )
    return Section(
        title=f"{found.learner} against textbook algorithms",
        source=source,
        findings=(verdict.sentence(found),),
        pictures=tuple(pictures),
        tables=(comparison_table(found),),
        facts={
            "task": found.task,
            "datasets": f"{found.num_datasets:,}",
            "seed": str(found.seed),
        },
        details={"Settings": found.settings},
        versions=found.versions,
    )


def identification_section(path: Path) -> Section:
    """Return a saved identification: the answer, per regime, and the candidates."""
    found = Identification.load(path)
    names = [regime.name for regime in found.regimes]
    rows = tuple(
        (
            candidate.name,
            small(candidate.distance),
            f"{small(candidate.low)} … {small(candidate.high)}",
            *(small(candidate.regimes[name]) for name in names),
        )
        for candidate in found.candidates
    )
    regimes = tuple(
        f"{each.name.capitalize()}, n = {_span(each)}: {each.verdict}; "
        f"the nearest is {each.nearest} at {small(each.distance)}."
        for each in found.regimes
    )
    header = ("hypothesis", "distance", "95 % interval", *names)
    return Section(
        title=f"Which algorithm is {found.target}?",
        source=str(path),
        findings=(found.sentence, *regimes),
        tables=(Table("Candidates, the nearest first", header, rows),),
        facts={
            "task": found.task,
            "datasets": f"{found.num_datasets:,}",
            "seed": str(found.seed),
        },
        details={"Evidence": found.evidence},
        versions=found.versions,
    )


def _span(regime: Regime) -> str:
    first, last = regime.first, regime.last
    return str(first) if first == last else f"{first} to {last}"


def probing_section(directory: Path) -> Section:
    """Return a saved probing result: figures 4 and 5, and each probe's best layer."""
    found, source = ProbingResult.load(directory), str(directory)
    pictures = [drawn("Layers", source, lambda out: draw_layers(found, out))]
    if found.controls:
        pictures.append(
            drawn("Controls", source, lambda out: draw_controls(found, out))
        )
    for kind in found.kinds:
        pictures.append(
            drawn(
                f"Positions, {kind} probe",
                source,
                lambda out, kind=kind: draw_attention(found, out, kind=kind),
            )
        )
    rows = []
    for row in found.summary():
        names = (row["target"], row["kind"], row["learner"], str(row["best_layer"]))
        mean, low, high = map(small, row["error"])
        rows.append((*names, mean, f"{low} … {high}"))
    header = ("target", "probe", "learner", "best layer", "error / variance", "95 %")
    return Section(
        title=f"What {found.learner} encodes",
        source=source,
        findings=(),
        pictures=tuple(pictures),
        tables=(Table("Least error over the layers", header, tuple(rows)),),
        facts={"task": found.task, "examples": ", ".join(map(str, found.prefixes))},
        details={"Configuration": found.config},
        versions=found.versions,
    )


def patching_section(directory: Path) -> Section:
    """Return a saved patching result: its maps, and what matters at the query."""
    found, source = PatchingResult.load(directory), str(directory)
    summary = found.summary()
    names = ("query", "examples", "error", "weights", "pattern", "random")
    rows = tuple(
        (str(row["layer"]), *(small(row[name]) for name in names))
        for row in summary["layers"]
    )
    header = ("layer", "swap the query", "swap all examples", "probe's error")
    header += tuple(f"edit, {name}" for name in names[3:])
    worst, intact = summary["parts"][0], found.intact
    return Section(
        title=f"What {found.learner} uses",
        source=source,
        findings=(
            f"SPD(OLS)/d is {small(intact.mean)} ({small(intact.low)} … "
            f"{small(intact.high)}, {intact.count:,} datasets); it is largest, "
            f"{small(worst['spd_ols'])}, without {worst['without']}.",
        ),
        pictures=(drawn("Maps", source, lambda out: draw_patching(found, out)),),
        tables=(Table("At the query", header, rows),),
        facts={"task": found.task, "examples": str(found.num_examples)},
        details={"Configuration": found.config},
        versions=found.versions,
    )
