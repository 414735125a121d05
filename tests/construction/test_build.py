"""Constructions as learners: built, saved, loaded, compared, refused."""

import json
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refused, refuses

import algoscope
from algoscope.construction.algorithms import ALGORITHMS, GD, SGD, Kaczmarz, Ridge
from algoscope.construction.build import (
    Construction,
    build,
    find_algorithm,
    load_construction,
    save_construction,
)
from algoscope.construction.language.storage import PROGRAM, save_program
from algoscope.construction.trace import trace_program
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.learner import InContextLearner
from algoscope.model.operands import OutsideRangeWarning
from algoscope.model.tokens import example_tokens
from algoscope.predictors import ridge

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
    assert all(str(line) in card for line in compiled.listing)


def test_a_learner_that_was_built_is_saved_with_its_program(tmp_path):
    built = build(Ridge(0.5), 2, 3)
    built.save_pretrained(tmp_path)
    learner, known = load_construction(tmp_path)
    assert known == built.construction == Construction(Ridge(0.5), 2, 3)
    tokens = example_tokens(2, 3, 1, seed=3)
    for step in trace_program(known.arrange(), learner.transformer, tokens):
        for register in step.registers.values():
            assert np.allclose(register.difference, 0, atol=1e-10)


def test_what_was_compiled_is_what_is_listed_though_this_version_writes_another(
    tmp_path,
):
    own, other = SGD(0.05).program(2, 3), SGD(0.05, 0.1)
    construction = Construction(other, dim=2, num_examples=3, saved=own)
    save_construction(construction, construction.compile(), tmp_path)
    learner, known = load_construction(tmp_path)
    arrangement = known.arrange()
    assert [str(line) for line in arrangement.listing] != [
        str(line) for line in Construction(other, 2, 3).arrange().listing
    ]
    tokens = example_tokens(2, 3, 1, seed=3)
    for step in trace_program(arrangement, learner.transformer, tokens):
        for register in step.registers.values():
            assert np.allclose(register.difference, 0, atol=1e-10)
    save_program(Ridge(0.5).program(2, 3), tmp_path / PROGRAM)
    learner, known = load_construction(tmp_path)
    with refused("transformer", "have 12 layers of width 20, as its program says"):
        trace_program(known.arrange(), learner.transformer, tokens)
    save_program(Ridge(0.5).program(1, 3), tmp_path / PROGRAM)
    learner, known = load_construction(tmp_path)
    with refused("size", "be d = 1 and n = 3, which sgd is for"):
        known.arrange()


def test_a_directory_without_a_construction_is_refused(tmp_path):
    with refused("directory", "be a directory that `algoscope build` wrote"):
        load_construction("linear-d1")
    save_construction(*_small(), tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["construction"]["algorithm"] = "alchemy"
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DamagedFileError, match="does not say which algorithm it holds"):
        load_construction(tmp_path)
    config["operands"] = {"largest": "much"}
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(DamagedFileError, match="has a damaged range of operands"):
        InContextLearner.from_pretrained(tmp_path)


def _small():
    construction = Construction(SGD(0.05), dim=1, num_examples=1)
    return construction, construction.compile()


def test_float64_weights_do_not_run_in_float32():
    learner = build(Ridge(0.1), 2, 3)
    x, y = jnp.array(X, jnp.float32), jnp.array(Y, jnp.float32)
    with (
        jax.enable_x64(False),
        refused(
            "dtype",
            "be float64, the precision that the weights were built for, got float32",
        ),
    ):
        learner.predict_prefixes(x, y)
    with jax.enable_x64(False), refused("dtype", "be what JAX can hold, got float64"):
        build(Ridge(0.1), 2, 3)


def test_half_precision_is_refused():
    learner = build(Ridge(0.1), 2, 3, dtype="float32")
    half = jax.tree.map(lambda leaf: leaf.astype(jnp.bfloat16), learner)
    with refused("dtype", "be float32, the precision that the weights were built for"):
        half.predict_prefixes(jnp.array(X), jnp.array(Y))
    with refused("dtype", "be one of float64, float32, got 'bfloat16'"):
        build(Ridge(0.1), 2, 3, dtype="bfloat16")  # pyright: ignore[reportArgumentType]


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
    learner = build(Ridge(90.0), 2, 3, tokens=tokens)
    x, y = tokens[0, ::2, 1:], np.append(tokens[0, 1::2, 0], 0.0)
    with warnings.catch_warnings():
        # Digits may be lost, of which it says how many; nothing is out of range.
        warnings.filterwarnings("ignore", ".*predictions may be off by")
        found = learner.predict_prefixes(jnp.array(x), jnp.array(y))
    expected = ridge(90.0).predict_prefixes(jnp.array(x), jnp.array(y))
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


@pytest.mark.parametrize(
    ("name", "parameters", "algorithm"),
    [
        ("sgd", {}, SGD()),
        ("sgd", {"learning_rate": 0.1, "penalty": 0.2}, SGD(0.1, 0.2)),
        ("ridge", {"penalty": 0.5}, Ridge(0.5)),
        ("gd", {"steps": 3}, GD(steps=3)),
    ],
)
def test_an_algorithm_is_built_by_name_with_its_parameters(name, parameters, algorithm):
    named = build(name, dim=2, num_examples=3, **parameters)
    built = build(algorithm, 2, 3)
    assert named.name == built.name
    assert named.operands == built.operands
    leaves = zip(
        jax.tree.leaves(named.transformer),
        jax.tree.leaves(built.transformer),
        strict=True,
    )
    assert all(np.array_equal(*pair) for pair in leaves)


def test_every_algorithm_is_found_by_name():
    for name, kind in ALGORITHMS.items():
        assert find_algorithm(name, {}) == kind()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"algorithm": "sdg"},
            f"`algorithm` must be one of {', '.join(ALGORITHMS)}, got 'sdg'. "
            "Did you mean 'sgd'?",
        ),
        (
            {"algorithm": "sgd", "momentum": 0.5},
            "`momentum` must be left out for sgd, got 0.5. It has `learning_rate`, "
            "`penalty`.",
        ),
        (
            {"algorithm": "ols", "penalty": 0.5},
            "`penalty` must be left out for ols, got 0.5. It has no parameters.",
        ),
        (
            {"algorithm": SGD(0.1), "penalty": 0.5},
            "`parameters` must be given to the algorithm itself, got `penalty`.",
        ),
        (
            {"algorithm": "sgd", "learning_rate": -1.0},
            "`learning_rate` must be positive, got -1.0.",
        ),
        (
            {"algorithm": "sgd", "activation": "tanh"},
            "`activation` must be one of gelu, gelu_tanh, silu, got 'tanh'. "
            "Did you mean 'gelu_tanh'?",
        ),
        (
            {"algorithm": "sgd", "num_examples": 0},
            "`num_examples` must be at least 1, got 0.",
        ),
        (
            {"algorithm": "ridge_one", "num_examples": 2},
            "`num_examples` must be 1, got 2. For more examples use ridge.",
        ),
    ],
)
def test_what_cannot_be_built_is_rejected(options, message):
    with refuses(InvalidValueError, message):
        build(**options)


def test_a_listing_is_computed_once_and_names_every_event():
    _, compiled = _small()
    assert compiled.listing is compiled.listing
    registers = [line.register for line in compiled.listing]
    assert sorted(registers) == sorted(e.out.name for e in compiled.schedule.layers)
    assert str(compiled.listing[-1]).startswith("L2 MLP       prediction")


def test_names_are_those_of_the_classes():
    assert all(name == kind.name for name, kind in ALGORITHMS.items())
