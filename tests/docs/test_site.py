"""The documentation site: complete, without broken links, its notebooks run."""

import doctest
import json
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from support.pages import DOCS, PAGES, ROOT
from support.torch_present import require

import algoscope
from algoscope.experiments.record import Record

NOTEBOOKS = ("which_algorithm", "pytorch_model", "by_hand", "look_inside", "figure_1")
LARGEST = 300_000  # bytes of a notebook with its output

pytestmark = pytest.mark.timeout(1500)  # the first test builds


@cache
def parsed(path: Path) -> Any:
    """Return the elements of a page."""
    from bs4 import BeautifulSoup

    return BeautifulSoup(path.read_text(encoding="utf-8"), "html.parser")


def test_every_page_is_built_and_found_from_the_start(site):
    listed = {link["href"] for link in parsed(site / "index.html").select("nav a, a")}
    api = {link["href"] for link in parsed(site / "api/index.html").select("a[href]")}
    for page in PAGES:
        assert (site / page).is_file()
        name = Path(page).name
        assert page in listed or name in api or page == "index.html", page


def addresses(page: Path) -> Iterator[tuple[str, str]]:
    """Yield what a page links to or loads, each with the name of its element."""
    for element in parsed(page).select("[href], [src]"):
        yield element.name, str(element.get("href") or element.get("src"))


def test_no_link_is_broken_and_nothing_is_loaded_from_outside(site):
    broken = []
    for page in sorted(site.rglob("*.html")):
        if page.parent.name == "live":
            continue
        for kind, address in addresses(page):
            parts = urlsplit(address)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                assert kind == "a", f"{page.name} loads {address}"
                continue
            target = (page.parent / unquote(parts.path)).resolve()
            target = page if not parts.path else target
            anchor = unquote(parts.fragment)
            if not target.is_file() or (
                anchor and target.suffix == ".html" and not has(target, anchor)
            ):
                broken.append(f"{page.relative_to(site)}: {address}")
    assert not broken


def has(page: Path, anchor: str) -> bool:
    return parsed(page).find(id=anchor) is not None


def described(site: Path, name: str) -> str:
    """Return the text about a public name in the reference."""
    from sphinx.util.inventory import InventoryFile

    found = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    for kind in found.data:
        item = found.data[kind].get(f"algoscope.{name}") if kind[:3] == "py:" else None
        if item is not None:
            page, _, anchor = item.uri.partition("#")
            term = parsed(site / page).find(id=anchor.replace("$", item.display_name))
            assert term is not None
            return term.find_parent("dl").get_text()
    raise AssertionError(f"docs/api has no {name}")


def test_the_reference_has_every_public_name_with_an_example(site):
    for name in algoscope.__all__:
        assert ">>> " in described(site, name), f"{name} has no example"


@pytest.mark.parametrize(
    "page", [path for path in DOCS.glob("api/*.rst") if ">>>" in path.read_text()]
)
@pytest.mark.usefixtures("default_settings")
def test_examples_of_the_reference_run(page):
    failed, tried = doctest.testfile(str(page), module_relative=False)
    assert tried > 0
    assert failed == 0


def test_pages_link_to_the_glossary(site):
    for page in ("start", "probing", "identification", "sweeps", "constructions"):
        assert parsed(site / f"{page}.html").select("a.term-link"), page
    assert not parsed(site / "glossary.html").select("a.term-link")


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_notebook_installs_runs_and_is_offered_with_its_output(site, name):
    if name == "pytorch_model":
        require("torch")  # without it the notebook is shown without output
    page = site / "notebooks" / f"{name}.html"
    links = [address for _, address in addresses(page) if address.endswith(".ipynb")]
    assert len(links) == 1
    path = (page.parent / links[0]).resolve()
    assert path.stat().st_size < LARGEST
    cells = json.loads(path.read_text())["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert "%pip install" in "".join(code[0]["source"])
    assert [cell["execution_count"] for cell in code] == [*range(1, len(code) + 1)]
    kinds = [each["output_type"] for cell in code for each in cell["outputs"]]
    assert len(kinds) >= 4
    assert "error" not in kinds
    assert parsed(page).select(".cell_output")


def test_the_gallery_has_every_figure_with_its_command():
    text = (DOCS / "gallery.md").read_text()
    shown = re.findall(r"!\[[^]]+\]\(([^)]+)\)", text)
    drawn = [*ROOT.glob("results/**/*.png"), *DOCS.glob("images/*.png")]
    assert {(DOCS / each).resolve() for each in shown} == set(drawn)
    for saved in ROOT.glob("results/*/result.json"):
        assert f"$ {Record.load(saved.parent).command}\n" in text
