"""`identify` names the algorithm that a black box runs, and says when it is none.

The truth is known: predictors of the panel, scikit-learn's regressors, and functions
that no family describes. One dimension and one length, so that every family compiles
once for the whole file.
"""

from dataclasses import replace
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from sklearn.linear_model import BayesianRidge, HuberRegressor, Lasso, Ridge
from sklearn.neighbors import KNeighborsRegressor
from support.boxes import Boxed, ridge_answers
from support.refusals import refuses

from algoscope import InContextLearner, LinearRegression
from algoscope.adapters import EstimatorPredictor, FunctionPredictor
from algoscope.comparison.intervals import regime_spans
from algoscope.comparison.predict import predict_exactly
from algoscope.foundation.files import DamagedFileError
from algoscope.identification import Identification, identify
from algoscope.identification.families import FAMILIES, NAMES, Parameter
from algoscope.identification.fitting import (
    Hypothesis,
    Observations,
    polish,
    predict_family,
    refine,
    scan,
)
from algoscope.identification.identify import _contested, _rank, interval, typical
from algoscope.identification.suites import SUITES, draw_probes, draw_suite
from algoscope.predictors import (
    PredictorFailedError,
    conjugate_gradients,
    gd,
    kaczmarz,
    knn,
    newton,
    ols,
    ridge,
    rls,
    sgd,
)

pytestmark = pytest.mark.optimized  # Computes for longer than it compiles.

TASK = LinearRegression(dim=2)
EXAMPLES = 8


def ask(box, **options) -> Identification:
    return identify(
        box,
        TASK,
        num_examples=EXAMPLES,
        num_datasets=32,
        with_evidence=False,
        **options,
    )


@cache
def known() -> Identification:
    return identify(ridge(0.3), TASK, num_examples=EXAMPLES, num_datasets=32)


def test_a_box_that_dies_before_the_evidence_keeps_its_answer():
    def dies_of_many(x, y, queries):
        if len(queries) > 1:
            raise PredictorFailedError("box", "ended", "Start it again.")
        return ridge_answers(x, y, queries, 0.3)

    with pytest.warns(UserWarning, match=r"^`box` ended\..* The evidence is left out"):
        found = identify(
            Boxed("box", dies_of_many), TASK, num_examples=EXAMPLES, num_datasets=32
        )
    assert (found.verdict, found.evidence) == ("ridge", {})


def test_the_interval_is_that_of_the_trimmed_mean(rng):
    samples = rng.exponential(size=40) ** 3
    low, high = interval(samples, seed=3)
    drawn = np.random.default_rng(3).integers(0, 40, (1000, 40))
    naive = sorted(np.sort(samples[rows])[:32].mean() for rows in drawn)
    assert (low, high) == pytest.approx((naive[24], naive[974]))
    assert low < typical(samples) < high
    assert interval(np.array([1.0, 2.0, np.inf, np.inf]), seed=0)[1] == np.inf


# The right answer.


@pytest.mark.parametrize(
    ("box", "family", "parameters"),
    [
        (ols, "ols", {}),
        (knn(3, "weighted"), "knn", {"k": 3, "weighting": "weighted"}),
        (gd(0.01, 3), "gd", {"steps": 3, "learning_rate": 0.01}),
        (gd(0.02), "gd", {"steps": 1, "learning_rate": 0.02}),
        (sgd(0.03), "sgd", {"learning_rate": 0.03}),
        (sgd(0.03, 0.2), "sgd", {"learning_rate": 0.03, "penalty": 0.2}),
        (newton(4), "newton", {"steps": 4}),
        (conjugate_gradients(1), "conjugate_gradients", {"steps": 1}),
        (kaczmarz(0.7), "kaczmarz", {"learning_rate": 0.7}),
        (rls(0.8, 0.5), "rls", {"forgetting": 0.8, "penalty": 0.5}),
        (EstimatorPredictor(Ridge(0.7)), "ridge", {"penalty": 0.7, "intercept": True}),
        (EstimatorPredictor(Lasso(0.1)), "lasso", {"penalty": 0.1, "intercept": True}),
        (EstimatorPredictor(KNeighborsRegressor(2)), "knn", {"k": 2}),
    ],
    ids=lambda value: getattr(value, "name", None),
)
def test_the_family_and_its_parameters_are_found(box, family, parameters):
    found = ask(box)
    assert found.verdict == family
    for name, value in parameters.items():
        expected = pytest.approx(value, rel=0.01) if isinstance(value, float) else value
        assert found.parameters[name] == expected
    assert found.confidence > 0.95
    assert found.regimes[-1].verdict == family  # with few examples, many coincide


