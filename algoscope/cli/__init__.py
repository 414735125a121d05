"""`algoscope <command>`: one file per command, its options and what it does.

The options of a command are a frozen dataclass, whose docstrings are the help. Nothing
here imports JAX before a command runs, so that help is instant. Beside their results
commands print short messages to the standard error stream, with the functions below.
"""

import sys

from algoscope.foundation.text import LONGEST_MESSAGE, visible


class UsageError(Exception):
    """A command that cannot be run as it was typed; the message is a plain sentence."""


def complain(message: object) -> None:
    """Print in one line why something failed."""
    print(
        f"algoscope: {visible(message, LONGEST_MESSAGE)}", file=sys.stderr, flush=True
    )


def note(message: object) -> None:
    """Print what is about to happen."""
    print(visible(message, LONGEST_MESSAGE), file=sys.stderr, flush=True)


def show(text: object) -> None:
    """Print an answer, line by line; control characters in it are made visible."""
    print("\n".join(visible(line) for line in str(text).split("\n")), flush=True)
