"""The broad task: half of its datasets are plain, and the others do what they say."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jaxtyping import Array, Float

from algoscope.predictors import ols
from algoscope.tasks import broad
from algoscope.tasks.broad import LAWS, BroadRegression
from algoscope.tasks.linear import LinearRegression

DIM, EXAMPLES, NUM_DATASETS = 6, 24, 3000
TASK = BroadRegression(DIM)

Inputs = Float[Array, "datasets examples dim"]


@pytest.fixture(scope="module")
def keys() -> Array:
    return jax.random.split(jax.random.key(20221128), NUM_DATASETS)


@pytest.fixture(scope="module")
def drawn(keys: Array) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and w of many datasets."""
    data = jax.jit(jax.vmap(lambda key: TASK.sample(key, EXAMPLES)))(keys)
    return np.asarray(data.x), np.asarray(data.y), np.asarray(data.w)


@pytest.fixture(scope="module")
def plain(keys: Array, drawn: tuple) -> np.ndarray:
    """Which of the datasets are those that `LinearRegression` draws."""
    data_keys = jax.vmap(lambda key: jax.random.split(key, 5)[0])(keys)
    task = LinearRegression(DIM)
    data = jax.jit(jax.vmap(lambda key: task.sample(key, EXAMPLES)))(data_keys)
    return np.all(np.isclose(np.asarray(data.x), drawn[0], rtol=1e-12), axis=(1, 2))


@pytest.fixture(scope="module")
def inputs(keys: Array) -> Inputs:
    return jax.random.normal(jax.random.key(1), (200, EXAMPLES, DIM))


def under(law, keys: Array, x: Inputs) -> np.ndarray:
    return np.asarray(jax.jit(jax.vmap(law))(keys[: len(x)], x))


def test_everything_is_finite_and_labels_are_exactly_linear(drawn):
    x, y, w = drawn
    assert all(np.all(np.isfinite(each)) for each in drawn)
    expected = np.einsum("bnd,bd->bn", x, w)
    np.testing.assert_allclose(y, expected, rtol=1e-10, atol=1e-12)


def test_half_of_the_datasets_are_plain(plain):
    deviation = np.sqrt(NUM_DATASETS) / 2
    assert abs(plain.sum() - broad.PLAIN * NUM_DATASETS) < 5 * deviation


def test_plain_datasets_have_standard_inputs_and_weights(drawn, plain):
    x, _, w = drawn
    for each in (x[plain].reshape(-1, DIM), w[plain]):
        covariance = each.T @ each / len(each)
        # Entries have a variance of at most 2/m.
        np.testing.assert_allclose(covariance, np.eye(DIM), atol=5 * np.sqrt(2 / 1400))


def test_the_others_have_inputs_of_a_random_scale(drawn, plain):
    x, _, w = drawn
    logs = np.log(np.mean(x[~plain] ** 2, axis=(1, 2))) / 2
    error = 5 * broad.SPREAD / np.sqrt(len(logs))
    assert abs(logs.mean()) < error
    assert abs(logs.std() - broad.SPREAD) < error
    assert np.mean(w[~plain] ** 2) == pytest.approx(
        np.exp(2 * broad.SPREAD**2), rel=0.15
    )


def test_every_law_is_drawn(drawn, plain):
    ranks = np.linalg.matrix_rank(drawn[0][~plain], tol=1e-6)
    low = np.mean(ranks < DIM)  # one law of six, when its subspace is not everything
    assert abs(low - (DIM - 1) / DIM / len(LAWS)) < 5 * np.sqrt(0.14 * 0.86 / 1400)
    repeated = np.any(np.all(np.diff(drawn[0][~plain], axis=1) == 0, axis=2), axis=1)
    assert abs(repeated.mean() - 1 / len(LAWS)) < 5 * np.sqrt(0.14 * 0.86 / 1400)


