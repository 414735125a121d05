"""Sizes that nobody tuned for: predictions are precise, or there is a warning."""

import subprocess
import sys
import warnings
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest

import algoscope as asc
from algoscope import OutsideRangeWarning
from algoscope.construction.algorithms import SGD, Algorithm, MinimumNorm, Ridge
from algoscope.model.tokens import example_tokens

BARS = {"float64": 1e-10, "float32": 1e-3}
SPOTS: list[tuple[Algorithm, int, int]] = [
    (SGD(0.5 / 5, 0.0), 3, 11),
    (SGD(0.5 / 7, 5.0), 5, 4),
    (Ridge(1e-3), 3, 5),
    (Ridge(1e-3), 2, 9),
    (Ridge(5.0), 5, 3),
    (MinimumNorm(), 5, 3),
]


@pytest.mark.parametrize("dtype", BARS)
@pytest.mark.parametrize("spot", SPOTS, ids=lambda s: f"{s[0].name}-d{s[1]}-n{s[2]}")
def test_a_compiled_algorithm_is_precise_or_warns(spot, dtype):
    algorithm, dim, num = spot
    learner = asc.build(algorithm, dim, num, dtype=dtype)
    reference = algorithm.reference
    assert reference is not None
    for factor in (1.0, 3.0):
        tokens = factor * example_tokens(dim, num, 1, seed=5)[0].astype(dtype)
        x, y = tokens[::2, 1:], np.append(tokens[1::2, 0], 0).astype(dtype)
        expected = reference.predict_prefixes(
            jnp.asarray(x, "float64"), jnp.asarray(y, "float64")
        )
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found = learner.predict_prefixes(jnp.asarray(x), jnp.asarray(y))
        error = float(jnp.max(jnp.abs(found - expected)))
        error /= max(1.0, float(jnp.max(jnp.abs(expected))))
        warned = any(each.category is OutsideRangeWarning for each in caught)
        assert error <= BARS[dtype] or warned
        if factor == 1:
            assert error <= BARS[dtype]
            assert not warned


@pytest.mark.slow
def test_no_size_is_wrong_without_a_warning(tmp_path):
    """A part of the grid of the benchmark, which takes hours; twice: it resumes."""
    script = Path(__file__).parents[2] / "benchmarks" / "hidden_sizes.py"
    sizes = ["--dims", "3", "7", "--examples", "9", "--datasets", "2"]
    command = [sys.executable, str(script), *sizes, "--out", str(tmp_path / "sizes")]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, check=False)
        for _ in range(2)
    )
    assert first.returncode == 0, first.stdout
    assert "float32: usual" in first.stderr
    assert (second.returncode, second.stdout, second.stderr) == (0, first.stdout, "")
