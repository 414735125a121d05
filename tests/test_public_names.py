"""What `import algoscope` offers is what its type stubs say, and it loads."""

import ast
import html
from pathlib import Path

import pytest

import algoscope


def typed_names() -> dict[str, str]:
    tree = ast.parse(Path(algoscope.__file__).read_text())
    (block,) = (node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_type_checkers_and_programs_see_the_same_names():
    assert set(typed_names()) == set(dir(algoscope)) - {"__version__"}


@pytest.mark.parametrize(("name", "home"), typed_names().items())
def test_every_public_name_loads_from_its_home(name, home):
    from importlib import import_module

    assert getattr(algoscope, name) is getattr(import_module(home), name)


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'gradient_descent'"):
        algoscope.gradient_descent  # noqa: B018


DATA = {"ALGORITHMS", "PRESETS"}  # dictionaries
# Predictors without parameters: their class, `LinearPredictor`, has the example.
READY = {"average", "ols", "zero"}


@pytest.mark.parametrize("name", sorted(set(algoscope.__all__) - DATA - READY))
def test_every_public_name_shows_a_runnable_example(name):
    assert ">>> " in (getattr(algoscope, name).__doc__ or "")


def test_every_textbook_predictor_is_public():
    from algoscope.predictors import CATALOG

    assert set(CATALOG) <= set(algoscope.__all__)


def test_a_star_import_brings_the_public_names():
    namespace: dict[str, object] = {}
    exec("from algoscope import *", namespace)
    assert set(algoscope.__all__) <= set(namespace)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Comparison", "algoscope/models/linear-d8/evaluation.json"),
        ("PatchingResult", "results/patching/linear-d4"),
        ("ProbingResult", "results/fig4"),
        ("Record", "results/fig2"),
    ],
)
def test_every_saved_result_answers_draws_tabulates_and_shows_itself(kind, path):
    found = getattr(algoscope, kind).load(Path(__file__).parent.parent / path)
    assert 20 < len(repr(found)) < 400
    assert found.plot()._repr_png_().startswith(b"\x89PNG")
    assert len(found.table()) == len(found.rows()) > 0
    assert found.sentence in html.unescape(found._repr_html_())
