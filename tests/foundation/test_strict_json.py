"""JSON has no NaN and no infinity, and every number comes back."""

import json
import math
from dataclasses import asdict

import pytest
from hypothesis import given
from hypothesis import strategies as st
from support.comparisons import handmade

from algoscope.comparison.result import Comparison
from algoscope.foundation.files import json_text, number, read_json, write_json

NOT_JSON = ("NaN", "Infinity", "-Infinity")


def strictly(text: str):
    """Return what a parser that knows only JSON reads."""

    def refuse(word: str):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(text, parse_constant=refuse)


@given(st.floats())
def test_every_number_comes_back(value):
    read = number(strictly(json_text([value]))[0])
    assert read == value or (math.isnan(read) and math.isnan(value))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_all_else_is_as_json_writes_it(value):
    assert json_text(value) == json.dumps(value)


@pytest.mark.parametrize("word", NOT_JSON)
def test_files_hold_no_word_that_is_not_json(word, tmp_path):
    write_json(tmp_path / "file.json", {"deep": [(1.0, {"value": float(word)})]})
    value = strictly((tmp_path / "file.json").read_text())["deep"][0][1]["value"]
    assert str(number(value)) == str(float(word))
    assert read_json(tmp_path / "file.json")["deep"][0][0] == 1.0


def test_a_comparison_with_what_diverged_is_loaded(tmp_path):
    diverged = handmade({"A": [0.0, math.inf], "B": [0.0, 1.0]})
    diverged.save(tmp_path / "out.json")
    assert Comparison.load(tmp_path / "out.json") == diverged
    curves = strictly(json_text(asdict(diverged)))["curves"]
    assert curves[0]["mean"] == [0.0, "Infinity"]
