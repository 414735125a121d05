"""The pages of the documentation site, as addresses in it."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = sorted(
    path.relative_to(DOCS).with_suffix(".html").as_posix()
    for kind in ("*.md", "*.rst")
    for path in DOCS.rglob(kind)
)
