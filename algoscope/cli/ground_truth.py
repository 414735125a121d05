"""`algoscope ground-truth`: learners whose insides are known, and scores on them."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from algoscope.cli.console import print_table
from algoscope.foundation.files import json_text

EXAMPLES = """
algoscope ground-truth --out truth
algoscope ground-truth --out truth --score --budget smoke
"""


@dataclass(frozen=True)
class GroundTruth:
    """Write learners whose insides are labelled, to score probes and patching on."""

    out: Path
    """The directory to write to: one directory per learner, and index.json."""
    only: tuple[str, ...] = ()
    """Learners to write. By default all of them."""
    score: bool = False
    """Score our own probes and patching on the learners, too."""
    budget: str = "cpu"
    """How many datasets to score on: smoke or cpu."""
    json: bool = False
    """Print the result as JSON."""


def run_ground_truth(command: GroundTruth) -> None:
    """Write the learners, and score on them if asked."""
    import jax

    jax.config.update("jax_enable_x64", True)
    from algoscope.foundation.progress import shown
    from algoscope.ground_truth import write_ground_truth

    with shown(True, plain=True) as progress:
        names = write_ground_truth(command.out, only=command.only, progress=progress)
    if command.score:
        _score(command, names)
        return
    if command.json:
        print(json_text({"out": str(command.out), "learners": names}))
        return
    print(f"{len(names)} learners with labels, in {command.out}")


def _score(command: GroundTruth, names: list[str]) -> None:
    from algoscope.foundation.progress import shown
    from algoscope.ground_truth import score

    places = [command.out / name for name in names]
    with shown(True, plain=True) as progress:
        found: Any = score(places, command.budget, progress=progress)
    found.save(command.out)
    if command.json:
        print(json_text(found.rows()))
        return
    header, rows = found.summary()
    print_table("How often is the method right?", header, rows)
    print(f"{found.sentence}\nAll cells: {command.out / found.file}")
