"""A patching result answers in words, rows and a figure, and survives the disk."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.drawings import bands, labels, legend_of, xs, ys
from support.refusals import refuses

from algoscope.comparison.intervals import Estimate
from algoscope.foundation.files import DamagedFileError
from algoscope.foundation.plotting import render
from algoscope.foundation.result import MOST_ROWS
from algoscope.patching import PatchingResult
from algoscope.patching.result import MEASURES, Map, patching_figure

PARTS = ("layer 1, head 1", "layer 1, MLP", "layer 2, head 1", "layer 2, MLP")
PLACES = 6  # x1, y1, x2, y2, query, examples


def estimate(part: str, mean: float) -> Estimate:
    return Estimate(part, "OLS", mean, 0.5 * mean, 1.5 * mean, mean, 20)


def handmade(moved=(0.0, 0.6, 0.9)) -> PatchingResult:
    """Return a result with its own number in every cell; `moved` at the query."""
    rng = np.random.default_rng(0)
    maps = {}
    for name in MEASURES:
        mean = rng.uniform(0.1, 1, (3, PLACES))
        if name == "moved":
            mean[:, -2] = moved
        maps[name] = Map(mean, mean - 0.125, mean + 0.25)
    maps["error"] = Map.exactly(maps["error"].mean)
    return PatchingResult(
        learner="own",
        dim=2,
        task="LinearRegression(dim=2)",
        num_examples=2,
        target="w_ols",
        apart=1.0,
        config={},
        versions={"python": "3"},
        maps=maps,
        intact=estimate("nothing", 0.01),
        ablations=tuple(
            estimate(part, mean)
            for part, mean in zip(PARTS, (0.02, 0.8, 0.1, 0.3), strict=True)
        ),
    )


RESULT = handmade()


def test_intervals_of_ratios_are_those_of_resampled_ratios():
    rng = np.random.default_rng(0)
    below = rng.uniform(0.5, 2, size=400)
    above = (0.7 * below + 0.3 * rng.normal(size=400))[:, None, None]
    found = Map.of_ratios(above, below)
    assert found.mean[0, 0] == pytest.approx(above.sum() / below.sum())
    drawn = rng.integers(400, size=(4000, 400))
    ratios = above[drawn, 0, 0].sum(axis=1) / below[drawn].sum(axis=1)
    low, high = np.percentile(ratios, [2.5, 97.5])
    assert found.low[0, 0] == pytest.approx(low, abs=0.005)
    assert found.high[0, 0] == pytest.approx(high, abs=0.005)


def test_a_saved_result_is_loaded_unchanged(tmp_path: Path):
    RESULT.save(tmp_path)
    loaded = PatchingResult.load(tmp_path)
    assert repr(loaded.rows()) == repr(RESULT.rows())  # NaN is not equal to itself
    assert replace(loaded, maps={}) == replace(RESULT, maps={})
    for name, found in RESULT.maps.items():
        np.testing.assert_array_equal(loaded.maps[name], found)
    assert render(loaded.plot(), ".svg") == render(RESULT.plot(), ".svg")
    path = tmp_path / "patching.json"
    path.write_text('{"format": "something else"}')
    problem = "is not a saved patching (its format is 'something else')"
    with refuses(DamagedFileError, f"{path} {problem}."):
        PatchingResult.load(tmp_path)


def test_results_are_asked_by_names():
    mean, low, high = RESULT.at("moved", 1, "query")
    assert (mean, low, high) == pytest.approx((0.6, 0.475, 0.85))
    with refuses(
        ValueError,
        "`place` must be one of x1, y1, x2, y2, query, examples, got 'x3'.",
    ):
        RESULT.at("moved", 0, "x3")
    with pytest.raises(ValueError, match=r"^`map` must be one of moved, .*'movd'"):
        RESULT.at("movd", 0, "query")


# Words and rows.


def test_the_sentence_says_where_the_weights_are_and_which_part_matters_most():
    assert RESULT.sentence == (
        "In own after 2 examples, swapping the query's state first moves the implied "
        "weights half of the way to the other dataset's in layer 1 (0.6 [0.475, "
        "0.85]); SPD(OLS)/d is largest without layer 1, MLP: 0.8 [0.4, 1.2], intact "
        "0.01 [0.005, 0.015] (95 % intervals)."
    )
    assert len(RESULT.sentence) < 350
    assert repr(RESULT) == f"<PatchingResult: {RESULT.sentence}>"


def test_the_sentence_says_so_where_no_layer_s_query_carries_the_weights():
    sentence = handmade(moved=(0.0, 0.3, 0.49)).sentence
    assert (
        "swapping the query's state never moves the implied weights half of the way "
        "to the other dataset's; SPD(OLS)/d"
    ) in sentence


def test_there_are_rows_for_the_query_all_examples_and_every_part():
    rows = RESULT.rows()
    assert len(rows) == len(MEASURES) * 2 * 3 + len(PARTS)
    by_place = {(r["measure"], r["place"], r["layer"]): r for r in rows}
    assert len(by_place) == len(rows)
    moved = by_place["moved", "query", 2]
    assert [moved[name] for name in Map._fields] == list(RESULT.at("moved", 2, "query"))
    assert rows[-3:] == [
        {
            "measure": "spd_ols",
            "layer": layer,
            "place": f"without {part}",
            "mean": mean,
            "low": 0.5 * mean,
            "high": 1.5 * mean,
        }
        for layer, part, mean in ((1, "MLP", 0.8), (2, "head 1", 0.1), (2, "MLP", 0.3))
    ]
    assert len(RESULT.table()) == len(rows)


def test_the_summary_has_the_query_per_layer_and_the_most_important_part_first():
    found = RESULT.summary()
    assert [row["query"] for row in found["layers"]] == [0.0, 0.6, 0.9]
    assert found["layers"][1]["examples"] == RESULT.at("moved", 1, "examples")[0]
    assert found["layers"][2]["pattern"] == RESULT.at("pattern", 2, "query")[0]
    assert [part["without"] for part in found["parts"]] == [
        "layer 1, MLP",
        "layer 2, MLP",
        "layer 2, head 1",
        "layer 1, head 1",
    ]
    assert found["intact"] == 0.01


# The figure.


def test_the_figure_shows_the_maps_of_single_positions_above():
    figure = patching_figure(RESULT)
    maps = figure.axes[:3]
    assert [axes.get_title() for axes in maps] == [
        "swap one state from D′ into D",
        "read w_ols",
        "move the reading by Δ",
    ]
    for axes, name in zip(maps, ("moved", "error", "pattern"), strict=True):
        (image,) = axes.images
        drawn = np.ma.filled(np.ma.asarray(image.get_array()), np.nan)
        np.testing.assert_array_equal(drawn, RESULT.maps[name].mean[:, :5])
        names = [text.get_text() for text in axes.get_xticklabels()]
        assert names == ["x1", "y1", "x2", "y2", "query"]
    assert figure.get_suptitle() == "What own uses  (d = 2, n = 2)"


def test_the_figure_shows_swaps_edits_and_ablations_below():
    swaps, edits, ablations = patching_figure(RESULT).axes[3:6]
    assert labels(swaps.lines) == ["swap query", "swap examples"]
    query, examples = swaps.lines
    assert xs(query) == [0, 1, 2]
    assert ys(query) == [0.0, 0.6, 0.9]
    assert ys(examples) == RESULT.maps["moved"].mean[:, 5].tolist()
    assert bands(swaps)[0] == pytest.approx((-0.125, 1.15))
    assert labels(edits.lines[:-1]) == [
        "weights, query",
        "pattern, query",
        "random, query",
        "pattern, examples",
    ]
    assert ys(edits.lines[2]) == RESULT.maps["random"].mean[:, 4].tolist()
    assert ys(edits.lines[-1]) == [1, 1]
    assert ablations.get_yscale() == "log"
    heads, mlps = (container[0] for container in ablations.containers)
    assert (xs(heads), ys(heads)) == ([0, 2], [0.02, 0.1])
    assert (xs(mlps), ys(mlps)) == ([1, 3], [0.8, 0.3])
    assert set(legend_of(ablations)) == {"without a head", "without an MLP", "intact"}


def test_only_the_swaps_are_drawn_into_given_axes():
    ours = Figure()
    axes, untouched = ours.subplots(1, 2)
    assert RESULT.plot(axes) is ours
    assert labels(axes.lines) == ["swap query", "swap examples"]
    assert axes.get_ylabel() == "share of the way to ŵ(D′)"
    assert ours.get_suptitle() == ""
    assert not untouched.lines


def test_a_notebook_shows_the_sentence_the_rows_and_the_figure():
    shown = RESULT._repr_html_()
    assert "swapping the query&#x27;s state first moves" in shown
    assert shown.count("<tr>") == 1 + min(len(RESULT.rows()), MOST_ROWS)
    assert "data:image/svg+xml;base64," in shown
