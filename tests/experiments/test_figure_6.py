"""Figure 6: R² in three forms, and linearity judged by its growth."""

from dataclasses import replace
from pathlib import Path

import jax.numpy as jnp
import numpy as np
import pytest
from support.experiments import TINY, place_in

from algoscope.comparison.intervals import Curve
from algoscope.comparison.metrics import LINEAR_FIT
from algoscope.comparison.result import Comparison
from algoscope.experiments import figure_6
from algoscope.experiments.figure_6 import Figure6
from algoscope.experiments.linearity import (
    FORMS,
    Linearity,
    Sums,
    linearity_of,
    sums_of,
)
from algoscope.foundation.cache import Cache
from algoscope.foundation.files import DamagedFileError, read_json, write_json
from algoscope.predictors import knn, ols
from algoscope.tasks.task import Dataset

DIM = 4
GRADUAL = [0.5, 0.6, 0.8, 0.98, 1.0]
AT_ONCE = [0.9, 1.0, 1.0, 1.0, 1.0]
LINEAR = [1.0] * 5


def linearity(
    pooled: list[float],
    median: list[float] | None = None,
    gold: list[float] | None = None,
    learners: int = 2,
) -> Linearity:
    """Return made-up R² after 1, 2, … examples, with intervals of half-width 0.001."""
    rows = [pooled, median or pooled, pooled, gold or pooled]
    width = np.array([0.0, -0.001, 0.001])
    value = np.repeat(np.array(rows)[:, None], learners + 1, axis=1)
    steps = np.diff(np.array(rows))
    rise = np.array(rows)[:, DIM - 1] - np.array(rows)[:, 0]
    return Linearity(
        tuple(f"learner {index}" for index in range(learners)),
        DIM,
        10,
        8,
        value + width[:, None, None, None],
        steps + width[:, None, None],
        rise + width[:, None],
        {},
    )


@pytest.mark.parametrize(
    ("pooled", "median", "verdict"),
    [
        (GRADUAL, GRADUAL, "reproduced"),
        (GRADUAL, LINEAR, "partly"),  # one form only
        (AT_ONCE, AT_ONCE, "partly"),  # linear from two examples on
        ([0.5, 0.9, 0.7, 0.98, 1.0], [0.5, 0.9, 0.7, 0.98, 1.0], "partly"),  # falls
        (LINEAR, LINEAR, "not reproduced"),
        (AT_ONCE, LINEAR, "not reproduced"),
        ([0.9, 0.8, 0.7, 0.6, 0.5], [0.9, 0.8, 0.7, 0.6, 0.5], "not reproduced"),
    ],
)
def test_linearity_is_judged_by_the_growth_of_pooled_and_median_r2(
    tmp_path: Path, pooled: list[float], median: list[float], verdict: str
):
    linearity(pooled, median).save(tmp_path / figure_6.FILE)
    (claim,) = figure_6.judge(Figure6(), tmp_path).claims
    assert claim.verdict == verdict
    assert (claim.reason == "") == (verdict == "reproduced")
    assert claim.seeds == 2
    assert claim.difference is not None
    least = min(pooled[: DIM - 1])
    assert claim.difference.mean == pytest.approx(0.99 - least)
    assert claim.difference.low < claim.difference.mean < claim.difference.high


def test_the_reason_says_where_r2_is_low_and_where_it_falls(tmp_path: Path):
    linearity([0.5, 0.9, 0.7, 0.98, 1.0], AT_ONCE).save(tmp_path / figure_6.FILE)
    (claim,) = figure_6.judge(Figure6(), tmp_path).claims
    assert claim.reason == (
        "Pooled r² is significantly below 0.99 at n = 1, 2 and 3 of the n < d, grows "
        "significantly from n = 1 to n = d, and falls significantly at n = 3; median "
        "r² is significantly below 0.99 at n = 1 of the n < d, grows significantly "
        "from n = 1 to n = d, and falls significantly at n = none."
    ).replace("r²", "R²")


def test_one_seed_decides_nothing(tmp_path: Path):
    linearity(GRADUAL, learners=1).save(tmp_path / figure_6.FILE)
    (claim,) = figure_6.judge(Figure6(), tmp_path).claims
    assert (claim.verdict, claim.reason, claim.seeds) == (
        "not testable",
        "One seed.",
        1,
    )


@pytest.mark.parametrize(
    ("fit", "gold", "ending"),
    [
        (LINEAR, GRADUAL, "although appendix F describes the second."),
        (GRADUAL, GRADUAL, "The second grows gradually, as appendix F says."),
        (LINEAR, LINEAR, "as the paper's curve does."),
    ],
)
def test_the_finding_says_which_form_grows_as_in_the_paper(
    tmp_path: Path, fit: list[float], gold: list[float], ending: str
):
    linearity(fit, gold=gold).save(tmp_path / figure_6.FILE)
    _, drawn = figure_6.judge(Figure6(), tmp_path).findings
    assert drawn.endswith(ending)
    assert "where n/d is 0.2500, 0.5000;" in drawn


