"""Compiled learning algorithms are the textbook's, at every prefix, at the size stated.

Three things are held equal: the panel's predictor, the program's exact meaning and the
transformer that it compiles to.
"""

from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.forward import hidden_states, layer_weights, outputs
from support.refusals import refuses

from algoscope.construction.algorithms import (
    ALGORITHMS,
    GD,
    RLS,
    SGD,
    Algorithm,
    AttentionGD,
    Chebyshev,
    ConjugateGradients,
    HeavyBall,
    Kaczmarz,
    LogisticSGD,
    LoopedSGD,
    MinimumNorm,
    NadarayaWatson,
    Newton,
    OneExampleRidge,
    Ridge,
    ScanSGD,
)
from algoscope.construction.algorithms.recursive import SquareRootRidge
from algoscope.construction.compiler.compile import Compiled, arrange, compile_program
from algoscope.construction.compiler.numerics import DType, numerics
from algoscope.construction.language.interpreter import predictions
from algoscope.construction.language.matrices import symmetric, upper
from algoscope.foundation.validation import InvalidValueError
from algoscope.model.tokens import example_tokens

pytestmark = pytest.mark.optimized  # Rounding is the matter.

SHAPES = ((1, 1), (2, 3), (4, 6))
DTYPES: tuple[DType, ...] = ("float64", "float32")

# The largest error that each compiled algorithm has had for (d, n) = (1, 1), (2, 3),
# (4, 6), (8, 8), (8, 20), relative to the largest prediction; float64 and float32.
# Newton is worst for d = 1, where its inverse, 1/x², spans four orders of magnitude.
MEASURED = {
    "sgd": (2e-13, 6e-6),
    "sgd_looped": (2e-13, 6e-6),
    "sgd_scan": (2e-13, 7e-6),
    "ridge": (2e-13, 1e-5),
    "ridge_one": (2e-13, 4e-6),
    "rls": (2e-13, 6e-6),
    "ols": (6e-13, 2e-5),
    "gd": (3e-13, 7e-6),
    "heavy_ball": (5e-13, 2e-5),
    "chebyshev": (4e-13, 1e-5),
    "newton": (3e-10, 1e-2),
    "conjugate_gradients": (1e-10, 2e-3),
    "kaczmarz": (5e-13, 1e-5),
    "gd_attention": (9e-12, 1e-4),
    "nadaraya_watson": (5e-14, 3e-6),
    "logistic_sgd": (1e-13, 5e-6),
}


def shapes(algorithm: Algorithm) -> list[tuple[int, int]]:
    """Return dimensions and lengths that an algorithm takes."""
    if isinstance(algorithm, OneExampleRidge):
        return [(d, 1) for d, _ in SHAPES]
    if isinstance(algorithm, MinimumNorm):
        return [(d, min(d, n)) for d, n in SHAPES]
    return list(SHAPES)


def draw(algorithm: Algorithm, dim: int, num_examples: int) -> np.ndarray:
    """Return datasets that the calibration has not seen, exact in both precisions."""
    tokens = example_tokens(dim, num_examples, 8, seed=1)
    if isinstance(algorithm, LogisticSGD):
        tokens[:, 1::2, 0] = tokens[:, 1::2, 0] > 0
    return tokens.astype(np.float32).astype(np.float64)


def logistic(learning_rate: float, tokens: np.ndarray) -> np.ndarray:
    """Return the predictions of one-pass logistic regression, one example at a time."""
    x, y = tokens[:, ::2, 1:], tokens[:, 1::2, 0]
    w, found = np.zeros_like(x[:, 0]), []
    for k in range(x.shape[1]):
        chance = 1 / (1 + np.exp(-np.sum(w * x[:, k], axis=1)))
        found.append(chance)
        if k < y.shape[1]:
            w = w + learning_rate * x[:, k] * (y[:, k] - chance)[:, None]
    return np.stack(found, axis=1)


def textbook(algorithm: Algorithm, tokens: np.ndarray) -> np.ndarray:
    """Return the predictions of the panel's predictor at every prefix."""
    if isinstance(algorithm, LogisticSGD):
        return logistic(algorithm.learning_rate, tokens)
    assert algorithm.reference is not None
    labels = np.pad(tokens[:, 1::2, 0], [(0, 0), (0, 1)])
    predict = jax.jit(jax.vmap(algorithm.reference.predict_prefixes))
    return np.asarray(predict(jnp.asarray(tokens[:, ::2, 1:]), jnp.asarray(labels)))


def compile_algorithm(
    algorithm: Algorithm, dim: int, num_examples: int, dtype: DType = "float64"
) -> Compiled:
    program = algorithm.suited(dtype).program(dim, num_examples)
    examples = algorithm.examples(dim, num_examples)
    return compile_program(program, numerics(dtype), tokens=examples)