def test_a_rotation_keeps_lengths_and_angles(keys, inputs):
    rotated = under(broad._rotated, keys, inputs)
    grams = [each @ np.swapaxes(each, 1, 2) for each in (rotated, np.asarray(inputs))]
    np.testing.assert_allclose(*grams, rtol=1e-10, atol=1e-10)
    assert not np.allclose(rotated, inputs)


def test_a_map_has_singular_values_between_an_eighth_and_one(keys, inputs):
    eye = jnp.broadcast_to(jnp.eye(DIM), (len(inputs), DIM, DIM))
    values = np.linalg.svd(under(broad._mapped, keys, eye), compute_uv=False)
    assert 1 / 8 <= values.min() < 0.15
    assert 0.95 < values.max() <= 1 + 1e-12


def test_a_row_scale_leaves_directions(keys, inputs):
    scale = under(broad._row_scaled, keys, inputs) / np.asarray(inputs)
    np.testing.assert_allclose(scale, scale[..., :1] * np.ones(DIM), rtol=1e-10)
    assert abs(np.log(scale[..., 0]).std() - 0.7) < 0.05


def test_outlying_rows_are_few_and_long(keys, inputs):
    scale = (under(broad._outlying, keys, inputs) / np.asarray(inputs))[..., 0]
    outlying = ~np.isclose(scale, 1)
    assert np.all((scale[outlying] >= 2) & (scale[outlying] <= 4))
    assert abs(outlying.mean() - 1 / 8) < 0.03


def test_repeated_rows_copy_the_one_before(keys, inputs):
    x = under(broad._repeated, keys, inputs)
    same = np.all(np.diff(x, axis=1) == 0, axis=2)
    assert abs(same.mean() - 0.35) < 0.04
    fresh = np.all(x == np.asarray(inputs), axis=2)
    assert np.all(fresh[:, 0])
    np.testing.assert_array_equal(fresh[:, 1:], ~same)


def test_a_subspace_has_any_number_of_dimensions(keys, inputs):
    ranks = np.linalg.matrix_rank(under(broad._subspace, keys, inputs), tol=1e-6)
    assert set(ranks.tolist()) == set(range(1, DIM + 1))


def test_a_shift_adds_the_same_vector_to_all_rows(keys, inputs):
    shift = under(broad._shifted, keys, inputs) - np.asarray(inputs)
    np.testing.assert_allclose(shift, shift[:, :1] * np.ones((EXAMPLES, 1)), atol=1e-12)
    assert abs(shift[:, 0].std() - 1) < 0.1


def test_a_key_determines_the_dataset_also_under_jit_and_vmap(keys, drawn):
    for index in range(3):
        one = TASK.sample(keys[index], EXAMPLES)
        for mine, all_of_them in zip((one.x, one.y, one.w), drawn, strict=True):
            np.testing.assert_allclose(mine, all_of_them[index], rtol=1e-9, atol=1e-12)


def test_least_squares_is_exact_once_the_inputs_span_their_space(drawn):
    x, y, _ = (each[:200] for each in drawn)
    answers = np.asarray(jax.jit(jax.vmap(ols.predict_prefixes))(x, y))
    # The last query is new to each law, but in the span of the examples before it.
    error = (answers[:, -1] - y[:, -1]) ** 2
    assert np.all(error < 1e-12 * (1 + np.mean(y**2, axis=1)))


def test_noise_is_added_to_all_labels(key):
    task = BroadRegression(DIM, noise_variance=0.25)
    keys = jax.random.split(key, 400)
    data = jax.jit(jax.vmap(lambda key: task.sample(key, EXAMPLES)))(keys)
    noise = np.asarray(data.y - jnp.einsum("bnd,bd->bn", data.x, data.w))
    assert noise.std() == pytest.approx(0.5, rel=0.03)


def test_a_map_of_one_dimension_is_possible(key):
    data = BroadRegression(1).sample(key, 3)
    assert np.all(np.isfinite(data.x))
    assert data.x.shape == (3, 1)