@pytest.mark.parametrize(
    "box",
    [
        EstimatorPredictor(BayesianRidge()),
        EstimatorPredictor(HuberRegressor(max_iter=1000)),
        FunctionPredictor(lambda x, y, query: 0.7, "a constant"),
        FunctionPredictor(lambda x, y, query: float(np.sin(9 * query.sum())), "a sine"),
    ],
    ids=lambda box: box.name,
)
def test_what_no_family_describes_is_none_of_these(box):
    found = ask(box)
    assert found.verdict == "none"
    assert found.parameters == {}
    assert found.nearest.distance > found.threshold
    assert "none of these" in found.sentence
    assert found.nearest.name in found.sentence


def test_algorithms_that_agree_on_the_task_are_told_apart_elsewhere():
    """On orthogonal inputs one step of GD is ridge regression, up to its scale."""
    found = ask(gd(0.01, 8))
    distances = {c.family: c.distance for c in reversed(found.candidates)}
    assert distances["gd"] < 1e-12
    assert distances["ridge"] > 1e-3


def test_the_order_of_examples_tells_one_pass_from_all_at_once():
    found = ask(sgd(0.02))
    distances = {c.family: c.distance for c in reversed(found.candidates)}
    assert distances["sgd"] < 1e-12 < 1e-4 < distances["gd"]


def test_a_trained_learner_is_held_to_its_task():
    found = ask(InContextLearner.from_pretrained("linear-d2"))
    assert found.domain == "task"
    assert found.verdict in ("ols", "ridge")
    assert found.nearest.low <= found.nearest.distance <= found.nearest.high


def test_the_answer_does_not_depend_on_the_seed():
    assert {ask(ridge(0.5), seed=seed).verdict for seed in (0, 1, 2)} == {"ridge"}


def test_the_same_seed_gives_the_same_answer():
    assert ask(sgd(0.03)) == ask(sgd(0.03))


# What it rests on.


def test_evidence_speaks_for_the_right_hypothesis():
    evidence = known().evidence
    assert evidence["num_queries"] == 2 * TASK.dim
    assert max(evidence["ilwd"].values()) < 1e-15
    assert evidence["influence"]["cosine"] == pytest.approx(1)
    for change in evidence["symmetries"].values():
        assert change["target"] == pytest.approx(change["nearest"], abs=1e-6)
    assert evidence["symmetries"]["permutation"]["target"] < 1e-9
    assert evidence["symmetries"]["input scale"]["target"] > 1e-3


def test_the_range_of_a_parameter_holds_the_truth():
    low, high = known().parameter_ranges["penalty"]
    assert low == pytest.approx(0.3, rel=1e-6)
    assert high == pytest.approx(0.3, rel=1e-6)


def test_an_identification_is_saved_and_loaded(tmp_path):
    known().save(tmp_path / "found.json")
    assert Identification.load(tmp_path / "found.json") == known()


@pytest.mark.parametrize(
    "text", ["{}", '{"format": "algoscope comparison"}', "nonsense"]
)
def test_a_foreign_file_is_refused(tmp_path, text):
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(DamagedFileError, match=r"must (hold|be)"):
        Identification.load(path)


