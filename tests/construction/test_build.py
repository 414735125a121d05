"""Constructions as learners: built, saved, loaded, compared, refused."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refused

import algoscope
from algoscope.construction.algorithms import ALGORITHMS, GD, SGD, Kaczmarz, Ridge
from algoscope.construction.build import (
    Construction,
    build,
    listing,
    load_construction,
    save_construction,
)
from algoscope.foundation.files import DamagedFileError
from algoscope.model.learner import InContextLearner
from algoscope.model.operand_range import OutsideRangeWarning
from algoscope.model.tokens import example_tokens
from algoscope.predictors import ridge

pytestmark = pytest.mark.optimized  # Rounding is the matter.

X = np.random.default_rng(0).normal(size=(4, 2))
Y = X @ np.array([1.0, -0.5])


def test_a_saved_construction_is_the_same_learner_and_knows_what_it_is(tmp_path):
    construction = Construction(SGD(0.05, 0.1), dim=2, num_examples=4)
    compiled = construction.compile()
    save_construction(construction, compiled, tmp_path)
    learner, known = load_construction(tmp_path)
    assert known == construction
    before = compiled.learner("before").predict_prefixes(jnp.array(X), jnp.array(Y))
    after = learner.predict_prefixes(jnp.array(X), jnp.array(Y))
    assert np.array_equal(before, after)
    assert learner.name == "sgd(0.05, 0.1), compiled"
    assert learner.operands == compiled.operands
    card = (tmp_path / "README.md").read_text()
    assert all(str(line) in card for line in listing(compiled))


def test_a_directory_without_a_construction_is_refused(tmp_path):
    with refused("directory", "be a directory that `algoscope build` wrote"):
        load_construction("linear-d1")
    save_construction(*_small(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["construction"]["algorithm"] = "alchemy"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DamagedFileError, match="must say which algorithm it holds"):
        load_construction(tmp_path)
    config["operands"] = {"largest": "much"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DamagedFileError, match="must hold a range of operands"):
        InContextLearner.from_pretrained(tmp_path)


def _small():
    construction = Construction(SGD(0.05), dim=1, num_examples=1)
    return construction, construction.compile()


def test_float64_weights_do_not_run_in_float32():
    learner = build(Ridge(0.1), 2, 3)
    x, y = jnp.array(X, jnp.float32), jnp.array(Y, jnp.float32)
    with (
        jax.enable_x64(False),
        refused("dtype", "be float64, for which the weights were written, got float32"),
    ):
        learner.predict_prefixes(x, y)
    with jax.enable_x64(False), refused("dtype", "be what JAX can hold, got float64"):
        build(Ridge(0.1), 2, 3)


def test_half_precision_is_refused():
    learner = build(Ridge(0.1), 2, 3, dtype="float32")
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), learner)
    with refused("dtype", "be float32, for which the weights were written"):
        half.predict_prefixes(jnp.array(X), jnp.array(Y))
    with refused("dtype", "be one of float64, float32, got 'bfloat16'"):
        build(Ridge(0.1), 2, 3, dtype="bfloat16")


def test_short_matrix_products_are_not_used():
    """Whatever the surroundings ask for, all digits are kept."""
    learner = build(Ridge(0.1), 2, 3, dtype="float32")
    tokens = jnp.zeros((1, 7, 3), jnp.float32)
    with jax.default_matmul_precision("bfloat16"):
        program = jax.make_jaxpr(lambda t: learner.transformer(t).output)(tokens)
    assert "Precision.HIGHEST" in str(program)
    assert "BFLOAT16" not in str(program).upper().replace("BF16", "BFLOAT16")


def test_operands_outside_the_calibrated_range_are_reported():
    learner = build(SGD(0.05, 0.1), 2, 3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        learner.predict_prefixes(jnp.array(X), jnp.array(Y))
    large = jnp.array(30 * X)
    with pytest.warns(OutsideRangeWarning, match="operands in layer . are .* times"):
        learner.predict_prefixes(large, jnp.array(30 * Y))
    with pytest.warns(OutsideRangeWarning, match=r"sgd\(0.05, 0.1\), compiled: "):
        learner(large[:3], jnp.array(30 * Y)[:3], large[3])


def test_calibrated_on_large_data_large_data_are_in_range():
    tokens = 30 * example_tokens(2, 3)
    learner = build(Ridge(0.1), 2, 3, tokens=tokens)
    x, y = tokens[0, ::2, 1:], np.append(tokens[0, 1::2, 0], 0.0)
    found = learner.predict_prefixes(jnp.array(x), jnp.array(y))
    expected = ridge(0.1).predict_prefixes(jnp.array(x), jnp.array(y))
    assert np.allclose(found, expected, atol=1e-8)


def test_compare_reports_what_is_out_of_range():
    learner = build(GD(0.01, steps=2), 2, 4)
    task = algoscope.LinearRegression(2, prior_variance=1e4)
    with pytest.warns(OutsideRangeWarning):
        algoscope.compare(
            learner,
            (algoscope.predictors.gd(0.01, steps=2),),
            task,
            num_datasets=20,
            num_examples=4,
        )


def test_an_algorithm_that_diverges_is_refused_by_the_name_of_its_register():
    with refused("register w", "stay below"):
        build(SGD(50.0), 4, 20)


def test_division_and_the_modern_block_do_not_go_together():
    with refused("pre_norm", "be off for an algorithm that divides"):
        build(Kaczmarz(), 2, 3, pre_norm=True)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_modern_block_runs_sgd(dtype):
    learner = build(SGD(0.05, 0.1), 2, 3, dtype=dtype, pre_norm=True)
    reference = algoscope.predictors.sgd(0.05, 0.1)
    found = learner.predict_prefixes(jnp.array(X), jnp.array(Y))
    expected = reference.predict_prefixes(jnp.array(X), jnp.array(Y))
    assert np.allclose(found, expected, atol=1e-11 if dtype == "float64" else 2e-4)


def test_names_are_those_of_the_classes():
    assert all(name == kind.name for name, kind in ALGORITHMS.items())
