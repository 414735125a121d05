"""An identification is saved, loaded, said, tabulated and drawn."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from algoscope.foundation.files import DamagedFileError
from algoscope.identification import Candidate, Identification, Statement
from algoscope.identification.figure import identification_figure
from algoscope.identification.regimes import Regime
from algoscope.identification.result import above


def candidate(family: str, distance: float, bounds=(), **parameters) -> Candidate:
    inside = ", ".join(
        f"{key}={value:.4g}" if isinstance(value, float) else f"{key}={value}"
        for key, value in parameters.items()
    )
    return Candidate(
        family=family,
        name=f"{family}({inside})" if inside else family,
        parameters=parameters,
        bounds=dict(bounds),
        distance=distance,
        low=0.5 * distance,
        high=2 * distance,
        suites={"task": 0.9 * distance, "outlier": 1.1 * distance},
        untrimmed={"task": distance, "outlier": 2 * distance},
        per_n=[None, distance, distance],
    )


CANDIDATES = [
    candidate("ridge", 0.004, penalty=0.3),
    candidate("ridge", 0.006, penalty=0.3, intercept=True),
    candidate("ols", 0.02),
    candidate("chebyshev", float("inf"), steps=3),
]


def statement(**changes) -> Statement:
    values = {
        "domain": "everywhere",
        "relation": "behaves like",
        "verdict": "ridge",
        "confidence": 0.9,
        "candidates": CANDIDATES,
        "ties": [],
        "suites": {"task": 0.0036, "outlier": 0.0044},
        "holds_on": ["task", "outlier"],
        "fails_on": [],
    }
    return Statement(**values | changes)


def identification(*statements: Statement, **changes) -> Identification:
    main = statements[0] if statements else statement()
    values = {
        "target": "mine",
        "verdict": main.verdict,
        "relation": main.relation,
        "parameters": {"penalty": 0.3},
        "parameter_ranges": {"penalty": (0.29, 0.31)},
        "confidence": main.confidence,
        "ties": main.ties,
        "distance": main.nearest.distance,
        "suites": main.suites,
        "domain": main.domain,
        "statements": list(statements) or [main],
        "regimes": [
            Regime("determined", 1, 1, "ridge", "is", "ridge(0.3)", {}, 0.0036),
            Regime("over-determined", 2, 8, "none", "none", "ols", {}, float("inf")),
        ],
        "changes_at": None,
        "broken_symmetries": {},
        "limit": 0.02,
        "answered": 1.0,
        "first_n": 1,
        "last_n": 8,
        "noise": 0.0,
        "task": "LinearRegression(dim=1)",
        "dim": 1,
        "num_examples": 8,
        "num_datasets": 96,
        "num_questions": 768,
        "seed": 0,
        "versions": {"algoscope": "0.1.0"},
        "evidence": {"num_queries": 2},
        "answers": {"n": [1.0, 2.0], "predictor": [0.5, 1.0], "hypothesis": [0.4, 1.0]},
    }
    return Identification(**values | changes)


# The sentence.


def test_a_near_algorithm_is_behaved_like_with_its_distance_and_the_next():
    assert identification().sentence == (
        "mine behaves like ridge(penalty=0.3) on all kinds of data: distance 0.004 "
        "(0.002 to 0.008), confidence 90%. Next is ols at 0.02. Asked: 768 questions, "
        "n = 1–8."
    )


def test_runs_is_kept_for_what_is_the_same():
    found = identification(statement(relation="is"))
    assert found.sentence.startswith(
        "mine runs ridge(penalty=0.3) on all kinds of data: no answer differs by more "
        "than rounding or its own noise (confidence 90%)."
    )
    assert "runs" not in identification().sentence


def test_what_is_the_same_on_its_task_alone_does_not_run_it():
    task = statement(domain="task", relation="is", fails_on=["outlier"])
    found = identification(task, statement(relation="none"), relation="behaves like")
    assert found.sentence.startswith(
        "mine gives the answers of ridge(penalty=0.3) on its task: no answer differs"
    )
    assert "runs" not in found.sentence


def test_none_has_the_nearest_and_where_it_is_too_far():
    none = statement(relation="none", verdict="none", fails_on=["outlier"])
    start = (
        "mine is none of the known algorithms on all kinds of data (confidence 90%). "
        "The nearest is ridge(penalty=0.3) at distance 0.004"
    )
    expected = f"{start}, farther away than 0.004 on an outlier (0.0044)."
    assert identification(none, limit=0.004).sentence.startswith(expected)
    expected = f"{start}, more than 0.001 on every kind."
    assert identification(none, limit=0.001).sentence.startswith(expected)


def test_none_says_if_it_leaves_much_of_small_answers():
    none = statement(relation="none", verdict="none", unexplained=0.3)
    assert (
        "The nearest is ridge(penalty=0.3) at distance 0.004, which is 30% of the size "
        "of its answers."
    ) in identification(none).sentence


def test_both_domains_are_spoken_about():
    found = identification(statement(domain="task"), statement(relation="none"))
    assert "mine behaves like ridge(penalty=0.3) on its task" in found.sentence
    assert (
        "It is none of the known algorithms on all kinds of data (confidence 90%). The "
        "nearest is ridge(penalty=0.3) at distance 0.004. Asked:"
    ) in found.sentence


def test_ties_are_listed_and_are_not_the_next():
    tied = identification(statement(ties=["ols"]))
    assert "Not told apart from it: ols." in tied.sentence
    assert "Next is chebyshev" not in tied.sentence  # it diverges
    names = ["ols", "gd", "lasso", "knn"]
    many = [*CANDIDATES, *(candidate(name, 0.005) for name in names[1:])]
    found = identification(statement(candidates=many, ties=names))
    assert "Not told apart from it: ols, gd, lasso and 1 more." in found.sentence


def test_the_sentence_says_where_it_holds_and_where_not_once():
    partly = statement(domain="task", holds_on=["task"], fails_on=["outlier"])
    none = statement(relation="none", fails_on=["outlier"])
    words = identification(partly, none, limit=0.004).sentence
    assert "It is not within 0.004 of that on an outlier (0.0044)." in words
    assert words.count("outlier") == 1
    known = {"task": 0.0036, "scaled": 0.001, "outlier": 0.0044}
    holds = statement(
        domain="task",
        suites=known,
        holds_on=["task", "scaled"],
        fails_on=["outlier"],
    )
    assert (
        "It is within 0.004 of that on scaled inputs too, but not on an outlier "
        "(0.0044)."
    ) in identification(holds, limit=0.004).sentence


def test_the_sentence_says_what_was_not_answered():
    assert "n = 1–8; 62.5% were answered." in identification(answered=0.625).sentence


def test_the_sentence_says_what_changes_with_n():
    change = "ridge(0.3) up to n = 1, ols from n = 2 on"
    named = identification(changes_at=1).sentence
    assert f"It changes with n: nearer is {change}." in named
    two = identification(statement(relation="none", verdict="none"), changes_at=1)
    assert two.sentence.startswith(
        f"mine changes its algorithm with n on all kinds of data: {change} (confidence "
        "90% that it is no single one). The nearest for all n is ridge(penalty=0.3) at "
        "distance 0.004."
    )


def test_the_sentence_says_which_symmetry_is_broken():
    none = statement(relation="none", verdict="none")
    broken = identification(none, broken_symmetries={"rotation": 0.2}).sentence
    assert "It breaks a symmetry of ridge, rotation, by 20%." in broken


def test_a_distance_is_never_printed_equal_to_the_limit_that_it_exceeds():
    assert above(0.0200001, 0.02) == "0.0200001"
    assert above(0.0312, 0.02) == "0.031"
    assert above(0.01, 0.02) == "0.01"


# Files.


def test_an_identification_is_saved_and_loaded(tmp_path):
    found = identification(statement(), statement(domain="task"))
    found.save(tmp_path / "found.json")
    assert Identification.load(tmp_path / "found.json") == found


def test_numbers_that_json_does_not_know_are_kept(tmp_path):
    identification().save(tmp_path / "found.json")
    loaded = Identification.load(tmp_path / "found.json")
    assert loaded.candidates[-1].distance == float("inf")
    assert loaded.candidates[-1].per_n[1] == float("inf")
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


def test_the_table_has_one_row_per_hypothesis_with_distances_per_suite():
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
        "task": pytest.approx(0.0036),
        "outlier": pytest.approx(0.0044),
    }
    assert len(identification().table()) == 4


def test_it_shows_itself_in_one_line_and_in_html():
    found = identification(target="<mine>")
    assert repr(found).startswith("<Identification: <mine> behaves like")
    shown = found._repr_html_()
    assert "&lt;mine&gt; behaves like ridge(penalty=0.3)" in shown
    assert "<mine>" not in shown
    assert shown.count("<tr>") == 5
    assert "data:image/svg+xml;base64," in shown


# The figure.


def test_the_figure_shows_distances_per_suite_and_n_and_the_answers():
    figure = identification().plot()
    assert isinstance(figure, Figure)
    suites, per_n, answers = figure.axes
    names = [label.get_text() for label in suites.get_yticklabels()]
    assert names == ["its task", "an outlier"]
    first = suites.lines[0]
    assert first.get_xdata() == pytest.approx([0.0036, 0.0044])
    assert len(suites.lines) == 3 + 1  # an infinite one has no line; and the limit
    assert np.asarray(suites.lines[-1].get_xdata())[0] == 0.02
    assert per_n.lines[0].get_ydata() == pytest.approx([0.004, 0.004])
    assert answers.lines[0].get_ydata() == pytest.approx([0.5, 1.0])


def test_the_figure_is_drawn_into_given_axes_and_leaves_their_figure_alone():
    figure = Figure()
    left, right = figure.subplots(1, 2)
    right.set_title("mine")
    assert identification().plot(right) is figure
    assert right.get_title() == "mine"
    assert right.get_yticklabels()
    assert not left.lines


def test_distances_of_zero_have_a_place():
    exact = replace(CANDIDATES[0], suites={"task": 0.0, "outlier": 0.0})
    found = identification(statement(candidates=[exact], suites=exact.suites))
    axes = identification_figure(found).axes[0]
    assert np.min(np.asarray(axes.lines[0].get_xdata())) > 0
