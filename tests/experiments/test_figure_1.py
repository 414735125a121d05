"""Figure 1: judged over seeds by which reference is nearest, and drawn."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.experiments import TINY, distances, place_in, save_distances

from algoscope.comparison.intervals import Curve, Estimate
from algoscope.comparison.result import LABELS, Comparison
from algoscope.experiments import figure_1
from algoscope.experiments.distances import FITTED_RIDGE, paper_names
from algoscope.experiments.references import WiderReferences
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig


def fit(own: dict[str, float], dim: int = 4, last: int = 6) -> Comparison:
    """Return a made-up comparison whose SPD and ILWD do not depend on n."""

    def curve(first: str, second: str, value: float) -> Curve:
        mean, low, high = ([value * c] * (last + 1) for c in (1.0, 0.9, 1.1))
        return Curve(first, second, mean, low, high, mean)

    curves = [curve("learner", name, value) for name, value in own.items()]
    labels = [curve(name, LABELS, 0.5) for name in ("learner", *figure_1.LABELED)]
    mspd = [
        Estimate("learner", name, value, value * 0.9, value * 1.1, value, 10)
        for name, value in own.items()
    ]
    return Comparison(
        "learner",
        dim,
        "task",
        10,
        0,
        curves + labels,
        {},
        {"ilwd": curves},
        mspd,
        {"num_costly_datasets": 10, "region": [1, dim - 1]},
    )


ORDER = dict(zip(paper_names(), np.geomspace(1e-3, 0.6, 9).tolist(), strict=True))
FAR = {name: 0.02 + value for name, value in ORDER.items()}


def judged(
    directory: Path, *means: dict[str, float], dim: int = 4, **choices: Any
) -> figure_1.Judgment:
    """Judge made-up measurements of learners that differ in their seed."""
    choices.setdefault("width", 1e-4)
    spans = {name: list(span) for name, span in figure_1.spans(dim, 6).items()}
    fit(means[0] | {"OptimalGD": 0.5}, dim).save(directory / figure_1.FILE)
    Cache(directory).file(figure_1.FILE, {}, lambda: None)
    for seed, each in enumerate(means):
        found = distances(each, **choices, spans=spans, dim=dim)
        save_distances(directory, f"distances-{seed}.json", found)
    return figure_1.judge(figure_1.Figure1(), directory)


@pytest.mark.parametrize(
    ("own", "choices", "verdicts"),
    [
        (ORDER, {}, ["reproduced"] * 3),
        (FAR, {}, ["partly", "reproduced", "reproduced"]),  # above 0.01 at every n
        (ORDER | {"OLS": 0.9}, {}, ["not reproduced"] * 3),
        (ORDER | {"SGD(0.01)": 0.9}, {}, ["reproduced", "reproduced", "partly"]),
        (ORDER, {"width": 0.05}, ["partly"] * 3),  # nothing is significant
        (ORDER, {"risk": 0.9}, ["not reproduced"] * 3),  # not learned
        (
            ORDER | {"Zero": 5e-4},
            {},
            ["not reproduced", "not reproduced", "reproduced"],
        ),
        (  # at one n, another reference is nearer: materially, and not
            FAR,
            {"unlike": {"n = 2": {"Ridge(0.1)": 0.01}}},
            ["partly", "partly", "reproduced"],
        ),
        (
            ORDER,
            {"unlike": {"n = 2": {"Ridge(0.1)": 5e-4}}, "width": 1e-5},
            ["reproduced"] * 3,
        ),
        (  # not below 0.01 at two n, and at three
            ORDER,
            {"unlike": {f"n = {n}": {"OLS": 0.02} for n in (4, 5)}},
            ["reproduced"] * 3,
        ),
        (
            ORDER,
            {"unlike": {f"n = {n}": {"OLS": 0.02} for n in (4, 5, 6)}},
            ["partly", "reproduced", "reproduced"],
        ),
        (  # nearest in one range only
            ORDER,
            {"unlike": {"under-determined": {"OLS": 0.9}}},
            ["partly", "not reproduced", "reproduced"],
        ),
    ],
)
def test_figure_1_is_judged(
    tmp_path: Path, own: dict[str, float], choices: dict, verdicts: list[str]
):
    claims = judged(tmp_path, own, **choices).claims
    assert [claim.verdict for claim in claims] == verdicts
    for claim in claims:
        assert bool(claim.reason) == (claim.verdict != "reproduced")
        assert claim.seeds == 1
        assert claim.difference is not None


def test_figure_1_is_drawn(tmp_path: Path):
    judged(tmp_path, ORDER)
    assert figure_1.draw(tmp_path) == ("figure_1", "figure_1_wider")


def test_seeds_that_disagree_decide_nothing(tmp_path: Path):
    other = ORDER | {"OLS": ORDER["Ridge(0.1)"], "Ridge(0.1)": ORDER["OLS"]}
    better = ORDER | {"OLS": 1e-5}
    claims = judged(tmp_path, better, other).claims
    assert [claim.verdict for claim in claims] == ["partly"] * 3
    assert [claim.seeds for claim in claims] == [2] * 3
    first = claims[0].difference
    assert first is not None
    assert first.low < 0 < first.mean < first.high


def test_d_1_is_never_under_determined(tmp_path: Path):
    claims = judged(tmp_path, ORDER, dim=1).claims
    assert [c.verdict for c in claims] == ["reproduced", "not testable", "reproduced"]


def test_the_sentences_say_where_ols_is_close(tmp_path: Path):
    judgment = judged(tmp_path, ORDER, width=1e-6)
    fits, wider = judgment.findings
    assert fits == (
        "OLS is the nearest of 9 references at 6 of 6 n; SPD/d to it is 0.001 "
        "[0.000999, 0.001] over n < d and 0.001 [0.000999, 0.001] over n = 1–6, and "
        "significantly below 0.01 at 6 of 6 n; its largest value is 0.001 [0.000999, "
        "0.001] at n = 1 (share learned 0.889 [0.889, 0.889], 100 datasets, seeds: 1)."
    )
    assert wider.startswith("The nearest of the wider reference set to learner over n")
    minimum_norm = judgment.claims[1].measured
    assert minimum_norm.endswith("another reference is materially nearer at no n.")
    assert len(judgment.tables[2].rows) == 4 + 1 + 6


def test_the_sentences_name_a_fitted_ridge_that_is_nearer(tmp_path: Path):
    judgment = judged(tmp_path, FAR | {FITTED_RIDGE: 0.001})
    best, minimum_norm, _ = judgment.claims
    assert "Over n < d, Ridge(0.003), fitted, is nearer: 0.001 [" in best.measured
    assert "Over n = 1–6, Ridge(0.003), fitted, is nearer: 0.001" in best.measured
    assert "Ridge(0.003), fitted, is nearer: 0.001" in minimum_norm.measured


def test_the_model_and_every_further_seed_are_measured(
    tmp_path: Path, trained: list[TrainingConfig]
):
    few = WiderReferences((), (), (), 10)
    config = figure_1.Figure1("", TINY, 10, 2, 4, few)
    place = place_in(tmp_path, "fig1")
    figure_1.measure(config, place)
    comparison = (place.directory / figure_1.FILE).stat().st_mtime_ns
    further = replace(TINY, seed=1)
    figure_1.measure(replace(config, seeds=(further,)), place)
    assert trained == [TINY, further]
    assert (place.directory / figure_1.FILE).stat().st_mtime_ns == comparison
    names = Cache(place.directory).names
    assert names[2] == f"distances-{further.run_id}.json"
    judgment = figure_1.judge(config, place.directory)
    assert [claim.seeds for claim in judgment.claims] == [2] * 3
