"""Saved results of every kind as sections of a report, except runs (see runs.py)."""

import re
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from algoscope.comparison.result import Comparison, linearity_figure
from algoscope.experiments.captions import BANDS, Caption, caption_of
from algoscope.experiments.record import RESULT, Record, Table
from algoscope.experiments.rules import RULES, rule_of
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.text import duration, short
from algoscope.identification import Identification
from algoscope.identification.regimes import Regime
from algoscope.layerwise.result import LayersResult
from algoscope.patching.result import PatchingResult
from algoscope.probing.figures import attention_figure, controls_figure
from algoscope.probing.result import ProbingResult
from algoscope.reporting.section import JudgedClaim, Picture, Section, drawn


def experiment_section(directory: Path) -> Section:
    """Return the experiment in this directory: findings, figures, claims, tables."""
    record = Record.load(directory)
    for table in record.tables:
        if any(len(row) != len(table.header) for row in table.rows):
            problem = (
                f"has rows in the table '{table.title}' that are longer or shorter "
                "than its header"
            )
            raise DamagedFileError(directory / RESULT, problem)
    facts = {"budget": record.budget, "computing time": duration(record.seconds)}
    details: dict[str, Any] = {"Configuration": record.config}
    if record.runs:
        counts = Counter(status.partition(":")[0] for status in record.runs.values())
        each = [f"{count} {status}" for status, count in sorted(counts.items())]
        facts["trained models"] = ", ".join(each)
        details["Trained models"] = record.runs
    return Section(
        title=f"{_label(record.figure)}: {record.title}",
        source=str(directory),
        findings=record.findings,
        pictures=tuple(_saved_figure(directory, name) for name in record.figures),
        tables=record.tables,
        claims=_judged(record),
        facts=facts,
        command=record.command,
        details=details,
        versions=record.versions,
    )


def _judged(record: Record) -> tuple[JudgedClaim, ...]:
    """Return the claims with their rules.

    The rules of today ask for a paired difference, where a claim can be tested.
    """
    has_rules = any(rule.figure == record.figure for rule in RULES)
    found = []
    for claim in record.claims:
        rule = rule_of(record.figure, claim.name)
        if rule and record.budget != "cpu":  # no verdict of it came before
            rule = replace(rule, before=None)
        is_tested = claim.verdict != "not testable"
        is_earlier = has_rules and is_tested and claim.difference is None
        found.append(JudgedClaim(claim, rule, is_earlier))
    return tuple(found)


def _label(figure: str) -> str:
    """Return fig7 as Figure 7, and shifts as Shifts."""
    name = re.sub(r"^fig(\d+)$", r"Figure \1", figure)
    return name[:1].upper() + name[1:]


def _saved_figure(directory: Path, name: str) -> Picture:
    if Path(name).name != name:
        problem = f"names a figure outside its own directory, '{name}'"
        raise DamagedFileError(directory / RESULT, problem)
    svg, png = directory / f"{name}.svg", directory / f"{name}.png"
    for path in (svg, png):
        if not path.is_file():
            remedy = "Run the experiment's command again."
            raise DamagedFileError(path, "is missing", remedy)
    try:
        text = svg.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise DamagedFileError(svg, f"is not an SVG file ({error})") from None
    caption = caption_of(name) or Caption("", name.replace("_", " "))
    return Picture(caption, text, str(svg), png)


