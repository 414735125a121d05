"""Training: the objective, the data, any number of devices, and how it fails."""

from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refuses

from algoscope.model.tokens import encode_context
from algoscope.model.transformer import run_compiled
from algoscope.tasks.linear import FixedWeights, LinearRegression
from algoscope.tasks.task import Dataset
from algoscope.training.config import TrainingConfig
from algoscope.training.loop import (
    TrainingDivergedError,
    compile_steps,
    curriculum,
    data_mesh,
    initial_state,
    learning_rate_schedule,
    objective,
    optimizer,
    position_weights,
    task_of,
    train_steps,
)

TINY = TrainingConfig(
    dim=2,
    num_examples=4,
    num_layers=1,
    hidden_size=8,
    num_heads=2,
    recipe="paper",
    steps=20,
    steps_per_call=10,
    evaluate_every=10,
    save_every=10,
    batch_size=8,
)

pytestmark = pytest.mark.usefixtures("default_settings")


def final_weights(config, num_devices=1):
    *_, (state, _) = train_steps(config, initial_state(config), data_mesh(num_devices))
    return jax.tree.leaves(state.transformer)


def test_the_objective_is_the_mean_squared_error_over_prefixes(rng):
    transformer = initial_state(TINY).transformer
    x = jnp.asarray(rng.standard_normal((3, 4, 2)), jnp.float32)
    y = jnp.asarray(rng.standard_normal((3, 4)), jnp.float32)
    total = 0.0
    for dataset in range(3):
        for i in range(4):  # the tokens x₁, y₁, …, xᵢ and no more
            tokens = encode_context(x[dataset, : i + 1], y[dataset, : i + 1])
            prediction = run_compiled(transformer, tokens).output[-1]
            total += float((prediction - y[dataset, i]) ** 2) / 12
    data = Dataset(x, y, jnp.zeros((3, 2)))
    assert objective(transformer, data) == pytest.approx(total, rel=1e-5)
    mask = jnp.array([1.0, 1.0, 0.0, 0.0])
    first_two = Dataset(data.x[:, :2], data.y[:, :2], data.w)
    assert objective(transformer, data, mask) == pytest.approx(
        float(objective(transformer, first_two)), rel=1e-5
    )


def test_positions_count_by_the_inverse_of_what_can_be_known():
    assert position_weights(TINY) is None
    config = replace(TINY, dim=4, num_examples=8, loss_weights="risk")
    weights = position_weights(config)
    assert weights is not None
    assert weights.mean() == pytest.approx(1)
    assert np.all(np.diff(weights[:5]) > 0)  # n = 0, …, d
    np.testing.assert_allclose(weights[4:], weights[4])
    assert weights[4] / weights[0] == pytest.approx(11)  # 1.1 / 0.1
    noisy = replace(config, noise_variance=0.8, prior_variance=2.0)
    less_even = position_weights(noisy)
    assert less_even is not None
    assert less_even[4] / less_even[0] == pytest.approx(1.2 / 0.2)


def test_weights_of_positions_reach_the_loss():
    config = replace(TINY, loss_weights="risk")
    plain, weighted = final_weights(TINY), final_weights(config)
    assert any(not np.array_equal(a, b) for a, b in zip(plain, weighted, strict=True))


@pytest.mark.parametrize("recipe", ["paper", "fast"])
def test_training_learns(recipe):
    config = replace(
        TINY, dim=1, num_layers=2, hidden_size=16, batch_size=32, recipe=recipe
    )
    config = replace(config, steps=300, learning_rate=1e-2)
    losses = [loss.mean() for _, loss in train_steps(config, initial_state(config))]
    assert np.mean(losses[-3:]) < 0.7 * np.mean(losses[:3])


@pytest.mark.distributed
@pytest.mark.parametrize("num_devices", [2, 4])
@pytest.mark.parametrize("recipe", ["paper", "fast"])
def test_any_number_of_devices_finds_the_same_weights(num_devices, recipe):
    config = replace(TINY, recipe=recipe, learning_rate=1e-3)
    for one, many in zip(
        final_weights(config), final_weights(config, num_devices), strict=True
    ):
        assert np.allclose(one, many, atol=1e-5)


def test_the_same_configuration_gives_bit_identical_weights_and_a_seed_others():
    first, again = final_weights(TINY), final_weights(TINY)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    other = final_weights(replace(TINY, seed=1))
    assert not np.allclose(first[0], other[0])


