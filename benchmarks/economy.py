"""How large are compiled algorithms, how exact, and what do widths per layer save?

    python benchmarks/economy.py

Compiles a few algorithms in float64 and float32 and reports their layers, width, inner
units, numbers, and the largest error against the textbook over all prefixes of
datasets, relative to the largest prediction or 1. Each is compiled a second time with
all MLPs padded to the widest; both run in turns, and the ratio of their times is
reported.
"""

import sys
import time
from dataclasses import dataclass, replace
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
from algoscope.construction.compiler.compile import compile_program  # noqa: E402
from algoscope.construction.compiler.numerics import DType  # noqa: E402
from algoscope.model.stack import inner_sizes_of  # noqa: E402
from algoscope.model.tokens import QUERIES, example_tokens  # noqa: E402

CASES: tuple[tuple[str, int, int], ...] = (
    ("sgd", 8, 20),
    ("ridge", 8, 20),
    ("ridge", 16, 20),
    ("newton", 8, 20),
    ("conjugate_gradients", 8, 20),
    ("ols", 8, 8),
)


@dataclass(frozen=True)
class Options:
    """Measure sizes, errors and times of compiled algorithms."""

    datasets: int = 16
    """Datasets to predict at every prefix of."""
    dims: tuple[int, ...] = (8, 16)
    """Sizes to measure."""
    turns: int = 3
    """How often each form runs; the shortest time counts."""
    out: Path = RESULTS / "economy.json"
    """Where the results go."""


def measure(name: str, dim: int, num: int, dtype: DType, options: Options) -> dict:
    """Return one line of the table."""
    construction = Construction(ALGORITHMS[name](), dim, num, dtype)
    compiled = construction.compile()
    padded = compile_program(
        compiled.program,
        replace(construction.numerics, equal_widths=True),
        tokens=construction.suited.examples(dim, num, None),
    ).transformer
    tokens = example_tokens(dim, num, options.datasets, seed=1).astype(dtype)
    exact = jnp.asarray(tokens, "float64")
    y = jnp.pad(exact[:, 1::2, 0], ((0, 0), (0, 1)))
    reference = construction.algorithm.reference
    assert reference is not None
    textbook = jax.jit(jax.vmap(reference.predict_prefixes))
    expected = np.asarray(textbook(exact[:, ::2, 1:], y))
    run: Any = jax.jit(lambda model, tokens: model.outputs(tokens, QUERIES))
    size = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1)
    forms = {"own": compiled.transformer, "padded": padded}
    errors, seconds = {}, dict.fromkeys(forms, np.inf)
    for form, model in forms.items():
        found = np.asarray(run(model, jnp.asarray(tokens)))
        errors[form] = float(np.max(np.abs(found - expected) / size))
    for _ in range(options.turns):
        for form, model in forms.items():
            start = time.process_time()
            run(model, jnp.asarray(tokens)).block_until_ready()
            seconds[form] = min(seconds[form], time.process_time() - start)
    widths = inner_sizes_of(compiled.transformer.layers)
    record = {
        "algorithm": name,
        "dim": dim,
        "num_examples": num,
        "dtype": dtype,
        "layers": compiled.num_layers,
        "width": compiled.hidden_size,
        "inner": [min(widths), max(widths)],
        "numbers": compiled.transformer.num_parameters,
        "padded_numbers": padded.num_parameters,
        "error": errors["own"],
        "padded_error": errors["padded"],
        "time_ratio": seconds["own"] / seconds["padded"],
    }
    note(", ".join(f"{key} {value}" for key, value in record.items()))
    return record


def row(record: dict[str, Any]) -> list[str]:
    least, most = record["inner"]
    return [
        "`{algorithm}`, d = {dim}, n = {num_examples}, {dtype}".format(**record),
        str(record["layers"]),
        str(record["width"]),
        f"{least:,}" if least == most else f"{least:,}–{most:,}",
        f"{record['padded_numbers']:,} → {record['numbers']:,}",
        f"{record['error']:.0e}",
        f"{record['time_ratio']:.2f}",
    ]


def main(options: Options) -> None:
    records = []
    for name, dim, num in CASES:
        if dim not in options.dims:
            continue
        for dtype in ("float64", "float32"):
            records.append(measure(name, dim, num, dtype, options))
        jax.clear_caches()
        write(options.out, {"datasets": options.datasets}, records)
    header = ["algorithm", "layers", "width", "inner", "numbers", "error", "time"]
    print(markdown(header, [row(record) for record in records]))


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
