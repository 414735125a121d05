"""Figure 8: the least sizes that are enough over seeds, searched for and judged."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.experiments import TINY, distances, place_in, save_distances

from algoscope.experiments import figure_8
from algoscope.experiments.distances import ALL, UNDER, Distances
from algoscope.experiments.figure_8 import Figure8, LeastSize, answer, least_sizes
from algoscope.experiments.learners import MEASURED, NoLearnerError, train_runs
from algoscope.experiments.seed_groups import SeedGroup, by_seed
from algoscope.foundation.cache import Cache
from algoscope.training.config import TrainingConfig


def scaled(
    dim: int, layers: int, hidden: int, heads: int, enough: bool, **choices: Any
) -> SeedGroup:
    """Return models of one size, to which OLS is nearer or farther than ridge."""
    means = {"OLS": 0.1 if enough else 0.3, "Ridge(0.1)": 0.2}
    sizes = {"num_layers": layers, "hidden_size": hidden, "num_heads": heads}
    return SeedGroup((distances(means, dim=dim, **sizes, **choices),))


def small(
    layers: tuple,
    hidden: tuple,
    heads: tuple,
    base=TINY,
    seeds: int = 2,
    until=(UNDER,),
) -> Figure8:
    """Return a search with few datasets."""
    return Figure8((base,), (seeds,), until, layers, hidden, heads, num_datasets=5)


@pytest.mark.parametrize(
    ("means", "choices", "found"),
    [
        ([0.1], {}, "yes"),
        ([0.3], {}, "no"),
        ([0.1], {"width": 0.2}, "undecided"),
        ([0.1], {"risk": 0.9}, "not learned"),
        ([0.1, 0.12], {}, "yes"),
        ([0.1, 0.22], {}, "undecided"),  # the seeds disagree
    ],
)
def test_a_size_is_enough_if_ols_is_significantly_nearer_over_seeds(
    means: list[float], choices: dict, found: str
):
    runs = [distances({"OLS": m, "Ridge(0.1)": 0.2}, **choices, dim=2) for m in means]
    assert answer(SeedGroup(tuple(runs))) == found


def test_old_measurements_are_enough_where_ols_is_nearer():
    for mean, found in ((0.1, "yes"), (0.3, "no")):
        run = distances({"Zero": 0.9, "OLS": mean, "Ridge(0.1)": 0.2}, risk=0.9)
        assert answer(SeedGroup((replace(run, replicates=None, columns=[]),))) == found


def test_the_least_size_is_that_of_the_smallest_models_that_suffice():
    groups = [
        scaled(2, 1, 64, 4, False),
        scaled(2, 2, 64, 4, True),
        scaled(2, 8, 16, 4, True),
        scaled(2, 8, 8, 4, True, risk=0.9),  # not learned
        scaled(2, 8, 64, 1, True),
        scaled(8, 8, 64, 1, False),
        scaled(8, 8, 64, 4, False),
    ]
    found = {(e.axis, e.dim): e for e in least_sizes(groups)}
    assert found["num_layers", 2].size == 2
    assert found["hidden_size", 2].size == 16
    assert found["num_heads", 2].size == 1
    assert found["num_heads", 8].size is None
    lead = found["num_heads", 8].lead
    assert lead is not None
    assert lead.of == "d = 8: SPD/d to Ridge(0.1) − SPD/d to OLS, n < d"
    assert lead.mean == pytest.approx(-0.1)


def test_smaller_sizes_that_may_be_enough_are_undecided():
    groups = [
        scaled(8, 8, 64, 1, False, width=0.15),
        scaled(8, 8, 64, 2, True),
        scaled(8, 8, 64, 4, True, width=0.15),
    ]
    least = {each.axis: each for each in least_sizes(groups)}
    assert least["num_heads"].undecided == (1,)  # 4 is larger than what is enough
    assert least["num_layers"].undecided == ()  # one model of that depth is sure
    found = list(least.values())
    single, *_ = figure_8.claims({UNDER: found, ALL: found}, 2, "100 datasets")
    assert "for n < d: 2 for d = 8 (1 undecided); for all n: 2 for" in single.measured
    assert single.reason == "One head is enough for no d."
    assert single.seeds == 2
    assert single.difference is not None
    rows = figure_8.runs_table(groups).rows
    assert [row[-1] for row in rows] == ["undecided", "yes", "undecided"]


def test_a_dimension_whose_runs_all_diverged_is_not_forgotten():
    groups = [scaled(2, 8, 64, heads, True) for heads in (1, 4)]
    least = {region: least_sizes(groups, region, (2, 8)) for region in (UNDER, ALL)}
    single, width, _ = figure_8.claims(least, 2, "100 datasets")
    assert single.verdict == "partly"
    assert "unknown for d = 8, as no run finished" in single.measured
    assert width.verdict == "partly"


def least(axis: str, sizes: list, tried: tuple = (1, 64)) -> list[LeastSize]:
    return [
        LeastSize(dim, axis, size, tried)
        for dim, size in zip((2, 4, 8), sizes, strict=False)
    ]


@pytest.mark.parametrize(
    ("heads", "hidden", "verdicts"),
    [
        ([1, 1], [16, 32], ["reproduced", "reproduced"]),
        ([1, 2], [16, 16], ["partly", "partly"]),
        ([2, 2], [32, 16], ["not reproduced", "not reproduced"]),
        ([None, 1], [16, None], ["partly", "partly"]),
        ([1, 1, 1], [16, 32, 16], ["reproduced", "not reproduced"]),
        ([1, 1, 1], [16, None, 32], ["reproduced", "not reproduced"]),
        ([1], [16], ["reproduced", "not testable"]),
        ([None, None], [None, None], ["not reproduced", "not testable"]),
    ],
)
def test_requirements_are_judged(heads: list, hidden: list, verdicts: list[str]):
    made = least("num_heads", heads) + least("hidden_size", hidden)
    made += least("num_layers", [1, 2])
    claims = figure_8.claims({UNDER: made, ALL: made}, 2, "100 datasets")
    assert [claim.verdict for claim in claims[:2]] == verdicts
    assert claims[2].verdict == "reproduced"
    for claim in claims:
        assert bool(claim.reason) == (claim.verdict != "reproduced")


def test_a_requirement_that_was_not_searched_to_its_end_may_still_grow():
    # Over all n, 1 is not enough for d = 2; larger sizes were not tried for it.
    sizes = [*least("num_layers", [None], (1,)), *least("num_layers", [None, 8])[1:]]
    found = {UNDER: least("num_layers", [1, 8]), ALL: sizes}
    *_, depth = figure_8.claims(found, 2, "100 datasets")
    assert depth.verdict == "partly"
    assert depth.reason == (
        "For n < d: reproduced. For all n: partly. The largest size that was tried is "
        "not enough for some d."
    )


def test_a_claim_that_holds_in_one_region_is_partly_reproduced(tmp_path: Path):
    for dim in (2, 8):
        over_all = {ALL: {"OLS": 0.3 if dim == 8 else 0.1}}
        (run,) = scaled(dim, 8, 64, 1, True, unlike=over_all).runs
        save_distances(tmp_path, f"d{dim}.json", run)
    config = small((8,), (64,), (1,))
    judgment = figure_8.judge(config, tmp_path)
    single, width, _ = judgment.claims
    assert (single.verdict, single.seeds) == ("partly", 1)
    assert single.reason == (
        "For n < d: reproduced. For all n: partly. One head is enough for d = 2."
    )
    assert width.verdict == "partly"
    assert single.difference is not None
    assert single.difference.mean == pytest.approx(0.1)


def test_no_size_is_called_the_least_while_a_smaller_one_is_not_trained(
    tmp_path: Path, trained: list[TrainingConfig]
):
    base = replace(TINY, num_layers=4, hidden_size=32)
    config = small((1, 2), (8,), (1,), base, seeds=1)
    directory = train_runs(place_in(tmp_path), [replace(base, num_layers=2)])
    for run in directory[0]:
        (tmp_path / "runs" / run.config.run_id / "evaluation.json").touch()
    place = place_in(tmp_path, "fig8", finished=True)
    with pytest.raises(NoLearnerError, match="not trained to its end"):
        figure_8.measure(config, place)
    assert len(trained) == 1


@pytest.mark.parametrize("until", [(UNDER,), (UNDER, ALL)])
def test_figure_8_searches_no_further_than_needed(
    tmp_path: Path,
    trained: list[TrainingConfig],
    monkeypatch: pytest.MonkeyPatch,
    until: tuple[str, ...],
):
    def suffices(group: SeedGroup, region: str) -> str:
        assert group.seeds == 2
        least = 2 if region == UNDER else 4
        sizes = group.about["num_layers"], group.about["hidden_size"] / 8
        return "yes" if min(sizes) >= least else "no"

    monkeypatch.setattr(figure_8, "answer", suffices)
    base = replace(TINY, num_layers=4, hidden_size=32)
    config = small((1, 2, 4), (8, 16, 32), (1, 2), base, until=until)
    place = place_in(tmp_path, "fig8")
    spent = figure_8.measure(config, place)
    shapes = {(c.num_layers, c.hidden_size, c.num_heads) for c in trained}
    expected = {(1, 32, 4), (2, 32, 4), (4, 8, 4), (4, 16, 4), (4, 32, 1)}
    assert shapes == expected | ({(4, 32, 4)} if ALL in until else set())
    assert len(trained) == len(spent.runs) == 2 * len(shapes)
    measured = Cache(place.directory).names
    assert figure_8.measure(config, place).seconds == spent.seconds
    assert len(trained) == 2 * len(shapes)
    assert Cache(place.directory).names == measured
    groups = by_seed(Distances.load_all(place.directory))
    sizes = {each.axis: each.size for each in least_sizes(groups)}
    assert sizes == {"num_layers": 2, "hidden_size": 16, "num_heads": 1}


def test_a_run_that_was_measured_is_not_trained_again_when_its_model_is_gone(
    tmp_path: Path, trained: list[TrainingConfig]
):
    config = small((1,), (8,), (4,), seeds=1)
    place = place_in(tmp_path, "fig8")
    before = figure_8.measure(config, place)
    shutil.rmtree(place.store)
    after = figure_8.measure(config, place)
    assert trained == [TINY]
    assert after.runs == {TINY.run_id: MEASURED}
    assert before.seconds - after.seconds == pytest.approx(1)  # of training


@pytest.mark.parametrize("with_all", [True, False])
def test_the_least_sizes_are_drawn(tmp_path: Path, with_all: bool):
    spans = {UNDER: [1, 1], ALL: [1, 4]} if with_all else {UNDER: [1, 1]}
    for dim, enough in ((2, True), (8, False)):
        (run,) = scaled(dim, 8, 64, 1, enough, spans=spans).runs
        if not with_all:
            run = replace(run, columns=[], replicates=None)
        save_distances(tmp_path, f"d{dim}.json", run)
    assert figure_8.draw(tmp_path) == ("figure_8",)
    figure = figure_8.least_sizes_figure(by_seed(Distances.load_all(tmp_path)))
    names = ["hidden size H needed", "depth L needed", "number of heads M needed"]
    assert [axes.get_ylabel() for axes in figure.axes] == names
    for axes, size in zip(figure.axes, (64, 8, 1), strict=True):
        assert len(axes.lines) == 2 * len(spans)
        met, unmet = axes.lines[:2]
        np.testing.assert_array_equal(met.get_xydata(), [(2, size)])
        np.testing.assert_array_equal(unmet.get_xydata(), [(8, size)])


def test_the_cpu_budget_has_seeds_for_every_dimension():
    config = figure_8.EXPERIMENT.config("cpu")
    seeds = dict(
        zip((base.dim for base in config.bases), config.num_seeds, strict=True)
    )
    assert seeds == {1: 3, 2: 3, 4: 3, 8: 2, 12: 2, 16: 2}
    assert {base.dim: base.num_examples for base in config.bases}[12] == 25