def test_a_run_that_starts_in_the_middle_ends_bit_identically():
    states = [state for state, _ in train_steps(TINY, initial_state(TINY))]
    *_, (resumed, _) = train_steps(TINY, states[0])
    assert int(states[0].step) == 10
    for a, b in zip(jax.tree.leaves(states[-1]), jax.tree.leaves(resumed), strict=True):
        assert np.array_equal(a, b)


def test_the_last_call_is_shorter_when_the_steps_do_not_divide():
    config = replace(TINY, steps=14)
    lengths = [len(losses) for _, losses in train_steps(config, initial_state(config))]
    assert lengths == [10, 4]


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_good_state():
    config = replace(TINY, learning_rate=1e30, clip=0.0, warmup=0.0)
    good = initial_state(config)
    with pytest.raises(
        TrainingDivergedError, match="Lower the learning rate"
    ) as caught:
        list(train_steps(config, good))
    assert 1 <= caught.value.step <= 10
    assert f"not finite at step {caught.value.step}" in str(caught.value)
    kept = caught.value.state
    assert int(kept.step) == 0
    for a, b in zip(jax.tree.leaves(kept), jax.tree.leaves(good), strict=True):
        assert np.array_equal(a, b)


def test_a_batch_that_devices_cannot_share_is_refused():
    config = replace(TINY, batch_size=9)
    with refuses(
        ValueError,
        "`batch_size` must be a multiple of the number of devices 2, got 9.",
    ):
        compile_steps(config, data_mesh(2), 1)
    with refuses(
        ValueError,
        "`num_devices` must be between 1 and the number of devices 4, got 5.",
    ):
        data_mesh(5)


def test_the_curriculum_grows_to_everything_in_a_third_of_the_steps():
    config = replace(TINY, dim=8, num_examples=16, steps=300, curriculum=True)
    counts = [
        tuple(int(part.sum()) for part in curriculum(config, jnp.asarray(step)))
        for step in (0, 50, 100, 299)
    ]
    assert counts == [(2, 4), (5, 10), (8, 16), (8, 16)]


def test_with_a_curriculum_labels_use_the_active_coordinates_only():
    config = replace(TINY, dim=4, steps=300, curriculum=True)
    _, losses = next(train_steps(config, initial_state(config)))
    # One or two active coordinates of four at first: the labels vary half as much.
    _, plain = next(
        train_steps(replace(config, curriculum=False), initial_state(config))
    )
    assert np.mean(losses) < 0.75 * np.mean(plain)


def test_the_schedule_warms_up_and_ends_at_zero():
    rate: Any = learning_rate_schedule(
        replace(TINY, steps=100, warmup=0.2, learning_rate=0.5)
    )
    assert float(rate(0)) == 0
    assert float(rate(10)) == pytest.approx(0.25)
    assert float(rate(20)) == pytest.approx(0.5)
    assert float(rate(60)) == pytest.approx(0.25)
    assert float(rate(100)) == pytest.approx(0, abs=1e-8)


def test_the_learning_rate_can_fall_on_a_line():
    config = replace(TINY, steps=100, warmup=0.2, learning_rate=0.5, decay="linear")
    rate: Any = learning_rate_schedule(config)
    for step, wanted in ((0, 0), (10, 0.25), (20, 0.5), (40, 0.375), (100, 0)):
        assert float(rate(step)) == pytest.approx(wanted, abs=1e-8)
    at_once: Any = learning_rate_schedule(replace(config, warmup=0.0))
    assert float(at_once(0)) == 0.5


def test_the_fast_recipe_orthogonalizes_the_updates_of_matrices(rng):
    config = replace(TINY, recipe="fast", clip=0.0, warmup=0.0, hidden_size=16)
    transformer = initial_state(config).transformer
    gradient = jax.tree.map(
        lambda leaf: jnp.asarray(rng.standard_normal(leaf.shape), leaf.dtype),
        transformer,
    )
    rule: Any = optimizer(config)
    updates, _ = rule.update(gradient, rule.init(transformer), transformer)
    for part in (
        updates.layers.w_q[0].reshape(-1, 16),
        updates.layers.w_f[0].transpose(1, 0, 2).reshape(16, -1),
        updates.layers.w_2[0],
        updates.layers.w_1[0],
    ):
        values = np.linalg.svd(part, compute_uv=False)
        assert values.max() / values.min() < 3  # a random matrix: above 10


def test_the_task_is_the_one_configured():
    noisy = replace(TINY, noise_variance=0.25, prior_variance=2.0)
    assert task_of(noisy) == LinearRegression(2, 2.0, 0.25)
    assert task_of(replace(TINY, task="control")) == FixedWeights(2)
