"""How often is `identify` right when it is sure? Boxes of no family's grid.

    python benchmarks/calibration.py

Draws black boxes (`boxes.py`), asks `identify` about each and writes one line per box
to results/calibration.jsonl; a run that was stopped resumes where it ended. Then it
prints the tables of docs/identification.md and draws the figures in docs/images.

The numbers of `algoscope/identification/confidence.py` were set on two other draws, as
they were measured when they were new, in results/calibration_tuning.jsonl; `--fit`
prints them.
"""

import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import NormalDist

import boxes
import numpy as np
import tyro
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from report import RESULTS, markdown, note
from sklearn.linear_model import LogisticRegression, Ridge

import algoscope
from algoscope import InContextLearner
from algoscope.adapters import EstimatorPredictor, FunctionPredictor
from algoscope.foundation.plotting import COLORS, save_figure
from algoscope.identification import identify
from algoscope.identification.confidence import features

BINS = (0.0, 0.8, 0.9, 0.95, 0.985, 1.0001)
RELATIONS = ("is", "behaves like", "none")
SURE = 0.95
IMAGES = Path(__file__).parent.parent / "docs" / "images"


@dataclass(frozen=True)
class Options:
    """Ask `identify` about boxes that are not on its grids."""

    boxes: int = 500
    """How many boxes."""
    seed: int = 20261
    """Seed of the draw."""
    summary: bool = False
    """Only summarize and draw what was written."""
    fit: bool = False
    """Print the numbers for `confidence.py`, from the draws that they were set on."""
    times: bool = False
    """Only print the CPU time of `identify`, when everything is compiled."""
    out: Path = RESULTS / "calibration.jsonl"
    """Where the lines go."""


def ask(number: int, seed: int) -> dict:
    """Return what `identify` says about one box, and whether it is right."""
    truth, dim, num_examples = boxes.draw(number, seed)
    start = time.process_time()
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        found = identify(
            FunctionPredictor(truth.box, "box"),
            algoscope.LinearRegression(dim),
            num_examples=num_examples,
            seed=number,
            with_evidence=False,
            progress=False,
        )
    main = found.statements[0]
    other = main.runner_up
    named = {found.verdict, *found.ties}
    if found.relation == "is" and not truth.can_be:
        same = boxes.equals_a_part(truth, named, dim, num_examples)
        truth = replace(truth, can_be=same)
    return {
        "seed": seed,
        "number": number,
        "group": truth.group,
        "name": truth.name,
        "dim": dim,
        "families": sorted(truth.families),
        "relation": found.relation,
        "verdict": found.verdict,
        "ties": found.ties,
        "right": truth.is_right(found.relation, found.verdict, found.ties),
        "confidence": found.confidence,
        "domain": found.domain,
        "nearest": main.nearest.name,
        "distance": found.distance,
        "unexplained": main.unexplained,
        "suites": found.suites,
        "fails": len(main.fails_on),
        "next": [other.name, other.distance] if other else None,
        "switch": truth.switch,
        "changes_at": found.changes_at,
        "regimes": [[r.relation, r.verdict, r.first, r.last] for r in found.regimes],
        "others": [
            [s.domain, s.relation, s.nearest.name, s.nearest.distance]
            for s in found.statements[1:]
        ],
        "noise": found.noise,
        "seconds": time.process_time() - start,
    }


def time_targets() -> None:
    """Print the CPU seconds of a second `identify` in the same process."""
    ridge = EstimatorPredictor(Ridge(alpha=0.3))
    targets = (
        ("linear-d8", InContextLearner.from_pretrained("linear-d8"), None),
        ("Ridge(alpha=0.3), d = 4", ridge, algoscope.LinearRegression(4)),
    )
    for name, target, task in targets:
        identify(target, task, progress=False)
        start = time.process_time()
        found = identify(target, task, progress=False)
        seconds = time.process_time() - start
        print(f"{name}: {seconds:.1f} s CPU, {found.num_questions:,} questions")


