"""Records: verdicts of claims with parts, and how an experiment's result shows."""

from dataclasses import replace
from pathlib import Path

import pytest
from support.refusals import refuses

from algoscope.experiments import figure_7
from algoscope.experiments.learners import Place
from algoscope.experiments.record import RESULT, Claim, Difference, Record
from algoscope.foundation.files import DamagedFileError, read_json, write_json
from algoscope.foundation.validation import InvalidValueError


@pytest.fixture(scope="module")
def record(tmp_path_factory: pytest.TempPathFactory) -> Record:
    directory = tmp_path_factory.mktemp("results")
    place = Place(directory / "fig7", directory / "runs")
    return figure_7.EXPERIMENT.reproduce("cpu", place)


@pytest.mark.parametrize(
    ("holds", "verdict", "reason"),
    [
        ([True, True], "reproduced", ""),
        ([True, False], "partly", "Not both."),
        ([False, False], "not reproduced", "Not both."),
    ],
)
def test_a_claim_with_parts_is_judged_by_how_many_hold(
    holds: list[bool], verdict: str, reason: str
):
    claim = Claim.of_parts("both", "The paper.", "Measured.", holds, "Not both.")
    assert (claim.verdict, claim.reason) == (verdict, reason)
    assert (claim.name, claim.paper, claim.measured) == (
        "both",
        "The paper.",
        "Measured.",
    )


def test_a_verdict_is_one_of_four():
    with refuses(
        InvalidValueError,
        "`verdict` must be one of reproduced, partly, not reproduced, not testable, "
        "got 'partially'. Did you mean 'partly'?",
    ):
        Claim("name", "paper", "measured", "partially")  # pyright: ignore[reportArgumentType]


def test_a_record_answers_in_one_line(record: Record):
    assert record.sentence == "fig7 with budget cpu: 2 reproduced, 1 partly."
    assert repr(record) == f"<Record: {record.sentence}>"


def test_a_record_lists_its_claims(record: Record):
    rows = record.rows()
    assert [row["verdict"] for row in rows] == ["reproduced", "reproduced", "partly"]
    assert rows[2]["name"] == "products through ReLU"
    assert rows[2]["reason"] == "The error exceeds 5 %."
    assert rows[2]["seeds"] == 0
    assert rows[2]["difference"] == "largest error / largest square − 0.05: 0.138"
    assert len(record.table()) == 3


def test_a_record_plots_its_first_figure(record: Record):
    figure = record.plot()
    (axes,) = figure.axes
    height, width = axes.images[0].get_array().shape[:2]  # pyright: ignore[reportOptionalMemberAccess]
    assert figure.get_size_inches() * 120 == pytest.approx([width, height])
    own = figure.add_axes((0, 0, 0.5, 0.5))
    assert record.plot(own) is figure
    assert len(own.images) == 1


def test_a_record_shows_itself_in_a_notebook(record: Record):
    page = record._repr_html_()
    assert record.sentence in page
    assert "products through tanh" in page
    assert "data:image/svg+xml" in page


def test_a_record_that_is_not_saved_cannot_be_plotted(record: Record):
    fields = record.to_fields()[0]
    with refuses(
        InvalidValueError,
        "`record` must be saved, got one that is not. Load it: "
        "`Record.load(directory)`.",
    ):
        Record.from_fields(fields, {}).plot()


def test_a_record_is_saved_to_the_same_bytes_again(record: Record, tmp_path: Path):
    assert record.directory is not None
    loaded = Record.load(record.directory)
    assert loaded == record
    loaded.save(tmp_path)
    saved = (record.directory / RESULT).read_bytes()
    assert (tmp_path / RESULT).read_bytes() == saved


def test_the_deciding_difference_is_read_back_and_may_be_missing(
    record: Record, tmp_path: Path
):
    found = Difference("a − b", 0.5, float("-inf"), 0.75)
    decided = replace(record.claims[0], seeds=2, difference=found)
    replace(record, claims=(decided,)).save(tmp_path)
    (loaded,) = Record.load(tmp_path).claims
    assert loaded == decided
    assert str(loaded.difference) == "a − b: 0.5 [-inf, 0.75]"
    values = read_json(tmp_path / RESULT)
    del values["claims"][0]["difference"], values["claims"][0]["seeds"]
    write_json(tmp_path / RESULT, values)
    (old,) = Record.load(tmp_path).claims
    assert (old.seeds, old.difference) == (0, None)
    assert Record.load(tmp_path).rows()[0]["difference"] == "–"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"format": "algoscope comparison"}, "its format is 'algoscope comparison'"),
        ({"seconds": None}, "field 'seconds' is missing or damaged"),
        ({"extra": 1}, "field 'extra' is missing or damaged"),
        ({"claims": [{"name": "a"}]}, "missing"),
    ],
)
def test_a_damaged_record_is_rejected(
    record: Record, tmp_path: Path, change: dict, problem: str
):
    assert record.directory is not None
    values = read_json(record.directory / RESULT) | change
    left_out = {name for name, value in change.items() if value is None}
    write_json(
        tmp_path / RESULT, {k: v for k, v in values.items() if k not in left_out}
    )
    with pytest.raises(DamagedFileError, match="is not a saved experiment") as error:
        Record.load(tmp_path)
    assert problem in str(error.value)
