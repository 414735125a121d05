"""Every predictor sees the same datasets, and training sees none of them."""

from dataclasses import dataclass
from functools import cache

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from jaxtyping import PRNGKeyArray
from support.boxes import Boxed, ridge_answers
from support.progress import Reports
from support.refusals import refuses

from algoscope.comparison import predict as prediction
from algoscope.comparison.predict import (
    ask,
    counted,
    diverged_is_infinite,
    held_out,
    predict_all,
    predict_exactly,
    predict_queries,
)
from algoscope.predictors import BlackBox, Question, ols
from algoscope.tasks.linear import LinearRegression
from algoscope.tasks.task import Dataset
from algoscope.training import loop as training
from algoscope.training.config import TrainingConfig

DIM, EXAMPLES = 2, 3


@dataclass(frozen=True)
class Uniform:
    """A task that is drawn, and compiled, with little work."""

    dim: int = DIM
    prior_variance: float = 1.0
    noise_variance: float = 0.0

    def sample(self, key: PRNGKeyArray, num_examples: int) -> Dataset:
        x = jax.random.uniform(key, (num_examples, self.dim))
        return Dataset(x, x[:, 0], jnp.ones(self.dim))


@cache
def draw(seed: int = 0, num_datasets: int = 20) -> tuple[np.ndarray, np.ndarray]:
    return held_out(
        Uniform(), num_datasets=num_datasets, num_examples=EXAMPLES, seed=seed
    )


# Held-out datasets.


def test_held_out_datasets_are_single_precision_numpy_arrays():
    x, y = draw()
    assert isinstance(x, np.ndarray)
    assert isinstance(y, np.ndarray)
    assert x.dtype == y.dtype == "float32"
    assert x.shape == (20, EXAMPLES, DIM)
    assert y.shape == (20, EXAMPLES)


def test_a_seed_determines_the_datasets_whatever_the_precision():
    with jax.enable_x64(False):
        again = draw.__wrapped__()
    for mine, same in zip(draw(), again, strict=True):
        np.testing.assert_array_equal(mine, same)


def test_no_dataset_is_drawn_twice_and_another_seed_draws_others():
    inputs = np.concatenate([draw(seed)[0].reshape(-1, DIM) for seed in (0, 3)])
    assert len(np.unique(inputs, axis=0)) == len(inputs)


def drawn_in_training(config: TrainingConfig, monkeypatch) -> np.ndarray:
    """Return the inputs that training draws, without the cost of training."""
    seen = []

    def watched(transformer, data, mask):
        jax.debug.callback(lambda x: seen.append(np.asarray(x)), data.x)
        return 0.0 * jnp.sum(transformer.w_o)

    monkeypatch.setattr(training, "objective", watched)
    monkeypatch.setattr(training, "optimizer", lambda config: optax.identity())
    with jax.enable_x64(False), jax.numpy_rank_promotion("allow"):
        state, mesh = training.initial_state(config), training.data_mesh(1)
        for _ in training.train_steps(config, state, mesh):
            pass
        jax.effects_barrier()
    return np.concatenate(seen)


def test_training_draws_no_held_out_dataset(monkeypatch):
    config = TrainingConfig(
        dim=DIM,
        num_examples=EXAMPLES,
        num_layers=1,
        hidden_size=2,
        num_heads=1,
        steps=4,
        steps_per_call=4,
        evaluate_every=4,
        save_every=4,
        batch_size=5,
    )
    trained_on = drawn_in_training(config, monkeypatch)
    assert trained_on.shape == (20, EXAMPLES, DIM)
    held, _ = held_out(
        LinearRegression(DIM), num_datasets=20, num_examples=EXAMPLES, seed=config.seed
    )
    assert held.dtype == trained_on.dtype  # or they would differ by rounding alone
    rows = np.concatenate([trained_on, held]).reshape(-1, DIM)
    assert len(np.unique(rows, axis=0)) == len(rows)


def test_no_held_out_datasets_are_refused():
    with refuses(ValueError, "`num_datasets` must be at least 1, got 0."):
        draw(num_datasets=0)
    with refuses(TypeError, "`num_datasets` must be an integer, got 10000.0."):
        draw(num_datasets=1e4)  # pyright: ignore[reportArgumentType]


def test_a_negative_seed_is_refused():
    with refuses(ValueError, "`seed` must be at least 0, got -1."):
        draw(seed=-1)
    with refuses(TypeError, "`seed` must be an integer, got None."):
        draw(seed=None)  # pyright: ignore[reportArgumentType]


def test_held_out_datasets_without_examples_are_refused():
    with refuses(ValueError, "`num_examples` must be at least 1, got 0."):
        held_out(LinearRegression(DIM), num_datasets=1, num_examples=0, seed=0)


# Predictions on many datasets.


class SumOfLabels:
    """A predictor whose answers NumPy gives at once; it counts its compilations."""

    name = "sum"

    def __init__(self):
        self.traced: list[str] = []

    def __call__(self, x, y, query, /):
        return jnp.sum(y) + query[0] / 3

    def predict_prefixes(self, x, y, /):
        self.traced.append(str(x.dtype))
        return jnp.cumsum(y) - y + x[:, 0] / 3


