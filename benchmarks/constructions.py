"""How precise are transformers written by hand?

    python benchmarks/constructions.py

Compiles n-step SGD and recursive ridge regression for d ∈ {1, 2, 4, 8, 16} and
n ∈ {1, 2, 5, 10, 20, 40} in float64 and float32, and reports the largest error against
the closed form over all prefixes of datasets from ten seeds. Beside it the paper's own
formulas, one primitive per layer, with constants tuned for each precision: there the
error is that of the last prediction, the only one the paper's chain makes, and chains
of more than `largest_chain` numbers are left out.

Data: x, w ~ N(0, I), y = wᵀx + 0.1·noise; α = 0.5/(d + 2), λ = 0.1.
"""

import sys
import time
from dataclasses import dataclass, replace
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from report import RESULTS, markdown, note, write

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

from algoscope.construction.algorithms import SGD, Algorithm, Ridge  # noqa: E402
from algoscope.construction.compiler.compile import compile_program  # noqa: E402
from algoscope.construction.compiler.numerics import (  # noqa: E402
    DType,
    Numerics,
    numerics,
    paper_numerics,
)
from algoscope.construction.compiler.products import paper_product  # noqa: E402
from algoscope.construction.paper.chain import (  # noqa: E402
    Chain,
    ridge_chain,
    sgd_chain,
)
from algoscope.foundation.validation import InvalidValueError  # noqa: E402
from algoscope.model.stack import inner_sizes_of  # noqa: E402
from algoscope.model.tokens import QUERIES, example_tokens  # noqa: E402
from algoscope.model.transformer import Transformer  # noqa: E402

PENALTY = 0.1
SEEDS = tuple(range(1, 11))


@dataclass(frozen=True)
class Options:
    """Measure the precision of compiled SGD and ridge regression."""

    dims: tuple[int, ...] = (1, 2, 4, 8, 16)
    """d."""
    examples: tuple[int, ...] = (1, 2, 5, 10, 20, 40)
    """n."""
    datasets: int = 4
    """Datasets per seed."""
    largest_chain: float = 3e7
    """Chains of the paper with more numbers are left out."""
    speed: bool = False
    """Only time how long SGD for d = 8, n = 40 takes to compile and to run."""
    out: Path = RESULTS / "constructions.json"
    """Where the results go."""


def algorithm(name: str, dim: int) -> Algorithm:
    if name == "ridge":
        return Ridge(PENALTY)
    return SGD(0.5 / (dim + 2), PENALTY)


def chain(name: str, dim: int, num_examples: int) -> Chain:
    if name == "ridge":
        return ridge_chain(dim, num_examples, PENALTY)
    return sgd_chain(dim, num_examples, np.zeros(dim), 0.5 / (dim + 2), PENALTY)


@jax.jit
def run(transformer: Transformer, tokens: Any) -> Any:
    return transformer.outputs(tokens, QUERIES)


def closed_form(algorithm: Algorithm, tokens: np.ndarray) -> np.ndarray:
    """Return the textbook predictions in float64, at every position."""
    assert algorithm.reference is not None
    x, y = tokens[:, ::2, 1:], tokens[:, 1::2, 0]
    y = np.concatenate([y, np.zeros((len(y), 1))], axis=1)
    predict = jax.jit(jax.vmap(algorithm.reference.predict_prefixes))
    return np.asarray(predict(jnp.asarray(x), jnp.asarray(y)))


@cache
def tuned(name: str, dtype: DType) -> Numerics:
    """Return the paper's formulas with the constants that serve it best.

    They are tried on other datasets, at d = 4 and n = 1.
    """
    tokens = example_tokens(4, 1, 40, seed=100).astype(dtype)
    wide = dtype == "float64"
    grid = product(
        (1e8, 1e9, 1e10, 1e11) if wide else (1e4, 1e5, 1e6),
        (2.0**16, 2.0**18, 2.0**20) if wide else (2.0**6, 2.0**8),
        (512.0, 1e4) if wide else (128.0, 2048.0),
    )
    choices = [
        replace(
            paper_numerics(dtype),
            pad=pad,
            product=paper_product(scale),
            bypass=bypass,
        )
        for pad, scale, bypass in grid
    ]

    def worst_error(choice: Numerics) -> float:
        try:
            errors = chain_errors(name, 4, 1, choice, tokens)
        except InvalidValueError:  # numbers too large for the pads
            return np.inf
        return float(np.nan_to_num(np.max(errors), nan=np.inf))

    best = min(choices, key=worst_error)
    note(f"{name} {dtype}: pads {best.pad:g}, {best.product.name}, {best.bypass:g}")
    return best


