"""Predictions after every number of examples: one pass against one pass per prefix.

    python benchmarks/prefixes.py

A causal transformer predicts at every xᵢ in one pass (`predict_all`). The plain way
asks once per prefix, with a context that grows. It is timed twice, on fewer datasets:
with every context padded to the full length, so that it is compiled once, and with
contexts of their true length, which is about half the work but compiled once per
length. Compilation counts for ours and not for the plain ways, which favors them.

The model has the size of linear-d8 (L = 8, H = 64, M = 4) and random weights: the time
does not depend on them. It takes about ten minutes on two cores.
"""

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import tyro
from report import RESULTS, markdown, note, note_load, write

from algoscope.comparison.predict import BATCH, held_out, predict_all
from algoscope.model.learner import InContextLearner
from algoscope.training.config import preset
from algoscope.training.loop import initial_state, task_of

Way = Callable[[np.ndarray, np.ndarray], np.ndarray]

ONE_PASS = "one pass: `predict_all`"


@dataclass(frozen=True)
class Options:
    """Time predictions at every prefix: in one pass, and in one pass per prefix."""

    num_datasets: int = 10_000
    """Datasets of the one pass."""
    num_datasets_plain: int = BATCH
    """Datasets of the plain ways."""
    num_examples: int = 40
    """The most examples before a query."""
    rounds: int = 5
    """How often each way is timed."""
    out: Path = RESULTS / "prefixes.json"
    """Where the results go."""


def padded_way(learner: InContextLearner) -> Way:
    """Return the way that fills what is not yet known with zeros."""

    @jax.jit
    def after(x, y, n):
        places = jnp.arange(y.shape[1])
        x = jnp.where((places <= n)[None, :, None], x, 0)
        y = jnp.where((places < n)[None], y, 0)
        return jax.vmap(learner.predict_prefixes)(x, y)[:, n]

    def predict(x, y):
        parts = [np.asarray(after(x, y, n)) for n in range(y.shape[1])]
        return np.stack(parts, axis=1)

    return predict


def growing_way(learner: InContextLearner) -> Way:
    """Return the way that hands over exactly the examples known."""
    after = jax.jit(jax.vmap(learner))

    def predict(x, y):
        parts = [after(x[:, :n], y[:, :n], x[:, n]) for n in range(y.shape[1])]
        return np.stack([np.asarray(part) for part in parts], axis=1)

    return predict


def row(result: dict[str, Any]) -> list[str]:
    """Return the line of the table."""
    ratios = result["ratios"]
    compared = ["1", "–"]
    if result["way"] != ONE_PASS:
        compared = [
            f"**{median(ratios):.1f}×**",
            f"{min(ratios):.1f}–{max(ratios):.1f}",
        ]
    rate = f"{median(result['datasets_per_second']):,.1f}"
    return [result["way"], f"{result['datasets']:,}", rate, *compared]


def main(options: Options) -> None:
    note_load()
    config = replace(preset("d8"), num_examples=options.num_examples + 1)
    learner = InContextLearner(initial_state(config).transformer)
    x, y = held_out(
        task_of(config),
        num_datasets=options.num_datasets,
        num_examples=config.num_examples,
        seed=0,
    )
    few = slice(0, options.num_datasets_plain)
    ways: dict[str, tuple[Way, Any]] = {
        ONE_PASS: (partial(predict_all, learner), slice(None)),
        "a pass per prefix, padded": (padded_way(learner), few),
        "a pass per prefix, growing": (growing_way(learner), few),
    }

    expected = predict_all(learner, x[few], y[few])
    for name, (way, _) in ways.items():
        note(f"{name}: compiling and checking")
        found = way(x[few], y[few])
        if not np.allclose(found, expected, rtol=1e-3, atol=1e-4):
            sys.exit(f"{name}: predictions differ by {abs(found - expected).max():g}.")

    rates: dict[str, list[float]] = {name: [] for name in ways}
    for index in range(options.rounds):
        for name, (way, part) in ways.items():
            start = time.perf_counter()
            way(x[part], y[part])
            rates[name].append(len(x[part]) / (time.perf_counter() - start))
        note(f"round {index + 1} of {options.rounds}")

    results = [
        {
            "way": name,
            "datasets": len(x[part]),
            "datasets_per_second": rates[name],
            "ratios": [
                a / b for a, b in zip(rates[ONE_PASS], rates[name], strict=True)
            ],
        }
        for name, (_, part) in ways.items()
    ]
    header = ["way", "datasets timed", "datasets / s", "one pass is faster by", "range"]
    print(markdown(header, [row(result) for result in results]))
    settings = {
        "num_examples": options.num_examples,
        "rounds": options.rounds,
        "parameters": config.num_parameters,
    }
    write(options.out, settings, results)


if __name__ == "__main__":
    main(tyro.cli(Options))
