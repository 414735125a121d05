"""Figure 4: probing is judged by floors, layers, kinds of probes and places."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from support.experiments import place_in
from support.probing import EARLY, LATE, evidence

from algoscope.experiments import figure_4, probings
from algoscope.experiments.probings import ProbedModels
from algoscope.probing import ProbingConfig, ProbingResult
from algoscope.probing.evidence import Evidence, half_way
from algoscope.training.config import preset

FIRST, THEN = (
    {"last_label": [0.0, 0.0, 0.0, 0.2]},
    {"labels": [0.2, 0.2, 0.2, 0.0]},
)


def test_targets_that_are_read_in_order_and_below_all_floors():
    found = evidence(EARLY, LATE, 0.1, 0.5, places=FIRST | THEN)
    claims = {
        judge: judge(found)
        for judge in (
            figure_4.moment_before_weights,
            figure_4.nonlinear_is_better,
            figure_4.encoded_deep,
            figure_4.weights_are_encoded,
            figure_4.read_at_labels,
        )
    }
    for claim in claims.values():
        assert claim.verdict == "reproduced", claim.reason
        assert claim.seeds == 2
        assert claim.difference is not None
        assert 0 < claim.difference.low <= claim.difference.mean
        assert "seeds: 2" in claim.measured
    order = claims[figure_4.moment_before_weights].difference
    assert order is not None
    assert (
        order.of == "best layer of w_OLS − best layer of XᵀY" or "half-way" in order.of
    )


def test_targets_that_are_read_in_the_wrong_order_or_not_better():
    found = evidence(LATE, EARLY, -0.05, 0.5)
    for judge, reason in {
        figure_4.moment_before_weights: "XᵀY is not significantly earlier by both",
        figure_4.nonlinear_is_better: "The difference is not significant for every",
    }.items():
        claim = judge(found)
        assert claim.verdict == "not reproduced"
        assert claim.reason.startswith(reason)


@pytest.mark.parametrize(
    ("floor", "control", "verdict"),
    [
        (0.5, 0.5, "reproduced"),
        (0.08, 0.5, "partly"),  # between the errors of the two targets
        (0.03, 0.5, "not reproduced"),
        (0.5, -0.01, "not reproduced"),  # the control is a floor too
    ],
)
def test_encoded_means_below_every_floor(floor: float, control: float, verdict: str):
    found = evidence(EARLY, LATE, 0.1, control, floor=floor)
    assert figure_4.encoded_deep(found).verdict == verdict
    weights = figure_4.weights_are_encoded(found)
    assert weights.verdict == ("reproduced" if verdict == "partly" else verdict)


def test_what_is_best_in_an_early_layer_is_not_deep():
    early = [1.0, 0.1, 0.3, 0.3, 0.3]
    claim = figure_4.encoded_deep(evidence(early, LATE, 0.1, 0.5))
    assert claim.verdict == "partly"
    assert claim.reason == "Encoded: XᵀY and w_OLS; best in the second half: w_OLS."


@pytest.mark.parametrize(
    ("places", "verdict", "reason"),
    [
        (FIRST | THEN, "reproduced", ""),
        (FIRST, "partly", "2 of 4 parts hold."),
        ({"query": [0.0] * 4}, "not reproduced", "0 of 4 parts hold."),
        ({}, "not reproduced", "0 of 4 parts hold."),  # all places are the same
    ],
)
def test_places_are_judged_by_their_errors(places: dict, verdict: str, reason: str):
    claim = figure_4.read_at_labels(evidence(EARLY, LATE, 0.1, 0.5, places=places))
    assert (claim.verdict, claim.reason) == (verdict, reason)


def test_claims_take_prefixes_on_both_sides_of_d():
    found = evidence(EARLY, LATE, 0.1, 0.5)
    small = Evidence(tuple(replace(each, dim=1) for each in found.results))
    for judge in (figure_4.encoded_deep, figure_4.read_at_labels):
        claim = judge(small)
        assert (claim.verdict, claim.reason) == ("not testable", figure_4.BOTH_SIDES)


def test_the_closed_form_is_a_floor_for_n_from_d_on():
    found = evidence(EARLY, LATE, 0.1, 0.5)
    floors = found.floors("w_ols", "mlp", [2, 4, 8])
    names = {floor.of: (float(floor.means[0]), list(n)) for floor, n in floors}
    assert set(names) == {"last pair", "(d+1)/(n+d+1)", "the input", "c"}
    value, covered = names["(d+1)/(n+d+1)"]
    assert covered == [4, 8]
    assert value == pytest.approx((5 / 9 + 5 / 13) / 2)


def test_the_half_way_layer_is_interpolated():
    curves = np.array([EARLY, LATE])
    expected = [1 + (0.8 - 0.55) / 0.7, 2 + (0.8 - 0.525) / 0.7]
    np.testing.assert_allclose(half_way(curves, np.arange(5)), expected)


def test_tables_have_the_error_of_every_layer_and_the_floors_of_every_n():
    found = evidence(EARLY, LATE, 0.1, 0.5)
    first, second = figure_4.layer_tables(found.first, "c")
    assert first.title == "XᵀY in c: relative error"
    assert second.title == "w_OLS in c: relative error"
    assert first.header == ("layer", "linear", "mlp")
    assert [row[0] for row in first.rows] == ["0", "1", "2", "3", "4"]
    assert first.rows[2][2].startswith("0.6 [")  # 0.1, and 0.5 more for the control
    floors, _ = figure_4.floor_tables(found)
    assert [row[0] for row in floors.rows] == ["1", "2", "4", "8"]
    assert set(floors.header) == {
        "n",
        "probe",
        "last pair",
        "the input",
        "c",
        "(d+1)/(n+d+1)",
    }
    assert "–" in floors.rows[0]  # n < d has no closed form


def test_all_models_are_probed_on_the_same_datasets_and_judged(tmp_path: Path, trained):
    """Two seeds and another model, with tiny probes and untrained runs."""
    run = replace(preset("demo"), num_examples=5, steps=50)
    runs = [replace(run, seed=seed) for seed in range(1, 4)]
    probing = ProbingConfig(
        prefixes=(2, 3),
        inner_size=4,
        num_training=64,
        num_learned=32,
        num_validation=32,
        num_test=32,
        layers=(0, 1),
        repeats=1,
    )
    config = ProbedModels(
        probing, training=run, seeds=((runs[0], runs[1]),), others=(("wide", runs[2]),)
    )
    place = place_in(tmp_path, "fig4")
    spent = probings.measure(config, place)
    assert len(trained) == 5  # learner, control, their second seeds, and the other
    assert set(spent.runs) == {each.run_id for each in probings.trainings(config)}
    found = probings.load_evidence(place.directory)
    assert found.seeds == 2
    (other,) = probings.load_others(place.directory)
    assert other.places == ("labels", "last_label", "query")
    first, second = (each.of("w_ols", "mlp") for each in found.results)
    np.testing.assert_allclose(first.variance, second.variance)  # the same datasets
    assert not np.allclose(first.error, second.error)
    judgment = figure_4.judge(config, place.directory)
    assert len(judgment.claims) == 5
    assert any("wide, MLP probes at the labels" in each for each in judgment.findings)
    drawn = figure_4.draw(place.directory)
    assert "figure_4_prefixes_mlp" in drawn
    first_file = place.directory / probings.PROBED
    before = first_file.stat().st_mtime_ns
    further = ((runs[0], runs[1]), (replace(run, seed=4), runs[1]))
    probings.measure(replace(config, seeds=further), place)
    assert probings.load_evidence(place.directory).seeds == 3
    assert first_file.stat().st_mtime_ns == before  # only the new seed is probed
    assert probings.measure(config, place).seconds == spent.seconds


def test_results_that_were_saved_before_are_drawn(tmp_path: Path):
    saved = Path(__file__).parents[2] / "results" / "fig4"
    ProbingResult.load(saved).save(tmp_path / "fig4")
    assert "figure_4_attention_mlp" in figure_4.draw(tmp_path / "fig4")


def test_the_cpu_budget_takes_at_most_three_and_a_half_hours():
    config = figure_4.EXPERIMENT.config("cpu")
    assert figure_4.EXPERIMENT.measuring(config) < 3.5 * 3600
    assert config.probing.num_training >= 3e5
    assert config.probing.inner_size == 512