def comparison_section(path: Path) -> Section:
    """Return a saved comparison: its sentence, curves and table."""
    found, source = Comparison.load(path), str(path)
    pictures = [comparison_picture(found, source)]
    if "r2" in found.metrics:
        caption = (
            "R² of a linear function of the query, fitted to the predictions after n "
            f"examples: a linear algorithm has 1. {BANDS}"
        )
        alt = "Lines of R² against the number of examples."
        pictures.append(drawn(caption, alt, source, linearity_figure(found)))
    return Section(
        title=f"{found.learner} against textbook algorithms",
        source=source,
        findings=(found.sentence,),
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


def comparison_picture(comparison: Comparison, source: str) -> Picture:
    """Return the curves of a comparison."""
    weights = "ilwd" in comparison.metrics
    other = "of implied weights (ILWD/d)" if weights else "on a logarithmic scale"
    caption = (
        f"Distance of {comparison.learner} to each reference after n examples, of its "
        f"predictions (SPD/d) and {other}. 0 is the same function; the dashed line is "
        f"the distance to the true labels. {BANDS}"
    )
    alt = (
        "Two panels of lines against the number of examples: distances of "
        f"{comparison.learner} to each reference."
    )
    return drawn(caption, alt, source, comparison.plot())


def comparison_table(comparison: Comparison) -> Table:
    """Return SPD/d to each reference, by regime."""
    header, rows = comparison.summary()
    title = f"SPD/d of {comparison.learner} to each reference"
    return Table(title, tuple(header), tuple(map(tuple, rows)))


def identification_section(path: Path) -> Section:
    """Return a saved identification: its answer, also by regime, and the candidates."""
    found = Identification.load(path)
    names = list(found.nearest.suites)
    rows = tuple(
        (
            row["hypothesis"],
            short(row["distance"]),
            f"{short(row['low'])} … {short(row['high'])}",
            *(short(row[name]) for name in names),
        )
        for row in found.rows()
    )
    regimes = tuple(
        f"{each.name.capitalize()}, n = {_span(each)}: {each.relation}; "
        f"the nearest is {each.nearest} at {short(each.distance)}."
        for each in found.regimes
    )
    header = ("hypothesis", "distance", "95 % interval", *names)
    return Section(
        title=f"Which algorithm is {found.target}?",
        source=str(path),
        findings=(found.sentence, *regimes),
        pictures=(
            drawn(
                "Distance to the nearest hypotheses on each kind of data and after n "
                "examples, and the answers against those of the named hypothesis. The "
                "dashed line is the limit of “behaves like”.",
                f"Three panels: distances of {found.target} to the nearest hypotheses "
                "by kind of data and by number of examples, and a scatter of answers.",
                str(path),
                found.plot(),
            ),
        ),
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
    figures = {"figure_4_layers": found.plot()}
    if found.controls:
        figures["figure_5"] = controls_figure(found)
    for kind in found.kinds:
        figures[f"figure_4_attention_{kind}"] = attention_figure(found, kind=kind)
    pictures = []
    for name, figure in figures.items():
        caption = caption_of(name)
        assert caption is not None
        pictures.append(drawn(caption.text, caption.alt, source, figure))
    rows = []
    for row in found.summary():
        names = (row["target"], row["kind"], row["learner"], str(row["best_layer"]))
        mean, low, high = map(short, row["error"])
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
    """Return a saved patching result: its maps, and the effects at the query."""
    found, source = PatchingResult.load(directory), str(directory)
    summary = found.summary()
    names = ("query", "examples", "error", "weights", "pattern", "random")
    rows = tuple(
        (str(row["layer"]), *(short(row[name]) for name in names))
        for row in summary["layers"]
    )
    header = ("layer", "swap the query", "swap all examples", "probe's error")
    header += tuple(f"edit, {name}" for name in names[3:])
    intact, ablated = found.intact, "its heads are not known, and not ablated"
    if summary["parts"]:
        worst = summary["parts"][0]
        largest = short(worst["spd_ols"])
        ablated = f"it is largest, {largest}, without {worst['without']}"
    return Section(
        title=f"What {found.learner} uses",
        source=source,
        findings=(
            f"SPD(OLS)/d is {short(intact.mean)} ({short(intact.low)} … "
            f"{short(intact.high)}, {intact.count:,} datasets); {ablated}.",
        ),
        pictures=(
            drawn(
                "By layer and position: how far the answer moves if one state is "
                "swapped with that of another dataset, what a probe reads there, and "
                "how far the answer follows if the reading is moved. Then the same at "
                f"the query per layer, and SPD(OLS)/d without each part. {BANDS}",
                "Three heat maps of layers against positions, and three panels of "
                "lines and points: swaps, edits and ablations.",
                source,
                found.plot(),
            ),
        ),
        tables=(Table("At the query", header, rows),),
        facts={"task": found.task, "examples": str(found.num_examples)},
        details={"Configuration": found.config},
        versions=found.versions,
    )


def layers_section(directory: Path) -> Section:
    """Return saved read-outs: their distances, and the steps that they match."""
    found, source = LayersResult.load(directory), str(directory)
    header = ("layer", "risk/d", "SPD(OLS)/d", "cosine to w_OLS")
    header += tuple(f"{name}: steps (SPD/d)" for name in found.algorithms)
    rows = []
    for row in found.summary()["layers"]:
        numbers = (row["risk"], row["spd_ols"], row["cosine_w_ols"])
        matches = [found.match(name, row["layer"]) for name in found.algorithms]
        steps = [f"{each.shown} ({short(each.distance)})" for each in matches]
        rows.append((row["name"], *map(short, numbers), *steps))
    return Section(
        title=f"What {found.learner} would answer after each layer",
        source=source,
        findings=(found.sentence,),
        pictures=(
            drawn(
                "What would be answered after each layer: its distance to OLS, its "
                "risk, the number of steps of each algorithm that it matches, and the "
                f"weights that it implies. {BANDS}",
                "Four panels of lines against the layer: SPD to OLS, risk, matching "
                "steps of each algorithm, and cosines of implied weights.",
                source,
                found.plot(),
            ),
        ),
        tables=(Table("Layer by layer", header, tuple(rows)),),
        facts={"task": found.task, "examples": str(found.num_examples)},
        details={"Configuration": found.config},
        versions=found.versions,
    )
