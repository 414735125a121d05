"""Tokens hold the dataset, all of it, in the paper's layout."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.refusals import refuses

from algoscope.model.tokens import QUERIES, decode, encode, encode_context

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
def test_decoding_returns_what_was_encoded(dataset):
    x, y = dataset
    decoded_x, decoded_y = decode(encode(x, y))
    np.testing.assert_array_equal(decoded_x, x)
    np.testing.assert_array_equal(decoded_y, y)


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
def test_labels_that_do_not_match_the_inputs_are_refused(shape):
    x, y = jnp.ones((4, 2)), jnp.ones(shape)
    message = (
        "`y` must hold one label for each of the examples of `x` (4, 2), "
        f"got shape {shape}."
    )
    for function in (encode, encode_context):
        with refuses(ValueError, message):
            function(x, y)


@pytest.mark.parametrize("time", [1, 7])
def test_a_sequence_without_its_last_label_is_not_decoded(time):
    message = f"`tokens` must hold two tokens per example, got {time} tokens."
    with refuses(ValueError, message):
        decode(jnp.ones((3, time, 2)))
