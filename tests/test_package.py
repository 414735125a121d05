"""What is published: versions agree, and the long description stands alone."""

import importlib.util
import re
import tomllib
from pathlib import Path

import pytest

from algoscope.foundation.plugins import GROUPS

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RELATIVE = re.compile(r"\]\((?!\w+:|#)")


@pytest.fixture(scope="module")
def long_description():
    pytest.importorskip("hatchling", reason="no hatchling here, which builds packages")
    path = ROOT / "hatch_build.py"
    spec = importlib.util.spec_from_file_location("hatch_build", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.long_description


def test_the_long_description_has_no_link_into_a_repository_without_address(
    long_description,
):
    readme = (ROOT / "README.md").read_text()
    text = long_description(readme, None, "1.0.0")
    assert RELATIVE.search(readme)
    assert not RELATIVE.search(text)
    assert "![" not in text
    assert "The shipped model `linear-d8` against" not in text  # the caption
    assert re.findall("^## .*", text, re.M) == re.findall("^## .*", readme, re.M)
    assert re.findall("```", text) == re.findall("```", readme)


def test_the_long_description_points_at_the_tag_of_a_repository(long_description):
    text = long_description(
        "![A (b)](docs/a.png) [c](docs/c.md#d) [e](https://e.org) [f](#f)",
        "https://host/owner/name",
        "1.2.3",
    )
    assert text == (
        "![A (b)](https://host/owner/name/raw/v1.2.3/docs/a.png) "
        "[c](https://host/owner/name/blob/v1.2.3/docs/c.md#d) "
        "[e](https://e.org) [f](#f)"
    )


def test_versions_agree():
    version = PROJECT["version"]
    assert f"\nversion: {version}\n" in (ROOT / "CITATION.cff").read_text()
    released = re.findall(
        r"^## \[([\d.]+)\] - \d{4}-\d\d-\d\d$",
        (ROOT / "CHANGELOG.md").read_text(),
        re.MULTILINE,
    )
    assert released[0] == version


def test_the_guide_and_the_example_name_every_group_of_plugins():
    guide = (ROOT / "docs" / "how_to_add_a_predictor.md").read_text()
    example = (ROOT / "examples" / "plugin" / "pyproject.toml").read_text()
    shown = re.search(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert shown is not None
    assert shown[1] in example
    assert set(tomllib.loads(example)["project"]["entry-points"]) == set(GROUPS)
