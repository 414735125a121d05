"""What a user types names a learner, or is rejected with a suggestion."""

import re
import sys

import numpy as np
import pytest
from sklearn.linear_model import Ridge
from support.boxes import PENALTY, questions, solve_ridge
from support.refusals import refuses

from algoscope import InContextLearner
from algoscope.adapters import EstimatorPredictor, FunctionPredictor, load_target
from algoscope.comparison.predict import predict_all
from algoscope.predictors import ridge


def test_models_are_loaded_by_name_and_by_directory(tmp_path):
    model = load_target("linear-d1")
    assert isinstance(model, InContextLearner)
    model.save_pretrained(tmp_path / "mine")
    saved = load_target(str(tmp_path / "mine"))
    assert (model.name, saved.name) == ("linear-d1", "linear-d1")


def test_references_are_read_as_calls():
    assert load_target("ridge(0.1)").name == "Ridge(0.1)"
    assert load_target(" OLS ").name == "OLS"


def test_regressors_are_found_by_name(data):
    text = "sklearn:Ridge(alpha=0.3, fit_intercept=False)"
    box = load_target(text)
    assert box.name == text
    expected = predict_all(ridge(PENALTY), *data)[:, 1:]
    np.testing.assert_allclose(predict_all(box, *data)[:, 1:], expected, atol=1e-8)
    assert load_target("sklearn:LinearRegression").name == "sklearn:LinearRegression"


MODULE = """
from sklearn.linear_model import Ridge, LogisticRegression
import numpy as np

def mean(X, y, x_query):
    return y.mean()

made = Ridge(alpha=0.3, fit_intercept=False)
number = 3
class Other: ...
class Needy(Ridge):
    def __init__(self, alpha): raise ValueError("no")
class Space:
    mean = staticmethod(mean)
"""


@pytest.fixture
def module(tmp_path, monkeypatch, seed) -> str:
    """A module in the current directory, under a name of this test's own."""
    name = f"mine_{seed}"
    (tmp_path / f"{name}.py").write_text(MODULE)
    (tmp_path / f"{name}_broken.py").write_text("import no_such_module_at_all")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    return name


def test_functions_and_regressors_are_imported(module, data):
    asked = questions(*data)[:1]
    for name in ("mean", "Space.mean"):
        box = load_target(f"python:{module}:{name}")
        assert isinstance(box, FunctionPredictor)
        assert box.name == f"python:{module}:{name}"
        np.testing.assert_allclose(next(box.answers(asked)), asked[0].y.mean())
    made = load_target(f"python:{module}:made")
    kind = load_target(f"python:{module}:Ridge")
    assert isinstance(made, EstimatorPredictor)
    assert isinstance(kind, EstimatorPredictor)
    expected = Ridge().fit(asked[0].x, asked[0].y).predict(asked[0].queries)
    np.testing.assert_allclose(next(kind.answers(asked)), expected)


def test_commands_are_split_as_a_shell_does(server, data):
    program, script = server()
    text = f"cmd:{program} '{script}'"
    box = load_target(text, timeout=30.0)
    assert box.name == text
    expected = predict_all(FunctionPredictor(solve_ridge), *data)
    np.testing.assert_array_equal(predict_all(box, *data), expected)


LITERAL = "be a class with literal keyword arguments after sklearn:"
FOR_EXAMPLE = "For example: sklearn:Ridge(alpha=0.3)."


@pytest.mark.parametrize(
    ("text", "rule", "remedy"),
    [
        (
            "linear-d9",
            "be a model, a reference, or start with sklearn:, torch:, python: or cmd:",
            "Did you mean 'linear-d8'?",
        ),
        (
            "ridgee",
            "be a model, a reference, or start with sklearn:, torch:, python: or cmd:",
            "Did you mean 'ridge'?",
        ),
        (
            "",
            "be a model, a reference, or start with sklearn:, torch:, python: or cmd:",
            "",
        ),
        ("runs/no-such-run", "be a directory that exists", ""),
        (
            "sklearn:Rigde()",
            "name a regressor of scikit-learn",
            "Did you mean 'Ridge'?",
        ),
        ("sklearn:LogisticRegression()", "name a regressor of scikit-learn", "Did you"),
        ("sklearn:Ridge(alpha=exit())", LITERAL, FOR_EXAMPLE),
        ("sklearn:Ridge(alpha=", LITERAL, FOR_EXAMPLE),
        ("sklearn:Ridge(0.3)", LITERAL, FOR_EXAMPLE),
        ("sklearn:Ridge(**{})", LITERAL, FOR_EXAMPLE),
        ("sklearn:linear_model.Ridge()", LITERAL, FOR_EXAMPLE),
        ("sklearn:", LITERAL, FOR_EXAMPLE),
        ("python:mine", "be python:module:function", "For example: python:my_module"),
        ("python::f", "be python:module:function", "For example: python:my_module"),
        ("cmd:", "name a program that can be run", "Give the path of an exec"),
        (
            "cmd:no-such-program a",
            "name a program that can be run",
            "Give the path of",
        ),
        ("cmd:python 'a", "be a command as a shell reads it", "No closing quotation."),
    ],
)
def test_a_target_that_cannot_be_is_rejected(text, rule, remedy):
    message = f"`target` must {rule}, got '{text}'. {remedy}".rstrip()
    with pytest.raises(ValueError, match=rf"\A{re.escape(message)}") as caught:
        load_target(text)
    assert "\n" not in str(caught.value)


def test_unknown_parameters_of_a_regressor_are_rejected():
    message = "`target` must use parameters of Ridge, got 'sklearn:Ridge(alfa=1) with"
    with refuses(ValueError, f"{message} alfa'. Did you mean 'alpha'?"):
        load_target("sklearn:Ridge(alfa=1)")
    with pytest.raises(ValueError, match="It raised TypeError: .*'estimator'"):
        load_target("sklearn:MultiOutputRegressor()")


def test_what_is_wrong_with_a_reference_is_said_by_its_parser():
    message = "`penalty` must be positive, got -1.0. For no penalty, use `ols`."
    with refuses(ValueError, message):
        load_target("ridge(-1.0)")
    with pytest.raises(ValueError, match=r"must have the form ridge\(penalty\)"):
        load_target("ridge")


def test_modules_that_do_not_give_a_learner_are_rejected(module, tmp_path):
    imported = f"name a module that can be imported from {tmp_path}"
    for name in ("no_such_module_at_all", f"{module}_broken"):
        message = rf"must {re.escape(imported)}, got 'python:{name}:f'\. It raised "
        error = "ModuleNotFoundError: No module named 'no_such_module_at_all' "
        with pytest.raises(ValueError, match=message + error):
            load_target(f"python:{name}:f")
    with refuses(
        ValueError,
        f"`target` must name something in {module}, got 'python:{module}:maen'. "
        "Did you mean 'mean'?",
    ):
        load_target(f"python:{module}:maen")
    rule = "must name a function, a model or a regressor, got python:"
    for name in ("number", "Other"):
        with pytest.raises(TypeError, match=f"{rule}{module}:{name}"):
            load_target(f"python:{module}:{name}")
    with pytest.raises(ValueError, match="It raised TypeError: .*alpha"):
        load_target(f"python:{module}:Needy")


def test_a_target_or_timeout_of_the_wrong_kind_is_rejected():
    with refuses(TypeError, "`target` must be text, got 3."):
        load_target(3)  # pyright: ignore[reportArgumentType]
    with refuses(ValueError, "`timeout` must be positive, got 0.0."):
        load_target("ols", timeout=0.0)
