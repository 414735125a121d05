"""Tasks draw from the distributions that they name."""

import os
import subprocess
import sys
from dataclasses import FrozenInstanceError
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.compiling import QUICKLY
from support.refusals import refuses

from algoscope.tasks import TASKS as CATALOG
from algoscope.tasks import make_task
from algoscope.tasks.broad import BroadRegression
from algoscope.tasks.linear import FixedWeights, LinearRegression
from algoscope.tasks.task import Dataset, Task

EXAMPLES, DIM = 4, 3
NUM_DATASETS = 4000
NOISY = LinearRegression(DIM, prior_variance=2.5, noise_variance=0.6)
TASKS = [
    LinearRegression(DIM),
    NOISY,
    FixedWeights(DIM),
    FixedWeights(DIM, noise_variance=0.6),
    BroadRegression(DIM),
]


def worst_z(samples: np.ndarray, mean: np.ndarray | float) -> float:
    """Return the largest |z| of the columns' sample means against `mean`."""
    error = samples.mean(0) - mean
    return float(np.max(np.abs(error) / (samples.std(0) / np.sqrt(len(samples)))))


# The normal distribution exceeds 5 once in two million draws. The key is fixed, so a
# test that passes once passes always.
Z = 5.0


@pytest.fixture(scope="module", params=[NOISY, TASKS[3]], ids=["linear", "fixed"])
def drawn(request) -> tuple[Task, np.ndarray, np.ndarray, np.ndarray]:
    """Many datasets of one noisy task: the task, x, y − wᵀx and w."""
    keys = jax.random.split(jax.random.key(20221128), NUM_DATASETS)
    data = jax.jit(jax.vmap(lambda key: request.param.sample(key, EXAMPLES)))(keys)
    x, y, w = (np.asarray(part) for part in (data.x, data.y, data.w))
    return request.param, x, y - np.einsum("bnd,bd->bn", x, w), w


def test_inputs_weights_and_noise_have_mean_zero_apart_from_fixed_weights(drawn):
    task, x, noise, w = drawn
    assert worst_z(x.reshape(NUM_DATASETS, -1), 0.0) < Z
    assert worst_z(noise, 0.0) < Z
    if task.prior_variance > 0:
        assert worst_z(w, 0.0) < Z


def test_all_draws_are_independent_and_have_the_variances_of_the_task(drawn):
    task, x, noise, w = drawn
    parts, variances = [x.reshape(NUM_DATASETS, -1), noise], [1.0, task.noise_variance]
    if task.prior_variance > 0:
        parts, variances = [*parts, w], [*variances, task.prior_variance]
    draws = np.concatenate(parts, axis=1)
    products = draws[:, :, None] * draws[:, None, :]
    covariance = np.diag(
        np.repeat(variances, [part.shape[1] for part in parts])
    )  # no draw knows of another
    assert worst_z(products, covariance) < Z


def test_inputs_and_noise_have_the_fourth_moment_of_the_normal_distribution(drawn):
    task, x, noise, _ = drawn
    assert worst_z(x.reshape(NUM_DATASETS, -1) ** 4, 3.0) < Z
    assert worst_z(noise**4, 3 * task.noise_variance**2) < Z


def test_labels_have_the_variance_that_follows(drawn):
    task, x, noise, w = drawn
    y = np.einsum("bnd,bd->bn", x, w) + noise
    of_one_weight = task.prior_variance or 1.0  # fixed weights are 1, so w² is 1
    assert worst_z(y**2, DIM * of_one_weight + task.noise_variance) < Z


@pytest.mark.parametrize("task", [TASKS[0], TASKS[2], TASKS[4]], ids=repr)
def test_without_noise_labels_are_exactly_linear_in_the_inputs(task, key):
    data = task.sample(key, EXAMPLES)
    np.testing.assert_array_equal(data.y, data.x @ data.w)


@pytest.mark.parametrize("num_examples", [1, 2])
@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_a_sample_has_the_shapes_of_the_task(task, key, num_examples):
    data = jax.eval_shape(lambda: task.sample(key, num_examples))
    assert isinstance(data, Dataset)
    assert data.x.shape == (num_examples, DIM)
    assert data.y.shape == (num_examples,)
    assert data.w.shape == (DIM,)


