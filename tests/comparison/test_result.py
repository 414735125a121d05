"""A comparison answers in words, in rows and in a figure, and survives the disk."""

import importlib
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure
from support.comparisons import curve, handmade
from support.drawings import labels
from support.refusals import refuses

from algoscope.comparison.intervals import Curve
from algoscope.comparison.result import LABELS, Comparison
from algoscope.foundation.files import DamagedFileError
from algoscope.model.checkpoints import MODELS

# Reading.

SMALL = handmade(
    {"A": [9.0, 4.0, 2.0, 3.0], "B": [9.0, 1.0, 8.0, 0.0], "C": [0.0, 2.0, 2.5, 7.0]}
)


def test_the_curve_against_a_reference_is_the_learner_s():
    assert SMALL.against("B") == curve("ICL", "B", [9.0, 1.0, 8.0, 0.0])
    assert SMALL.against(LABELS).mean == [10.0] * 4


def test_an_unknown_reference_is_refused_with_the_known_ones():
    message = "`reference` must be one of A, B, C, Y, got 'D'."
    with refuses(ValueError, message):
        SMALL.against("D")


def test_a_reference_that_diverged_is_nearest_to_nobody():
    diverged = {"A": [0.0, 3.0], "B": [0.0, float("nan")], "C": [0.0, 1.0]}
    assert [name for name, _ in handmade(diverged).nearest(1, 1)] == ["C", "A", "B"]


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (1, 3, [("A", 3.0), ("B", 3.0), ("C", 23 / 6)]),
        (1, 1, [("B", 1.0), ("C", 2.0), ("A", 4.0)]),
        (2, 2, [("A", 2.0), ("C", 2.5), ("B", 8.0)]),
        (0, 3, [("C", 2.875), ("A", 4.5), ("B", 4.5)]),
    ],
)
def test_references_are_sorted_by_their_mean_distance(start, stop, expected):
    assert SMALL.nearest(start, stop) == [
        (name, pytest.approx(distance)) for name, distance in expected
    ]


def test_the_number_of_examples_is_one_less_than_that_of_prefixes():
    assert SMALL.num_examples == 3


# Saving and loading.


def test_any_name_survives_the_disk(tmp_path):
    odd = handmade({'"\\\n': [0.1, 1e-300], "größer": [1e300, 2 / 3]}, "κ<script>")
    odd.save(tmp_path / "odd.json")
    assert Comparison.load(tmp_path / "odd.json") == odd


def test_a_missing_file_is_missing(tmp_path):
    with pytest.raises(FileNotFoundError):
        Comparison.load(tmp_path / "nowhere.json")


def stored() -> dict:
    return {"format": "algoscope comparison", **asdict(SMALL)}


def without(name: str) -> dict:
    return {key: value for key, value in stored().items() if key != name}


CURVE = asdict(SMALL.curves[0])
CURVE_WITHOUT_LOW = {key: value for key, value in CURVE.items() if key != "low"}
NOT_COMPARISONS = {
    "another format": (
        stored() | {"format": "algoscope"},
        "its format is 'algoscope'",
    ),
    "no format": (without("format"), "field 'format' is missing"),
    "no curves": (without("curves"), "field 'curves' is missing or damaged"),
    "no seed": (
        without("seed"),
        "Comparison.__init__() missing 1 required positional argument: 'seed'",
    ),
    "another field": (
        stored() | {"color": 1},
        "Comparison.__init__() got an unexpected keyword argument 'color'",
    ),
    "a damaged curve": (
        stored() | {"curves": [CURVE, CURVE_WITHOUT_LOW]},
        "Curve.__init__() missing 1 required positional argument: 'low'",
    ),
    "an empty list of curves": (
        stored() | {"curves": []},
        "field 'curves' is missing or damaged",
    ),
    "curves of two lengths": (
        stored() | {"curves": [CURVE, CURVE | {"high": [1.0]}]},
        "field 'curves' is missing or damaged",
    ),
    "a number for curves": (
        stored() | {"curves": 3},
        "'int' object is not iterable",
    ),
}


@pytest.mark.parametrize("kind", NOT_COMPARISONS)
def test_a_file_that_holds_no_comparison_is_refused(kind, tmp_path):
    values, error = NOT_COMPARISONS[kind]
    path = tmp_path / "evaluation.json"
    path.write_text(json.dumps(values))
    message = f"{path} is not a saved comparison ({error})."
    with refuses(DamagedFileError, message):
        Comparison.load(path)


