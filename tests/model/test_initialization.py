"""Random transformers start at the scales that the docstring names."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refuses

from algoscope.model import Initialization
from algoscope.model.layer import Block
from algoscope.model.transformer import Transformer, random_transformer

SIZES: dict[str, Any] = {
    "token_size": 17,
    "max_time": 24,
    "num_layers": 3,
    "hidden_size": 32,
    "num_heads": 4,
    "inner_size": 40,
}
SMALL: dict[str, Any] = {
    "token_size": 3,
    "max_time": 5,
    "num_layers": 2,
    "hidden_size": 4,
    "num_heads": 2,
}
RESIDUAL = 1 / np.sqrt(2 * SIZES["num_layers"])
SCALES = {  # what each matrix is multiplied with: 1/√fan_in, and 1/√(2L) for outputs
    "w_e": 1 / np.sqrt(17),
    "positions": 1 / np.sqrt(24),
    "w_q": 1 / np.sqrt(32),
    "w_k": 1 / np.sqrt(32),
    "w_v": 1 / np.sqrt(32),
    "w_f": RESIDUAL / np.sqrt(32),
    "w_2": 1 / np.sqrt(32),
    "w_1": RESIDUAL / np.sqrt(40),
    "w_o": 1 / np.sqrt(32),
}
KINDS: list[Initialization] = ["uniform_scaling", "normal"]


def changed(**sizes: Any) -> dict[str, Any]:
    """Return the small sizes with some of them changed."""
    return SMALL | sizes


def by_field(model: Transformer) -> dict[str, np.ndarray]:
    """Return every array of the model under the name of its field."""
    leaves, _ = jax.tree.flatten_with_path(model)
    return {path[-1].name: np.asarray(leaf) for path, leaf in leaves}


@pytest.fixture(scope="module")
def weights() -> dict[str, dict[str, np.ndarray]]:
    """One model of each initialization, as arrays."""
    return {
        kind: by_field(
            random_transformer(7, **SIZES, initialization=kind, dtype="float64")
        )
        for kind in KINDS
    }


def test_every_weight_has_the_shape_that_the_sizes_say(weights):
    shapes = {name: leaf.shape for name, leaf in weights["normal"].items()}
    assert shapes == {
        "w_e": (32, 17),
        "positions": (24, 32),
        "w_q": (3, 4, 8, 32),
        "w_k": (3, 4, 8, 32),
        "w_v": (3, 4, 8, 32),
        "w_f": (3, 4, 32, 8),
        "w_2": (3, 40, 32),
        "w_1": (3, 32, 40),
        "b_q": (3, 4, 8),
        "b_k": (3, 4, 8),
        "b_v": (3, 4, 8),
        "b_f": (3, 32),
        "b_2": (3, 40),
        "b_1": (3, 32),
        "w_o": (32,),
        "b_o": (),
    }


@pytest.mark.parametrize("kind", KINDS)
def test_biases_are_zero_and_nothing_else_is(weights, kind):
    for name, leaf in weights[kind].items():
        assert np.all(leaf == 0) == name.startswith("b_")
        assert np.any(leaf == 0) == name.startswith("b_")


@pytest.mark.parametrize("name", SCALES)
def test_uniform_scaling_fills_its_interval_and_stays_inside(weights, name):
    extent = np.max(np.abs(weights["uniform_scaling"][name])) / SCALES[name]
    # The largest of n draws is below 1 − 8/n once in 3,000 times (e⁻⁸).
    assert 1 - 8 / weights["uniform_scaling"][name].size < extent <= 1


@pytest.mark.parametrize("name", SCALES)
@pytest.mark.parametrize(
    ("kind", "variance", "kurtosis"),
    [
        ("uniform_scaling", 1 / 3, 9 / 5),
        ("normal", 1.0, 3.0),
    ],
    ids=KINDS,
)
def test_weights_have_the_mean_variance_and_kurtosis_of_their_distribution(
    weights, name, kind, variance, kurtosis
):
    values = weights[kind][name].ravel() / (SCALES[name] * np.sqrt(variance))
    assert abs(np.mean(values)) < 4 / np.sqrt(values.size)
    spread = np.sqrt((kurtosis - 1) / values.size)  # of a mean of squares
    assert abs(np.mean(values**2) - 1) < 4 * spread
    if values.size > 500:
        assert np.mean(values**4) == pytest.approx(kurtosis, rel=0.3)


@pytest.mark.parametrize("num_layers", [1, 2, 8])
def test_only_what_writes_to_the_residual_stream_shrinks_with_depth(num_layers):
    sizes = changed(num_layers=num_layers, hidden_size=32)
    model = by_field(random_transformer(3, **sizes, dtype="float64"))
    bounds = {"w_q": 32, "w_k": 32, "w_v": 32, "w_2": 32, "w_f": 32, "w_1": 4 * 32}
    for name, fan_in in bounds.items():
        gain = np.sqrt(1 / (2 * num_layers)) if name in ("w_f", "w_1") else 1.0
        extent = np.max(np.abs(model[name])) * np.sqrt(fan_in)
        assert gain * 0.98 < extent <= gain


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_determines_the_weights(weights, kind):
    again = random_transformer(7, **SIZES, initialization=kind, dtype="float64")
    for name, leaf in by_field(again).items():
        np.testing.assert_array_equal(leaf, weights[kind][name])


def test_another_seed_draws_other_weights():
    one, other = (by_field(random_transformer(seed, **SMALL)) for seed in (0, 1))
    for name in SCALES:
        assert not np.any(one[name] == other[name])


def test_no_two_weights_are_drawn_together(weights):
    drawn = [weights["normal"][name] / SCALES[name] for name in SCALES]
    values = np.concatenate([leaf.ravel() for leaf in drawn])
    assert len(np.unique(np.round(values, 12))) == len(values)


def test_precision_only_rounds_the_weights():
    single = by_field(random_transformer(0, **SMALL))
    double = by_field(random_transformer(0, **SMALL, dtype="float64"))
    for name, leaf in single.items():
        assert leaf.dtype == "float32"
        assert double[name].dtype == "float64"
        np.testing.assert_array_equal(leaf, double[name].astype("float32"))


def test_the_inner_size_is_four_times_the_hidden_size_unless_given():
    default = random_transformer(0, **SMALL)
    assert default.layers.w_1.shape == (2, 4, 16)
    assert default.layers.w_2.shape == (2, 16, 4)
    given = random_transformer(0, **SMALL, inner_size=5)
    assert given.layers.b_2.shape == (2, 5)


def test_the_block_is_the_papers_unless_given():
    assert random_transformer(0, **SMALL).block == Block()
    modern = Block(pre_norm=True, attention_scale=0.5)
    assert random_transformer(0, **SMALL, block=modern).block == modern


@pytest.mark.parametrize("kind", KINDS)
def test_a_random_transformer_runs(kind):
    model = random_transformer(0, **SMALL, initialization=kind)
    run = jax.eval_shape(model, jnp.ones((2, 5, 3)))
    assert run.output.shape == (2, 5)
    assert run.output.dtype == run.hidden.dtype == "float32"


@pytest.mark.parametrize("name", SMALL)
def test_sizes_below_one_are_rejected(name):
    with refuses(ValueError, f"`{name}` must be at least 1, got 0."):
        random_transformer(0, **changed(**{name: 0}))


@pytest.mark.parametrize("name", SMALL)
def test_sizes_that_are_no_integers_are_rejected(name):
    with refuses(TypeError, f"`{name}` must be an integer, got 2.0."):
        random_transformer(0, **changed(**{name: 2.0}))


def test_an_inner_size_below_one_is_rejected():
    with refuses(ValueError, "`inner_size` must be at least 1, got -1."):
        random_transformer(0, **SMALL, inner_size=-1)


def test_an_unknown_initialization_is_rejected():
    message = (
        "`initialization` must be one of uniform_scaling, normal, got 'norml'. "
        "Did you mean 'normal'?"
    )
    with refuses(ValueError, message):
        random_transformer(0, **SMALL, initialization="norml")  # pyright: ignore[reportArgumentType]


def test_heads_that_do_not_divide_the_hidden_size_are_rejected():
    message = (
        "`num_heads` must divide `hidden_size`, got num_heads=3 and hidden_size=4."
    )
    with refuses(ValueError, message):
        random_transformer(0, **changed(num_heads=3))


def test_a_seed_or_a_precision_that_is_none_is_rejected():
    with refuses(ValueError, "`seed` must be at least 0, got -1."):
        random_transformer(-1, **SMALL)
    with refuses(TypeError, "`seed` must be an integer, got None."):
        random_transformer(None, **SMALL)  # pyright: ignore[reportArgumentType]
    message = "`dtype` must be one of float32, float64, got 'int32'."
    with refuses(ValueError, message):
        random_transformer(0, **SMALL, dtype="int32")
