"""How large are compiled algorithms, how exact, and how fast?

    python benchmarks/economy.py --out after.json --before before.json

Compiles a few algorithms in float64 and float32 and reports their layers, width, inner
units, numbers, the largest error against the textbook over all prefixes of datasets,
relative to the largest prediction or 1, and the time for one pass over them. With
`--before`, the results of an earlier version are shown beside.
"""

import json
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from report import RESULTS, markdown, note, write

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

from algoscope.construction.algorithms import ALGORITHMS  # noqa: E402
from algoscope.construction.build import Construction  # noqa: E402
from algoscope.construction.compiler.numerics import DType  # noqa: E402
from algoscope.model.tokens import QUERIES, example_tokens  # noqa: E402

CASES: tuple[tuple[str, int, int, dict[str, Any]], ...] = (
    ("sgd", 8, 20, {}),
    ("ridge", 8, 20, {}),
    ("ridge", 16, 20, {}),
    ("newton", 8, 20, {}),
    ("conjugate_gradients", 8, 20, {}),
    ("ols", 8, 8, {}),
)


@dataclass(frozen=True)
class Options:
    """Measure sizes, errors and times of compiled algorithms."""

    datasets: int = 64
    """Datasets to predict at every prefix of."""
    dims: tuple[int, ...] = (8, 16)
    """Sizes to measure; d = 16 takes some gigabytes."""
    before: Path | None = None
    """Results of an earlier version."""
    out: Path = RESULTS / "economy.json"
    """Where the results go."""


def measure(
    name: str, dim: int, num: int, parameters: dict, dtype: DType, datasets: int
) -> dict[str, Any]:
    """Return one line of the table."""
    construction = Construction(ALGORITHMS[name](**parameters), dim, num, dtype)
    start = time.perf_counter()
    compiled = construction.compile()
    compiling = time.perf_counter() - start
    tokens = example_tokens(dim, num, datasets, seed=1).astype(dtype)
    x, y = tokens[:, ::2, 1:].astype(float), tokens[:, 1::2, 0].astype(float)
    y = np.concatenate([y, np.zeros((datasets, 1))], axis=1)
    reference = construction.algorithm.reference
    assert reference is not None
    textbook = jax.jit(jax.vmap(reference.predict_prefixes))
    expected = np.asarray(textbook(jnp.asarray(x), jnp.asarray(y)))
    run = jax.jit(lambda model, tokens: model.outputs(tokens, QUERIES))
    found = np.asarray(run(compiled.transformer, jnp.asarray(tokens)))
    start = time.perf_counter()
    run(compiled.transformer, jnp.asarray(tokens)).block_until_ready()
    running = time.perf_counter() - start
    size = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1)
    record = {
        "algorithm": name,
        "dim": dim,
        "num_examples": num,
        "dtype": dtype,
        "layers": compiled.num_layers,
        "width": compiled.hidden_size,
        "inner": int(compiled.transformer.layers.b_2.shape[-1]),
        "numbers": compiled.transformer.num_parameters,
        "error": float(np.max(np.abs(found - expected) / size)),
        "compiling_seconds": compiling,
        "running_seconds": running,
    }
    note(", ".join(f"{key} {value}" for key, value in record.items()))
    return record


SHOWN = {
    "layers": "{}",
    "width": "{}",
    "inner": "{:,}",
    "numbers": "{:,}",
    "error": "{:.0e}",
    "running_seconds": "{:.2f} s",
}


def main(options: Options) -> None:
    records = []
    for case in CASES:
        if case[1] not in options.dims:
            continue
        for dtype in ("float64", "float32"):
            records.append(measure(*case, dtype, options.datasets))
        jax.clear_caches()
        write(options.out, {"datasets": options.datasets}, records)
    earlier = []
    if options.before is not None:
        earlier = json.loads(options.before.read_text())["results"]
    key = ("algorithm", "dim", "num_examples", "dtype")
    known = {tuple(each[k] for k in key): each for each in earlier}
    rows = []
    for record in records:
        own = tuple(record[k] for k in key)
        name = f"`{own[0]}`, d = {own[1]}, n = {own[2]}, {own[3]}"
        cells = []
        for column, text in SHOWN.items():
            shown = text.format(record[column])
            if own in known and text.format(known[own][column]) != shown:
                shown = f"{text.format(known[own][column])} → {shown}"
            cells.append(shown)
        rows.append([name, *cells])
    print(markdown(["algorithm", *SHOWN], rows))


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