def test_fixed_weights_are_ones_whatever_the_key(key):
    for each in jax.random.split(key, 2):
        assert FixedWeights(DIM).sample(each, EXAMPLES).w.tolist() == [1.0] * DIM
    assert FixedWeights(DIM).prior_variance == 0.0


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_a_key_determines_the_dataset(task, key):
    first, again = task.sample(key, EXAMPLES), task.sample(key, EXAMPLES)
    other = task.sample(jax.random.fold_in(key, 1), EXAMPLES)
    for mine, same, another in zip(
        *map(jax.tree.leaves, (first, again, other)), strict=True
    ):
        np.testing.assert_array_equal(mine, same)
        if not np.all(np.asarray(mine) == 1):  # fixed weights
            assert not np.any(np.asarray(mine) == np.asarray(another))


@pytest.mark.parametrize("task", [NOISY, TASKS[3]], ids=repr)
def test_sampling_under_jit_and_vmap_draws_the_same_data(task, key):
    plain = task.sample(key, EXAMPLES)
    mapped = jax.jit(jax.vmap(lambda key: task.sample(key, EXAMPLES)))(key[None])
    for one, batch in zip(*map(jax.tree.leaves, (plain, mapped)), strict=True):
        np.testing.assert_allclose(batch[0], one, rtol=1e-12, atol=1e-12)


def test_noise_scales_with_its_deviation_and_leaves_the_rest_alone(key):
    clean, one, four = (
        LinearRegression(DIM, noise_variance=variance).sample(key, EXAMPLES)
        for variance in (0.0, 1.0, 4.0)
    )
    np.testing.assert_array_equal(clean.x, four.x)
    np.testing.assert_array_equal(clean.w, four.w)
    np.testing.assert_allclose(four.y - clean.y, 2 * (one.y - clean.y), rtol=1e-12)


def test_weights_scale_with_the_prior_deviation(key):
    one = LinearRegression(DIM).sample(key, EXAMPLES)
    four = LinearRegression(DIM, prior_variance=4.0).sample(key, EXAMPLES)
    np.testing.assert_array_equal(one.x, four.x)
    np.testing.assert_array_equal(2 * one.w, four.w)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("task", [NOISY, TASKS[3]], ids=repr)
def test_samples_have_the_default_precision(task, x64):
    with jax.enable_x64(x64):
        data = jax.eval_shape(lambda: task.sample(jax.random.key(0), EXAMPLES))
        assert {leaf.dtype for leaf in jax.tree.leaves(data)} == {
            jnp.dtype("float64" if x64 else "float32")
        }


@pytest.mark.parametrize("x64", [False, True])
def test_variances_may_be_numpy_numbers(key, x64):
    task = LinearRegression(
        dim=DIM,
        prior_variance=np.float64(2.5),
        noise_variance=np.float64(0.6),
    )
    with jax.enable_x64(x64):
        data = jax.eval_shape(lambda: task.sample(jax.random.key(0), EXAMPLES))
        assert data.y.dtype == data.w.dtype == ("float64" if x64 else "float32")


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_every_task_is_a_task(task):
    assert isinstance(task, Task)


@pytest.mark.parametrize("task", TASKS, ids=repr)
def test_a_task_is_a_value(task):
    assert task in set(TASKS)
    assert task == type(task)(**vars(task))
    with pytest.raises(FrozenInstanceError):
        task.dim = 5


@settings(max_examples=30)
@given(
    prior_variance=st.floats(0.1, 10),
    noise_variance=st.floats(0.1, 10),
    factor=st.floats(0.2, 5),
    seed=st.integers(0, 2**32),
)
def test_no_penalty_has_less_bayes_risk_than_the_bayes_penalty(
    prior_variance, noise_variance, factor, seed
):
    task = LinearRegression(DIM, prior_variance, noise_variance)
    x = np.random.default_rng(seed).standard_normal((EXAMPLES, DIM))
    squares = np.linalg.svd(x, compute_uv=False) ** 2

    def risk(penalty: float) -> float:
        """Return E‖w_ridge − w‖² over w and the noise, at the inputs x."""
        bias = prior_variance * (penalty / (squares + penalty)) ** 2
        return float(np.sum(bias + noise_variance * squares / (squares + penalty) ** 2))

    assert task.bayes_penalty == noise_variance / prior_variance
    assert risk(task.bayes_penalty) <= risk(factor * task.bayes_penalty) * (1 + 1e-12)