@pytest.mark.parametrize("total", [1, 4, 8, 10])
def test_batches_of_any_size_give_the_predictions_of_single_datasets(
    total, rng, monkeypatch
):
    monkeypatch.setattr(prediction, "BATCH", 4)
    x, y = rng.standard_normal((total, 5, DIM)), rng.standard_normal((total, 5))
    predictor = SumOfLabels()
    predictions = predict_all(predictor, x, y)
    assert isinstance(predictions, np.ndarray)
    expected = np.cumsum(y, axis=1) - y + x[..., 0] / 3
    np.testing.assert_allclose(predictions, expected, rtol=1e-12, atol=1e-12)
    assert len(predictor.traced) == 1  # the last batch compiles nothing of its own


def test_an_uneven_number_of_datasets_is_predicted_as_one_by_one(rng, monkeypatch):
    monkeypatch.setattr(prediction, "BATCH", 3)
    x, y = rng.standard_normal((5, 4, DIM)), rng.standard_normal((5, 4))
    alone = jax.jit(ols.predict_prefixes)
    expected = [alone(*dataset) for dataset in zip(x, y, strict=True)]
    np.testing.assert_allclose(predict_all(ols, x, y), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("x64", [False, True])
def test_exact_predictions_are_computed_in_double_precision(x64):
    x, y = draw()
    predictor = SumOfLabels()
    with jax.enable_x64(x64):
        exact, single = predict_exactly(predictor, x, y), predict_all(predictor, x, y)
    assert predictor.traced == ["float64", "float32"]
    assert (exact.dtype, single.dtype) == ("float64", "float32")
    labels = y.astype(np.float64)
    expected = np.cumsum(labels, axis=1) - labels + x[..., 0].astype(np.float64) / 3
    np.testing.assert_allclose(exact, expected, rtol=1e-13, atol=1e-13)


class Counter:
    """A count that may be part of a learner's form."""

    count = 0


class Scaled(eqx.Module):
    """A learner: what it predicts depends on its weights."""

    scale: jax.Array
    traced: Counter = eqx.field(static=True)
    name: str = "scaled"

    def __call__(self, x, y, query, /):
        return self.scale * query[0]

    def predict_prefixes(self, x, y, /):
        self.traced.count += 1
        return self.scale * x[:, 0]


def test_new_weights_of_a_learner_compile_nothing(rng):
    x, y = rng.standard_normal((3, 2, DIM)), rng.standard_normal((3, 2))
    traced = Counter()
    for scale in (2.0, 5.0):
        predictions = predict_all(Scaled(jnp.asarray(scale), traced), x, y)
        np.testing.assert_allclose(predictions, scale * x[..., 0], rtol=1e-12)
    assert traced.count == 1


@dataclass
class Constant:
    """A predictor as a user may write it: a dataclass that is not frozen."""

    value: float
    name: str = "constant"

    def __call__(self, x, y, query, /):
        return jnp.full((), self.value)

    def predict_prefixes(self, x, y, /):
        return jnp.full(y.shape, self.value)


def test_a_predictor_need_not_be_hashable(rng):
    x, y = rng.standard_normal((3, 2, DIM)), rng.standard_normal((3, 2))
    assert predict_all(Constant(4.0), x, y).tolist() == [[4.0, 4.0]] * 3


def test_predictions_on_no_datasets_are_refused():
    with refuses(ValueError, "`number of datasets` must be at least 1, got 0."):
        predict_all(ols, np.zeros((0, EXAMPLES, DIM)), np.zeros((0, EXAMPLES)))


# Black boxes.

BOX = Boxed("box", ridge_answers)


def test_a_black_box_reports_its_answers_out_of_all_questions_asked_so_far(rng):
    x, y = rng.standard_normal((2, 3, DIM)), rng.standard_normal((2, 3))
    reports = Reports()
    box = counted(BOX, reports)
    assert isinstance(box, BlackBox)
    assert box.name == "box"
    np.testing.assert_array_equal(predict_all(box, x, y), predict_all(BOX, x, y))
    assert reports.counts == [("asking box", done, 4) for done in (1, 2, 3, 4)]
    predict_queries(box, x, y, rng.standard_normal((2, 5, DIM)), after=2)
    assert reports.counts[4:] == [("asking box", done, 6) for done in (5, 6)]
    question = Question(x[0, :1], y[0, :1], x[0, 1:])
    assert len(list(ask(box, [question], 1))) == 1
    assert reports.counts[6:] == [("asking box", 7, 7)]


def test_what_jax_runs_is_not_counted():
    assert counted(ols, Reports()) is ols


def test_nan_is_divergence_in_jax_and_abstention_in_a_black_box():
    values = np.array([1.0, np.nan, -np.inf], np.float32)
    assert diverged_is_infinite(ols, values).tolist() == [1.0, np.inf, -np.inf]
    assert diverged_is_infinite(ols, values).dtype == "float32"
    assert diverged_is_infinite(BOX, values) is values