def fit(records: list[dict]) -> None:
    """Print the numbers of `confidence.py`: rates, and a logistic regression."""
    for relation in ("is", "none"):
        right, said = count(r for r in records if r["relation"] == relation)
        rate = (right + 1) / (said + 2)  # the rule of succession
        print(f"{relation}: {right} of {said} right, {rate:.3f}")
    said = [r for r in records if r["relation"] == "behaves like"]
    z = [features(r["unexplained"], r["domain"], r["fails"]) for r in said]
    model = LogisticRegression(C=1.0).fit(np.array(z), [r["right"] for r in said])
    chances = model.predict_proba(np.array(z))[:, 1]
    sure = count(r for r, p in zip(said, chances, strict=True) if p >= SURE)
    print("behaves like: {} of {} right".format(*count(said)))
    print(f"HIGHEST = {(sure[0] + 1) / (sure[1] + 2):.2f} ({sure[0]} of {sure[1]})")
    print(f"OFFSET = {model.intercept_[0]:.3f}")
    print(f"SLOPES = ({', '.join(f'{b:.3f}' for b in model.coef_[0])})")


def count(records) -> tuple[int, int]:
    """Return how many statements are right, and how many there are."""
    right = [record["right"] for record in records]
    return sum(right), len(right)


def wilson(right: int, total: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share."""
    z2 = NormalDist().inv_cdf(0.975) ** 2
    middle = (right + z2 / 2) / (total + z2)
    half = np.sqrt(z2 * (right * (total - right) / total + z2 / 4)) / (total + z2)
    return middle - half, middle + half


def share(right: int, total: int) -> str:
    """Return a share with its counts and its interval."""
    if not total:
        return "–"
    low, high = wilson(right, total)
    return f"{right} of {total}, {right / total:.1%} ({low:.1%} to {high:.1%})"


def binned(records: list[dict]) -> list[tuple[float, float, float, int, int]]:
    """Return low and high end, mean stated confidence, right and all, for each bin."""
    found = []
    for low, high in zip(BINS, BINS[1:], strict=False):
        some = [r for r in records if low <= r["confidence"] < high]
        if some:
            stated = float(np.mean([r["confidence"] for r in some]))
            found.append((low, min(high, 1.0), stated, *count(some)))
    return found


def summarize(records: list[dict]) -> None:
    """Print how often statements were right, by group, relation and confidence."""
    rows = []
    for group in [*sorted({r["group"] for r in records}), "all"]:
        some = [r for r in records if group in (r["group"], "all")]
        cells = [group, str(len(some)), f"{np.mean([r['right'] for r in some]):.0%}"]
        for relation in RELATIONS:
            said = count(r for r in some if r["relation"] == relation)
            cells.append("{} of {}".format(*said) if said[1] else "–")
        rows.append(cells)
    print(markdown(["group", "boxes", "right", *RELATIONS], rows))
    rows = [
        [f"{low:g}–{high:g}", f"{stated:.1%}", share(right, total)]
        for low, high, stated, right, total in binned(records)
    ]
    print(f"\n{markdown(['stated', 'mean stated', 'right'], rows)}\n")
    sure = count(r for r in records if r["confidence"] >= SURE)
    print(f"stated with {SURE:.0%} or more: {share(*sure)}")
    for relation in RELATIONS:
        said = count(r for r in records if r["relation"] == relation)
        print(f"{relation}: {share(*said)}")
    false = [r for r in records if not r["right"]]
    per_hundred = {
        name: 100 * sum(r["relation"] == name for r in false) / len(records)
        for name in RELATIONS
    }
    print(
        f"false names per hundred boxes: is {per_hundred['is']:.1f}, behaves like "
        f"{per_hundred['behaves like']:.1f}; false none {per_hundred['none']:.1f}"
    )
    for r in false:
        print(
            f"wrong: {r['number']} {r['group']} {r['name']}: {r['relation']} "
            f"{r['nearest']} at {r['distance']:.1e}"
        )


def reliability(axes: Axes, records: list[dict]) -> None:
    """Draw the share that is right against the stated confidence."""
    lowest = min(stated for _, _, stated, _, _ in binned(records)) - 0.03
    axes.plot([lowest, 1], [lowest, 1], color="0.6", lw=0.8)
    for _, _, stated, right, total in binned(records):
        low, high = wilson(right, total)
        axes.plot([stated, stated], [low, high], color=COLORS[0], lw=1.5)
        axes.plot(stated, right / total, "o", color=COLORS[0])
        axes.annotate(
            f"{right} of {total}",
            (stated, low),
            (0, -6),
            textcoords="offset points",
            rotation=90,
            ha="center",
            va="top",
            fontsize=7,
        )
    axes.set_ylim(0, 1.02)
    axes.set_xlabel("stated confidence")
    axes.set_ylabel("share of right statements, 95 % interval")
    axes.spines[["top", "right"]].set_visible(False)


def row_of(record: dict) -> str:
    """Return the family of a box, or its group if it has not one."""
    single = len(record["families"]) == 1 and record["group"] != "outsider"
    return record["families"][0] if single else f"({record['group']})"


def confusion(axes: Axes, records: list[dict]) -> None:
    """Draw how often boxes of each family got each verdict; red: some are wrong."""
    said = Counter((row_of(r), r["verdict"]) for r in records)
    wrong = {(row_of(r), r["verdict"]) for r in records if not r["right"]}
    truths = sorted({t for t, _ in said}, key=lambda t: (t.startswith("("), t))
    verdicts = sorted({v for _, v in said}, key=lambda v: (v == "none", v))
    for (truth, verdict), number in said.items():
        place = verdicts.index(verdict), truths.index(truth)
        color = COLORS[1] if (truth, verdict) in wrong else COLORS[0]
        axes.scatter(*place, s=130, color=color, alpha=0.25, lw=0)
        axes.text(*place, str(number), ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(verdicts)), verdicts, rotation=90, fontsize=7)
    axes.set_yticks(range(len(truths)), truths, fontsize=7)
    axes.set_ylim(len(truths) - 0.5, -0.5)
    axes.set_xlabel("verdict (orange: some of these are wrong)")
    axes.set_ylabel("family of the box, or its group")
    axes.grid(lw=0.3, color="0.9")
    axes.set_axisbelow(True)


def draw(records: list[dict]) -> None:
    """Draw the reliability diagram and the confusion matrix into docs/images."""
    figure = Figure(figsize=(5, 4.2), layout="constrained")
    reliability(figure.subplots(), records)
    save_figure(figure, IMAGES / "calibration.png")
    figure = Figure(figsize=(8, 7.5), layout="constrained")
    confusion(figure.subplots(), records)
    save_figure(figure, IMAGES / "confusion.png")


def read(path: Path) -> list[dict]:
    """Return the records of a file, in the order of their numbers."""
    lines = path.read_text().splitlines() if path.exists() else []
    return sorted(map(json.loads, lines), key=lambda r: r["number"])


def main(options: Options) -> None:
    if options.times:
        time_targets()
        return
    if options.fit:
        fit(read(RESULTS / "calibration_tuning.jsonl"))
        return
    options.out.parent.mkdir(exist_ok=True)
    records = read(options.out)
    done = {r["number"] for r in records}
    for number in range(0 if options.summary else options.boxes):
        if number in done:
            continue
        record = ask(number, options.seed)
        records.append(record)
        with options.out.open("a") as file:
            file.write(json.dumps(record) + "\n")
        note(
            f"{number:4} {'ok ' if record['right'] else 'BAD'} {record['group']}: "
            f"{record['name'][:60]}: {record['relation']} {record['nearest']} at "
            f"{record['distance']:.1e}, {record['seconds']:.1f} s"
        )
    summarize(records)
    draw(records)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
