"""How often is `identify` right when it is sure? Boxes of no family's grid.

    python benchmarks/calibration.py --boxes 600

Draws black boxes (`boxes.py`), asks `identify` about each and writes one line per box
to results/calibration.jsonl; a run that was stopped goes on where it ended. The boxes
with even numbers set the confidence (`--fit` prints the numbers for
`algoscope/identification/confidence.py`), those with odd numbers only measure it.
"""

import json
import sys
import time
import warnings
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import boxes
import numpy as np
import tyro
from report import RESULTS, markdown, note
from sklearn.linear_model import LogisticRegression

import algoscope
from algoscope.adapters import FunctionPredictor
from algoscope.identification import identify
from algoscope.identification.confidence import features

BINS = (0.0, 0.5, 0.8, 0.95, 1.0001)


@dataclass(frozen=True)
class Options:
    """Ask `identify` about boxes that are not on its grids."""

    boxes: int = 600
    """How many boxes."""
    seed: int = 0
    """Seed of the draw."""
    start: int = 0
    """Number of the first box."""
    summary: bool = False
    """Only summarize what was written."""
    fit: bool = False
    """Print the numbers for `confidence.py`, set on the boxes with even numbers."""
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


def fit(records: list[dict]) -> None:
    """Print the numbers of `confidence.py`: rates, and a logistic regression."""
    for relation in ("is", "none"):
        said = [r["right"] for r in records if r["relation"] == relation]
        rate = (sum(said) + 1) / (len(said) + 2)  # the rule of succession
        print(f"{relation}: {sum(said)} of {len(said)} right, {rate:.3f}")
    said = [r for r in records if r["relation"] == "behaves like"]
    z = [features(r["distance"], r["domain"], r["fails"]) for r in said]
    model = LogisticRegression(C=1.0).fit(np.array(z), [r["right"] for r in said])
    print(f"behaves like: {len(said)} statements")
    print(f"OFFSET = {model.intercept_[0]:.3f}")
    print(f"SLOPES = ({', '.join(f'{b:.3f}' for b in model.coef_[0])})")


def summarize(records: list[dict]) -> None:
    """Print how often statements were right, by group, relation and confidence."""
    groups = sorted({r["group"] for r in records})
    rows = []
    for group in [*groups, "all"]:
        some = [r for r in records if group in (r["group"], "all")]
        cells = [group, str(len(some)), f"{np.mean([r['right'] for r in some]):.0%}"]
        for relation in ("is", "behaves like", "none"):
            said = [r["right"] for r in some if r["relation"] == relation]
            cells.append(f"{sum(said)} of {len(said)}")
        rows.append(cells)
    print(markdown(["group", "boxes", "right", "is", "behaves like", "none"], rows))
    rows = []
    for low, high in zip(BINS, BINS[1:], strict=False):
        some = [r for r in records if low <= r["confidence"] < high]
        if some:
            stated = np.mean([r["confidence"] for r in some])
            actual = np.mean([r["right"] for r in some])
            rows.append(
                [
                    f"{low:g}–{min(high, 1):g}",
                    str(len(some)),
                    f"{stated:.1%}",
                    f"{actual:.1%}",
                ]
            )
    print(markdown(["stated", "boxes", "mean stated", "actually right"], rows))
    wrong = Counter((r["group"], r["relation"]) for r in records if not r["right"])
    print("wrong:", dict(wrong))


def main(options: Options) -> None:
    options.out.parent.mkdir(exist_ok=True)
    done = {}
    if options.out.exists():
        lines = options.out.read_text().splitlines()
        done = {r["number"]: r for r in map(json.loads, lines)}
    if options.fit:
        fit([r for n, r in done.items() if n % 2 == 0])
        return
    if not options.summary:
        for number in range(options.start, options.start + options.boxes):
            if number in done:
                continue
            done[number] = ask(number, options.seed)
            with options.out.open("a") as file:
                file.write(json.dumps(done[number]) + "\n")
            r = done[number]
            note(
                f"{number:4} {'ok ' if r['right'] else 'BAD'} {r['group']}: "
                f"{r['name'][:60]}: {r['relation']} {r['verdict']}; {r['nearest']} at "
                f"{r['distance']:.1e}, {r['seconds']:.1f} s"
            )
    for name, part in (("thresholds set on", 0), ("only measured", 1)):
        print(f"\n## {name} (numbers {'even' if part == 0 else 'odd'})\n")
        summarize([r for n, r in done.items() if n % 2 == part])


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
