"""The words that summarize a comparison say what its numbers say."""

import pytest
from support.comparisons import curve, handmade

from algoscope.comparison.result import regimes, sentence, table

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
    assert regimes(comparison) == expected


@pytest.mark.parametrize("dim", range(1, 7))
@pytest.mark.parametrize("most", range(1, 7))
def test_every_number_of_examples_is_in_one_regime(dim, most):
    spans = regimes(handmade({"A": [0.0] * (most + 1)}, dim=dim))
    covered = [n for _, first, last in spans for n in range(first, last + 1)]
    assert covered == list(range(1, most + 1))


# n = 0 is in no average; d = 2, so the regimes are {1}, {2} and {3, 4}.
MEANS = {
    "far": [99.0, 1.0, 2.0, 3.0, 5.0],
    "near": [99.0, 0.001, 0.1, 0.01, 0.03],
    "nearly": [99.0, 0.5, 0.001, 0.004, 0.0],
}


def test_the_table_averages_over_the_regimes_and_begins_with_the_nearest():
    header, rows = table(handmade(MEANS))
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


def test_the_table_names_the_examples_of_a_regime_of_several():
    header, rows = table(handmade({"A": [0.0] * 5}, dim=4))
    assert header == ["reference", "all n ≥ 1", "under-determined (1–3)", "n = d"]
    assert all(len(row) == len(header) for row in rows)


def test_the_table_ends_with_ilwd_where_it_was_measured():
    weights = [curve("ICL", "A", [9.0, 1.0, 2.0]), curve("ICL", "B", [0.0, 0.2, 0.3])]
    means = {"A": [0.0, 0.1, 0.1], "B": [0.0, 0.5, 0.5]}
    header, rows = table(handmade(means, metrics={"ilwd": weights}))
    assert header[-1] == "ILWD, all n ≥ 1"
    assert [(row[0], row[-1]) for row in rows] == [
        ("A", "1.5"),
        ("B", "0.25"),
        ("Y", "–"),
    ]
    plain_header, plain_rows = table(handmade(means))
    assert plain_header == header[:-1]
    assert plain_rows == [row[:-1] for row in rows]


def test_the_sentence_names_the_nearest_and_how_much_farther_the_next_is():
    assert sentence(handmade(MEANS)) == (
        "ICL behaves most like near: SPD/d = 0.035 on average over 1 to 4 examples "
        "(12,345 datasets); the next is nearly, 3.6 times as far (0.13)."
    )


def test_the_sentence_about_one_reference_names_no_other():
    assert sentence(handmade({"OLS": [0.0, 0.02]}, learner="tiny")) == (
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
    text = sentence(handmade({"OLS": [0.0, nearest], "GD": [0.0, 0.1]}))
    assert text.endswith(f" datasets); the next is {how_far}")


@pytest.mark.parametrize("distance", [float("nan"), float("inf")])
def test_a_learner_whose_predictions_are_no_numbers_is_like_none(distance):
    text = sentence(handmade({"OLS": [0.0, distance], "GD": [0.0, distance]}))
    assert text == "ICL is like none of these: it predicts no numbers."
