"""Probes of all prefixes in one program, against one after another.

    python benchmarks/probing.py

One layer of linear-d4, one target (XᵀY), the prefixes and sizes of a budget, a few
hundred steps. Both ways draw the same minibatches and start from the same probes, so
they end with the same errors, which is checked. Compilation is left out of both, which
favors the plain way: all its prefixes share one program. It takes a few minutes.
"""

import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import jax
import numpy as np
import tyro
from report import RESULTS, markdown, note, note_load, write

from algoscope.model.learner import InContextLearner
from algoscope.probing import find_budget
from algoscope.probing.config import ProbingConfig
from algoscope.probing.probes import (
    AttentionProbe,
    Fitted,
    initial_probes,
    train_probes,
)
from algoscope.probing.states import Repeat, StateSplit
from algoscope.probing.targets import TargetSplit, find_targets
from algoscope.tasks.linear import LinearRegression


@dataclass(frozen=True)
class Options:
    """Time probes of all prefixes: trained together, and one after another."""

    budget: str = "cpu"
    """Whose prefixes and sizes."""
    steps: int = 200
    """Steps of Adam."""
    rounds: int = 3
    """How often each way is timed."""
    layer: int = 5
    """Which layer is probed."""
    out: Path = RESULTS / "probing.json"
    """Where the results go."""


def together(
    probes: AttentionProbe,
    states: StateSplit,
    targets: TargetSplit,
    config: ProbingConfig,
) -> Fitted:
    """Train the probes of all prefixes in one program."""
    return train_probes(probes, states, targets, config, seed=0)


def one_by_one(
    probes: AttentionProbe,
    states: StateSplit,
    targets: TargetSplit,
    config: ProbingConfig,
) -> Fitted:
    """Train the probe of each prefix alone."""
    parts = []
    for index, n in enumerate(config.prefixes):
        alone: Any = jax.tree.map(lambda leaf, i=index: leaf[:, i : i + 1], probes)
        own = TargetSplit(*(values[:, index : index + 1] for values in targets))
        chosen = replace(config, prefixes=(n,))
        parts.append(train_probes(alone, states, own, chosen, seed=0))
    return Fitted(*(np.concatenate(part, axis=1) for part in zip(*parts, strict=True)))


def main(options: Options) -> None:
    note_load()
    learner = InContextLearner.from_pretrained("linear-d4")
    config = replace(
        find_budget(options.budget),
        steps=options.steps,
        num_training=2048,
        num_test=256,
    )
    repeat = Repeat.draw(LinearRegression(4), config, find_targets(["moment"]), 0)
    states = repeat.states(learner, (options.layer,))
    targets = repeat.targets["moment"]
    results = []
    for kind in config.kinds:
        probes = initial_probes(
            kind,
            config,
            layers=(options.layer,),
            hidden_size=states.training.shape[-1],
            target_size=targets.training.shape[2],
            seed=0,
        )
        seconds: dict[str, list[float]] = {"together": [], "one by one": []}
        ways = {"together": together, "one by one": one_by_one}
        errors = {}
        for name, way in ways.items():
            note(f"{kind}, {name}: compiling and checking")
            errors[name] = way(probes, states, targets, config).error
        if not np.allclose(errors["together"], errors["one by one"], rtol=0.05):
            sys.exit(f"{kind}: the two ways end with different errors.")
        for index in range(options.rounds):
            for name, way in ways.items():
                start = time.perf_counter()
                way(probes, states, targets, config)
                seconds[name].append(time.perf_counter() - start)
            note(f"{kind}: round {index + 1} of {options.rounds}")
        ratios = [
            b / a
            for a, b in zip(seconds["together"], seconds["one by one"], strict=True)
        ]
        per_probe = median(seconds["together"]) / len(config.prefixes) / options.steps
        results.append(
            {
                "kind": kind,
                "seconds": seconds,
                "ratios": ratios,
                "seconds_per_probe_and_step": per_probe,
            }
        )
    header = ["probes", "prefixes", "value size", "together is faster by", "range"]
    rows = [
        [
            each["kind"],
            str(len(config.prefixes)),
            str(config.value_size),
            f"**{median(each['ratios']):.1f}×**",
            f"{min(each['ratios']):.1f}–{max(each['ratios']):.1f}",
        ]
        for each in results
    ]
    print(markdown(header, rows))
    settings = {"config": config.as_dict(), "rounds": options.rounds}
    write(options.out, settings, results)


if __name__ == "__main__":
    main(tyro.cli(Options))
