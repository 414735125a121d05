"""Figure 2: judged by the diagonal, drawn as heat maps."""

from pathlib import Path

import pytest
from support.experiments import TINY, distances, place_in, save_distances

from algoscope.experiments import figure_2
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig, preset

BAYES = {"0": "OLS", "1/4": "Ridge(0.25)", "4/9": "Ridge(0.444444)"}
DEVIATIONS = ((0.0, 1.0), (0.5, 1.0), (0.5, 0.75))
CONFIG = figure_2.Figure2(preset("d8"), "linear-d8", DEVIATIONS)


def write_columns(directory: Path, nearest: dict[str, str], width: float) -> None:
    """Write made-up distances of figure 2's learners."""
    for ratio, name in nearest.items():
        about = {"ratio": ratio, "bayes": BAYES[ratio], "learner": "l", "dim": 8}
        means = dict.fromkeys(BAYES.values(), 0.3) | {name: 0.1}
        made = distances(means, width, sigma=1, tau=1, **about)
        save_distances(directory, f"{ratio.replace('/', '-')}.json", made)


@pytest.mark.parametrize(
    ("nearest", "width", "verdict"),
    [
        (BAYES, 0.01, "reproduced"),
        (BAYES, 0.2, "partly"),  # intervals overlap
        (BAYES | {"1/4": "OLS"}, 0.01, "partly"),
        (dict.fromkeys(BAYES, "OLS"), 0.01, "not reproduced"),
    ],
)
def test_the_diagonal_is_judged_by_separate_intervals(
    tmp_path: Path, nearest: dict[str, str], width: float, verdict: str
):
    write_columns(tmp_path, nearest, width)
    judgment = figure_2.judge(CONFIG, tmp_path)
    assert [claim.verdict for claim in judgment.claims] == [verdict]
    assert figure_2.draw(tmp_path) == ("figure_2",)
    for ending in ("svg", "png"):
        assert (tmp_path / f"figure_2.{ending}").stat().st_size < 300_000


def test_each_column_has_a_sentence(tmp_path: Path):
    write_columns(tmp_path, {"1/4": "Ridge(0.25)"}, 0.15)
    assert figure_2.judge(CONFIG, tmp_path).findings[0] == (
        "σ²/τ² = 1/4 (l): the Bayes predictor Ridge(1/4) is nearest in these regions: "
        "under-determined and over-determined; its interval lies below all others in: "
        "none; differences on the same datasets are significant in: under-determined "
        "and over-determined. Under-determined, the nearest is Ridge(1/4) at MSPD/d = "
        "0.1 [-0.05, 0.25] (100 datasets)."
    )


def test_a_column_whose_run_diverged_is_named_and_not_counted(tmp_path: Path):
    write_columns(tmp_path, {"0": "OLS", "1/4": "Ridge(0.25)"}, 0.01)
    judgment = figure_2.judge(CONFIG, tmp_path)
    assert judgment.findings[-1] == "No learner was trained for σ²/τ² = 4/9."
    assert judgment.claims[0].verdict == "partly"


def test_every_column_is_measured_on_its_own_distribution(
    tmp_path: Path, trained: list[TrainingConfig]
):
    config = figure_2.Figure2(TINY, "linear-d2", DEVIATIONS[:2], num_datasets=20)
    place = place_in(tmp_path, "fig2")
    spent = figure_2.measure(config, place)
    assert [run.noise_variance for run in trained] == [0.25]
    assert list(spent.runs.values()) == ["finished"]
    assert Cache(place.directory).names == ["ratio-0.json", "ratio-1-4.json"]
    assert len(figure_2.judge(config, place.directory).findings) == 2
