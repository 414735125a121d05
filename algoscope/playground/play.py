"""The page: models, modules and style in one file that needs nothing else.

The content security policy permits the page's own script, by its digest, and its
styles, and nothing from outside: no request can leave.
"""

import base64
import hashlib
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from algoscope.foundation.files import json_text, write_atomically
from algoscope.foundation.plotting import COLORS
from algoscope.foundation.validation import InvalidValueError
from algoscope.playground.bundle import bundle
from algoscope.playground.constructions import DIMS, constructions
from algoscope.playground.models import DEFAULT_MODELS, PageModel, find_models

PARTS = Path(__file__).with_name("parts")
ENTRY, PAGE = "app.js", "page.html"
POLICY = (
    "default-src 'none'; script-src '{digest}'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'"
)
FRAME_HEIGHT = 860  # pixels in a notebook


@dataclass(frozen=True)
class Playground:
    """The interactive page of some models: written to a file, or shown in a notebook.

    Example:
        >>> import tempfile
        >>> import algoscope as asc
        >>> page = asc.play("linear-d1")
        >>> page.names
        ('linear-d1',)
        >>> page.write(tempfile.mkdtemp() + "/playground.html").name
        'playground.html'
    """

    models: tuple[PageModel, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models in the page."""
        return tuple(model.name for model in self.models)

    @cached_property
    def html(self) -> str:
        """The whole page."""
        prepared = [each for dim in DIMS for each in constructions(dim)]
        return assemble([model.payload() for model in self.models], prepared)

    def write(self, out: str | Path) -> Path:
        """Write the page to a file that ends in .html, and return its path."""
        out = Path(out)
        if out.suffix != ".html":
            raise InvalidValueError("out", "end in .html", f"'{out}'")
        if out.is_dir():
            raise InvalidValueError("out", "be a file", f"the directory '{out}'")
        write_atomically(out, self.html.encode())
        return out

    def __repr__(self) -> str:
        return f"Playground({', '.join(map(repr, self.names))})"

    def _repr_html_(self) -> str:
        """Return the page in a frame, for a notebook."""
        return (
            f'<iframe srcdoc="{html.escape(self.html)}" title="algoscope playground" '
            'sandbox="allow-scripts allow-downloads" '
            f'style="width:100%;height:{FRAME_HEIGHT}px;border:0"></iframe>'
        )


def play(*models: str | Path) -> Playground:
    """Return the interactive page of some models.

    A model is the name of a shipped one, a directory, or an algorithm that can be
    compiled, such as `sgd`. Without any, the page has `linear-d1`, `linear-d2`, and SGD
    and ridge regression compiled for one and two inputs.

    Example:
        >>> import algoscope as asc
        >>> asc.play("linear-d1", "sgd")
        Playground('linear-d1', 'sgd-d1', 'sgd-d2')
    """
    return Playground(tuple(find_models(models or DEFAULT_MODELS)))


def read_modules() -> dict[str, str]:
    """Return the ES modules of the page by their paths."""
    return {
        path.relative_to(PARTS).as_posix(): path.read_text(encoding="utf-8")
        for path in sorted(PARTS.rglob("*.js"))
    }


def assemble(
    payload: Sequence[Mapping[str, object]],
    prepared: Sequence[Mapping[str, object]] = (),
) -> str:
    """Return the page of some models and constructions, given as plain values."""
    script = f"\n{bundle(read_modules(), ENTRY)}"
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    parts = {
        "policy": POLICY.format(digest=f"sha256-{digest}"),
        "style": _palette() + "".join(_style_sheets()),
        "models": _as_data(payload),
        "constructions": _as_data(prepared),
        "script": script,
    }
    page = (PARTS / PAGE).read_text(encoding="utf-8")
    return re.sub(r"\{(\w+)\}", lambda found: parts[found[1]], page)


def _as_data(values: Sequence[Mapping[str, object]]) -> str:
    """Return JSON for a script element, where only "<" could end it."""
    return json_text(list(values)).replace("<", r"\u003c")


def _style_sheets() -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(PARTS.glob("*.css"))]


def _palette() -> str:
    """Return the colors of the figures as variables of the style sheet."""
    named = [f"  --color-{place}: {color};" for place, color in enumerate(COLORS)]
    return "\n".join([":root {", *named, "}", ""])
