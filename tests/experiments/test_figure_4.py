"""Figure 4: probing is judged by layers, kinds of probes and positions."""

from dataclasses import replace

import numpy as np
import pytest
from support.probing import EARLY, LATE, probing_result

from algoscope.experiments import figure_4
from algoscope.probing.result import ProbingResult


def test_probing_is_judged():
    found = probing_result(EARLY, LATE, 0.1, 0.5)
    assert figure_4.moment_before_weights(found).verdict == "reproduced"
    assert figure_4.nonlinear_is_better(found).verdict == "reproduced"
    assert figure_4.deep_not_input(found).verdict == "reproduced"
    assert figure_4.decoded_accurately(found).verdict == "not reproduced"
    closer = probing_result(EARLY, [value / 10 for value in LATE], 0.1, 0.5)
    assert figure_4.decoded_accurately(closer).verdict == "reproduced"
    assert figure_4.half_way(found.of("moment", "mlp")) == 2
    assert figure_4.half_way(found.of("w_ols", "mlp")) == 3


def test_probing_that_shows_nothing_is_judged_so():
    found = probing_result(LATE, EARLY, -0.1, -0.02)
    assert figure_4.moment_before_weights(found).verdict == "not reproduced"
    assert figure_4.nonlinear_is_better(found).verdict == "not reproduced"
    flat = probing_result([0.5] * 5, [0.5, 0.5, 0.5, 0.3, 0.3], 0.0, 0.0)
    assert figure_4.deep_not_input(flat).verdict == "not reproduced"


def test_claims_that_are_not_reproduced_have_a_reason():
    found = probing_result(LATE, EARLY, -0.1, -0.02)
    reasons = {
        figure_4.moment_before_weights: "XᵀY is not earlier by every measure.",
        figure_4.nonlinear_is_better: "The difference is not significant for every",
        figure_4.decoded_accurately: "The 95 % interval of the error is not below 0.04",
    }
    for judge, reason in reasons.items():
        assert judge(found).reason.startswith(reason)


def test_a_table_has_the_error_of_every_layer():
    first, second = figure_4.layer_tables(probing_result(EARLY, LATE, 0.1, 0.5), "c")
    assert first.title == "XᵀY in c: relative error"
    assert second.title == "w_OLS in c: relative error"
    assert first.header == ("layer", "linear", "mlp")
    assert [row[0] for row in first.rows] == ["0", "1", "2", "3", "4"]
    assert first.rows[2][2].startswith("0.6 [")  # 0.1, and 0.5 more for the control


def looking(*places: int) -> ProbingResult:
    """Return probes with d = 1 that look, after one and two examples, at a position."""
    alpha = np.zeros((3, 5, 2, 5))
    alpha[:, :, range(2), places] = 0.9
    alpha[:, :, :, 0] += 0.1
    found = probing_result(EARLY, LATE, 0.1, 0.5)
    seen = [
        replace(
            each,
            error=np.repeat(each.error, 2, axis=2),
            variance=np.ones((3, 2)),
            attention=alpha,
        )
        for each in found.measurements
    ]
    return replace(found, dim=1, prefixes=(1, 2), measurements=tuple(seen))


@pytest.mark.parametrize(
    ("places", "verdict"),
    [
        ((1, 1), "reproduced"),
        ((1, 3), "reproduced"),
        ((1, 2), "partly"),
        ((2, 3), "partly"),
        ((2, 4), "not reproduced"),
    ],
)
def test_where_probes_look_is_judged(places: tuple[int, ...], verdict: str):
    claim = figure_4.read_at_labels(looking(*places))
    assert claim.verdict == verdict
    assert "equal attention to all positions would give 0.40" in claim.measured


def test_where_probes_look_takes_prefixes_on_both_sides_of_d():
    assert (
        figure_4.read_at_labels(probing_result(EARLY, LATE, 0.1, 0.5)).verdict
        == "not testable"
    )
