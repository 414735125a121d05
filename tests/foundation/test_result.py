"""A result answers in a line, tabulates and draws itself, and survives a file."""

import base64
import html
import importlib
import math
import re
import sys
import types
from dataclasses import asdict, dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from matplotlib.figure import Figure
from support.refusals import refuses

from algoscope.foundation.files import (
    DamagedFileError,
    parse_number,
    read_json,
    write_json,
)
from algoscope.foundation.plotting import owner_of, plain_name
from algoscope.foundation.result import MOST_ROWS, SavedResult, html_table

NUMBER = '<td style="text-align:right">'
HOSTILE = "<script>alert(\"1\")</script> & 'x'"


@dataclass(frozen=True, repr=False)
class Distances(SavedResult):
    """A small result, saved as one file."""

    kind: ClassVar[str] = "distance table"

    name: str
    distances: dict[str, float] = field(default_factory=dict)

    @property
    def sentence(self) -> str:
        return f"{self.name} is nearest to {min(self.distances, default='nothing')}."

    def rows(self) -> list[dict[str, Any]]:
        return [{"to": to, "distance": d} for to, d in self.distances.items()]

    def plot(self, axes=None) -> Figure:
        panel = Figure(figsize=(2, 1)).subplots() if axes is None else axes
        panel.set_title(plain_name(self.name))
        return owner_of(panel)

    def to_fields(self):
        return asdict(self), {}

    @classmethod
    def from_fields(cls, values, arrays) -> "Distances":
        read = {to: parse_number(d) for to, d in values.pop("distances").items()}
        return cls(distances=read, **values)


@dataclass(frozen=True, repr=False, eq=False)
class Map(Distances):
    """A result that is saved as a directory, with arrays."""

    kind: ClassVar[str] = "map"
    file: ClassVar[str] = "map.json"
    arrays_file: ClassVar[str] = "map.safetensors"

    values: np.ndarray = field(default_factory=lambda: np.arange(6.0).reshape(2, 3))

    def to_fields(self):
        return {"name": self.name}, {"values": self.values}

    @classmethod
    def from_fields(cls, values, arrays) -> "Map":
        return cls(values=arrays["values"], **values)


RESULT = Distances("ICL", {"OLS": 0.00219768, "ridge": math.inf, "kNN": math.nan})


# One line.


def test_a_result_answers_in_one_line():
    assert repr(RESULT) == "<Distances: ICL is nearest to OLS.>"


@pytest.mark.parametrize("length", [300, 389, 390, 391, 5000])
def test_the_line_stays_short_for_very_long_names(length):
    shown = repr(Distances("x" * length))
    assert len(shown) < 400
    assert shown.startswith("<Distances: xxx")
    assert shown.endswith(">")
    whole = f"<Distances: {'x' * length} is nearest to nothing.>"
    assert (shown == whole) == (len(whole) <= 390)
    assert ("…" in shown) == (len(whole) > 390)


def test_names_with_line_breaks_stay_in_one_line():
    assert repr(Distances("a\n\tb")) == "<Distances: a b is nearest to nothing.>"


# The table.


def test_the_table_is_a_list_of_rows_without_pandas(monkeypatch):
    def no_pandas(name):
        raise ModuleNotFoundError(f"No module named {name!r}")

    monkeypatch.setattr(importlib, "import_module", no_pandas)
    assert RESULT.table() == RESULT.rows()


def test_the_table_is_a_data_frame_with_pandas(monkeypatch):
    frames = []

    class DataFrame:
        def __init__(self, rows):
            frames.append(rows)

    pandas = types.ModuleType("pandas")
    monkeypatch.setattr(pandas, "DataFrame", DataFrame, raising=False)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert isinstance(RESULT.table(), DataFrame)
    assert frames == [RESULT.rows()]


# A notebook.


def test_a_notebook_shows_the_sentence_the_figure_and_the_table():
    shown = RESULT._repr_html_()
    sentence, _, rest = shown.partition("</p>")
    assert sentence.endswith(">ICL is nearest to OLS.")
    assert rest.startswith("<img ")
    assert shown.index("<details>") < shown.index("<table>")
    assert shown.index("<img ") < shown.index("<table>")
    assert "<th>to</th><th>distance</th>" in shown
    assert f"<td>OLS</td>{NUMBER}0.0022</td>" in shown
    assert f"<td>ridge</td>{NUMBER}inf</td>" in shown
    assert f"<td>kNN</td>{NUMBER}–</td>" in shown
    found = re.search(r'<img src="data:image/svg\+xml;base64,([^"]+)"', shown)
    assert found is not None
    assert b"<svg" in base64.b64decode(found[1])


def test_hostile_names_are_escaped_in_a_notebook():
    shown = Distances(HOSTILE, {HOSTILE: 1.0})._repr_html_()
    text = re.sub(r"base64,[^\"]+", "", shown)
    assert "<script" not in text
    assert text.count(html.escape(HOSTILE)) == 3  # the sentence has it twice


