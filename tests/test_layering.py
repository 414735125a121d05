"""A module may import only from the layers below its own (see docs/architecture.md)."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "algoscope"

# From the bottom up. A subpackage is one part: its files may import each other.
LAYERS = [
    {"progress", "provenance", "strict_json", "validation"},
    {"configuration"},
    {"layer", "machine"},
    {"tasks", "transformer"},
    {
        "checkpoints",
        "initialization",
        "metrics",
        "predictors",
        "sequences",
    },
    {"canvas", "curves", "evaluation", "operands", "optimizers", "pretrained"},
    {"learner", "measurements", "results", "training"},
    {"adapters", "comparison", "construction", "estimator"},
    {"cards", "figures", "identification", "verdict"},
    {"probing", "runs"},
    {"patching", "sweeps"},
    {"experiments"},
    {"__init__"},
    {"console"},
    {"demo", "report"},
    {"commands"},
    {"cli"},
]
RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

SOURCES = {
    source.relative_to(PACKAGE).with_suffix("").parts: source
    for source in sorted(PACKAGE.rglob("*.py"))
}
PARTS = {module[0] for module in SOURCES} | set(RANK)


def imported_names(tree: ast.AST, package: tuple[str, ...]) -> Iterator[str]:
    """Yield the dotted name of each import, at any depth, in a file of `package`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            start = [*above, *([node.module] if node.module else [])]
            yield from (".".join([*start, alias.name]) for alias in node.names)


def imported_parts(source: str, module: tuple[str, ...]) -> set[str]:
    """Return the parts of algoscope that `source`, the text of `module`, imports.

    What is taken from `algoscope` itself and is not a part comes from `__init__`.
    """
    names = imported_names(ast.parse(source), ("algoscope", *module[:-1]))
    paths = (name.split(".") for name in names)
    taken = {path[1] if path[1:] else "" for path in paths if path[0] == "algoscope"}
    return {name if name in PARTS else "__init__" for name in taken}


@pytest.mark.parametrize("module", SOURCES, ids=".".join)
def test_imports_point_down(module: tuple[str, ...]):
    part = module[0]
    assert part in RANK, f"`{part}` has no layer: add it to LAYERS in {__file__}"
    for used in imported_parts(SOURCES[module].read_text(), module) - {part}:
        assert used in RANK, f"`{used}` has no layer: add it to LAYERS in {__file__}"
        assert RANK[used] < RANK[part], f"`{part}` must not import `{used}`: not below"


def test_every_part_has_one_layer():
    assert sum(map(len, LAYERS)) == len(RANK)


@pytest.mark.parametrize(
    ("source", "module", "parts"),
    [
        ("import algoscope.tasks", "cli", {"tasks"}),
        ("import algoscope.predictors.ridge as r", "cli", {"predictors"}),
        ("from algoscope import tasks, transformer", "cli", {"tasks", "transformer"}),
        ("from algoscope.tasks import Task", "cli", {"tasks"}),
        ("from . import tasks", "cli", {"tasks"}),
        ("from .tasks import Task", "cli", {"tasks"}),
        ("from .. import tasks", "predictors.ridge", {"tasks"}),
        ("from ..tasks import Task", "predictors.ridge", {"tasks"}),
        ("from .interface import Predictor", "predictors.ridge", {"predictors"}),
        ("from .interface import Predictor", "predictors.__init__", {"predictors"}),
        ("def late():\n    from algoscope.tasks import Task", "cli", {"tasks"}),
        ("import algoscope", "cli", {"__init__"}),
        ("from algoscope import LinearRegression", "cli", {"__init__"}),
        ("import jax\nfrom algoscopes import tasks", "cli", set()),
    ],
)
def test_every_form_of_import_is_seen(source: str, module: str, parts: set[str]):
    assert imported_parts(source, tuple(module.split("."))) == parts