@pytest.fixture
def asked(rng) -> tuple[Dataset, np.ndarray]:
    """Return datasets with six examples and a last query, and fresh queries."""
    x = rng.standard_normal((150, 7, DIM))
    w = rng.standard_normal((150, DIM))
    data = Dataset(*map(jnp.asarray, (x, np.einsum("bnd,bd->bn", x, w), w)))
    return data, rng.standard_normal((150, 12, DIM))


def test_least_squares_is_linear_and_knows_n_of_d_coordinates(asked):
    scores = dict(zip(FORMS, sums_of(ols, *asked).scores(), strict=True))
    for form in ("pooled", "median", "mean"):
        np.testing.assert_allclose(scores[form], 1.0, rtol=1e-9)
    share = np.minimum(np.arange(1, 7) / DIM, 1)
    np.testing.assert_allclose(scores["gold"], share, atol=0.08)
    np.testing.assert_allclose(scores["gold"][DIM - 1 :], 1.0, rtol=1e-6)


def test_nearest_neighbors_are_not_linear(asked):
    pooled, median, mean, _ = sums_of(knn(1), *asked).scores()
    for share in (pooled, median, mean):
        assert np.all(share < 0.9)
    # One example: the same answer to 12 queries, of which d are fitted.
    assert pooled[0] == pytest.approx(DIM / 12, abs=0.05)


def test_datasets_without_signal_decide_the_mean_and_no_other_form():
    signal = np.array([1e-6, 1.0, 1.0, 1.0, 1.0])[:, None]
    residual = np.array([1e-6, 0.0, 0.0, 0.0, 0.0])[:, None]
    pooled, median, mean, gold = Sums(residual, signal, 0.5 * signal, signal).scores()
    assert pooled == pytest.approx(1.0, abs=1e-6)
    assert median == 1.0
    assert mean == pytest.approx(0.8)
    assert gold == pytest.approx(0.5)


def test_intervals_cover_datasets_and_learners(rng):
    shares = (0.0, 0.2)

    def sums(share: float) -> Sums:
        total = rng.uniform(1, 2, (50, 5))
        residual = share * total * rng.uniform(0.9, 1.1, (50, 5))
        return Sums(residual, total, residual, total[:, :1])

    about = {"num_datasets": 50, "num_queries": 8, "versions": {}}
    found = linearity_of({str(share): sums(share) for share in shares}, DIM, 0, **about)
    value, low, high = found.levels[:, 0]
    np.testing.assert_allclose(value[0], 1.0)
    np.testing.assert_allclose(value[1], 0.8, atol=0.02)
    np.testing.assert_allclose(value[2], value[:2].mean(axis=0))
    assert np.all(high[1] - low[1] < 0.05)  # datasets
    assert np.all(high[2] - low[2] > 0.15)  # and learners
    assert np.all((low <= value) & (value <= high))
    np.testing.assert_allclose(found.rise[0, 0], value[2, DIM - 1] - value[2, 0])


def test_figure_6_is_measured_over_runs(tmp_path: Path, trained):
    runs = tuple(replace(TINY, seed=seed) for seed in (3, 4))
    config = Figure6(models=(), runs=runs, num_datasets=6, num_queries=4)
    place = place_in(tmp_path, "fig6")
    place.directory.mkdir()
    (place.directory / figure_6.OLD_FILE).write_text("{}")
    Cache(place.directory).file(figure_6.OLD_FILE, {}, lambda: None)
    figure_6.measure(config, place)
    found = Linearity.load(place.directory / figure_6.FILE)
    assert found.learners == tuple(f"L1 H8 50 steps seed {s}" for s in (3, 4))
    assert found.levels.shape == (3, len(FORMS), 3, 4)
    assert np.all(found.levels[0, :3] <= 1)
    assert not (place.directory / figure_6.OLD_FILE).exists()  # of other settings
    assert len(trained) == 2
    figure_6.measure(config, place)  # measured once
    assert figure_6.judge(config, place.directory).claims[0].seeds == 2
    assert figure_6.draw(place.directory) == ("figure_6",)
    assert len(found.rows()) == 3 * len(FORMS) * 4
    assert found.sentence in found._repr_html_().replace("&lt;", "<")


def test_a_result_that_holds_r2_per_dataset_is_drawn(tmp_path: Path):
    values = [0.0, *GRADUAL]
    spd = Curve("learner", "OLS", values, values, values, values)
    r2 = Curve("learner", LINEAR_FIT, values, values, values, values)
    sizes = {"num_costly_datasets": 10, "num_queries": 8}
    Comparison(
        "learner", 4, "task", 10, 0, [spd], {}, {"r2": [r2]}, settings=sizes
    ).save(tmp_path / figure_6.OLD_FILE)
    assert figure_6.draw(tmp_path) == ("figure_6",)
    assert (tmp_path / "figure_6.svg").exists()


def test_a_damaged_result_is_rejected(tmp_path: Path):
    path = tmp_path / figure_6.FILE
    linearity(GRADUAL).save(path)
    values = read_json(path)
    write_json(path, values | {"levels": values["levels"][:2]})
    with pytest.raises(DamagedFileError, match="is not a saved linearity .*'levels'"):
        Linearity.load(path)
