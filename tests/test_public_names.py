"""What `import algoscope` offers is what its type stubs say, and it loads."""

import ast
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