def error(found: Any, expected: np.ndarray) -> float:
    """Return the largest error over the largest prediction, which is at least 1."""
    return float(np.max(np.abs(found - expected)) / max(1.0, np.abs(expected).max()))


every = pytest.mark.parametrize("name", ALGORITHMS)


def test_all_algorithms_are_measured():
    assert MEASURED.keys() == ALGORITHMS.keys()
    assert all(kind.name == name for name, kind in ALGORITHMS.items())


@every
def test_every_prefix_is_predicted_as_the_textbook_does(name):
    algorithm = ALGORITHMS[name]()
    for dim, num_examples in shapes(algorithm):
        tokens = draw(algorithm, dim, num_examples)
        expected = textbook(algorithm, tokens)
        assert expected.shape == (8, num_examples + 1)
        exact = predictions(algorithm.program(dim, num_examples), tokens)
        # Attention's sinh is an approximation, of order (e/S)⁴.
        assert error(exact, expected) < (1e-10 if name == "gd_attention" else 2e-13)
        for dtype, measured in zip(DTYPES, MEASURED[name], strict=True):
            model = compile_algorithm(algorithm, dim, num_examples, dtype).transformer
            found = outputs(model, tokens)[:, ::2]
            assert error(found, expected) < 10 * measured, (dim, num_examples, dtype)


@pytest.mark.parametrize(
    "algorithm",
    [
        SGD(0.03, penalty=0.2),
        LoopedSGD(0.03, penalty=0.2),
        ScanSGD(0.03, penalty=0.2),
        Kaczmarz(0.5),
        Ridge(2.0),
        Ridge(1e-3).suited("float64"),
        OneExampleRidge(2.0),
        RLS(0.5, forgetting=0.8),
        GD(0.02, steps=3, penalty=0.5),
        HeavyBall(0.02, momentum=0.0, steps=4),
        Chebyshev(steps=4, low=8.0, high=8.0),
        Newton(steps=0),
        ConjugateGradients(steps=1),
        AttentionGD(0.02, steps=1, scale=2.0**10),
        NadarayaWatson(0.5),
        LogisticSGD(0.1),
    ],
    ids=repr,
)
def test_parameters_mean_what_they_mean_in_the_textbook(algorithm):
    num_examples = 1 if isinstance(algorithm, OneExampleRidge) else 3
    tokens = draw(algorithm, 2, num_examples)
    expected = textbook(algorithm, tokens)
    program = algorithm.program(2, num_examples)
    tolerance = 1e-8 if isinstance(algorithm, AttentionGD) else 1e-13
    assert error(predictions(program, tokens), expected) < tolerance
    model = compile_algorithm(algorithm, 2, num_examples).transformer
    assert error(outputs(model, tokens)[:, ::2], expected) < 100 * tolerance


def test_conjugate_gradients_stay_precise_as_the_dimension_grows():
    algorithm = ConjugateGradients()
    tokens = draw(algorithm, 8, 20)
    model = compile_algorithm(algorithm, 8, 20).transformer
    found = outputs(model, tokens)[:, ::2]
    assert error(found, textbook(algorithm, tokens)) < 2e-11


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_transformer_predicts_every_prefix_in_one_pass(dtype):
    algorithm = SGD(penalty=0.1)
    tokens = draw(algorithm, 3, 2)
    model = compile_algorithm(algorithm, 3, 2, dtype).transformer
    found = jax.jit(lambda model, tokens: model(tokens).output)(
        model, jnp.asarray(tokens, dtype)
    )
    assert found.dtype == dtype
    assert error(found[:, ::2], textbook(algorithm, tokens)) < 1e-12 * (
        1 if dtype == "float64" else 1e8
    )


# Sizes.


@every
def test_sizes_are_the_formulas(name):
    algorithm = ALGORITHMS[name]()
    for dim in (1, 2, 4, 8):
        for num_examples in (1, 2, 3, 5):
            if name == "ridge_one" and num_examples > 1:
                continue
            if name == "ols" and num_examples > dim:
                continue
            check_sizes(algorithm, dim, num_examples)


def check_sizes(algorithm: Algorithm, dim: int, num_examples: int) -> None:
    found = arrange(algorithm.program(dim, num_examples), numerics("float64"))
    assert found.num_layers == algorithm.num_layers(dim, num_examples)
    assert found.hidden_size == algorithm.hidden_size(dim, num_examples)


