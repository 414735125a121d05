"""Read-outs of learners whose layers are known, and of learners of ours."""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from matplotlib.figure import Figure
from support.learners import small_learner
from support.opened import Handmade, Wrapped
from support.progress import Reports
from support.refusals import refuses

from algoscope.comparison.predict import held_out
from algoscope.foundation.progress import Steps, silent
from algoscope.layerwise import LayersConfig, LayersResult, ReadOuts, layers
from algoscope.layerwise.iterations import RATES, Iteration, gd_by_curvature, iterations
from algoscope.predictors import newton, ols, zero
from algoscope.tasks.linear import LinearRegression

DIM = 2
SMALL = LayersConfig(num_examples=9, num_training=300, num_test=200, num_implied=20)


@cache
def handmade() -> LayersResult:
    """Return what is read of Newton's fifth step, and of least squares."""
    learner = Handmade(DIM, newton(5).predict_prefixes, ols.predict_prefixes)
    control = Handmade(DIM, *[zero.predict_prefixes] * 2)
    control.name = "nothing"
    return layers(learner, config=SMALL, controls=[control])


def test_the_input_says_nothing_of_a_label():
    found = handmade()
    zero = found.references["zero"][:, 1:].mean(axis=1)
    np.testing.assert_allclose([found.risk[0, 0], found.spd[0, 0]], zero, rtol=0.05)


def test_what_a_layer_holds_is_read_and_matched():
    found = handmade()
    assert found.spd[2, 0] < 1e-3  # not 0: the read-out's gain is estimated
    assert found.match("conjugate gradients", 2).steps == DIM
    assert found.match("conjugate gradients", 2).distance < 1e-3
    assert found.match("Newton", 1).steps == 5
    assert found.match("Newton", 2).steps > 10
    assert (
        found.match("GD", 0).steps == found.match("conjugate gradients", 0).steps == 0
    )
    assert found.spd[1, 0] > 1e-3


def test_the_weights_of_a_layer_that_holds_least_squares_are_those_of_least_squares():
    weights = handmade().weights
    assert handmade().prefix == 2 * DIM
    for name in ("cosine w_ols", "cosine w", "r2"):
        assert weights[name][2, 0] == pytest.approx(1, abs=1e-3)
    assert weights["distance w_ols"][2, 0] < 1e-3 < weights["distance w_ols"][0, 0]


def test_a_read_out_is_the_ridge_solution_for_standardized_states():
    """The slow way: all states at once, a column of ones, and a penalty."""
    learner = small_learner(seed=3)
    x, y = held_out(learner.task, num_datasets=40, num_examples=4, seed=5)
    fitted = ReadOuts.fit(learner, x, y, Steps(silent, "fit", None))
    states = np.asarray(learner.hidden_states(x, y), np.float64)[:, :, ::2]
    for layer in range(3):
        h = states[:, layer].reshape(-1, 4)
        z = (h - h.mean(axis=0)) / h.std(axis=0)
        labels = y.reshape(-1).astype(np.float64)
        penalized = np.concatenate([z, np.sqrt(1e-6 * len(z)) * np.eye(4)])
        centered = np.concatenate([labels - labels.mean(), np.zeros(4)])
        b, *_ = np.linalg.lstsq(penalized, centered)
        expected = z @ b + labels.mean()
        found = fitted(states)[:, layer].reshape(-1)
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_a_learner_is_read_in_the_same_way_whether_jax_sees_it_or_not():
    learner, config = small_learner(), replace(SMALL, num_examples=4)
    found, expected = (
        layers(each, config=config, controls=[]) for each in (Wrapped(learner), learner)
    )
    np.testing.assert_allclose(found.spd, expected.spd, rtol=1e-6)
    assert found.steps("GD") == expected.steps("GD")
    assert found.floors == expected.floors == {}


def test_gd_by_curvature_is_gd_on_each_prefix(rng):
    x, y = rng.normal(size=(5, 3)), rng.normal(size=5)
    found = gd_by_curvature(3, jnp.asarray(x), jnp.asarray(y), 1.5)
    for n in range(6):
        gram, moment = x[:n].T @ x[:n], x[:n].T @ y[:n]
        rate = 1.5 / max(np.linalg.eigvalsh(gram)[-1], 1e-300) if n else 1.5
        w = np.zeros(3)
        for step in range(4):
            np.testing.assert_allclose(found[step, n], w, atol=1e-12)
            w = w + rate * (moment - gram @ w)


