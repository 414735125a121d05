"""Is a compiled algorithm precise at sizes that nobody tuned it for, or does it warn?

    python benchmarks/hidden_sizes.py

Compiles SGD and ridge regression with the penalties λ ∈ {0, 1e-3, 0.21, 5} for
d ∈ {3, 5, 7, 11, 13} and up to 64 examples, in float64 and float32; with λ = 0, ridge
regression is `ols`, which takes up to d examples. Each is asked about all prefixes of
datasets of several kinds: as calibrated on, three times as large, every other input
zero, and every input twice. The error is the largest difference from the textbook in
float64, over the largest prediction or 1. Up to 1e-10 in float64 and 1e-3 in float32 it
is precise; beyond it must warn. Ends with 1 if it is anywhere wrong without a warning.

Small cases come first. A second run with the same number of datasets measures only what
the file of results lacks; remove it after a change of the compiler.
"""

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from report import RESULTS, markdown, note, write

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

from algoscope.construction.algorithms import (  # noqa: E402
    SGD,
    Algorithm,
    MinimumNorm,
    Ridge,
)
from algoscope.construction.build import Construction  # noqa: E402
from algoscope.construction.compiler.numerics import DType, numerics  # noqa: E402
from algoscope.foundation.files import read_json  # noqa: E402
from algoscope.model.tokens import QUERIES, example_tokens  # noqa: E402

KEY = ("algorithm", "dim", "num_examples", "penalty", "dtype")
KINDS = ("usual", "x·3", "zero rows", "twice")
PRECISE, WARNED, SILENT = "precise", "warned", "SILENT"


@dataclass(frozen=True)
class Options:
    """Measure compiled algorithms at many sizes and penalties."""

    dims: tuple[int, ...] = (3, 5, 7, 11, 13)
    """d."""
    examples: tuple[int, ...] = (9, 20, 64)
    """n; `ols` takes at most d of them."""
    penalties: tuple[float, ...] = (0.0, 1e-3, 0.21, 5.0)
    """λ."""
    dtypes: tuple[DType, ...] = ("float64", "float32")
    """Precisions."""
    datasets: int = 4
    """Datasets of every kind."""
    out: Path = RESULTS / "hidden_sizes.json"
    """Where the results go."""


Case = tuple[Algorithm, int, int, float, DType]


def cases(options: Options) -> Iterator[Case]:
    for dim, penalty in product(options.dims, options.penalties):
        sgd = SGD(0.5 / (dim + 2), penalty)
        for num, dtype in product(options.examples, options.dtypes):
            yield sgd, dim, num, penalty, dtype
        ridge = Ridge(penalty) if penalty else MinimumNorm()
        fitting = {num if penalty else min(num, dim) for num in options.examples}
        for num, dtype in product(sorted(fitting), options.dtypes):
            yield ridge, dim, num, penalty, dtype


def changed(kind: str, tokens: np.ndarray) -> np.ndarray:
    """Return datasets of a kind; labels follow the inputs where they are scaled."""
    tokens = tokens.copy()
    if kind == "x·3":
        tokens *= 3
    elif kind == "zero rows":
        tokens[:, 2:-1:4, 1:] = 0
        tokens[:, 3::4, 0] = 0
    elif kind == "twice":
        pairs = tokens.shape[1] // 4
        for place in range(pairs):
            tokens[:, 4 * place + 2 : 4 * place + 4] = tokens[
                :, 4 * place : 4 * place + 2
            ]
    return tokens


def measure(
    algorithm: Algorithm, dim: int, num: int, penalty: float, dtype: DType, count: int
) -> list[dict[str, Any]]:
    """Return the error on every kind of data, and whether the learner warns of it."""
    compiled = Construction(algorithm, dim, num, dtype).compile()
    assert compiled.operands is not None
    assert algorithm.reference is not None
    textbook = jax.jit(jax.vmap(algorithm.reference.predict_prefixes))
    run = jax.jit(lambda model, tokens: model.outputs(tokens, QUERIES))
    found = []
    for kind in KINDS:
        tokens = changed(kind, example_tokens(dim, num, count, seed=5)).astype(dtype)
        exact = jnp.asarray(tokens, "float64")
        y = jnp.pad(exact[:, 1::2, 0], ((0, 0), (0, 1)))
        expected = np.asarray(textbook(exact[:, ::2, 1:], y))
        outputs = np.asarray(run(compiled.transformer, jnp.asarray(tokens)))
        size = np.maximum(np.abs(expected).max(axis=1, keepdims=True), 1)
        error = float(np.max(np.abs(outputs - expected) / size))
        check = compiled.operands.check(compiled.transformer, jnp.asarray(tokens))
        precise = error <= numerics(dtype).tolerance
        warned = not float(check.error) <= 1
        found.append(
            {
                "algorithm": algorithm.name,
                "dim": dim,
                "num_examples": num,
                "penalty": penalty,
                "dtype": dtype,
                "kind": kind,
                "error": error,
                "estimate": float(check.error) * numerics(dtype).tolerance,
                "warned": warned,
                "verdict": PRECISE if precise else WARNED if warned else SILENT,
            }
        )
    shown = (f"{each['kind']} {each['error']:.0e} {each['verdict']}" for each in found)
    name = f"{algorithm.name} d={dim} n={num} λ={penalty:g} {dtype}"
    note(f"{name}: {', '.join(shown)}")
    return found


def summary(records: list[dict[str, Any]]) -> str:
    """Return a table: per algorithm, penalty and precision, the worst over sizes."""
    header = ["algorithm", "λ", "precision", "cases", "precise", "warned", "silent"]
    header += ["largest error, usual data", "without a warning"]
    rows = []
    key = ("algorithm", "penalty", "dtype")
    for group in sorted({tuple(each[k] for k in key) for each in records}):
        own = [each for each in records if tuple(each[k] for k in key) == group]
        usual = max(each["error"] for each in own if each["kind"] == KINDS[0])
        quiet = [each["error"] for each in own if not each["warned"]]
        counts = [
            str(sum(each["verdict"] == verdict for each in own))
            for verdict in (PRECISE, WARNED, SILENT)
        ]
        name, penalty, dtype = group
        row = [f"`{name}`", f"{penalty:g}", dtype, str(len(own)), *counts]
        rows.append([*row, f"{usual:.0e}", f"{max(quiet, default=0):.0e}"])
    return markdown(header, rows)


def main(options: Options) -> int:
    settings = {"datasets": options.datasets}
    wanted = {_key(*case): case for case in sorted(cases(options), key=_size)}
    records: list[dict[str, Any]] = []
    if options.out.exists():
        saved = read_json(options.out)
        records = saved["results"] if saved["settings"] == settings else []
    known = {tuple(each[name] for name in KEY) for each in records}
    for key, case in wanted.items():
        if key in known:
            continue
        records += measure(*case, options.datasets)
        jax.clear_caches()  # a program for each size: together they exhaust the memory
        write(options.out, settings, records)
    asked = [each for each in records if tuple(each[name] for name in KEY) in wanted]
    print(summary(asked))
    return int(any(each["verdict"] == SILENT for each in asked))


def _key(
    algorithm: Algorithm, dim: int, num: int, penalty: float, dtype: DType
) -> tuple[str, int, int, float, str]:
    """Return what the records of a case have in common, `KEY`."""
    return algorithm.name, dim, num, penalty, dtype


def _size(case: Case) -> int:
    """Return about how much a case computes."""
    algorithm, dim, num, *_ = case
    width = dim if isinstance(algorithm, SGD) else dim * dim
    return width**2 * num**2


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
