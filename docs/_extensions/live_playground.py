"""The playground, written beside the pages so that one of them can show it."""

from pathlib import Path

from sphinx.application import Sphinx

import algoscope


def write(app: Sphinx) -> None:
    """Write what `algoscope play` writes."""
    if app.builder.format == "html":
        out = Path(app.outdir) / "live"
        out.mkdir(parents=True, exist_ok=True)
        algoscope.play().write(out / "playground.html")


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the page before the others."""
    app.connect("builder-inited", write)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
