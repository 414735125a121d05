"""What commands print beside their results, to the standard error stream."""

import sys


class UsageError(Exception):
    """A command that cannot be run as it was typed; the message is a plain sentence."""


def complain(message: object) -> None:
    """Print in one line why something failed."""
    print(f"algoscope: {message}", file=sys.stderr, flush=True)


def note(message: object) -> None:
    """Print what is about to happen."""
    print(message, file=sys.stderr, flush=True)
