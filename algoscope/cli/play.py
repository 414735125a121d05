"""`algoscope play`: learners seen from inside, as a page to play with."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro

from algoscope.cli import show
from algoscope.cli.destinations import require_file, write_or_rescue

EXAMPLES = """
algoscope play --open
algoscope play linear-d2 sgd --out playground.html
"""


@dataclass(frozen=True)
class Play:
    """Write the playground: a page in which learners are seen from inside."""

    models: Annotated[
        tyro.conf.Positional[tuple[str, ...]], tyro.conf.arg(metavar="MODEL")
    ] = ()
    """Shipped models, directories, or algorithms to compile, such as sgd. By default
    linear-d1, linear-d2, sgd and ridge."""
    out: Path = Path("playground.html")
    """The page to write."""
    open: bool = False
    """Show it in the browser."""


def run_play(command: Play) -> None:
    """Write the page, say where it is, and open it if asked to."""
    require_file("out", command.out)
    from algoscope.playground import play

    page = play(*command.models)
    write_or_rescue(command.out, page.write)
    out = command.out
    size = f"{out.stat().st_size / 1e6:.1f} MB"
    show(f"{out}: {', '.join(page.names)}, {size}. Open it in a browser.")
    if command.open:
        import webbrowser

        webbrowser.open(out.resolve().as_uri())
