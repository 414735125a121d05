"""Names call for predictors, text is never evaluated, and the guide works."""

import re
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.refusals import refuses
from support.textbook import EXAMPLES, X, Y, assert_close, by_name, predict

from algoscope.identification.family import Family, Parameter, filter_iterates
from algoscope.identification.prefixes import Prefixes
from algoscope.predictors import (
    CATALOG,
    example_predictors,
    figure_1_references,
    parse_predictor,
)
from algoscope.predictors.catalog import Entry


@pytest.mark.parametrize("predictor", example_predictors(), ids=by_name)
@pytest.mark.parametrize("spell", [str, str.lower, str.upper], ids=lambda s: s.__name__)
def test_the_name_of_a_predictor_calls_for_it(predictor, spell):
    assert parse_predictor(spell(predictor.name)).name == predictor.name


def test_every_name_of_the_catalog_has_an_example():
    examples = {str(p.name).split("(")[0].lower() for p in example_predictors()}
    plain = {name.replace("_", "").replace("plusplus", "++") for name in CATALOG}
    assert plain - {"bayes"} == examples  # its name is that of the ridge that it is


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("ridge(penalty=0.1)", "Ridge(0.1)"),
        ("Ridge( 1 )", "Ridge(1)"),
        (" ols() ", "OLS"),
        ("kaczmarz", "Kaczmarz"),
        ("knn", "KNN(3, uniform)"),
        ("knn(5, Weighted, 1)", "KNN(5, weighted, power=1)"),
        ("knn(5, 'weighted')", "KNN(5, weighted)"),
        ("gd_plus_plus(0.02, 0.01)", "GD++(0.02, 0.01, 1)"),
        ("nadaraya_watson(2)", "NadarayaWatson(2)"),
        ("sgd(1e-3, clip=20)", "SGD(0.001, clip=20)"),
        ("sgd(0.03, clip=None)", "SGD(0.03)"),
        ("bayes(noise_variance=0.15, prior_variance=1.5)", "Ridge(0.1)"),
    ],
)
def test_a_predictor_is_what_its_text_calls_for(text, name):
    assert parse_predictor(text).name == name


def test_an_unknown_name_is_rejected_with_the_nearest():
    message = f"`predictor` must be one of {', '.join(CATALOG)}, got 'rige'. "
    with refuses(ValueError, message + "Did you mean 'ridge'?"):
        parse_predictor("rige(0.1)")


@pytest.mark.parametrize(
    ("text", "form", "remedy"),
    [
        ("ridge", "ridge(penalty)", "Missing a required argument: 'penalty'."),
        ("ols(1)", "ols()", "Too many positional arguments."),
        (
            "gd(0.02, step=8)",
            "gd(learning_rate, steps=1, penalty=0.0)",
            "Got an unexpected keyword argument 'step'.",
        ),
    ],
)
def test_wrong_arguments_are_rejected_with_the_right_ones(text, form, remedy):
    message = f"`predictor` must have the form {form}, got {text!r}. {remedy}"
    with refuses(ValueError, message):
        parse_predictor(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "0.1",
        "ridge(",
        "ridge(0.1) + ols",
        "ridge(float(1))",
        "ridge(*[1])",
        "ridge(**{'penalty': 1})",
        "a.ridge(0.1)",
        "__import__('os').system('true')",
        "ridge(0.1, penalty=1, penalty=2)",
        "ridge(\0)",
    ],
)
def test_text_that_is_no_plain_call_is_rejected(text):
    rule = "be a name, or a call with plain arguments such as 'ridge(0.1)'"
    with refuses(ValueError, f"`predictor` must {rule}, got {text!r}."):
        parse_predictor(text)


def test_the_references_of_figure_1_are_in_the_order_of_its_legend():
    assert [reference.name for reference in figure_1_references()] == [
        "OLS",
        "Ridge(0.1)",
        "Ridge(0.5)",
        "GD(0.01)",
        "GD(0.02)",
        "SGD(0.01)",
        "SGD(0.03)",
        "KNN(3, uniform)",
        "KNN(3, weighted)",
    ]


def python_blocks_of_the_guide() -> list[str]:
    guide = Path(__file__).parents[2] / "docs" / "how_to_add_a_predictor.md"
    return re.findall(r"```python\n(.*?)```", guide.read_text(), re.DOTALL)


def test_the_predictor_of_the_guide_works_as_it_says(monkeypatch):
    module, line, textbook, family = python_blocks_of_the_guide()
    names: dict[str, Any] = {"np": np, "partial": partial, "Entry": Entry}
    exec(module, names)
    exec(textbook, names)
    for name, entry in eval(f"{{{line}}}", names).items():
        monkeypatch.setitem(CATALOG, name, entry)
    predictor = example_predictors()[-1]
    assert predictor.name == "NormalizedGD(0.1, 4)"
    assert parse_predictor("normalized_gd(0.1, steps=4)").name == predictor.name
    predictions = predict(predictor, X, Y)
    for x, y, ours in zip(X, Y, predictions, strict=True):
        expected = [
            names["TEXTBOOK"][predictor.name](x[:n], y[:n], x[n])
            for n in range(EXAMPLES)
        ]
        assert_close(ours, expected, 1e-9)
    exec(family, names)
    fitted = Family(
        "scaled_gd",
        iterates=filter_iterates(names["scaled_gd"]),
        parameters=(Parameter("learning_rate", 1e-3, 2.0),),
    )
    points = {"learning_rate": np.array([0.7])}
    data = Prefixes(np.asarray(X, np.float64), np.asarray(Y, np.float64))
    ours = fitted.answers(data, points, {"steps": 3})[0]
    for row, n in ((0, 1), (1, 3), (0, EXAMPLES - 1)):
        gram = data.x[row, :n].T @ data.x[row, :n]
        w, rate = np.zeros(len(gram)), 0.7 / max(np.linalg.eigvalsh(gram)[-1], 1e-300)
        for _ in range(3):
            w = w - rate * (gram @ w - data.x[row, :n].T @ data.y[row, :n])
        assert ours[row, n] == pytest.approx(w @ data.x[row, n])
