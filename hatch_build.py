"""README.md as a package index can show it: no link leads into the repository.

An index shows the text without the repository beside it. If `project.urls` has a
Repository, links and images point there, at the tag of this version. Otherwise images
go, with their captions, and links to files become their text.
"""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

IMAGE = re.compile(r"!\[([^\]]*)\]\((?!\w+:)([^)]+)\)")
CAPTIONED = re.compile(rf"^{IMAGE.pattern}\n\n(?:\*[^*].*?[^*]\*\n\n)?", re.M | re.S)
LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!\w+:|#)([^)]+)\)")


def long_description(readme: str, repository: str | None, version: str) -> str:
    """Return the text with absolute links, or with none into the repository."""
    if repository is None:
        return LINK.sub(r"\1", CAPTIONED.sub("", readme))
    files, raw = (f"{repository}/{kind}/v{version}" for kind in ("blob", "raw"))
    absolute = IMAGE.sub(rf"![\1]({raw}/\2)", readme)
    return LINK.sub(rf"[\1]({files}/\2)", absolute)


class ReadmeHook(MetadataHookInterface):
    """Sets the readme of the package's metadata."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme."""
        readme = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        repository = metadata.get("urls", {}).get("Repository")
        text = long_description(readme, repository, metadata["version"])
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