def test_the_bayes_penalty_without_noise_is_zero():
    assert LinearRegression(DIM).bayes_penalty == 0.0


@pytest.mark.parametrize("kind", [LinearRegression, FixedWeights])
def test_a_dimension_below_one_is_rejected(kind):
    with refuses(ValueError, "`dim` must be at least 1, got 0."):
        kind(dim=0)
    with refuses(TypeError, "`dim` must be an integer, got 2.0."):
        kind(dim=2.0)


@pytest.mark.parametrize("kind", [LinearRegression, FixedWeights])
def test_a_negative_noise_variance_is_rejected(kind):
    with refuses(ValueError, "`noise_variance` must not be negative, got -0.1."):
        kind(dim=2, noise_variance=-0.1)
    with refuses(TypeError, "`noise_variance` must be a number, got '0.1'."):
        kind(dim=2, noise_variance="0.1")


def test_a_prior_without_variance_is_rejected_in_favor_of_fixed_weights():
    remedy = "For the control task, where w is fixed, use `FixedWeights`."
    with refuses(ValueError, f"`prior_variance` must be positive, got 0.0. {remedy}"):
        LinearRegression(dim=2, prior_variance=0.0)
    with refuses(TypeError, "`prior_variance` must be a number, got None."):
        LinearRegression(dim=2, prior_variance=None)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("task", [TASKS[0], TASKS[2], TASKS[4]], ids=repr)
def test_a_dataset_without_examples_is_rejected(task, key):
    with refuses(ValueError, "`num_examples` must be at least 1, got 0."):
        task.sample(key, 0)


@pytest.mark.parametrize(
    ("kind", "task"),
    [
        ("linear", NOISY),
        ("control", TASKS[3]),
        ("broad", BroadRegression(DIM, prior_variance=2.5, noise_variance=0.6)),
    ],
)
def test_a_task_is_made_by_name(kind, task):
    assert make_task(kind, DIM, 2.5, 0.6) == task
    assert make_task(kind, DIM) == type(task)(DIM)


def test_the_catalog_names_every_task_in_these_tests():
    made = {type(make_task(kind, DIM)) for kind in CATALOG}
    assert made == {type(task) for task in TASKS}


def test_an_unknown_task_is_rejected_with_the_nearest_name():
    message = (
        "`task` must be one of linear, control, broad, got 'liner'. Did you mean "
        "'linear'?"
    )
    with refuses(ValueError, message):
        make_task("liner", DIM)
    with refuses(ValueError, "`dim` must be at least 1, got 0."):
        make_task("control", 0)


ADDED = """
import sys
import algoscope as asc
from algoscope.tasks import TASKS, make_task

TASKS["shifted"] = "support.shifted:ShiftedRegression"  # the line
config = asc.TrainingConfig(
    task="shifted", dim=1, num_examples=3, num_layers=1, hidden_size=8, num_heads=1,
    steps=2, steps_per_call=2, evaluate_every=2, save_every=2,
)
learner = asc.train(config, sys.argv[1], evaluation_datasets=10)
assert learner.task == make_task("shifted", 1)
print(asc.compare(learner, ["ols"], num_datasets=10).task)
"""


def test_a_task_is_added_by_one_file_and_one_line(tmp_path):
    # In a program of its own: the catalog is a type as well, which tests check.
    done = subprocess.run(
        [sys.executable, "-c", ADDED, str(tmp_path / "run")],
        env=os.environ | QUICKLY | {"PYTHONPATH": str(Path(__file__).parents[1])},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("ShiftedRegression(dim=1, ")