def test_hostile_columns_are_escaped():
    shown = html_table([{HOSTILE: HOSTILE}])
    assert shown.count(html.escape(HOSTILE)) == 2
    assert "<script" not in shown


def test_cells_show_numbers_texts_and_missing_values():
    row = {"a": 1234.5678, "b": 7, "c": None, "d": True, "e": "x", "f": [1, 2]}
    cells = "".join(f"{NUMBER}{c}</td>" for c in ("1230", "7"))
    cells += "".join(f"<td>{c}</td>" for c in ("–", "True", "x", "[1, 2]"))
    assert f"<tr>{cells}</tr>" in html_table([row])


def test_rows_with_other_columns_stay_under_their_names():
    shown = html_table([{"a": 1, "b": 2}, {"b": 3, "c": 4}])
    assert "<th>a</th><th>b</th><th>c</th>" in shown
    assert f"<tr><td>–</td>{NUMBER}3</td>{NUMBER}4</td></tr>" in shown


@pytest.mark.parametrize("more", [0, 1, 40])
def test_a_long_table_says_what_it_leaves_out(more):
    shown = html_table([{"n": n} for n in range(MOST_ROWS + more)])
    assert shown.count("<tr>") == 1 + MOST_ROWS
    left_out = f"<p>{more} more rows in .table()</p>"
    assert shown.endswith(left_out if more else "</table></div>")


def test_a_table_without_rows_is_left_out():
    assert html_table([]) == ""


# Files.


def test_a_saved_result_is_loaded(tmp_path):
    path = tmp_path / "new" / "x.json"
    RESULT.save(path)
    loaded = Distances.load(str(path))
    assert loaded.distances.keys() == RESULT.distances.keys()
    assert math.isnan(loaded.distances["kNN"])
    known = replace(RESULT, distances={"ridge": math.inf, "OLS": 0.1})
    known.save(str(path))
    assert Distances.load(path) == known
    assert read_json(path)["format"] == "algoscope distance table"


def test_a_result_with_arrays_is_a_directory(tmp_path, rng):
    saved = Map("ICL", values=rng.standard_normal((2, 3)))
    saved.save(tmp_path / "out")
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == ["map.json", "map.safetensors"]
    loaded = Map.load(tmp_path / "out")
    assert isinstance(loaded, Map)
    assert loaded.name == "ICL"
    assert loaded.values.tobytes() == saved.values.tobytes()


def test_a_missing_result_is_a_missing_file(tmp_path):
    with pytest.raises(FileNotFoundError):
        Distances.load(tmp_path / "missing.json")


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda v: v.pop("format"), "field 'format' is missing"),
        (lambda v: v.update(format="algoscope map"), "its format is 'algoscope map'"),
        (lambda v: v.pop("distances"), "field 'distances' is missing or damaged"),
        (lambda v: v.update(distances=3), "'int' object has no attribute 'items'"),
        (
            lambda v: v.update(distances={"OLS": "x"}),
            "could not convert string to float: 'x'",
        ),
    ],
    ids=["no format", "other format", "no field", "other type", "bad number"],
)
def test_a_changed_file_is_rejected_in_one_sentence(tmp_path, change, problem):
    path = tmp_path / "x.json"
    RESULT.save(path)
    values = read_json(path)
    change(values)
    write_json(path, values)
    message = f"{path} is not a saved distance table ({problem})."
    with refuses(DamagedFileError, message):
        Distances.load(path)


def test_an_unknown_field_is_rejected(tmp_path):
    path = tmp_path / "x.json"
    RESULT.save(path)
    write_json(path, read_json(path) | {"more": 1})
    with pytest.raises(DamagedFileError, match=r"unexpected keyword argument 'more'"):
        Distances.load(path)


def test_a_truncated_file_is_rejected(tmp_path):
    path = tmp_path / "x.json"
    RESULT.save(path)
    path.write_bytes(path.read_bytes()[:-5])
    message = f"{path} is not a readable JSON file (JSONDecodeError)."
    with refuses(DamagedFileError, message):
        Distances.load(path)


def test_missing_or_damaged_arrays_are_rejected(tmp_path):
    Map("ICL").save(tmp_path)
    arrays = tmp_path / "map.safetensors"
    arrays.write_bytes(arrays.read_bytes()[:40])
    message = f"{arrays} is not a whole safetensors file (40 bytes)."
    with refuses(DamagedFileError, message):
        Map.load(tmp_path)
    arrays.unlink()
    message = f"{tmp_path / 'map.json'} is not a saved map ({arrays} is missing)."
    with refuses(DamagedFileError, message):
        Map.load(tmp_path)


def test_a_result_must_say_how_it_is_shown_and_saved():
    with pytest.raises(TypeError, match="abstract"):
        SavedResult()  # pyright: ignore[reportAbstractUsage]
