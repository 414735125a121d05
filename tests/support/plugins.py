"""Packages with plug-ins, as an installer would leave them, in a temporary folder."""

import tomllib
from collections.abc import Mapping
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "examples" / "plugin"


def install(
    site: Path, name: str, points: Mapping[str, Mapping[str, str]], code: str
) -> None:
    """Write a package's module and its metadata, with entry points by group."""
    module = name.replace("-", "_")
    (site / f"{module}.py").write_text(code)
    metadata = site / f"{module}-1.0.0.dist-info"
    metadata.mkdir(parents=True)
    text = f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0.0\n"
    (metadata / "METADATA").write_text(text)
    groups = [
        "\n".join([f"[{group}]", *(f"{key} = {value}" for key, value in each.items())])
        for group, each in points.items()
    ]
    (metadata / "entry_points.txt").write_text("\n".join(groups))


def install_example(site: Path) -> None:
    """Install examples/plugin as its own pyproject.toml describes it."""
    project = tomllib.loads((EXAMPLE / "pyproject.toml").read_text())["project"]
    (module,) = EXAMPLE.glob("*.py")
    install(site, project["name"], project["entry-points"], module.read_text())
