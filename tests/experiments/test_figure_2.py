"""Figure 2: judged over seeds by the diagonal, drawn as heat maps."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.experiments import TINY, distances, place_in, save_distances

from algoscope.experiments import figure_2
from algoscope.experiments.distances import ALL, FITTED_RIDGE, UNDER, Distances
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig, preset

BAYES = {"0": "OLS", "1/4": "Ridge(0.25)", "4/9": "Ridge(0.444444)"}
DEVIATIONS = ((0.0, 1.0), (0.5, 1.0), (0.5, 0.75))
CONFIG = figure_2.Figure2(preset("d8"), "linear-d8", deviations=DEVIATIONS)
ZERO = dict.fromkeys((UNDER, figure_2.TAIL), {"Zero": 0.05})  # nearest of all
SPANS = {UNDER: [1, 7], figure_2.TAIL: [16, 20], ALL: [1, 20]}


def write_columns(
    directory: Path,
    nearest: dict[str, str],
    width: float = 0.01,
    seeds: int = 1,
    **choices: Any,
) -> None:
    """Write made-up distances of figure 2's learners."""
    for ratio, name in nearest.items():
        about = {"ratio": ratio, "bayes": BAYES[ratio], "dim": 8, "sigma": 1, "tau": 1}
        means = dict.fromkeys(BAYES.values(), 0.3) | {name: 0.1}
        for seed in range(seeds):
            of_seed = about | {"seed": seed, "run": f"run {seed}"}
            made = distances(means, width, spans=SPANS, **choices, **of_seed)
            save_distances(directory, f"{ratio.replace('/', '-')}-{seed}.json", made)


@pytest.mark.parametrize(
    ("nearest", "choices", "verdict"),
    [
        (BAYES, {}, "reproduced"),
        (BAYES, {"width": 0.3, "paired": 0.1}, "reproduced"),  # intervals overlap
        (BAYES, {"width": 0.3, "unlike": ZERO}, "not reproduced"),
        (BAYES, {"width": 0.25}, "partly"),
        (BAYES | {"1/4": "OLS"}, {}, "partly"),
        (dict.fromkeys(BAYES, "OLS"), {}, "not reproduced"),
        (BAYES, {"risk": 0.9}, "not reproduced"),  # not learned
        # In one region another reference is nearer.
        (BAYES, {"unlike": {UNDER: dict.fromkeys(BAYES.values(), 0.3)}}, "partly"),
    ],
)
def test_the_diagonal_is_judged_by_paired_differences(
    tmp_path: Path, nearest: dict[str, str], choices: dict, verdict: str
):
    write_columns(tmp_path, nearest, **choices)
    (claim,) = figure_2.judge(CONFIG, tmp_path).claims
    assert claim.verdict == verdict
    assert bool(claim.reason) == (verdict != "reproduced")


def test_one_significant_region_is_enough(tmp_path: Path):
    for ratio, name in BAYES.items():
        barely = {UNDER: dict.fromkeys(BAYES.values(), 0.105)}
        barely[UNDER][name] = 0.1
        write_columns(tmp_path, {ratio: name}, unlike=barely)
    judgment = figure_2.judge(CONFIG, tmp_path)
    assert judgment.claims[0].verdict == "reproduced"
    assert (
        "is nearest for: n < d and n ≥ 2d; significantly for: n ≥ 2d."
        in (judgment.findings[0])
    )


def test_a_column_that_has_not_learned_counts_for_nothing(tmp_path: Path):
    write_columns(tmp_path, BAYES)
    about = {"ratio": "4/9", "bayes": BAYES["4/9"], "dim": 8, "sigma": 1, "tau": 1}
    means = dict.fromkeys(BAYES.values(), 0.3) | {BAYES["4/9"]: 0.1}
    made = distances(means, spans=SPANS, risk=0.9, seed=0, run="run 0", **about)
    save_distances(tmp_path, "4-9-0.json", made)
    made.save(tmp_path / "4-9-0.json")
    judgment = figure_2.judge(CONFIG, tmp_path)
    assert judgment.claims[0].verdict == "partly"
    assert "(run 0 of seed 0): not learned (share learned 0.111" in judgment.findings[2]
    assert judgment.claims[0].measured.startswith("2 of 3 columns have learned.")


def test_figure_2_is_drawn(tmp_path: Path):
    write_columns(tmp_path, BAYES, seeds=2)
    assert figure_2.draw(tmp_path) == ("figure_2",)
    for ending in ("svg", "png"):
        assert (tmp_path / f"figure_2.{ending}").stat().st_size < 300_000


def test_each_column_has_a_sentence_and_covers_its_seeds(tmp_path: Path):
    write_columns(tmp_path, {"1/4": "Ridge(0.25)"}, 1e-4, 2, unlike=None)
    judgment = figure_2.judge(CONFIG, tmp_path)
    assert judgment.findings[0] == (
        "σ²/τ² = 1/4 (run 0 of seed 0 and run 1 of seed 1): the Bayes predictor "
        "Ridge(1/4) is nearest for: n < d and n ≥ 2d; significantly for: n < d and "
        "n ≥ 2d. The nearest for n < d "
        "is Ridge(1/4) at MSPD/d = 0.1 [0.0999, 0.1], nearer than OLS by 0.2 [0.2, "
        "0.2]; for n ≥ 2d is Ridge(1/4) at MSPD/d = 0.1 [0.0999, 0.1], nearer than "
        "OLS by 0.2 [0.2, 0.2] (share learned 0.889 [0.889, 0.889], 100 datasets, "
        "seeds: 2)."
    )
    (claim,) = judgment.claims
    assert claim.seeds == 2
    assert claim.difference is not None
    assert claim.difference.of.startswith("σ²/τ² = 1/4: SPD/d to ")


def test_a_fitted_ridge_that_is_nearer_is_named(tmp_path: Path):
    nearer = {UNDER: {FITTED_RIDGE: 0.01}}
    write_columns(tmp_path, {"1/4": "Ridge(0.25)"}, unlike=nearer)
    found = figure_2.judge(CONFIG, tmp_path).findings[0]
    assert found.count("(Ridge(0.003), fitted, is nearer: 0.01") == 1


def test_a_column_whose_run_diverged_is_named_and_not_counted(tmp_path: Path):
    write_columns(tmp_path, {"0": "OLS", "1/4": "Ridge(0.25)"})
    judgment = figure_2.judge(CONFIG, tmp_path)
    assert judgment.findings[-1] == "No learner was trained for σ²/τ² = 4/9."
    assert judgment.claims[0].verdict == "partly"


def test_every_column_is_measured_on_its_own_distribution(
    tmp_path: Path, trained: list[TrainingConfig]
):
    own = replace(TINY, steps=100)  # of the model without noise
    config = figure_2.Figure2(
        TINY, "linear-d2", own, DEVIATIONS[:2], (0, 1), num_datasets=20
    )
    place = place_in(tmp_path, "fig2")
    spent = figure_2.measure(config, place)
    found = [(run.noise_variance, run.seed, run.steps) for run in trained]
    assert found == [(0.0, 1, 100), (0.25, 0, 50), (0.25, 1, 50)]
    assert list(spent.runs.values()) == ["finished"] * 3
    names = ["ratio-0-0.json", "ratio-0-1.json", "ratio-1-4-0.json", "ratio-1-4-1.json"]
    assert Cache(place.directory).names == names
    first = Distances.load_all(place.directory)[0]
    assert (first.about["run"], first.about["seed"]) == ("linear-d2", 0)
    judgment = figure_2.judge(config, place.directory)
    assert len(judgment.findings) == 2
    assert judgment.claims[0].seeds == 2
