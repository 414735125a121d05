"""The directive `command-help`: what `algoscope COMMAND --help` prints, for all."""

import contextlib
import io
import os

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from algoscope.cli.main import COMMANDS, main

WIDTH = "80"  # columns


def help_of(command: str) -> str:
    """Return the help text of a command."""
    shown = io.StringIO()
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = WIDTH
    try:
        with contextlib.redirect_stdout(shown):
            main([command, "--help"])
    finally:
        del os.environ["COLUMNS"]
        if before is not None:
            os.environ["COLUMNS"] = before
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines())


class CommandHelp(SphinxDirective):
    """One section for each command."""

    def run(self) -> list[nodes.Node]:
        """Return the sections."""
        sections = []
        for name, about in COMMANDS.items():
            section = nodes.section(ids=[nodes.make_id(name)], names=[name])
            section += nodes.title(name, "", nodes.literal(name, name))
            section += nodes.paragraph(about, about)
            section += nodes.literal_block(text := help_of(name), text, language="text")
            sections.append(section)
        return sections


def setup(app: Sphinx) -> dict[str, bool]:
    """Offer the directive."""
    app.add_directive("command-help", CommandHelp)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
