"""Groups of seeds: paired differences, what was learned, phases, and regions."""

from dataclasses import replace

import numpy as np
import pytest
from support.experiments import distances, group, near

from algoscope.experiments.distances import (
    ALL,
    FITTED_RIDGE,
    UNDER,
    in_text,
)
from algoscope.experiments.seed_groups import (
    NOT_LEARNED,
    UNCLEAR,
    SeedGroup,
    by_seed,
    over_regions,
    series_of,
)

CLOSE = {"OLS": 0.10, "Ridge(0.1)": 0.12}
SIZES = {"dim": 8, "num_layers": 8, "hidden_size": 64, "num_heads": 4}


def test_differences_can_be_significant_where_intervals_overlap():
    found = group(CLOSE, width=0.02, paired=0.01)
    near, far = (found.to(name, ALL) for name in CLOSE)
    assert near.high > far.low
    difference = found.difference("OLS", "Ridge(0.1)", ALL)
    assert difference.of == "SPD/d to Ridge(0.1) − SPD/d to OLS, all n"
    assert difference.mean == pytest.approx(0.02)
    assert (difference.low, difference.high) == pytest.approx((0.01, 0.03), abs=2e-3)
    assert found.is_nearer("OLS", "Ridge(0.1)", ALL)
    assert not group(CLOSE, width=0.04, paired=0.03).is_nearer("OLS", "Ridge(0.1)", ALL)


def test_the_interval_covers_seeds():
    one = group(CLOSE).difference("OLS", "Ridge(0.1)", ALL)
    alike = group(CLOSE, CLOSE).difference("OLS", "Ridge(0.1)", ALL)
    assert (alike.mean, alike.low, alike.high) == pytest.approx(
        (one.mean, one.low, one.high)
    )
    unlike = group(CLOSE, CLOSE | {"OLS": 0.15}).difference("OLS", "Ridge(0.1)", ALL)
    assert unlike.mean == pytest.approx(-0.005)
    assert unlike.low < -0.029  # the second seed twice
    assert unlike.high > 0.019  # the first seed twice
    assert unlike.high - unlike.low > 10 * (one.high - one.low)


def test_means_are_those_over_seeds():
    found = group({"OLS": 0.1}, {"OLS": 0.3})
    assert found.seeds == 2
    assert found.to("OLS", ALL).mean == pytest.approx(0.2)
    assert found.to("OLS", ALL).low == pytest.approx(0.1, abs=2e-3)
    assert found.robust("OLS", ALL) == "0.2, 0.2"


def test_references_without_replicates_have_the_widest_interval_of_all_seeds():
    runs = [distances({"OLS": mean}) for mean in (0.1, 0.3)]
    hidden = [replace(run, columns=[], replicates=None) for run in runs]
    found = SeedGroup(tuple(hidden)).to("OLS", ALL)
    assert (found.mean, found.low, found.high) == pytest.approx((0.2, 0.099, 0.301))


def test_references_are_ranked_without_the_labels():
    found = group({"GD(0.01)": 0.7, "OLS": 0.3, "Ridge(0.1)": 0.5}, risk=0.1)
    ranked = [each.second for each in found.ranked(ALL)]
    assert ranked == [
        "OLS",
        "Ridge(0.1)",
        "GD(0.01)",
        "Zero",
        FITTED_RIDGE,
        "fitted GD",
    ]
    assert found.nearest(ALL, ["GD(0.01)", "Ridge(0.1)"]).second == "Ridge(0.1)"
    gap = found.runner_up("OLS", ALL, ["OLS", "GD(0.01)", "Ridge(0.1)"])
    assert gap.mean == pytest.approx(0.2)


def test_nothing_is_nearest_that_is_not_nearer_than_zero():
    names = list(CLOSE)
    assert group(CLOSE).is_nearest("OLS", ALL, names)
    assert group(CLOSE).is_significantly_nearest("OLS", ALL, names)
    below = group(CLOSE | {"Zero": 0.09})
    assert not below.is_nearest("OLS", ALL, names)
    assert not below.is_significantly_nearest("OLS", ALL, names)
    unsure = group(CLOSE, width=0.05)
    assert unsure.is_nearest("OLS", ALL, names)
    assert not unsure.is_significantly_nearest("OLS", ALL, names)


@pytest.mark.parametrize(
    ("fitted", "width", "text"),
    [
        (0.05, 0.001, "Ridge(0.003), fitted, is nearer: 0.05 "),
        (0.0995, 1e-5, ""),  # significantly, but not by more than 0.001
        (0.05, 0.1, ""),
    ],
)
def test_fitted_references_are_named_where_they_are_materially_nearer(
    fitted: float, width: float, text: str
):
    found = group(CLOSE | {FITTED_RIDGE: fitted}, width=width)
    assert found.nearer_fits(ALL, list(CLOSE)).startswith(text)
    assert bool(found.nearer_fits(ALL, list(CLOSE))) == bool(text)


def test_fitted_references_have_the_parameters_of_each_seed():
    first, second = distances(CLOSE), distances(CLOSE)
    second = replace(second, fitted=second.fitted | {FITTED_RIDGE: "Ridge(0.01)"})
    found = SeedGroup((first, second))
    assert found.in_words(FITTED_RIDGE) == "Ridge(0.003) or Ridge(0.01), fitted"
    assert found.in_words("OLS") == "OLS"