def refused_as_unreadable(path: Path, error: str):
    message = f"{path} is not a readable JSON file ({error})."
    return refuses(DamagedFileError, message)


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99])
def test_a_truncated_file_is_refused(share, tmp_path):
    path = tmp_path / "evaluation.json"
    SMALL.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(share * len(whole))])
    with refused_as_unreadable(path, "JSONDecodeError"):
        Comparison.load(path)


def test_a_file_that_is_no_text_is_refused(tmp_path):
    path = tmp_path / "figure.png"
    path.write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    with refused_as_unreadable(path, "UnicodeDecodeError"):
        Comparison.load(path)


def test_a_directory_is_refused(tmp_path):
    with refuses(DamagedFileError, f"{tmp_path} is not a regular file."):
        Comparison.load(tmp_path)


def test_a_file_that_holds_no_object_is_refused(tmp_path):
    path = tmp_path / "metrics.json"
    path.write_text("[1, 2]")
    with refuses(DamagedFileError, f"{path} is not a JSON object (it holds a list)."):
        Comparison.load(path)


def test_curves_and_comparisons_are_values():
    assert Curve(**asdict(SMALL.curves[0])) == SMALL.curves[0]
    assert replace(SMALL, seed=8) != SMALL


@pytest.mark.parametrize("path", sorted(MODELS.glob("*/evaluation.json")), ids=str)
def test_comparisons_from_before_other_metrics_are_loaded(path, tmp_path):
    old = json.loads(path.read_text())
    for added in ("metrics", "mspd", "settings"):
        old.pop(added, None)
    for each in old["curves"]:
        each.pop("counts", None)
    (tmp_path / "old.json").write_text(json.dumps(old))
    loaded = Comparison.load(tmp_path / "old.json")
    assert loaded.learner == path.parent.name
    assert [c.mean for c in loaded.curves] == [c["mean"] for c in old["curves"]]


def test_a_damaged_metric_is_refused(tmp_path):
    path = tmp_path / "evaluation.json"
    short = asdict(curve("ICL", "A", [1.0]))
    for metrics in ({"ilwd": [short]}, {"ilwd": []}):
        path.write_text(json.dumps(stored() | {"metrics": metrics}))
        problem = "is not a saved comparison (field 'ilwd' is missing or damaged)"
        message = f"{path} {problem}."
        with refuses(DamagedFileError, message):
            Comparison.load(path)


# Words.

UNDER, EQUAL, OVER = "under-determined", "n = d", "over-determined"


@pytest.mark.parametrize(
    ("dim", "most", "expected"),
    [
        (3, 1, [(UNDER, 1, 1)]),
        (3, 2, [(UNDER, 1, 2)]),
        (3, 3, [(UNDER, 1, 2), (EQUAL, 3, 3)]),
        (3, 4, [(UNDER, 1, 2), (EQUAL, 3, 3), (OVER, 4, 4)]),
        (3, 9, [(UNDER, 1, 2), (EQUAL, 3, 3), (OVER, 4, 9)]),
        (8, 3, [(UNDER, 1, 3)]),
        (2, 1, [(UNDER, 1, 1)]),
        (1, 1, [(EQUAL, 1, 1)]),
        (1, 5, [(EQUAL, 1, 1), (OVER, 2, 5)]),
    ],
)
def test_regimes_are_those_that_the_comparison_covers(dim, most, expected):
    comparison = handmade({"A": [0.0] * (most + 1)}, dim=dim)
    assert comparison.regimes == expected


# n = 0 is in no average; d = 2, so the regimes are {1}, {2} and {3, 4}.
MEANS = {
    "far": [99.0, 1.0, 2.0, 3.0, 5.0],
    "near": [99.0, 0.001, 0.1, 0.01, 0.03],
    "nearly": [99.0, 0.5, 0.001, 0.004, 0.0],
}


def test_the_summary_averages_over_the_regimes_and_begins_with_the_nearest():
    header, rows = handmade(MEANS).summary()
    assert header == [
        "reference",
        "all n ≥ 1",
        "under-determined",
        "n = d",
        "over-determined (3–4)",
    ]
    assert rows == [
        ["near", "0.035", "0.001", "0.1", "0.02"],
        ["nearly", "0.13", "0.5", "0.001", "0.002"],
        ["far", "2.8", "1", "2", "4"],
        ["Y", "10", "10", "10", "10"],
    ]


def test_the_summary_names_the_examples_of_a_regime_of_several():
    header, rows = handmade({"A": [0.0] * 5}, dim=4).summary()
    assert header == ["reference", "all n ≥ 1", "under-determined (1–3)", "n = d"]
    assert all(len(row) == len(header) for row in rows)


