"""Tokens hold the whole dataset in the layout of the paper."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope.model.tokens import (
    QUERIES,
    append_query,
    encode,
    encode_context,
    example_tokens,
)

law = settings(max_examples=15)


# Every size is 1 somewhere; each shape is compiled once for all laws.
SHAPES = [  # batch, (examples, dim)
    ((), (1, 1)),
    ((), (4, 2)),
    ((1,), (3, 1)),
    ((3,), (1, 4)),
    ((2, 3), (4, 2)),
    ((0,), (2, 2)),
]


@st.composite
def datasets(draw):
    """Draw x and y of any shape."""
    batch, (examples, dim) = draw(st.sampled_from(SHAPES))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    x = rng.standard_normal((*batch, examples, dim))
    return jnp.asarray(x), jnp.asarray(rng.standard_normal((*batch, examples)))


def test_two_examples_are_laid_out_as_in_the_paper():
    x = jnp.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    y = jnp.array([-7.0, -8.0])
    assert encode(x, y).tolist() == [
        [0.0, 1.0, 2.0, 3.0],
        [-7.0, 0.0, 0.0, 0.0],
        [0.0, 4.0, 5.0, 6.0],
        [-8.0, 0.0, 0.0, 0.0],
    ]


def test_one_example_of_one_dimension_is_two_tokens():
    assert encode(jnp.array([[3.0]]), jnp.array([5.0])).tolist() == [[0, 3], [5, 0]]


def test_the_context_ends_with_the_last_query():
    x, y = jnp.array([[1.0], [2.0]]), jnp.array([3.0, 4.0])
    assert encode_context(x, y).tolist() == [[0, 1], [3, 0], [0, 2]]


@law
@given(datasets())
def test_tokens_hold_inputs_labels_and_zeros_at_their_positions(dataset):
    x, y = dataset
    tokens = encode(x, y)
    np.testing.assert_array_equal(tokens[..., ::2, 1:], x)
    np.testing.assert_array_equal(tokens[..., 1::2, 0], y)
    assert np.all(tokens[..., ::2, 0] == 0)
    assert np.all(tokens[..., 1::2, 1:] == 0)


@law
@given(datasets())
def test_a_dataset_is_two_tokens_of_one_more_coordinate_per_example(dataset):
    x, y = dataset
    *batch, examples, dim = x.shape
    assert encode(x, y).shape == (*batch, 2 * examples, dim + 1)


@law
@given(datasets())
def test_the_context_lacks_only_the_last_label(dataset):
    x, y = dataset
    context = encode_context(x, y)
    np.testing.assert_array_equal(context, encode(x, y)[..., :-1, :])
    np.testing.assert_array_equal(context, encode_context(x, y.at[..., -1].set(9.0)))


@law
@given(datasets())
def test_predictions_are_read_where_the_queries_stand(dataset):
    x, y = dataset
    first_coordinates = encode(x, y)[..., 1]
    np.testing.assert_array_equal(first_coordinates[..., QUERIES], x[..., 0])
    np.testing.assert_array_equal(first_coordinates[..., :-1][..., QUERIES], x[..., 0])


@pytest.mark.parametrize(("time", "positions"), [(1, [0]), (5, [0, 2, 4]), (4, [0, 2])])
def test_queries_stand_at_the_even_positions(time, positions):
    assert list(range(time))[QUERIES] == positions


def test_encoding_a_batch_encodes_each_of_its_datasets(rng):
    x, y = rng.standard_normal((3, 4, 2)), rng.standard_normal((3, 4))
    x, y = jnp.asarray(x), jnp.asarray(y)
    one_by_one = jnp.stack([encode(*dataset) for dataset in zip(x, y, strict=True)])
    for encoded in (encode(x, y), jax.vmap(encode)(x, y), jax.jit(encode)(x, y)):
        np.testing.assert_array_equal(encoded, one_by_one)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_tokens_have_the_precision_of_the_inputs(dtype):
    x, y = jnp.ones((2, 3), dtype), jnp.ones((2,), "float64")
    assert encode(x, y).dtype == encode_context(x, y).dtype == dtype


@pytest.mark.parametrize("shape", [(3,), (5,), (2, 4), (4, 1), (), (1,)], ids=str)
def test_labels_that_do_not_match_the_inputs_are_rejected(shape):
    x, y = jnp.ones((4, 2)), jnp.ones(shape)
    message = (
        "`y` must hold one label for each of the examples of `x` (4, 2), "
        f"got shape {shape}."
    )
    for function in (encode, encode_context):
        with refuses(ValueError, message):
            function(x, y)
    for function in (encode, encode_context):
        with refuses(ValueError, message):
            function(np.asarray(x), np.asarray(y))


@law
@given(datasets())
def test_numpy_arrays_are_encoded_as_numpy_arrays_of_the_same_numbers(dataset):
    x, y = map(np.asarray, dataset)
    for function in (encode, encode_context):
        tokens = function(x, y)
        assert isinstance(tokens, np.ndarray)
        np.testing.assert_array_equal(tokens, function(*dataset))


def test_numpy_arrays_keep_double_precision_whatever_jax_is_set_to(rng):
    x, y = rng.standard_normal((3, 2)), rng.standard_normal(3)
    with jax.enable_x64(False):
        tokens = encode_context(x, y)
    assert tokens.dtype == "float64"
    np.testing.assert_array_equal(tokens[::2, 1:], x)
    np.testing.assert_array_equal(tokens[1::2, 0], y[:-1])


def test_a_query_is_appended_in_the_precision_of_the_examples(rng):
    x = jnp.asarray(rng.standard_normal((3, 2)), "float32")
    y, query = jnp.ones(3, "float32"), jnp.asarray(rng.standard_normal(2))
    longer_x, longer_y = append_query(x, y, query)
    assert longer_x.dtype == longer_y.dtype == "float32"
    np.testing.assert_array_equal(longer_x[:-1], x)
    np.testing.assert_array_equal(longer_x[-1], query.astype("float32"))
    assert longer_y.tolist() == [1.0, 1.0, 1.0, 0.0]


@pytest.mark.parametrize(
    ("num_examples", "num_datasets"), [(1, 2730), (8, 481), (200, 64)]
)
def test_a_calibration_has_enough_datasets(num_examples, num_datasets):
    tokens = example_tokens(2, num_examples)
    assert tokens.shape == (num_datasets, 2 * num_examples + 1, 3)
    assert tokens.dtype == "float64"


def test_example_tokens_are_noisy_linear_regression_with_a_seed():
    tokens = example_tokens(2, 40, num_datasets=500, seed=3)
    np.testing.assert_array_equal(tokens, example_tokens(2, 40, 500, seed=3))
    x, y = tokens[:, :-1:2, 1:], tokens[:, 1::2, 0]
    assert not np.any(x == example_tokens(2, 40, 500)[:, :-1:2, 1:])
    noise = [y[i] - x[i] @ np.linalg.lstsq(x[i], y[i])[0] for i in range(500)]
    assert np.std(noise) == pytest.approx(0.1 * np.sqrt(38 / 40), rel=0.02)