def test_predictions_are_those_after_every_number_of_steps(rng):
    x, y = rng.normal(size=(7, 4, 2)), rng.normal(size=(7, 4))
    descending, solving, inverting = iterations(2)
    assert descending.predictions(x, y).shape == (7, len(RATES), 65, 4)
    assert np.all(descending.predictions(x, y)[:, :, 0] == 0)
    exact = jax.vmap(ols.predict_prefixes)(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(solving.predictions(x, y)[:, 0, 2], exact, atol=1e-9)
    third = jax.vmap(newton(3).predict_prefixes)(jnp.asarray(x), jnp.asarray(y))
    np.testing.assert_allclose(inverting.predictions(x, y)[:, 0, 3], third, atol=1e-12)
    assert isinstance(solving, Iteration)


def test_the_default_control_is_the_untrained_learner_and_progress_is_told():
    reports, learner = Reports(), small_learner()
    config = replace(SMALL, num_examples=4, num_training=20, num_test=10)
    found = layers(learner, config=config, progress=reports)
    assert found.controls == ("small, untrained",)
    assert found.floors["small, untrained"].shape == (2, 3, 3)
    assert reports.of("read-outs")[-1] == (60, 60)
    assert found.num_examples == 3
    assert found.layer_names == ("input", "layer 1", "layer 2")


def test_a_result_is_saved_loaded_tabulated_and_drawn(tmp_path):
    result = handmade()
    result.save(tmp_path)
    again = LayersResult.load(tmp_path)
    assert again.sentence == result.sentence
    assert again.matches == result.matches
    assert again.rows() == result.rows()
    for name, values in result.distances.items():
        np.testing.assert_array_equal(again.distances[name], values)
    assert result.sentence.startswith(
        "A linear read-out of by hand is nearest to least squares after layer 2: "
        "SPD(OLS)/d "
    )
    rows = result.rows()
    # Two distances and five of weights per layer, two per layer of the control, and
    # the matches of three algorithms.
    assert len(rows) == 7 * 3 + 2 * 3 + 3 * 3
    assert rows[-1]["steps"] == result.match("Newton", 2).shown
    figure = result.plot()
    assert [axes.get_ylabel() for axes in figure.axes] == [
        "SPD(OLS) / d",
        "risk / d",
        "nearest number of steps",
        "implied weights, n = 4",
    ]
    ours = Figure()
    assert result.plot(ours.subplots()) is ours
    assert "nearest to least squares" in result._repr_html_()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"num_examples": 14},
            "`num_examples` must be from 2 to 13, as many as by hand takes, got 14.",
        ),
        (
            {"prefix": 9},
            "`prefix` must be below the 9 examples of a dataset, got 9.",
        ),
        ({"num_queries": 1}, "`num_queries` must be at least 2, got 1."),
    ],
    ids=str,
)
def test_sizes_that_do_not_fit_are_refused(changes, message):
    learner = Handmade(DIM, ols.predict_prefixes)
    with refuses(ValueError, message):
        layers(learner, config=replace(SMALL, **changes))


def test_other_tasks_and_controls_that_do_not_fit_are_refused():
    learner = Handmade(DIM, ols.predict_prefixes)
    with refuses(ValueError, "`task` must have the dimension 2 of by hand, got 3."):
        layers(learner, LinearRegression(3))
    message = "`controls` must take the datasets of by hand, got small."
    with refuses(ValueError, message):
        layers(learner, config=SMALL, controls=[small_learner()])
    with refuses(ValueError, "`num_test` must be at least 2, got 1."):
        LayersConfig(num_test=1)


def test_an_unknown_algorithm_is_refused():
    message = (
        "`algorithm` must be one of GD, conjugate gradients, Newton, got 'newton'. "
        "Did you mean 'Newton'?"
    )
    with refuses(ValueError, message):
        handmade().match("newton", 0)