def test_the_sentence_names_the_answer_and_the_next():
    found = known()
    assert found.sentence.startswith("Ridge(0.3) runs ridge(penalty=0.3) on all kinds")
    assert found.runner_up.family != "ridge"
    assert found.runner_up.name in found.sentence


# The parts.


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
    assert _rank(hypotheses, distances)[0].name == "ols"


def test_the_chosen_datasets_are_those_on_which_hypotheses_differ():
    (pool,) = draw_probes(SUITES, TASK, sizes=(64,), num_examples=EXAMPLES + 1, seed=0)
    near = [f for f in FAMILIES if f.name in ("ols", "average") and not f.fixed]
    hypotheses = [Hypothesis(f, 0, np.zeros(0)) for f in near]
    chosen = _contested(hypotheses, pool)

    def difference(probes) -> float:
        a, b = (h.predict(probes.x, probes.y) for h in hypotheses)
        return float(
            np.mean(np.mean((a - b) ** 2, axis=1) / np.mean(probes.y**2, axis=1))
        )

    assert len(chosen.x) == len(pool.x) // 8
    assert difference(chosen) > 2 * difference(pool)


@pytest.mark.parametrize("name", SUITES)
def test_every_suite_is_drawn_reproducibly_and_differs_from_the_others(name):
    options = {"num_datasets": 3, "num_examples": 6, "seed": 1}
    first, again = (draw_suite(name, TASK, **options) for _ in range(2))
    np.testing.assert_array_equal(first.x, again.x)
    np.testing.assert_array_equal(first.y, again.y)
    assert first.x.shape == (3, 6, 2)
    others = [draw_suite(other, TASK, **options) for other in SUITES if other != name]
    assert all(not np.array_equal(first.y, other.y) for other in others)


def test_suites_are_what_their_names_say():
    task = LinearRegression(dim=3)
    options = {"num_datasets": 200, "num_examples": 6, "seed": 0}
    orthogonal = draw_suite("orthogonal", task, **options).x[:, :3]
    products = orthogonal @ orthogonal.transpose(0, 2, 1)
    np.testing.assert_allclose(products, np.tile(3 * np.eye(3), (200, 1, 1)), atol=1e-9)
    duplicated = draw_suite("duplicated", task, **options).x
    np.testing.assert_array_equal(duplicated[:, ::2], duplicated[:, 1::2])
    skewed = draw_suite("skewed", task, **options).x
    assert np.mean(skewed**2) == pytest.approx(1, rel=0.1)
    outlier = draw_suite("outlier", task, **options).y
    assert (
        np.median(np.abs(outlier).max(axis=1) / np.median(np.abs(outlier), axis=1)) > 5
    )


@pytest.mark.parametrize(
    ("dim", "num_examples", "names"),
    [
        (8, 20, ["under-determined", "determined", "over-determined"]),
        (1, 5, ["determined", "over-determined"]),
        (8, 5, ["under-determined"]),
        (8, 8, ["under-determined", "determined"]),
    ],
)
def test_regimes_cover_every_number_of_examples_once(dim, num_examples, names):
    spans = regime_spans(dim, num_examples)
    assert [name for name, _, _ in spans] == names
    covered = [n for _, a, b in spans for n in range(a, b + 1)]
    assert covered == list(range(1, num_examples + 1))


def test_every_family_has_a_name_that_can_be_reported():
    assert "none" not in NAMES
    assert {"ols", "ridge", "knn", "sgd", "gd", "newton", "lasso"} <= set(NAMES)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"num_examples": 1}, "`num_examples` must be at least 2, got 1."),
        ({"num_datasets": 3}, "`num_datasets` must be at least 16, got 3."),
        ({"seed": -1}, "`seed` must be at least 0, got -1."),
        (
            {"domain": "tasks"},
            "`domain` must be one of task, everywhere, got 'tasks'. "
            "Did you mean 'task'?",
        ),
    ],
)
def test_bad_options_are_refused(options, message):
    with refuses(ValueError, message):
        identify(ols, TASK, **options)