@pytest.mark.parametrize("steps", [1, 2, 3, 4, 7])
def test_sizes_depend_on_the_number_of_steps_as_the_formulas_do(steps):
    for algorithm in (
        GD(steps=steps),
        GD(steps=steps, penalty=0.1),
        HeavyBall(steps=steps),
        HeavyBall(steps=steps, momentum=0.0),
        Chebyshev(steps=steps),
        Chebyshev(steps=steps, low=2.0, high=2.0),
        Newton(steps=steps - 1),
        ConjugateGradients(steps=steps),
        AttentionGD(steps=steps),
    ):
        for dim, num_examples in ((1, 1), (2, 3), (4, 2)):
            check_sizes(algorithm, dim, num_examples)


@pytest.mark.parametrize(
    "algorithm",
    [
        SGD(penalty=0.1),
        LoopedSGD(penalty=0.1),
        ScanSGD(penalty=0.1),
        RLS(0.1, 1.0),
        Ridge(1e-3).suited("float64"),
    ],
    ids=repr,
)
def test_sizes_depend_on_the_penalty_as_the_formulas_do(algorithm):
    for dim, num_examples in ((1, 1), (2, 1), (2, 2), (2, 3), (3, 5)):
        check_sizes(algorithm, dim, num_examples)


def test_sizes_that_theorems_1_and_2_ask_for():
    for dim in (1, 2, 4, 8):
        for num_examples in (1, 2, 7):
            sgd, ridge, scan = SGD(penalty=0.1), Ridge(), ScanSGD()
            assert sgd.num_layers(dim, num_examples) == 2 * num_examples
            assert sgd.hidden_size(dim, num_examples) <= 3 * dim + 11
            assert ridge.num_layers(dim, num_examples) == 4 * num_examples
            assert ridge.hidden_size(dim, num_examples) <= dim**2 + 4 * dim + 10
            assert scan.num_layers(dim, num_examples) == 2 + np.ceil(
                np.log2(num_examples)
            )
        assert SGD().num_layers(dim, 1) == 2
        assert OneExampleRidge().num_layers(dim, 1) == 2


def test_a_compiled_transformer_has_the_size_of_its_arrangement():
    compiled = compile_algorithm(Kaczmarz(), 2, 2)
    model = compiled.transformer
    assert model.num_layers == compiled.num_layers == 4
    assert model.w_o.shape == (compiled.hidden_size,) == (20,)


# A looped transformer.


@cache
def looped() -> Compiled:
    return compile_algorithm(LoopedSGD(0.03, penalty=0.2), 2, 5)


def test_layers_after_the_first_two_are_one_pair_repeated():
    assert looped().num_layers == 10
    own = [layer_weights(looped().transformer.layers, layer) for layer in range(10)]
    for layer in range(4, 9):  # the last one predicts
        for name, leaf in own[layer].items():
            np.testing.assert_array_equal(leaf, own[layer - 2][name])
    assert any((leaf != own[3][name]).any() for name, leaf in own[2].items())


def test_more_sweeps_change_nothing():
    algorithm = LoopedSGD(0.03, penalty=0.2)
    tokens = draw(algorithm, 2, 5)
    compiled, d = looped(), 2
    hidden = hidden_states(compiled.transformer, tokens)
    plan, rows = compiled.schedule, compiled.allocation.rows
    sweeps = [event for event in plan.layers if event.out.name == "w"]
    assert [plan.layers[event] for event in sweeps] == [0, 2, 4, 6, 8]
    after = [
        hidden[:, plan.layers[event] + 1, 1::2][..., rows[event.out]]
        for event in sweeps
    ]
    w = np.zeros((len(tokens), d))
    for label in range(5):
        x, y = tokens[:, 2 * label, 1:], tokens[:, 2 * label + 1, :1]
        miss = np.sum(w * x, axis=1, keepdims=True) - y
        w = w - 2 * 0.03 * (x * miss + 0.2 * w)
        # After k sweeps the first k labels have their weights, and keep them.
        for found in after[label:]:
            np.testing.assert_allclose(found[:, label], w, rtol=0, atol=1e-12)
        for found in after[:label]:
            assert np.abs(found[:, label] - w).max() > 1e-3


# The whole and its parts.


def test_a_symmetric_matrix_is_written_out_from_its_triangle(rng):
    square = rng.standard_normal((3, 3))
    square = square + square.T
    triangle = square[np.triu_indices(3)]
    np.testing.assert_array_equal(symmetric(3) @ triangle, square.ravel())
    np.testing.assert_array_equal(upper(3) @ square.ravel(), triangle)


