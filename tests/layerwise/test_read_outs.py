"""Read-outs of a learner: by a function, by a method, and inside `layers`."""

import numpy as np
from support.learners import small_learner
from support.opened import Handmade
from support.refusals import refused, refuses

import algoscope as asc
from algoscope.comparison.predict import held_out
from algoscope.foundation.files import DamagedFileError, save_arrays
from algoscope.foundation.progress import Steps, silent
from algoscope.layerwise.read_outs import (
    FORMAT,
    READ_OUTS,
    ReadOuts,
    fitting_data,
)
from algoscope.predictors import ols, zero
from algoscope.tasks.linear import LinearRegression


def test_the_method_and_the_function_fit_the_read_outs_of_layers():
    learner = small_learner(seed=1)
    found = learner.readouts(num_training=30, progress=False)
    again = asc.readouts(learner, num_training=30, progress=False)
    longest = learner.max_examples + 1
    x, y = fitting_data(learner.task, 30, longest, seed=0)
    expected = ReadOuts.fit(learner, x, y, Steps(silent, "fit", None))
    for name in ("center", "weights"):
        np.testing.assert_array_equal(getattr(found, name), getattr(again, name))
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))


def test_biases_say_the_same_as_centers():
    learner = small_learner(seed=2)
    found = learner.readouts(num_training=30, progress=False)
    x, y = held_out(learner.task, num_datasets=5, num_examples=4, seed=1)
    states = np.asarray(learner.hidden_states(x, y), np.float64)[:, :, ::2]
    plain = np.einsum("blnh,lh->bln", states, found.weights)
    np.testing.assert_allclose(
        plain + found.biases[:, None], found(states), rtol=1e-9, atol=1e-9
    )


def test_a_learner_outside_of_jax_is_read_too():
    learner = Handmade(2, zero.predict_prefixes, ols.predict_prefixes)
    found = asc.readouts(learner, num_training=200, progress=False)
    x, y = held_out(learner.task, num_datasets=50, num_examples=5, seed=3)
    answers = found.answers(learner, x, y, Steps(silent, "ask", None))
    error = np.mean((answers - y[:, None]) ** 2, axis=(0, 2))
    assert error[2] < error[1]


def test_wrong_options_are_refused():
    learner = small_learner()
    with refused("task", "have the dimension 2"):
        learner.readouts(task=LinearRegression(3))
    for name, value in (("num_training", 1), ("seed", -1)):
        with refused(name, "be at least"):
            learner.readouts(**{name: value})


def test_they_are_saved_beside_the_weights_that_they_belong_to(tmp_path):
    learner = small_learner(seed=4)
    found = learner.readouts(num_training=20, progress=False)
    assert ReadOuts.load(tmp_path, learner) is None
    found.save(tmp_path, learner)
    again = ReadOuts.load(tmp_path, learner)
    assert again is not None
    for name in found._fields:
        np.testing.assert_array_equal(getattr(again, name), getattr(found, name))
    assert ReadOuts.load(tmp_path, small_learner(seed=5)) is None


def test_other_files_in_their_place_are_refused(tmp_path):
    learner = small_learner()
    path = tmp_path / READ_OUTS
    for arrays in ({}, {"center": np.zeros((2, 2)), "weights": np.zeros((2, 2))}):
        save_arrays(path, arrays, {"format": FORMAT})
        message = f"{path} does not hold read-outs of this learner."
        with refuses(DamagedFileError, message):
            ReadOuts.load(tmp_path, learner)
    path.write_bytes(b"nothing")
    with refuses(
        DamagedFileError, f"{path} is not a whole safetensors file (7 bytes)."
    ):
        ReadOuts.load(tmp_path, learner)
