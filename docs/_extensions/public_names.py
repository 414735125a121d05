"""The public names in the API reference: their docstrings, and links between them.

Docstrings are written for people, not for reStructuredText: a bar is an absolute value.
Types in signatures link to the public names, wherever these are defined.
"""

import re
from typing import Any

from docutils import nodes
from sphinx.addnodes import pending_xref
from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment

import algoscope

ARRAYS = re.compile(r"\b(jaxlib\._jax|jax|numpy)\.(Array|ndarray)\b")


def resolve(
    app: Sphinx, env: BuildEnvironment, node: pending_xref, shown: nodes.TextElement
) -> Any:
    """Return a link to `algoscope.X` for a reference to X in the module that has it."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") != "py" or name not in algoscope.__all__:
        return None
    target, page = f"algoscope.{name}", node["refdoc"]
    found = env.domains["py"].resolve_any_xref(
        env, page, app.builder, target, node, shown
    )
    return found[0][1] if found else None


def keep_bars(
    app: Sphinx, what: str, name: str, thing: Any, options: Any, lines: list[str]
) -> None:
    """Keep |x| in the text of a docstring from being read as a substitution."""
    in_example = False
    for i, line in enumerate(lines):
        in_example = bool(line) and (in_example or line.lstrip().startswith(">>>"))
        if not in_example:
            lines[i] = line.replace("|", "\\|")


def shorten(
    app: Sphinx,
    what: str,
    name: str,
    thing: Any,
    options: Any,
    signature: str | None,
    returned: str | None,
) -> tuple[str | None, str | None]:
    """Write the arrays of jaxtyping as their source does: Float[Array, "dim"]."""

    def short(text: str | None) -> str | None:
        return text and ARRAYS.sub("Array", text)

    return short(signature), short(returned)


def setup(app: Sphinx) -> dict[str, bool]:
    """Take part where docstrings are read and where references are resolved."""
    app.connect("autodoc-process-docstring", keep_bars)
    app.connect("autodoc-process-signature", shorten)
    app.connect("missing-reference", resolve)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
