"""Fitting finds the nearest member of a family, whatever its number of steps."""

import numpy as np
import pytest

from algoscope import LinearRegression
from algoscope.comparison.predict import predict_exactly
from algoscope.foundation.progress import silent
from algoscope.identification.fitting import fit_families, polish, refine, scan
from algoscope.identification.hypothesis import hypothesis_of
from algoscope.identification.observations import LARGEST_RESIDUAL, Observations
from algoscope.identification.prefixes import Prefixes
from algoscope.identification.suites import SUITES, draw_questions
from algoscope.predictors import gd, heavy_ball, ridge, sgd

TASK = LinearRegression(dim=2)


def observe(predictor, seed=0, size=24) -> Observations:
    (questions,) = draw_questions(
        SUITES, TASK, sizes=(size,), num_examples=9, seed=seed
    )
    answers = predict_exactly(predictor, questions.x, questions.y)
    return Observations(questions.x, questions.y, answers, tuple(questions.suite))


def family(name, *parameters, **fixed):
    values = dict.fromkeys(parameters, 0.5) | fixed
    if name in ("gd", "heavy_ball"):
        values["steps"] = 1
    return hypothesis_of(name, values).family


@pytest.mark.parametrize(
    ("predictor", "name", "found"),
    [
        (ridge(0.37), "ridge", {"penalty": 0.37}),
        (sgd(0.021), "sgd", {"learning_rate": 0.021}),
        (gd(0.004, 23), "gd", {"steps": 23, "learning_rate": 0.004}),
        (gd(0.002, 150), "gd", {"steps": 150, "learning_rate": 0.002}),
        (
            heavy_ball(0.003, 0.6, 19),
            "heavy_ball",
            {"steps": 19, "learning_rate": 0.003, "momentum": 0.6},
        ),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_member_is_found_with_its_steps_and_parameters(predictor, name, found):
    seen = observe(predictor)
    names = [key for key in found if key != "steps"]
    loss, nearest = polish(scan(family(name, *names), seen).starts(), seen)
    assert loss < 1e-12
    assert nearest.parameters == pytest.approx(found, rel=1e-3)


def test_all_families_are_fitted_and_the_right_one_is_nearest():
    seen = observe(ridge(0.3))
    hypotheses, scans = fit_families(seen, silent)
    assert len(hypotheses) == len(scans)
    losses = {h: float(np.mean(h.squares(seen))) for h in hypotheses}
    (ridge_like,) = (h for h in hypotheses if h.name == "ridge(penalty=0.3)")
    assert losses[ridge_like] < 1e-20
    assert sorted(losses.values())[3] > 1e-6  # all but its generalizations are far


def test_a_fit_at_the_end_of_its_range_says_so():
    seen = observe(ridge(1e-9))
    _, nearest = polish(scan(family("ridge", "penalty"), seen).starts(), seen)
    assert nearest.bounds == {"penalty": "≤ 1e-06"}
    assert nearest.name == "ridge(penalty ≤ 1e-06)"
    assert refine(hypothesis_of("ridge", {"penalty": 0.3}), seen, 0)[1].bounds == {}


def test_every_suite_counts_the_same_and_missing_answers_do_not():
    x, y = np.ones((3, 3, 1)), np.ones((3, 3))
    answers = np.array([[np.nan, 2.0, np.nan], [9.0, 1.0, 1.0], [9.0, 1.0, 1.0]])
    seen = Observations(x, y, answers, ("a", "b", "b"))
    assert seen.counted.sum(axis=1).tolist() == [1, 2, 2]
    assert seen.shares.tolist() == [0.5, 0.25, 0.25]
    assert seen.scales.tolist() == [1 + 4, 1 + 1, 1 + 1]
    guesses = np.ones((3, 3))
    per_dataset = seen.per_dataset(seen.squares(guesses))
    assert per_dataset.tolist() == pytest.approx([1 / 5, 0, 0])
    rest = seen.weighted(guesses)
    assert rest @ rest == pytest.approx(0.5 * (1 / 5) / (1 + 1 / 5))  # bounded


def test_an_iteration_that_diverges_on_some_data_is_found():
    """Its rate and its steps are met on a finer grid; most rates are far off."""
    seen = observe(gd(0.04, 12))
    assert np.abs(seen.predictions).max() > 1e3 * np.abs(seen.y).max()
    start = scan(family("gd", "learning_rate"), seen).starts()
    loss, nearest = polish(start, seen)
    assert loss < 1e-12
    assert nearest.parameters == pytest.approx({"steps": 12, "learning_rate": 0.04})


def test_the_number_of_steps_is_found_where_all_are_nearly_the_same(rng):
    """With momentum, 29 steps are within 1e-9 of these 41, and nearer than 30."""
    found = {"steps": 41, "learning_rate": 0.0066, "momentum": 0.37}
    truth = hypothesis_of("nesterov", found)
    x, y = rng.standard_normal((12, 6, 3)), rng.standard_normal((12, 6))
    seen = Observations(x, y, truth.predict(Prefixes(x, y)), ("a",) * 12)
    start = scan(truth.family, seen).starts()
    assert polish(start, seen)[0] > 1e-12
    (nearest,), _ = fit_families(seen, silent, (truth.family,))
    assert nearest.parameters == pytest.approx(found, rel=1e-6)


def test_no_answer_outweighs_all_others_in_a_fit():
    seen = observe(ridge(0.3))
    assert np.abs(seen.bounded(seen.predictions + 1e9)).max() <= 1
    small = seen.predictions + 1e-4
    np.testing.assert_allclose(
        seen.bounded(small), seen.residuals(small), rtol=1e-6, atol=0
    )


def test_a_hypothesis_that_diverges_has_a_finite_residual():
    seen = observe(ridge(0.3))
    endless = np.full_like(seen.predictions, np.nan)
    assert seen.residuals(endless)[:, 1:].min() == LARGEST_RESIDUAL


def test_a_span_holds_the_answers_of_its_n_only():
    seen = observe(ridge(0.3))
    part = seen.between(2, 3)
    assert np.flatnonzero(part.counted.any(axis=0)).tolist() == [2, 3]
    assert part.prefixes is seen.prefixes


def test_a_hypothesis_answers_like_a_black_box(rng):
    hypothesis = hypothesis_of("ridge", {"penalty": 0.3})
    x, y = rng.standard_normal((4, 6, 2)), rng.standard_normal((4, 6))
    np.testing.assert_allclose(
        predict_exactly(hypothesis, x, y)[:, 1:],
        predict_exactly(ridge(0.3), x, y)[:, 1:],
        atol=1e-12,
    )