def test_a_model_has_learned_if_its_share_of_the_gain_is_above_a_quarter():
    found = group(CLOSE, risk=0.28)
    assert found.learned().mean == pytest.approx(0.8, abs=1e-3)
    assert found.has_learned
    assert not group(CLOSE, risk=0.8).has_learned
    assert not group(CLOSE, risk=0.76, width=0.05).has_learned  # a share of 0.27 ± 0.06
    assert not SeedGroup((distances(CLOSE), distances(CLOSE, risk=0.95))).has_learned
    assert not group(CLOSE, risk=np.nan).has_learned
    assert in_text(found.learned()) in found.size


@pytest.mark.parametrize(
    ("means", "choices", "phase"),
    [
        (near("OLS"), {}, "OLS"),
        (near("Ridge(0.5)"), {}, "ridge"),
        (near("SGD(0.03)"), {}, "gradient descent"),
        (near("OLS"), {"risk": 0.9}, NOT_LEARNED),
        (near("GD(0.01)") | {"Zero": 0.05}, {"risk": 0.95}, NOT_LEARNED),
        (near("GD(0.01)") | {"Zero": 0.05}, {}, UNCLEAR),
        (near("OLS") | {"Ridge(0.1)": 0.1}, {}, UNCLEAR),
        (near("Ridge(0.1)") | {"Ridge(0.5)": 0.1}, {}, "ridge"),  # the same family
        (near("GD(0.01)"), {"num_layers": 1}, "gradient descent"),
        # (d+1)/(n+d+1) is 0.5 on average, so one step leaves at most 0.55.
        (near("GD(0.01)"), {"num_layers": 1, "risk": 0.58}, NOT_LEARNED),
        (near("GD(0.01)"), {"num_layers": 2, "risk": 0.58}, "gradient descent"),
    ],
)
def test_the_phase_is_the_family_of_the_nearest(means: dict, choices: dict, phase: str):
    assert group(means, **(SIZES | choices)).phase() == phase


def test_two_families_can_lead_together():
    found = group(near("OLS") | {"Ridge(0.1)": 0.1}, **SIZES)
    assert found.leads(("ridge", "OLS"), UNDER)
    assert not found.leads(("ridge",), UNDER)
    assert not found.leads(("gradient descent",), UNDER)
    assert not group(near("OLS"), risk=0.9, **SIZES).leads(("ridge", "OLS"), UNDER)


def test_old_measurements_have_the_phase_of_the_nearest():
    run = replace(distances(near("OLS"), risk=0.9), columns=[], replicates=None)
    assert not SeedGroup((run,)).can_be_judged
    assert SeedGroup((run,)).phase() == "OLS"


def test_runs_that_differ_in_their_seed_are_joined():
    runs = [
        distances(CLOSE, num_layers=layers, seed=seed, run=f"{layers}{seed}")
        for seed in (0, 1)
        for layers in (4, 2)
    ]
    found = by_seed(runs)
    assert [each.about["num_layers"] for each in found] == [4, 2]
    assert [run.about["seed"] for run in found[1].runs] == [0, 1]


def test_a_series_takes_the_runs_of_least_risk_whatever_is_nearest():
    good = group(near("OLS"), risk=0.5, **SIZES)
    bad = group(near("GD(0.01)"), near("OLS"), risk=0.2, **SIZES)
    series = series_of([good, bad], "num_layers")
    assert series.runs == {8: bad}
    assert (series.seeds, series.num_datasets) == (2, 100)


def test_the_least_lead_leaves_out_models_that_have_not_learned():
    runs = [
        group(near("OLS"), risk=risk, **(SIZES | {"num_layers": layers}))
        for layers, risk in ((1, 0.9), (4, 0.2), (8, 0.2))
    ]
    closer = near("OLS") | {"Ridge(0.5)": 0.15}
    runs[1] = group(closer, **(SIZES | {"num_layers": 4}))
    lead = series_of(runs, "num_layers").least_lead()
    assert lead is not None
    assert lead.of == "L = 4: SPD/d to Ridge(0.5) − SPD/d to OLS, n < d"
    assert lead.mean == pytest.approx(0.05)
    assert series_of(runs[:1], "num_layers").least_lead() is None


@pytest.mark.parametrize(
    ("under", "over_all", "verdict", "reason"),
    [
        (("reproduced", ""), ("reproduced", ""), "reproduced", ""),
        (("partly", "A."), ("partly", "A."), "partly", "A."),
        (
            ("reproduced", ""),
            ("not reproduced", "B."),
            "partly",
            "For n < d: reproduced. For all n: not reproduced. B.",
        ),
        (
            ("partly", "A."),
            ("partly", "B."),
            "partly",
            "For n < d: partly. A. For all n: partly. B.",
        ),
        (
            ("not testable", "A."),
            ("not reproduced", "B."),
            "not reproduced",
            "For n < d: not testable. A. For all n: not reproduced. B.",
        ),
        (
            ("reproduced", ""),
            ("not testable", "B."),
            "partly",
            "For n < d: reproduced. For all n: not testable. B.",
        ),
    ],
)
def test_a_claim_must_hold_in_both_regions(under, over_all, verdict: str, reason: str):
    judged = {UNDER: under, ALL: over_all}
    assert over_regions(judged.__getitem__) == (verdict, reason)