def test_the_summary_ends_with_ilwd_where_it_was_measured():
    weights = [curve("ICL", "A", [9.0, 1.0, 2.0]), curve("ICL", "B", [0.0, 0.2, 0.3])]
    means = {"A": [0.0, 0.1, 0.1], "B": [0.0, 0.5, 0.5]}
    header, rows = handmade(means, metrics={"ilwd": weights}).summary()
    assert header[-1] == "ILWD, all n ≥ 1"
    assert [(row[0], row[-1]) for row in rows] == [
        ("A", "1.5"),
        ("B", "0.25"),
        ("Y", "–"),
    ]
    plain_header, plain_rows = handmade(means).summary()
    assert plain_header == header[:-1]
    assert plain_rows == [row[:-1] for row in rows]


def test_the_sentence_names_the_nearest_and_how_much_farther_the_next_is():
    assert handmade(MEANS).sentence == (
        "ICL behaves most like near: SPD/d = 0.035 on average over 1 to 4 examples "
        "(12,345 datasets); the next is nearly, 3.6 times as far (0.13)."
    )


def test_the_sentence_about_one_reference_names_no_other():
    assert handmade({"OLS": [0.0, 0.02]}, learner="tiny").sentence == (
        "tiny behaves most like OLS: SPD/d = 0.02 after 1 example (12,345 datasets)."
    )


@pytest.mark.parametrize(
    ("nearest", "how_far"),
    [
        (0.1, "GD, 1 times as far (0.1)."),
        (0.04, "GD, 2.5 times as far (0.1)."),
        (0.1 / 120, "GD, 120 times as far (0.1)."),
        (0.1 / 12_345, "GD, 12,345 times as far (0.1)."),
        (1e-9, "GD, over a million times as far (0.1)."),
        (0.0, "GD (0.1)."),
    ],
)
def test_the_sentence_counts_in_plain_numbers(nearest, how_far):
    text = handmade({"OLS": [0.0, nearest], "GD": [0.0, 0.1]}).sentence
    assert text.endswith(f" datasets); the next is {how_far}")


@pytest.mark.parametrize("distance", [float("nan"), float("inf")])
def test_a_learner_that_is_infinitely_far_is_like_none(distance):
    text = handmade({"OLS": [0.0, distance], "GD": [0.0, distance]}).sentence
    assert text == "ICL is like none of these: its SPD/d is not finite."


# Rows, figures and notebooks.

WITH_WEIGHTS = replace(
    SMALL, metrics={"ilwd": [curve("ICL", name, [0.4] * 4) for name in "ABC"]}
)


def test_there_is_a_row_with_its_interval_for_every_metric_pair_and_n():
    rows = WITH_WEIGHTS.rows()
    assert len(rows) == (7 + 3) * 4
    assert rows[1] == {
        "metric": "spd",
        "first": "ICL",
        "second": "A",
        "n": 1,
        "mean": 4.0,
        "low": 2.0,
        "high": 6.0,
        "median": 3.0,
    }
    assert {row["metric"] for row in rows[28:]} == {"ilwd"}


def test_the_table_is_a_data_frame_where_pandas_is_installed(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # as if it were not
    assert SMALL.table() == SMALL.rows()

    class Pandas:
        DataFrame = staticmethod(lambda rows: ("frame", rows))

    monkeypatch.setattr(importlib, "import_module", lambda name: Pandas)
    assert SMALL.table() == ("frame", SMALL.rows())


def test_a_comparison_draws_itself_and_into_given_axes():
    assert len(SMALL.plot().axes) == 2
    ours = Figure()
    axes = ours.subplots()
    assert SMALL.plot(axes) is ours
    assert labels(axes.lines[:-1]) == ["A", "B", "C", "risk of ICL"]
    assert ours.get_suptitle() == ""


def test_repr_is_the_answer_in_one_line():
    assert repr(SMALL) == f"<Comparison: {SMALL.sentence}>"
    assert len(repr(handmade(MEANS, learner="x" * 1000))) < 400


def test_a_notebook_shows_the_sentence_the_rows_and_the_figure():
    shown = handmade({"<b>": [0.0, 0.25]})._repr_html_()
    assert "behaves most like &lt;b&gt;: SPD/d = 0.25" in shown
    assert "<b>" not in shown
    assert shown.count("<tr>") == 1 + 3 * 2
    assert '<img src="data:image/svg+xml;base64,' in shown
