"""Families predict from the past alone; fitting finds their nearest members."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from algoscope import LinearRegression
from algoscope.comparison.predict import predict_exactly
from algoscope.identification.families import FAMILIES, Parameter
from algoscope.identification.fitting import (
    Hypothesis,
    Observations,
    polish,
    predict_family,
    refine,
    scan,
)
from algoscope.identification.ranking import rank
from algoscope.identification.suites import SUITES, draw_probes
from algoscope.predictors import ols, ridge, sgd

TASK = LinearRegression(dim=2)
EXAMPLES = 8


def test_every_family_has_a_name_that_can_be_reported():
    names = {family.name for family in FAMILIES}
    assert "none" not in names
    assert {"ols", "ridge", "knn", "sgd", "gd", "newton", "lasso"} <= names


@pytest.mark.parametrize("family", FAMILIES, ids=lambda f: f"{f.name} {dict(f.fixed)}")
def test_every_family_predicts_for_each_choice_from_the_past_alone(family, rng):
    x, y = rng.standard_normal((2, 4, 2)), rng.standard_normal((2, 4))
    point = np.array([p.grid(3)[1] for p in family.parameters])
    predictions = predict_family(family, point, x, y)
    assert predictions.shape == (len(family.choices), 2, 4)
    assert np.all(np.isfinite(predictions))
    y[:, 2:] += 1.0
    later = predict_family(family, point, x, y)
    np.testing.assert_array_equal(later[..., :3], predictions[..., :3])


@pytest.mark.parametrize("scale", ["log", "linear", "from zero"])
def test_coordinates_and_values_of_a_parameter_are_inverse(scale):
    parameter = Parameter("a", 0.0 if scale == "from zero" else 0.1, 2.0, scale)
    first, *_, last = (float(parameter.value(c)) for c in parameter.grid(5))
    assert first == pytest.approx(parameter.low)
    assert last == pytest.approx(2.0)
    with jax.enable_x64(True):
        traced = jax.jit(parameter.value)(parameter.grid(5)[2])
    assert float(traced) == pytest.approx(float(parameter.value(parameter.grid(5)[2])))


def test_a_hypothesis_is_a_predictor(rng):
    (family,) = (f for f in FAMILIES if f.name == "ridge" and not f.fixed)
    hypothesis = Hypothesis(family, 0, np.log([0.3]))
    x, y = jnp.asarray(rng.standard_normal((5, 2))), jnp.asarray(rng.standard_normal(5))
    expected = ridge(0.3)(x[:4], y[:4], x[4])
    assert float(hypothesis(x[:4], y[:4], x[4])) == pytest.approx(float(expected))


def observe(box, seed: int = 3) -> Observations:
    (probes,) = draw_probes(
        SUITES, TASK, sizes=(16,), num_examples=EXAMPLES + 1, seed=seed
    )
    predictions = predict_exactly(box, probes.x, probes.y)
    return Observations(probes.x, probes.y, predictions)


def test_missing_answers_and_the_first_position_do_not_count():
    observed = observe(ridge(0.3))
    predictions = observed.predictions.copy()
    predictions[0, 3] = np.nan
    predictions[:, 0] = 1e9
    holes = replace(observed, predictions=predictions)
    assert np.all(holes.weights[:, 0] == 0)
    assert holes.weights[0, 3] == 0
    distances = holes.distances(observed.predictions)
    np.testing.assert_allclose(distances, 0, atol=1e-20)


def test_the_distance_has_no_units():
    observed = observe(ridge(0.3))
    other = predict_exactly(ols, observed.x, observed.y)
    scaled = Observations(observed.x, 100 * observed.y, 100 * observed.predictions)
    np.testing.assert_allclose(
        scaled.distances(100 * other), observed.distances(other), rtol=1e-9
    )


def test_what_diverges_is_far_and_not_an_error():
    observed = observe(ridge(0.3))
    endless = np.full_like(observed.y, np.inf)
    assert np.all(np.isfinite(observed.distances(endless)))
    assert np.all(observed.distances(endless) > 1e6)


def test_refining_never_goes_away():
    observed = observe(sgd(0.03, 0.2))
    family = next(f for f in FAMILIES if f.name == "sgd" and len(f.parameters) == 2)
    for start in (0.001, 0.01, 0.05):
        point = np.array([np.log(start), family.parameters[1].grid(5)[2]])
        hypothesis = Hypothesis(family, 0, point)
        before = observed.distances(hypothesis.predict(observed.x, observed.y)).mean()
        after, refined = refine(hypothesis, observed)
        again = observed.distances(refined.predict(observed.x, observed.y)).mean()
        assert after <= before
        assert after == pytest.approx(again, rel=1e-6, abs=1e-20)


def test_of_equals_the_simplest_wins():
    observed = observe(ols)
    alike = [f for f in FAMILIES if f.name in ("ols", "ridge", "rls")]
    hypotheses = [polish(scan(f, observed), observed)[1] for f in alike]
    distances = {
        h: float(observed.distances(h.predict(observed.x, observed.y)).mean())
        for h in hypotheses
    }
    assert rank(hypotheses, distances)[0].name == "ols"
