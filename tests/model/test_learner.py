"""A transformer as a predictor: two ways to ask, one answer, and a known task."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from support.refusals import refuses
from support.transformers import DIM, ROOM

from algoscope import FixedWeights, InContextLearner, LinearRegression, Predictor
from algoscope.foundation.files import DamagedFileError
from algoscope.model.checkpoints import CONFIG


def test_it_is_a_predictor(learner):
    assert (learner.dim, learner.max_examples, learner.name) == (DIM, ROOM, "small")
    assert isinstance(learner, Predictor)


def test_one_pass_gives_what_asking_after_each_prefix_gives(learner, data):
    x, y = data
    ask, lengths = jax.jit(lambda *data: learner(*data)), [0, 1, ROOM]
    one_by_one = [ask(x[:n], y[:n], x[n]) for n in lengths]
    at_once = np.asarray(jax.jit(lambda *data: learner.predict_prefixes(*data))(x, y))
    assert np.allclose(at_once[lengths], one_by_one, rtol=1e-12)


def test_a_prediction_does_not_see_its_own_label_or_later_examples(learner, data):
    x, y = data
    before = learner.predict_prefixes(x, y)
    after = learner.predict_prefixes(x.at[4:].add(1.0), y.at[3:].add(1.0))
    assert np.array_equal(before[:4], after[:4])
    assert not np.allclose(before[4:], after[4:])


def test_it_runs_under_jit_and_vmap(learner, data, rng):
    x, y = data
    xs = jnp.asarray(rng.standard_normal((4, *x.shape)))
    ys = jnp.asarray(rng.standard_normal((4, *y.shape)))
    batched = jax.jit(jax.vmap(learner.predict_prefixes))(xs, ys)
    single = [learner.predict_prefixes(a, b) for a, b in zip(xs, ys, strict=True)]
    assert np.allclose(batched, single, rtol=1e-12)
    queries = jax.jit(jax.vmap(learner, in_axes=(None, None, 0)))(x[:2], y[:2], x)
    assert np.allclose(queries[3], learner(x[:2], y[:2], x[3]), rtol=1e-12)


def test_what_is_saved_is_loaded_bit_for_bit(learner, data, tmp_path):
    learner.save_pretrained(tmp_path / "model", card="# A card\n")
    loaded = InContextLearner.from_pretrained(tmp_path / "model")
    assert loaded.name == "small"
    assert loaded.transformer.block == learner.transformer.block
    assert np.array_equal(
        loaded.predict_prefixes(*data), learner.predict_prefixes(*data)
    )
    assert (tmp_path / "model" / "README.md").read_text() == "# A card\n"
    learner.save_pretrained(tmp_path / "plain")
    assert "d = 3" in (tmp_path / "plain" / "README.md").read_text()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda x, y, q: (x[:, :2], y, q),
            "`x` must have shape (examples, 3), got shape (6, 2). "
            "For a batch, use `jax.vmap`.",
        ),
        (
            lambda x, y, q: (x[:5], y[:4], q),
            "`y` must have shape (5,), one label per example, got shape (4,).",
        ),
        (
            lambda x, y, q: (x[:5], y[:5], q[:2]),
            "`query` must be one input of 3 coordinates, got shape (2,).",
        ),
        (
            lambda x, y, q: (x, y, q),
            "`x` must hold at most 5 examples before a query, got 6.",
        ),
        (
            lambda x, y, q: (x[:2].at[0, 0].set(jnp.nan), y[:2], q),
            "`x` must be finite, got NaN or infinity.",
        ),
        (
            lambda x, y, q: (x[:2], y[:2].at[0].set(jnp.inf), q),
            "`y` must be finite, got NaN or infinity.",
        ),
        (
            lambda x, y, q: (x[:2], y[:2], q * jnp.nan),
            "`query` must be finite, got NaN or infinity.",
        ),
    ],
)
def test_unfit_questions_are_rejected(learner, data, change, message):
    x, y, query = change(*data, data[0][0])
    with refuses(ValueError, message):
        learner(x, y, query)


# The task.


def test_without_a_task_a_learner_is_asked_about_linear_regression(learner):
    assert learner.task == LinearRegression(DIM)


def test_a_learner_keeps_its_task(learner):
    task = FixedWeights(DIM, noise_variance=0.5)
    assert InContextLearner(learner.transformer, task=task).task is task


@pytest.mark.parametrize(
    ("training", "task"),
    [
        (
            {
                "task": "linear",
                "dim": DIM,
                "prior_variance": 2.0,
                "noise_variance": 0.25,
            },
            LinearRegression(DIM, 2.0, 0.25),
        ),
        (
            {
                "task": "control",
                "dim": DIM,
                "prior_variance": 1.0,
                "noise_variance": 0.25,
            },
            FixedWeights(DIM, 0.25),
        ),
    ],
    ids=["linear", "control"],
)
def test_a_trained_learner_knows_its_task(learner, tmp_path, training, task):
    learner.save_pretrained(tmp_path, about={"training": {**training, "steps": 7}})
    assert InContextLearner.from_pretrained(tmp_path).task == task


def test_shipped_models_know_their_tasks():
    assert InContextLearner.from_pretrained("linear-d8").task == LinearRegression(8)
    assert InContextLearner.from_pretrained("control-d4").task == FixedWeights(4)


def test_a_learner_that_was_not_trained_is_loaded_with_the_default_task(
    learner, tmp_path
):
    learner.save_pretrained(tmp_path)
    assert InContextLearner.from_pretrained(tmp_path).task == LinearRegression(DIM)


@pytest.mark.parametrize(
    ("training", "problem"),
    [
        ({"task": "linear"}, "'dim'"),
        (3, "'int' object is not subscriptable"),
        (
            {"task": "liner", "dim": 3, "prior_variance": 1.0, "noise_variance": 0.0},
            "`task` must be one of linear, control, broad, got 'liner'. "
            "Did you mean 'linear'?",
        ),
    ],
    ids=["missing", "type", "unknown"],
)
def test_a_damaged_task_is_rejected(learner, tmp_path, training, problem):
    learner.save_pretrained(tmp_path, about={"training": training})
    message = (
        f"{tmp_path / CONFIG} does not say which task it was trained on ({problem})."
    )
    with refuses(DamagedFileError, message):
        InContextLearner.from_pretrained(tmp_path)


# The digest.


def test_the_digest_tells_learners_apart(learner, tmp_path):
    learner.save_pretrained(tmp_path)
    loaded = InContextLearner.from_pretrained(tmp_path)
    assert loaded.digest == learner.digest
    assert InContextLearner(learner.transformer, "renamed").digest == learner.digest
    other = jax.tree.map(lambda leaf: leaf + 1e-12, learner)
    assert other.digest != learner.digest
