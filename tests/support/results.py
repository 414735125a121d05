"""Small saved results of every kind, and a reader of the page that shows them."""

import json
import shutil
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

from algoscope.comparison.intervals import Estimate
from algoscope.experiments.record import Claim, Record, Table
from algoscope.identification import Candidate, Identification, Statement
from algoscope.identification.regimes import Regime
from algoscope.model.checkpoints import MODELS
from algoscope.patching.result import Map, PatchingResult
from algoscope.probing.measurement import Measurement
from algoscope.probing.result import ProbingResult
from algoscope.reporting import report

TEXT = st.text(st.characters(codec=None, categories=None), max_size=40)
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" width="90pt" height="60pt">'
    '<clipPath id="c"><rect width="9" height="9"/></clipPath>'
    '<path d="M 0 0 L 9 9" clip-path="url(#c)"/></svg>'
)


def save_record(directory: Path, **changes: Any) -> Record:
    """Write an experiment with one small figure."""
    record = Record(
        figure="fig1",
        title="Which algorithm?",
        budget="smoke",
        command="algoscope reproduce fig1 --budget smoke",
        config={"dim": 8, "seeds": [0, 1]},
        versions={"python": "3.11", "algoscope": "0.1.0"},
        seconds=4321.0,
        findings=("OLS is the nearest: 0.002 [0.001, 0.003].", "Ridge is the next."),
        figures=("curves",),
        tables=(Table("Distances", ("reference", "SPD/d"), (("OLS", "0.002"),)),),
        claims=(
            Claim("minimum norm", "§4.3: as OLS", "0.002 (n = 10)", "reproduced"),
            Claim("depth", "§4.4: phases", "two of three", "partly", "few depths"),
        ),
        runs={"d52a5e4b2a1d": "finished", "c0ffee": "diverged: at step 4"},
    )
    record = replace(record, **changes)
    record.save(directory)
    for name in record.figures:
        (directory / f"{name}.svg").write_text(SVG)
        (directory / f"{name}.png").write_bytes(b"\x89PNG")
    return record


def save_run(directory: Path, name: str = "small", model: str = "linear-d1") -> Path:
    """Write a finished run under another name."""
    shutil.copytree(MODELS / model, directory)
    for part in ("config.json", "evaluation.json"):
        text = (directory / part).read_text()
        (directory / part).write_text(text.replace(f'"{model}"', json.dumps(name)))
    return directory


def save_probing(directory: Path, learner: str = "small") -> Path:
    """Write a probing result with a control, with random numbers."""
    rng = np.random.default_rng(0)
    measurements = tuple(
        Measurement(
            who,
            "moment",
            kind,
            (0, 1),
            rng.uniform(0.1, 1.0, (2, 2, 2)),
            np.ones((2, 2)),
            rng.dirichlet(np.ones(5), (2, 2, 2)),
        )
        for who in (learner, "control")
        for kind in ("linear", "mlp")
    )
    config = {"repeats": 2, "num_training": 10}
    versions = {"python": "3.11"}
    ProbingResult(
        learner, ("control",), 2, "a task", (1, 2), config, versions, measurements
    ).save(directory)
    return directory


def save_patching(directory: Path, learner: str = "small") -> Path:
    """Write a patching result with random numbers."""
    rng = np.random.default_rng(0)
    names = ("moved", "ilwd", "error", "weights", "pattern", "random")
    maps = {name: Map(*rng.uniform(size=(3, 3, 6))) for name in names}
    parts = ("nothing", "layer 1, head 1", "layer 1, MLP", "layer 2, MLP")
    intact, *without = (Estimate(part, "OLS", 0.1, 0.0, 0.2, 0.1, 5) for part in parts)
    sizes = {"learner": learner, "dim": 2, "task": "a task", "num_examples": 2}
    PatchingResult(
        **sizes,
        target="w_ols",
        apart=1.0,
        config={},
        versions={"python": "3.11"},
        maps=maps,
        intact=intact,
        ablations=tuple(without),
    ).save(directory)
    return directory


def save_identification(path: Path, target: str = "small") -> Path:
    """Write an identification with two candidates."""
    rest = {"suites": {"task": 0.1}, "untrimmed": {"task": 0.1}, "per_n": [0.0, 0.1]}
    candidates = [
        Candidate("ols", "ols", {}, {}, 0.1, 0.05, 0.2, **rest),
        Candidate("ridge", "ridge(0.1)", {"penalty": 0.1}, {}, 0.3, 0.2, 0.4, **rest),
    ]
    statement = Statement(
        domain="task",
        relation="behaves like",
        verdict="ols",
        confidence=0.9,
        candidates=candidates,
        ties=[],
        suites={"task": 0.1},
        holds_on=["task"],
        fails_on=[],
    )
    Identification(
        target=target,
        verdict="ols",
        relation="behaves like",
        parameters={},
        parameter_ranges={},
        confidence=0.9,
        ties=[],
        distance=0.1,
        suites={"task": 0.1},
        domain="task",
        statements=[statement],
        regimes=[Regime("determined", 2, 2, "ols", "behaves like", "ols", {}, 0.1)],
        changes_at=None,
        broken_symmetries={},
        limit=0.2,
        answered=1.0,
        first_n=1,
        last_n=4,
        noise=0.0,
        task="a task",
        dim=2,
        num_examples=4,
        num_datasets=8,
        num_questions=32,
        seed=0,
        versions={"python": "3.11"},
        answers={"n": [1.0], "predictor": [0.5], "hypothesis": [0.4]},
    ).save(path)
    return path


class Reader(HTMLParser):
    """The text and the elements of a page."""

    def __init__(self, text: str):
        super().__init__()
        self.text = ""
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data

    def all(self, name: str) -> list[str]:
        """Return the values of an attribute in all elements."""
        return [value for _, found in self.elements if (value := found.get(name))]


def reported(out: Path, *paths: Path) -> Reader:
    """Write a page of the results, and read it."""
    report(paths, out, progress=False)
    return Reader(out.read_text())
