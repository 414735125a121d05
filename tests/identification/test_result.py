"""An identification is saved, loaded, said, tabulated and drawn."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from algoscope.foundation.files import DamagedFileError
from algoscope.identification import Candidate, Identification
from algoscope.identification.result import Regime, identification_figure


def candidate(family: str, distance: float, **parameters) -> Candidate:
    inside = ", ".join(f"{key}={value}" for key, value in parameters.items())
    return Candidate(
        family=family,
        name=f"{family}({inside})" if inside else family,
        parameters=parameters,
        distance=distance,
        low=0.5 * distance,
        high=2 * distance,
        regimes={"determined": 0.9 * distance, "over-determined": 1.1 * distance},
        median_spd={"determined": float("nan"), "over-determined": distance},
    )


def identification(**changes) -> Identification:
    values = {
        "target": "mine",
        "verdict": "ridge",
        "parameters": {"penalty": 0.3},
        "parameter_ranges": {"penalty": (0.29, 0.31)},
        "confidence": 0.9,
        "candidates": [
            candidate("ridge", 0.004, penalty=0.3),
            candidate("ridge", 0.006, penalty=0.3, intercept=True),
            candidate("ols", 0.02),
            candidate("chebyshev", float("inf"), steps=3),
        ],
        "regimes": [
            Regime("determined", 1, 1, "ridge", "ridge(penalty=0.3)", 0.0036),
            Regime("over-determined", 2, 8, "none", "ols", float("inf")),
        ],
        "domain": "everywhere",
        "threshold": 0.01,
        "task": "LinearRegression(dim=1)",
        "dim": 1,
        "num_examples": 8,
        "num_datasets": 96,
        "seed": 0,
        "versions": {"algoscope": "0.1.0"},
        "evidence": {"num_queries": 2},
    }
    return Identification(**values | changes)


# The sentence.


def test_the_sentence_names_the_answer_and_the_next_family():
    assert identification().sentence == (
        "mine runs ridge(penalty=0.3) on all kinds of data: distance 0.004 (95 % "
        "interval 0.002 to 0.008). The nearest other family is ols at 0.02."
    )
    assert "on its task" in identification(domain="task").sentence


@pytest.mark.parametrize(("penalty", "is_small"), [(0.0039, True), (0.011, False)])
def test_a_small_ridge_penalty_is_said_to_be_near_least_squares(penalty, is_small):
    first = candidate("ridge", 0.0005, penalty=penalty)
    found = identification(candidates=[first, candidate("ols", 0.02)])
    remark = "; a ridge penalty this small is close to least squares (OLS). The nearest"
    assert (remark in found.sentence) == is_small


def test_the_sentence_says_how_far_the_nearest_is_when_there_is_no_answer():
    first = candidate("ridge", 0.04, penalty=0.003)
    found = identification(
        verdict="none", parameters={}, candidates=[first, candidate("ols", 0.05)]
    )
    assert found.sentence == (
        "mine runs none of the known algorithms on all kinds of data. The nearest is "
        "ridge(penalty=0.003) at distance 0.04; at most 0.01 would count as the same "
        "algorithm."
    )


def test_the_runner_up_is_of_another_family():
    assert identification().nearest.name == "ridge(penalty=0.3)"
    assert identification().runner_up.name == "ols"


# Files.


def test_an_identification_is_saved_and_loaded(tmp_path):
    finite = [c for c in identification().candidates if np.isfinite(c.distance)]
    known = [replace(c, median_spd={"determined": 0.1}) for c in finite]
    found = identification(candidates=known)
    found.save(tmp_path / "found.json")
    assert Identification.load(tmp_path / "found.json") == found


def test_numbers_that_json_does_not_know_are_kept(tmp_path):
    identification().save(tmp_path / "found.json")
    loaded = Identification.load(tmp_path / "found.json")
    assert loaded.candidates[-1].distance == float("inf")
    assert np.isnan(loaded.candidates[0].median_spd["determined"])
    assert loaded.regimes[1].distance == float("inf")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{}", "is not a saved identification (field 'format' is missing)."),
        ('{"format": "algoscope comparison"}', "is not a saved identification ("),
        ('{"format": "algoscope identification"}', "is not a saved identification ("),
        ("nonsense", "is not a readable JSON file (JSONDecodeError)."),
    ],
)
def test_a_file_of_another_kind_is_rejected(tmp_path, text, problem):
    path = tmp_path / "found.json"
    path.write_text(text)
    with pytest.raises(DamagedFileError) as caught:
        Identification.load(path)
    assert str(caught.value).startswith(f"{path} {problem}")


# In a notebook.


def test_the_table_has_one_row_per_hypothesis():
    rows = identification().rows()
    assert [row["hypothesis"] for row in rows[:3]] == [
        "ridge(penalty=0.3)",
        "ridge(penalty=0.3, intercept=True)",
        "ols",
    ]
    assert rows[0] == {
        "hypothesis": "ridge(penalty=0.3)",
        "family": "ridge",
        "distance": 0.004,
        "low": 0.002,
        "high": 0.008,
        "determined": pytest.approx(0.0036),
        "over-determined": pytest.approx(0.0044),
    }
    assert len(identification().table()) == 4


def test_it_shows_itself_in_one_line_and_in_html():
    found = identification(target="<mine>")
    assert repr(found) == f"<Identification: {found.sentence}>"
    shown = found._repr_html_()
    assert "&lt;mine&gt; runs ridge(penalty=0.3)" in shown
    assert "<mine>" not in shown
    assert shown.count("<tr>") == 5
    assert "data:image/svg+xml;base64," in shown


# The figure.


def only_axes(figure: Figure) -> Any:
    (axes,) = figure.axes
    return axes


def test_the_figure_shows_the_nearest_hypotheses_with_intervals_and_regimes():
    found = identification()
    figure = found.plot()
    assert isinstance(figure, Figure)
    axes = only_axes(figure)
    assert axes.get_title() == "Which algorithm is mine?"
    names = [label.get_text() for label in axes.get_yticklabels()]
    assert names == [c.name for c in found.candidates[:3]]  # an infinite one has no dot
    by_label = {line.get_label(): line for line in axes.lines}
    for regime in ("determined", "over-determined"):
        values = [c.regimes[regime] for c in found.candidates[:3]]
        assert by_label[regime].get_xdata() == pytest.approx(values)
    (bars,) = axes.containers
    dots, _, (lengths,) = bars.lines
    assert dots.get_xdata() == pytest.approx([0.004, 0.006, 0.02])
    ends = [segment[:, 0].tolist() for segment in lengths.get_segments()]
    assert ends[0] == pytest.approx([0.002, 0.008])
    assert 0.01 in [line.get_xdata()[0] for line in axes.lines]
    assert axes.yaxis_inverted()


def test_the_figure_is_drawn_into_given_axes_and_leaves_their_figure_alone():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    right.set_title("mine")
    assert identification().plot(right) is figure
    assert right.get_title() == "mine"
    assert right.get_yticklabels()
    assert not left.lines


def test_the_figure_has_a_place_for_distances_of_zero_and_shows_as_many_as_asked():
    exact = [candidate("ols", 0.0), candidate("ridge", 1e-3, penalty=0.1)]
    found = identification(candidates=exact)
    axes = only_axes(identification_figure(found))
    dots = axes.containers[0].lines[0]
    assert dots.get_xdata() == pytest.approx([1e-4, 1e-3])
    axes = only_axes(identification_figure(found, num_shown=1))
    assert len(axes.get_yticklabels()) == 1