@pytest.mark.parametrize("dtype", DTYPES)
def test_ridge_takes_a_square_root_where_its_penalty_is_small(dtype):
    assert Ridge(0.1).suited(dtype) == Ridge(0.1)
    root = Ridge(1e-3).suited(dtype)
    assert isinstance(root, SquareRootRidge)
    assert root.suited(dtype) == root
    assert (root.name, root.parameters) == ("ridge", {"penalty": 1e-3})


def test_attention_takes_a_smaller_scale_in_float32_unless_one_is_asked_for():
    assert AttentionGD().suited("float64") == AttentionGD()
    assert AttentionGD().suited("float32") == AttentionGD(scale=2.0**6)
    assert AttentionGD(scale=9.0).suited("float32").scale == 9.0
    assert SGD().suited("float32") == SGD()


def test_algorithms_without_a_program_say_so():
    for act in (Algorithm().program, Algorithm().num_layers, Algorithm().hidden_size):
        with pytest.raises(NotImplementedError):
            act(1, 1)
    assert Algorithm().reference is None
    assert LogisticSGD().reference is None


REFUSED = [
    (SGD, dict(learning_rate=0.0), "`learning_rate` must be positive, got 0.0."),
    (SGD, dict(penalty=-1.0), "`penalty` must not be negative, got -1.0."),
    (LoopedSGD, dict(learning_rate=-1), "`learning_rate` must be positive, got -1."),
    (ScanSGD, dict(penalty=-1.0), "`penalty` must not be negative, got -1.0."),
    (Kaczmarz, dict(learning_rate=0), "`learning_rate` must be positive, got 0."),
    (RLS, dict(penalty=0.0), "`penalty` must be positive, got 0.0."),
    (RLS, dict(forgetting=0.0), "`forgetting` must be positive, got 0.0."),
    (RLS, dict(forgetting=1.5), "`forgetting` must be at most 1, got 1.5."),
    (Ridge, dict(penalty=0.0), "`penalty` must be positive, got 0.0."),
    (OneExampleRidge, dict(penalty=-1.0), "`penalty` must be positive, got -1.0."),
    (GD, dict(learning_rate=0.0), "`learning_rate` must be positive, got 0.0."),
    (GD, dict(penalty=-0.1), "`penalty` must not be negative, got -0.1."),
    (GD, dict(steps=0), "`steps` must be at least 1, got 0."),
    (HeavyBall, dict(learning_rate=0.0), "`learning_rate` must be positive, got 0.0."),
    (HeavyBall, dict(momentum=-0.5), "`momentum` must not be negative, got -0.5."),
    (HeavyBall, dict(momentum=1.0), "`momentum` must be below 1, got 1.0."),
    (HeavyBall, dict(steps=0), "`steps` must be at least 1, got 0."),
    (Chebyshev, dict(steps=0), "`steps` must be at least 1, got 0."),
    (Chebyshev, dict(low=0.0), "`low` must be positive, got 0.0."),
    (Chebyshev, dict(high=-1.0), "`high` must be positive, got -1.0."),
    (
        Chebyshev,
        dict(low=3.0, high=2.0),
        "`low` must be at most `high`, which is 2.0, got 3.0.",
    ),
    (Newton, dict(steps=-1), "`steps` must be at least 0, got -1."),
    (ConjugateGradients, dict(steps=0), "`steps` must be at least 1, got 0."),
    (ConjugateGradients, dict(floor=0.0), "`floor` must be positive, got 0.0."),
    (
        AttentionGD,
        dict(learning_rate=0.0),
        "`learning_rate` must be positive, got 0.0.",
    ),
    (AttentionGD, dict(steps=0), "`steps` must be at least 1, got 0."),
    (AttentionGD, dict(scale=0.0), "`scale` must be positive, got 0.0."),
    (NadarayaWatson, dict(bandwidth=0.0), "`bandwidth` must be positive, got 0.0."),
    (
        LogisticSGD,
        dict(learning_rate=0.0),
        "`learning_rate` must be positive, got 0.0.",
    ),
]


@pytest.mark.parametrize(("kind", "options", "message"), REFUSED)
def test_parameters_are_refused(kind, options, message):
    with refuses(InvalidValueError, message):
        kind(**options)


def test_lengths_are_refused():
    with refuses(
        InvalidValueError,
        "`num_examples` must be 1, got 2. For more examples use ridge.",
    ):
        OneExampleRidge().program(2, 2)
    with refuses(
        InvalidValueError,
        "`num_examples` must be at most `dim`, which is 2, got 3. "
        "For more examples use ridge with a small penalty.",
    ):
        MinimumNorm().program(2, 3)


def test_an_algorithm_that_diverges_is_refused():
    with pytest.raises(InvalidValueError, match=r"use a smaller learning rate"):
        compile_algorithm(SGD(learning_rate=5.0), 4, 12, "float32")