def measure(
    name: str, dtype: DType, dim: int, num_examples: int, options: Options
) -> dict[str, Any]:
    """Return the errors of one size."""
    tokens = np.concatenate(
        [example_tokens(dim, num_examples, options.datasets, seed) for seed in SEEDS]
    ).astype(dtype)
    kind = algorithm(name, dim)
    exact = closed_form(kind, tokens.astype(np.float64))
    start = time.perf_counter()
    compiled = compile_program(kind.program(dim, num_examples), numerics(dtype))
    compiling = time.perf_counter() - start
    errors = np.abs(np.asarray(run(compiled.transformer, jnp.asarray(tokens))) - exact)
    record: dict[str, Any] = {
        "algorithm": name,
        "dtype": dtype,
        "dim": dim,
        "num_examples": num_examples,
        "num_layers": compiled.num_layers,
        "hidden_size": compiled.hidden_size,
        "inner_size": max(inner_sizes_of(compiled.transformer.layers)),
        "error": float(errors.max()),
        "median_error": float(np.median(errors.max(axis=1))),
        "compiling_seconds": compiling,
    }
    del compiled
    steps = chain(name, dim, num_examples)
    rows = sum(steps.registers.values())
    small = len(steps.steps) * 6 * rows**2 <= options.largest_chain
    record["paper_error"] = None
    if small:
        errors = chain_errors(name, dim, num_examples, tuned(name, dtype), tokens)
        record["paper_error"] = float(np.max(errors))
    note(
        f"{name} {dtype} d={dim} n={num_examples}: {record['error']:.1e}"
        f", paper {record['paper_error'] or float('nan'):.1e}"
    )
    return record


def chain_errors(
    name: str, dim: int, num_examples: int, choice: Numerics, tokens: np.ndarray
) -> np.ndarray:
    """Return the errors of a chain's last prediction."""
    transformer = chain(name, dim, num_examples).compile(choice)
    exact = closed_form(algorithm(name, dim), tokens.astype(np.float64))[:, -1]
    last = np.asarray(run(transformer, jnp.asarray(tokens)))[:, -1]
    return np.abs(last - exact)


def time_sgd() -> None:
    """Print how long the compiler takes, and 1,000 datasets at all prefixes."""
    program = SGD(0.05, PENALTY).program(8, 40)
    start = time.perf_counter()
    compiled = compile_program(program, numerics("float64"))
    compiling = time.perf_counter() - start
    tokens = jnp.asarray(example_tokens(8, 40, 1000, seed=1))
    start = time.perf_counter()
    run(compiled.transformer, tokens).block_until_ready()
    first = time.perf_counter() - start
    start = time.perf_counter()
    run(compiled.transformer, tokens).block_until_ready()
    again = time.perf_counter() - start
    print(
        f"compiled in {compiling:.1f} s; 1,000 datasets, 41 predictions each, in "
        f"{first:.1f} s with XLA's compilation, {again:.1f} s without"
    )


def main(options: Options) -> None:
    if options.speed:
        time_sgd()
        return
    records, settings = [], {"seeds": SEEDS, "datasets_per_seed": options.datasets}
    for name, dtype, dim in product(
        ("sgd", "ridge"), ("float64", "float32"), options.dims
    ):
        for num_examples in options.examples:
            records.append(measure(name, dtype, dim, num_examples, options))
        jax.clear_caches()  # a program for each size: together they exhaust the memory
        write(options.out, settings, records)
    for name in ("sgd", "ridge"):
        for dtype in ("float64", "float32"):
            rows = []
            for dim in options.dims:
                cells = []
                for n in options.examples:
                    (record,) = (
                        r
                        for r in records
                        if (r["algorithm"], r["dtype"], r["dim"], r["num_examples"])
                        == (name, dtype, dim, n)
                    )
                    paper = record["paper_error"]
                    shown = "–" if paper is None else f"{paper:.0e}"
                    cells.append(f"{shown} / **{record['error']:.0e}**")
                rows.append([str(dim), *cells])
            print(f"\n{name}, {dtype} (the paper's formulas / **compiled**)\n")
            print(markdown(["d \\ n", *map(str, options.examples)], rows))
            worst = max(
                r["error"]
                for r in records
                if (r["algorithm"], r["dtype"]) == (name, dtype)
            )
            print(f"\nworst of all: {worst:.1e}")


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
