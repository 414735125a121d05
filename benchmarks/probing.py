"""What probing costs per step, and what training all probes in one program saves.

    python benchmarks/probing.py

A few steps of the `cpu` budget on linear-d4, at fixed places and with learned
attention: once with the probes of all prefixes together, once for each prefix alone,
which repeats the learner's forward pass. Compilation is left out of both. The
operations per second calibrate `estimate_cost`. It takes a few minutes.
"""

import time
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
import tyro
from report import RESULTS, markdown, note, note_load, write

from algoscope.cli.console import use_cores
from algoscope.model.learner import InContextLearner
from algoscope.probing import estimate_cost, find_budget
from algoscope.probing.config import ProbingConfig
from algoscope.probing.fitting import Fitting
from algoscope.probing.stream import LearnerStates
from algoscope.probing.targets import find_targets
from algoscope.tasks.linear import LinearRegression

TARGETS = ("moment", "w_ols")


@dataclass(frozen=True)
class Options:
    """Time probes of all prefixes: trained together, and one after another."""

    budget: str = "cpu"
    """Whose prefixes and sizes."""
    model: str = "linear-d4"
    """Whose hidden states."""
    steps: int = 40
    """Steps of each pass."""
    rounds: int = 3
    """How often each way is timed."""
    out: Path = RESULTS / "probing.json"
    """Where the results go."""


def seconds_of(learner: InContextLearner, config: ProbingConfig) -> float:
    """Return the seconds of fitting all probes, compiled before."""
    layers = config.layers_of(learner)
    fitting = Fitting(
        LearnerStates(learner.transformer, layers),
        LinearRegression(learner.dim),
        config,
        tuple(find_targets(TARGETS)),
        layers,
        0,
    )
    start = time.perf_counter()
    fitting.fit()
    return time.perf_counter() - start


def main(options: Options) -> None:
    use_cores()
    note_load()
    learner = InContextLearner.from_pretrained(options.model)
    budget = find_budget(options.budget)
    datasets = options.steps * budget.batch_size
    together = replace(
        budget,
        num_training=datasets,
        num_learned=datasets,
        num_validation=budget.block_size,
        num_test=budget.block_size,
        repeats=1,
    )
    alone = [replace(together, prefixes=(n,)) for n in budget.prefixes]
    seconds: dict[str, list[float]] = {"together": [], "one by one": []}
    note("compiling")
    for config in (together, *alone):
        seconds_of(learner, config)
    for index in range(options.rounds):
        seconds["together"].append(seconds_of(learner, together))
        each = [seconds_of(learner, config) for config in alone]
        seconds["one by one"].append(sum(each))
        note(f"round {index + 1} of {options.rounds}")
    cost = estimate_cost(learner, together, target_sizes=(learner.dim,) * len(TARGETS))
    flops = cost.forward_flops + cost.probe_flops
    rate = flops / median(seconds["together"])
    ratios = np.array(seconds["one by one"]) / np.array(seconds["together"])
    header = ["probes", "prefixes", "GFLOP/s", "together is faster by", "range"]
    row = [
        f"{cost.num_probes:,}",
        str(len(budget.prefixes)),
        f"{rate / 1e9:.0f}",
        f"**{np.median(ratios):.1f}×**",
        f"{ratios.min():.1f}–{ratios.max():.1f}",
    ]
    print(markdown(header, [row]))
    settings = {"config": together.as_dict(), "rounds": options.rounds}
    found = {"seconds": seconds, "flops": flops, "flops_per_second": rate}
    write(options.out, settings, [found])


if __name__ == "__main__":
    main(tyro.cli(Options))
