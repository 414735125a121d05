"""Every algorithm that the compiler ships: how large, how precise, is it recognized?

    python benchmarks/algorithms.py

Compiles each for d = 4, n = 12 and d = 8, n = 20 in float64 and float32 and reports the
largest error over all prefixes of 40 datasets, against the textbook predictor that it
equals. Then `identify` must say which algorithm the float64 one for d = 4 with 10
examples runs. It cannot be asked about `ridge_one`, which takes only one example.
"""

import sys
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from report import RESULTS, markdown, note, write

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402

import algoscope  # noqa: E402
from algoscope.construction import Construction  # noqa: E402
from algoscope.construction.algorithms import ALGORITHMS, Algorithm  # noqa: E402
from algoscope.construction.language.interpreter import predictions  # noqa: E402
from algoscope.model.stack import inner_sizes_of  # noqa: E402
from algoscope.model.tokens import QUERIES  # noqa: E402

SIZES = ((4, 12), (8, 20))
FEW = {"ols": lambda dim, n: min(dim, n), "ridge_one": lambda dim, n: 1}
# Where the name of the family is not that of the construction.
FAMILY = {"sgd_looped": "sgd", "sgd_scan": "sgd", "ridge_one": "ridge"}
FAMILY |= {"gd_attention": "gd", "logistic_sgd": "none"}


@dataclass(frozen=True)
class Options:
    """Measure every algorithm that the compiler ships."""

    only: tuple[str, ...] = ()
    """Measure these alone."""
    identify: bool = True
    """Ask `identify` about each."""
    out: Path = RESULTS / "algorithms.json"
    """Where the results go."""


def expected(algorithm: Algorithm, tokens: np.ndarray) -> np.ndarray:
    """Return the textbook's predictions; the program's own where there is none."""
    dim, num_examples = tokens.shape[2] - 1, tokens.shape[1] // 2
    if algorithm.reference is None:
        return predictions(algorithm.program(dim, num_examples), tokens)
    x = jnp.asarray(tokens[:, ::2, 1:])
    y = jnp.pad(jnp.asarray(tokens[:, 1::2, 0]), ((0, 0), (0, 1)))
    return np.asarray(jax.jit(jax.vmap(algorithm.reference.predict_prefixes))(x, y))


def measure(algorithm: Algorithm, dim: int, num_examples: int, dtype: Any) -> dict:
    """Return the size and the error of one construction."""
    construction = Construction(algorithm, dim, num_examples, dtype)
    compiled = construction.compile()
    run = jax.jit(lambda transformer, tokens: transformer.outputs(tokens, QUERIES))
    tokens = algorithm.examples(dim, num_examples, 40, 7).astype(dtype)
    found = np.asarray(run(compiled.transformer, jnp.asarray(tokens)))
    errors = np.abs(found - expected(algorithm, tokens.astype(np.float64)))
    layers = compiled.transformer.layers
    return {
        "dim": dim,
        "num_examples": num_examples,
        "dtype": dtype,
        "num_layers": compiled.num_layers,
        "hidden_size": compiled.hidden_size,
        "inner_size": max(inner_sizes_of(layers)),
        "num_heads": int(layers.b_v.shape[1]),
        "error": float(errors.max()),
    }


def asked(algorithm: Algorithm) -> dict[str, Any]:
    """Return what `identify` says of a construction for d = 4."""
    few = FEW.get(algorithm.name, lambda dim, n: n)(4, 10)
    learner = Construction(algorithm, 4, few).compile().learner("construction")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # some data are meant to be extreme
        found = algoscope.identify(
            learner,
            algoscope.LinearRegression(4),
            num_examples=few,
            with_evidence=False,
        )
    return {"verdict": found.verdict, "parameters": found.parameters}


def main(options: Options) -> None:
    records, rows = [], []
    for name, kind in ALGORITHMS.items():
        if options.only and name not in options.only:
            continue
        algorithm = kind()
        sizes = []
        for dim, n in SIZES:
            few = FEW.get(name, lambda dim, n: n)(dim, n)
            for dtype in ("float64", "float32"):
                sizes.append(measure(algorithm, dim, few, dtype))
        record = {"name": name, "sizes": sizes}
        if options.identify and FEW.get(name, lambda dim, n: n)(4, 10) >= 2:
            record |= asked(algorithm) | {"expected": FAMILY.get(name, name)}
        records.append(record)
        small, small_32, large, large_32 = sizes
        rows.append(
            [
                name,
                *(
                    f"{wide['num_layers']} / {wide['hidden_size']} / "
                    f"{wide['inner_size']} / {wide['num_heads']}"
                    f" | {wide['error']:.0e} / {narrow['error']:.0e}"
                    for wide, narrow in ((small, small_32), (large, large_32))
                ),
                str(record.get("verdict", "–")),
            ]
        )
        note(" ".join(rows[-1]))
    header = ["algorithm"]
    for dim, n in SIZES:
        header += [f"d={dim}, n={n}: L / H / MLP / heads", "error float64 / float32"]
    print(markdown([*header, "identified as"], rows))
    write(options.out, {"sizes": SIZES, "datasets": 40, "seed": 7}, records)


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Options)))
