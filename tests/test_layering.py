"""Imports point down: folders lie in bands, and each imports only from lower ones."""

import ast
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "algoscope"

IMPORTS = (ast.Import, ast.ImportFrom)

# From the bottom up. A folder may import from every band below its own.
BANDS = (
    {"foundation"},
    {"tasks", "model", "predictors"},
    {"comparison", "training", "construction"},
    {
        "identification",
        "probing",
        "patching",
        "layerwise",
        "adapters",
        "exchange",
        "sklearn",
    },
    {"experiments", "ground_truth"},
    {"reporting", "playground"},
    {"cli"},
    {"__main__"},  # python -m algoscope
)
# The imports within a band that are permitted, each for a reason.
SIDEWAYS = {
    ("model", "tasks"): "a learner knows the task it was trained on",
    ("training", "comparison"): "a finished run is compared with figure 1's references",
    ("patching", "probing"): "edits move what linear probes read",
    ("layerwise", "probing"): "an untrained network is the floor of read-outs too",
}
# The imports of a higher band that are permitted. They are late, inside a method that
# is a shorthand for a function of that band.
UPWARD = {("model", "layerwise"): "learner.readouts() is asc.readouts(learner)"}


def imported_folders(source: str, module: tuple[str, ...]) -> set[str]:
    """Return the folders of the package that a module's source imports anywhere."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        names: list[tuple[str, ...]] = []
        if isinstance(node, ast.Import):
            names = [tuple(alias.name.split(".")) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            base = tuple((node.module or "").split(".")) if node.module else ()
            if node.level:
                base = ("algoscope", *module[: len(module) - node.level], *base)
            names = [(*base, alias.name) for alias in node.names]
        for name in names:
            if name[0] == "algoscope":
                folder = name[1] if len(name) > 1 else "__init__"
                found.add(folder if folder in FOLDERS else "__init__")
    return found


FOLDERS = {
    path.stem
    for path in PACKAGE.iterdir()
    if path.stem not in ("__init__", "__pycache__", "models", "py")
}
FILES = [
    path.relative_to(PACKAGE)
    for path in sorted(PACKAGE.rglob("*.py"))
    if path != PACKAGE / "__init__.py"  # whose names are loaded on first use
]
BAND_OF = {folder: band for band, folders in enumerate(BANDS) for folder in folders}


def test_every_folder_lies_in_one_band():
    assert sorted(folder for band in BANDS for folder in band) == sorted(FOLDERS)


@pytest.mark.parametrize("file", FILES, ids=str)
def test_imports_point_down(file: Path):
    module = file.with_suffix("").parts
    own = module[0]
    for folder in imported_folders((PACKAGE / file).read_text(), module) - {own}:
        assert folder != "__init__", f"{file} imports the public names"
        exceptions = SIDEWAYS | UPWARD
        is_permitted = BAND_OF[folder] < BAND_OF[own] or (own, folder) in exceptions
        assert is_permitted, f"{own} must not import {folder}"


def test_permitted_imports_within_a_band_have_no_cycle_and_are_needed():
    for own, folder in SIDEWAYS:
        assert BAND_OF[own] == BAND_OF[folder]
        assert any(
            folder in imported_folders((PACKAGE / file).read_text(), file.parts)
            for file in FILES
            if file.parts[0] == own
        ), f"{own} does not import {folder} any more"
    graph: dict[str, set[str]] = {}
    for own, folder in SIDEWAYS:
        graph.setdefault(own, set()).add(folder)
    TopologicalSorter(graph).prepare()


def test_permitted_imports_of_a_higher_band_are_needed_and_late():
    for own, folder in UPWARD:
        assert BAND_OF[own] < BAND_OF[folder]
        files = [
            file
            for file in FILES
            if file.parts[0] == own
            and folder in imported_folders((PACKAGE / file).read_text(), file.parts)
        ]
        assert len(files) == 1
        tree = ast.parse((PACKAGE / files[0]).read_text())
        tree.body = [node for node in tree.body if isinstance(node, IMPORTS)]
        assert folder not in imported_folders(ast.unparse(tree), files[0].parts)


def test_no_folder_has_the_name_of_a_public_function():
    import algoscope

    assert not FOLDERS & set(algoscope.__all__)


@pytest.mark.parametrize(
    ("source", "module", "folders"),
    [
        ("import algoscope.tasks", "cli.main", {"tasks"}),
        ("from algoscope import tasks", "cli.main", {"tasks"}),
        ("from algoscope.tasks.task import Task", "cli.main", {"tasks"}),
        ("from . import main", "cli.train", {"cli"}),
        ("from ..tasks import task", "cli.train", {"tasks"}),
        ("def late():\n    from algoscope.tasks import task", "cli.main", {"tasks"}),
        ("import algoscope", "cli.main", {"__init__"}),
        ("from algoscope import LinearRegression", "cli.main", {"__init__"}),
        ("import jax\nfrom algoscopes import tasks", "cli.main", set()),
    ],
)
def test_every_form_of_import_is_seen(source: str, module: str, folders: set[str]):
    assert imported_folders(source, tuple(module.split("."))) == folders
